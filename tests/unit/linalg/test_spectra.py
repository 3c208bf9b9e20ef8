from __future__ import annotations

import numpy as np
import pytest
import torch

from core.linalg.spectra import centered_gram, mean_row, spectrum


def singular(x):
    return np.linalg.svd(np.asarray(x, dtype=np.float64), compute_uv=False)


@pytest.mark.parametrize("shape", [(500, 20), (5000, 7), (20, 60), (30, 30)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_agrees_with_numpy(shape, dtype):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype) + 2
    found = spectrum(torch.from_numpy(x))
    wide = x.astype(np.float64)
    want = singular(wide - wide.mean(0))
    if shape[0] <= shape[1]:
        want[shape[0] - 1 :] = 0
    np.testing.assert_allclose(found.centered.numpy(), want, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.raw.numpy(), singular(wide), rtol=1e-9)
    np.testing.assert_allclose(found.variances.numpy(), want**2 / (shape[0] - 1), rtol=1e-9)


@pytest.mark.parametrize(("kappa", "route"), [(6.9e4, "gram"), (1e7, "qr"), (1e11, "qr")])
def test_ill_conditioned_rotated_data(kappa, route):
    rng = np.random.default_rng(1)
    d, n = 60, 900
    basis = np.linalg.qr(np.c_[np.ones(n), rng.standard_normal((n, d))])[0][:, 1:]
    s = np.geomspace(1, 1 / kappa, d)
    x = (basis * s) @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    found = spectrum(torch.from_numpy(x))
    assert found.route == route
    got = float(found.centered[0] / found.centered[-1])
    assert got == pytest.approx(kappa, rel=1e-6 if kappa < 1e8 else 1e-4)


def test_rank_of_a_deficient_matrix():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((400, 5)) @ rng.standard_normal((5, 30))
    assert spectrum(torch.from_numpy(x)).rank == 5
    assert spectrum(torch.full((50, 3), 0.1)).rank == 0


def test_constant_cloud_is_exactly_zero():
    found = spectrum(torch.full((300, 40), 0.1))
    assert found.collapsed
    assert float(found.centered.max()) == 0


def test_blocks_do_not_matter(monkeypatch):
    x = torch.from_numpy(np.random.default_rng(3).standard_normal((700, 9)))
    gram, mean = centered_gram(x), mean_row(x)
    monkeypatch.setattr("core.linalg.spectra.BLOCK", 64)
    np.testing.assert_allclose(centered_gram(x), gram, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(mean_row(x), mean, rtol=1e-12, atol=1e-14)
