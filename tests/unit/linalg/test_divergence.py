"""Divergences against closed forms, quadrature and stored reference values."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

from core.errors import BadInput
from core.linalg.divergence import gaussian_kl, gaussian_symmetric_kl, symmetric_kl
from core.linalg.gmm import GaussianMixture

REFERENCE = json.loads(
    (Path(__file__).parents[2] / "reference" / "reference_values.json").read_text()
)
M0, S0 = np.zeros(2), np.array([[1.0, 0.5], [0.5, 2.0]])
M1, S1 = np.array([1.0, -1.0]), np.array([[2.0, -0.3], [-0.3, 1.0]])


def line(weights, means, spreads):
    return GaussianMixture(
        np.array(weights), np.array(means)[:, None], np.array(spreads)[:, None, None] ** 2
    )


P = line([0.5, 0.5], [-1.0, 1.0], [0.5, 0.5])
Q = line([0.3, 0.7], [-1.0, 1.5], [0.7, 0.6])


def test_spec_values_in_one_dimension():
    one, zero = np.eye(1), np.zeros(1)
    assert gaussian_kl(zero, one, np.ones(1), one) == pytest.approx(0.5)
    assert gaussian_kl(np.ones(1), one, zero, one) == pytest.approx(0.5)
    assert gaussian_kl(zero, one, zero, 4 * one) == pytest.approx(0.318147, abs=1e-6)
    assert gaussian_kl(zero, 4 * one, zero, one) == pytest.approx(0.806853, abs=1e-6)
    assert 2 * gaussian_symmetric_kl(zero, one, zero, 4 * one) == pytest.approx(1.125)


def test_spec_values_in_two_dimensions():
    assert gaussian_kl(M0, S0, M1, S1) == pytest.approx(1.059451, abs=1e-6)
    assert gaussian_kl(M1, S1, M0, S0) == pytest.approx(1.613399, abs=1e-6)
    assert gaussian_symmetric_kl(M0, S0, M1, S1) == pytest.approx(1.336425, abs=1e-6)


def test_stored_reference():
    want = REFERENCE["kl/gauss2d"]["value"]
    m0, s0 = np.array([1, 0.5]), np.array([[0.3, 0.1], [0.1, 0.4]])
    m1, s1 = np.array([1.3, 0.2]), np.array([[0.5, -0.1], [-0.1, 0.2]])
    assert gaussian_kl(m0, s0, m1, s1) == pytest.approx(want["kl01"], rel=1e-9)
    assert gaussian_kl(m1, s1, m0, s0) == pytest.approx(want["kl10"], rel=1e-9)


def test_the_sum_is_the_closed_form_of_the_specification():
    inverse0, inverse1 = np.linalg.inv(S0), np.linalg.inv(S1)
    delta = M1 - M0
    j = 0.5 * np.trace(inverse1 @ S0 + inverse0 @ S1 - 2 * np.eye(2))
    j += 0.5 * delta @ (inverse0 + inverse1) @ delta
    assert 2 * gaussian_symmetric_kl(M0, S0, M1, S1) == pytest.approx(j, rel=1e-12)


def test_is_zero_for_equals_symmetric_and_affine_invariant():
    rng = np.random.default_rng(0)
    shape, shift = rng.standard_normal((2, 2)) + 2 * np.eye(2), rng.standard_normal(2)
    value = gaussian_symmetric_kl(M0, S0, M1, S1)
    assert gaussian_symmetric_kl(M0, S0, M0, S0) == pytest.approx(0, abs=1e-12)
    assert gaussian_symmetric_kl(M1, S1, M0, S0) == pytest.approx(value)
    moved = gaussian_symmetric_kl(
        shape @ M0 + shift, shape @ S0 @ shape.T, shape @ M1 + shift, shape @ S1 @ shape.T
    )
    assert moved == pytest.approx(value, rel=1e-9)


def test_a_batch_is_the_same_as_one_at_a_time():
    both = gaussian_kl(
        np.stack([M0, M1]), np.stack([S0, S1]), np.stack([M1, M0]), np.stack([S1, S0])
    )
    assert both == pytest.approx([1.059451, 1.613399], abs=1e-6)


def test_mixtures_within_four_standard_errors_of_quadrature():
    out = symmetric_kl(P, Q, n_samples=200_000, seed=0)
    assert out.se < 0.002
    assert abs(out.kl_pq - 0.301424) < 4 * 0.00136
    assert abs(out.kl_qp - 0.482185) < 4 * 0.003
    assert abs(out.value - 0.5 * (0.301424 + 0.482185)) < 4 * out.se


def test_the_quadrature_of_the_specification_is_right():
    def p(x):
        return 0.5 * norm.pdf(x, -1, 0.5) + 0.5 * norm.pdf(x, 1, 0.5)

    def q(x):
        return 0.3 * norm.pdf(x, -1, 0.7) + 0.7 * norm.pdf(x, 1.5, 0.6)

    area = quad(lambda x: p(x) * np.log(p(x) / q(x)), -6, 6, limit=200)[0]
    assert area == pytest.approx(0.301424, abs=1e-6)


def test_monte_carlo_agrees_with_the_closed_form_for_a_split_gaussian():
    whole = GaussianMixture(np.ones(1), M0[None], S0[None])
    split = GaussianMixture(np.full(2, 0.5), np.stack([M0, M0]), np.stack([S0, S0]))
    other = GaussianMixture(np.ones(1), M1[None], S1[None])
    closed, sampled = symmetric_kl(whole, other), symmetric_kl(split, other, n_samples=50_000)
    assert closed.se == 0
    assert abs(sampled.value - closed.value) < 4 * sampled.se
    assert split.logpdf(M1[None]) == pytest.approx(multivariate_normal(M0, S0).logpdf(M1))


def test_the_same_density_scores_nothing_and_the_seed_decides():
    assert symmetric_kl(P, P, n_samples=100).value == 0.0
    a, b = (symmetric_kl(P, Q, n_samples=500, seed=s).value for s in (1, 1))
    assert a == b
    assert symmetric_kl(P, Q, n_samples=500, seed=2).value != a


def test_samples_the_other_density_does_not_know_are_floored_and_counted():
    far = line([0.5, 0.5], [400.0, 401.0], [0.1, 0.1])
    out = symmetric_kl(P, far, n_samples=100)
    assert out.n_floor == 200
    assert np.isfinite(out.value)


def test_bad_input_is_named():
    with pytest.raises(BadInput, match="positive definite"):
        gaussian_kl(M0, -S0, M1, S1)
    with pytest.raises(BadInput, match="n_samples=1"):
        symmetric_kl(P, Q, n_samples=1)
