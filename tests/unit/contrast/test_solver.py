"""The exact solver: certificates, closed forms, independent optimisers, traps of the paper."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from contrast_problems import degenerate_pairs, random_psd
from scipy.optimize import minimize

from core.contrast import koda_dense, spec_dense
from core.contrast.solver import in_plane, solve


def _bounds(M: np.ndarray) -> tuple[float, float]:
    values = np.linalg.eigvalsh(M)
    return float(values[0]), float(values[-1])


def _check(A: np.ndarray, B: np.ndarray, eps: float) -> None:
    found = solve(A, B, eps)
    size_a, size_b = max(_bounds(A)[1], 1e-12), max(_bounds(B)[1], 1e-12)
    if eps < _bounds(B)[0] - 1e-11 * size_b:
        assert found.status == "infeasible"
        assert found.constraint == pytest.approx(_bounds(B)[0], abs=1e-12 * size_b)
        return
    assert found.status != "infeasible"
    assert abs(found.x @ found.x - 1.0) < 1e-12
    assert found.constraint - eps <= 2e-12 * size_b
    limit = 1e-6 if found.status == "boundary" else 1e-9
    assert found.gap <= limit * size_a


@pytest.mark.parametrize("seed", range(40))
def test_certificate_on_random_pairs(seed):
    rng = np.random.default_rng(seed)
    n = seed + 1
    A, B = random_psd(rng, n), random_psd(rng, n)
    low, high = _bounds(B)
    for share in (-0.1, 0.02, 0.3, 0.8, 1.2):
        _check(A, B, low + share * (high - low))


@pytest.mark.parametrize(("name", "A", "B"), degenerate_pairs(), ids=lambda v: str(v)[:20])
def test_certificate_on_degenerate_pairs(name, A, B):
    low, high = _bounds(B)
    for share in (0.0, 0.1, 0.5, 0.9, 1.0, 1.5):
        _check(A, B, low + share * (high - low))


@pytest.mark.parametrize(("eps", "value"), [(2.0, 2.5), (1.5, 2.25), (0.6, 1.5)])
def test_ties_where_the_leading_eigenvector_rule_fails(eps, value):
    A, B = np.diag([3.0, 2, 1, 0]), np.diag([3.0, 1, 0.2, 0.1])
    assert solve(A, B, eps).objective == pytest.approx(value, abs=1e-12)


def test_doubling_the_spectrum_keeps_the_value():
    rng = np.random.default_rng(3)
    A, B = random_psd(rng, 6), random_psd(rng, 6)
    eps = 0.4 * _bounds(B)[1]
    twice = solve(np.kron(A, np.eye(2)), np.kron(B, np.eye(2)), eps)
    assert twice.objective == pytest.approx(solve(A, B, eps).objective, abs=1e-9)


def test_boundary_takes_the_best_of_the_bottom_eigenspace():
    A, B = np.diag([1.0, 2.0, 9.0]), np.diag([0.5, 0.5, 2.0])
    found = solve(A, B, 0.5)
    assert found.status == "boundary"
    assert found.objective == pytest.approx(2.0, abs=1e-9)


def test_infeasible_names_the_least_epsilon():
    result = koda_dense(np.eye(3), np.eye(3) + np.ones((3, 3)), epsilon=0.5)
    assert result.status == ("infeasible",)
    assert result.constraint[0] == pytest.approx(1.0)
    assert result.clusters() == []


def test_projection_trap_is_infeasible():
    # Proposition 4.2: after U = e1 the projected problem would return (e1 ± e3) / sqrt 2.
    I3 = np.eye(3)
    assert koda_dense(I3, I3, epsilon=0.5).status == ("infeasible",)
    B = np.diag([0.1, 1.0, 1.0])
    later = koda_dense(np.diag([3.0, 1.0, 1.0]), B, epsilon=0.5, n_directions=2)
    assert later.status == ("inactive", "infeasible")


@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_the_semidefinite_relaxation(seed):
    rng = np.random.default_rng(100 + seed)
    n = 6
    A, B = random_psd(rng, n), random_psd(rng, n) + 0.05 * np.eye(n)
    low, high = _bounds(B)
    eps = low + (0.1 + 0.12 * seed) * (high - low)
    X = cp.Variable((n, n), PSD=True)
    problem = cp.Problem(cp.Maximize(cp.trace(A @ X)), [cp.trace(B @ X) <= eps, cp.trace(X) == 1.0])
    problem.solve(solver=cp.CLARABEL)
    assert solve(A, B, eps).objective == pytest.approx(problem.value, abs=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_no_local_optimiser_does_better(seed):
    rng = np.random.default_rng(200 + seed)
    n = 7
    A, B = random_psd(rng, n), random_psd(rng, n)
    eps = 0.3 * _bounds(B)[1]
    best = -np.inf
    for _ in range(8):
        found = minimize(
            lambda x: -x @ A @ x,
            rng.standard_normal(n),
            jac=lambda x: -2 * A @ x,
            method="SLSQP",
            options={"ftol": 1e-12},
            constraints=[
                {"type": "eq", "fun": lambda x: x @ x - 1.0},
                {"type": "ineq", "fun": lambda x: eps - x @ B @ x},
            ],
        )
        if found.success and found.x @ B @ found.x <= eps + 1e-8:
            best = max(best, -found.fun)
    assert solve(A, B, eps).objective >= best - 1e-6  # its feasibility tolerance


def test_equal_kernels_have_nothing_to_gain():
    rng = np.random.default_rng(7)
    K = random_psd(rng, 12) + 0.1 * np.eye(12)
    low, high = _bounds(K)
    for eps in np.linspace(low * 1.01, high, 5):
        result = koda_dense(K, K, epsilon=float(eps), n_directions=3)
        kept = [k for k, s in enumerate(result.status) if s != "infeasible"]
        assert np.allclose(result.objective[kept] / result.constraint[kept], 1.0, atol=1e-9)


def test_value_function_is_concave_with_slope_lambda():
    rng = np.random.default_rng(11)
    A, B = random_psd(rng, 15), random_psd(rng, 15) + 0.01 * np.eye(15)
    low, high = _bounds(B)
    eps = np.linspace(low + 0.05 * (high - low), 0.7 * high, 12)
    value = np.array([solve(A, B, e).objective for e in eps])
    assert np.all(np.diff(value) >= -1e-12)
    assert np.all(np.diff(value, 2) <= 1e-10)
    step = 1e-5 * high
    for e in eps[::3]:
        slope = (solve(A, B, e + step).objective - solve(A, B, e - step).objective) / (2 * step)
        assert slope == pytest.approx(solve(A, B, e).multiplier, rel=1e-4, abs=1e-5)


def test_unconstrained_is_kernel_pca():
    rng = np.random.default_rng(13)
    A, B = random_psd(rng, 10), random_psd(rng, 10)
    found = solve(A, B, _bounds(B)[1])
    top = np.linalg.eigh(A)[1][:, -1]
    assert found.status == "inactive"
    assert abs(found.x @ top) == pytest.approx(1.0, abs=1e-9)


def test_spec_is_one_point_of_the_path():
    rng = np.random.default_rng(17)
    A, B = random_psd(rng, 14), random_psd(rng, 14)
    baseline = spec_dense(A, B, n_directions=1)
    found = solve(A, B, float(baseline.constraint[0]))
    assert abs(found.x @ baseline.directions[0]) == pytest.approx(1.0, abs=1e-6)
    assert found.multiplier == pytest.approx(1.0, abs=1e-4)


def test_scale_and_rotation_equivariance():
    rng = np.random.default_rng(19)
    A, B = random_psd(rng, 9), random_psd(rng, 9)
    eps = 0.35 * _bounds(B)[1]
    base = solve(A, B, eps)
    scaled = solve(3.0 * A, 0.5 * B, 0.5 * eps)
    assert scaled.objective == pytest.approx(3.0 * base.objective, rel=1e-10)
    assert abs(scaled.x @ base.x) == pytest.approx(1.0, abs=1e-8)
    q = np.linalg.qr(rng.standard_normal((9, 9)))[0]
    turned = solve(q @ A @ q.T, q @ B @ q.T, eps)
    assert abs(turned.x @ (q @ base.x)) == pytest.approx(1.0, abs=1e-8)
    order = rng.permutation(9)
    moved = solve(A[np.ix_(order, order)], B[np.ix_(order, order)], eps)
    assert abs(moved.x @ base.x[order]) == pytest.approx(1.0, abs=1e-8)


def test_in_plane_of_parallel_vectors_is_the_feasible_one():
    x = np.array([1.0, 0.0, 0.0])
    assert np.allclose(in_plane(np.eye(3), np.eye(3), 1.0, x, 2 * x), x)
