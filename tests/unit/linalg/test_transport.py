"""Transport against POT, stored values and closed forms."""

import json
from pathlib import Path

import numpy as np
import ot
import pytest

from core.errors import BadInput
from core.linalg.sinkhorn import sinkhorn_divergence
from core.linalg.transport import bures, quantile_plan, sliced_wasserstein, wasserstein_1d

REFERENCE = json.loads(
    (Path(__file__).parents[2] / "reference" / "reference_values.json").read_text()
)
A = np.random.default_rng(40).standard_normal((300, 5))
B = np.random.default_rng(41).standard_normal((250, 5)) + 0.5


def test_sliced_and_line_distances_of_pot():
    drawn = np.random.RandomState(0).normal(0, 1, (5, 50))
    lines = (drawn / np.sqrt((drawn**2).sum(0))).T
    want = REFERENCE["ot/sliced_w"]["value"]["sw2"]
    assert sliced_wasserstein(A, B, projections=lines) == pytest.approx(want, rel=1e-9)
    line = REFERENCE["ot/emd2_1d"]["value"]
    assert wasserstein_1d(A[:, :1].T, B[:, :1].T, p=1)[0] == pytest.approx(line["p1"], rel=1e-9)
    assert wasserstein_1d(A[:, :1].T, B[:, :1].T)[0] == pytest.approx(line["p2"], rel=1e-9)


@pytest.mark.parametrize("sizes", [(1, 1), (3, 7), (6, 4), (5, 5)])
def test_the_plan_has_both_margins(sizes):
    n, m = sizes
    rows, columns, mass = quantile_plan(n, m)
    assert np.allclose(np.bincount(rows, mass), 1 / n)
    assert np.allclose(np.bincount(columns, mass), 1 / m)
    assert len(mass) <= n + m - 1
    assert (mass > 0).all()


def test_gaussians_of_the_specification():
    quantiles = (np.arange(100_000) + 0.5) / 100_000
    from scipy.stats import norm

    a, b = norm.ppf(quantiles), norm.ppf(quantiles, 3, 2)
    assert wasserstein_1d(a[None], b[None])[0] == pytest.approx(10.0, abs=1e-3)
    assert sliced_wasserstein(a[:, None], b[:, None], n_projections=4) ** 2 == pytest.approx(
        10.0, abs=1e-3
    )
    assert bures(np.zeros(1), np.eye(1), np.full(1, 3.0), 4 * np.eye(1)) == pytest.approx(10.0)
    s0, s1 = np.array([[1.0, 0.5], [0.5, 2.0]]), np.array([[2.0, -0.3], [-0.3, 1.0]])
    value = bures(np.zeros(2), s0, np.array([1.0, -1.0]), s1)
    assert value == pytest.approx(2.575426, abs=1e-6)
    peer = ot.gaussian.bures_wasserstein_distance(np.zeros(2), np.array([1.0, -1.0]), s0, s1)
    assert value == pytest.approx(float(peer) ** 2, rel=1e-9)


def test_float32_clouds_lose_no_more_than_their_digits():
    exact = sliced_wasserstein(A, B, n_projections=64)
    single = sliced_wasserstein(A.astype(np.float32), B.astype(np.float32), n_projections=64)
    assert single == pytest.approx(exact, rel=1e-5)


def test_sinkhorn_of_the_specification_and_of_pot():
    one, two = np.zeros((1, 1)), np.full((1, 1), 3.0)
    assert sinkhorn_divergence(one, two).value == pytest.approx(4.5)
    out = sinkhorn_divergence(A, B)

    def peer(x, y):
        cost = 0.5 * ot.dist(x, y)
        n, m = cost.shape
        plan = ot.sinkhorn(
            np.full(n, 1 / n), np.full(m, 1 / m), cost, out.epsilon, numItermax=5_000,
            stopThr=1e-7,
        )  # fmt: skip
        return (plan * cost).sum() + out.epsilon * (plan * np.log(plan * n * m + 1e-300)).sum()

    want = peer(A, B) - 0.5 * (peer(A, A) + peer(B, B))
    assert out.converged
    assert out.value == pytest.approx(want, abs=1e-6)


def test_a_cold_divergence_is_exact_transport():
    x, y = A[:60], B[:50]
    cold = sinkhorn_divergence(x, y, epsilon=0.01, tol=1e-4)
    assert 2 * cold.value == pytest.approx(ot.emd2([], [], ot.dist(x, y)), rel=0.02)


def test_both_are_zero_for_equals_symmetric_and_scale():
    assert sinkhorn_divergence(A, A).value == pytest.approx(0.0, abs=1e-5)
    assert sliced_wasserstein(A, A[::-1]) == pytest.approx(0.0, abs=1e-12)
    there, back = sinkhorn_divergence(A, B).value, sinkhorn_divergence(B, A).value
    assert there == pytest.approx(back, abs=1e-5)
    assert sliced_wasserstein(3 * A, 3 * B) == pytest.approx(3 * sliced_wasserstein(A, B))
    assert sliced_wasserstein(A + 1, B + 1) == pytest.approx(sliced_wasserstein(A, B), rel=1e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sliced_wasserstein(A, B[:, :3]), "5 features, b 3"),
        (lambda: sliced_wasserstein(A[:0], B), r"shape \(0, 5\)"),
        (lambda: wasserstein_1d(A.T, B.T, p=0.5), "p=0.5"),
        (lambda: wasserstein_1d(A.T, B.T[:2]), r"\(L, n\)"),
        (lambda: sinkhorn_divergence(A, B, epsilon=-1.0), "epsilon=-1.0"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(BadInput, match=words):
        call()
