"""PARAM's losses: analytic values, invariances, gradients against finite differences."""

from __future__ import annotations

import math

import pytest
import torch

from core.stitching import losses


def rand(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_nce_of_constant_rows_is_log_of_the_batch():
    value = losses.symmetric_nce(torch.ones(24, 5).double(), rand(1, 5).expand(24, 5), 0.3)
    assert abs(value.item() - math.log(24)) < 1e-12


def test_nce_is_symmetric_and_blind_to_row_length():
    a, b = rand(20, 6), rand(20, 6, seed=1)
    value = losses.symmetric_nce(a, b, 0.3)
    assert abs(value - losses.symmetric_nce(b, a, 0.3)) < 1e-12
    stretched = a * torch.linspace(0.1, 9.0, 20).double()[:, None]
    assert abs(value - losses.symmetric_nce(stretched, b, 0.3)) < 1e-12


def test_nce_of_identical_rows_vanishes_as_tau_goes_to_zero():
    a = rand(20, 6)
    assert losses.symmetric_nce(a, a, 1e-3) < 1e-6


def test_correlation_from_orthonormal_to_antipodal():
    assert losses.correlation(torch.eye(5).double()) < 1e-12
    row = rand(1, 5)
    assert abs(losses.correlation(torch.cat([row, -row, row])) - 1.0) < 1e-12


def test_length_is_zero_at_its_target():
    anchors = rand(4, 3)
    anchors = anchors / anchors.norm(dim=1, keepdim=True) * 2.5
    assert losses.length(anchors, torch.tensor(2.5).double()) < 1e-12


def test_coverage_of_one_anchor_at_the_mean_is_one_and_tends_to_inertia():
    z = rand(200, 4)
    z = z - z.mean(0)
    assert abs(losses.coverage(z, torch.zeros(1, 4).double()) - 1.0) < 1e-12
    anchors = z[:7]
    inertia = torch.cdist(z, anchors).pow(2).min(1).values.sum() / z.pow(2).sum()
    tight = losses.coverage(z, anchors, 1e-5)
    assert abs(tight - inertia) < 1e-4
    assert abs(losses.coverage(z, anchors) - losses.coverage(z, anchors, rel=z @ anchors.T)) < 1e-12


def test_entropy_floor_counts_the_shortfall_only():
    wide = torch.full((3, 50), 1 / 50).double()
    assert losses.entropy_floor(wide, 20) == 0
    sharp = torch.eye(3, 50).double()
    assert abs(losses.entropy_floor(sharp, 20) - math.log(20)) < 1e-9


def test_zero_anchors_stay_finite():
    zero = torch.zeros(3, 4).double()
    z = rand(10, 4)
    values = [
        losses.coverage(z, zero),
        losses.correlation(zero),
        losses.length(zero, torch.tensor(0.0).double()),
        losses.symmetric_nce(z @ zero.T, z @ zero.T, 0.3),
    ]
    assert all(torch.isfinite(v) for v in values)


@pytest.mark.parametrize("name", ["coverage", "correlation", "length", "nce", "entropy"])
def test_gradients_against_finite_differences(name):
    z, sub_a, sub_b = rand(9, 4), rand(6, 4, seed=1), rand(6, 4, seed=2)

    def loss(q: torch.Tensor) -> torch.Tensor:
        mixing = torch.softmax(q, 1)
        anchors = mixing @ sub_a
        return {
            "coverage": lambda: losses.coverage(z, anchors),
            "correlation": lambda: losses.correlation(anchors),
            "length": lambda: losses.length(anchors, torch.tensor(0.7).double()),
            "nce": lambda: losses.symmetric_nce(z @ anchors.T, z @ (mixing @ sub_b).T),
            "entropy": lambda: losses.entropy_floor(mixing, 5.9),
        }[name]()

    assert torch.autograd.gradcheck(loss, (rand(3, 6, seed=3).requires_grad_(),), atol=1e-7)
