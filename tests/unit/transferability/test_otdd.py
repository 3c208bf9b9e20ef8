"""Distances of labelled data sets against POT and a loop written from the definitions."""

import math

import numpy as np
import ot
import pytest

from core.errors import BadInput
from core.transferability import otdd, s_otdd
from core.transferability.baselines.sotdd import _draw_moments, joint_scale


def rows(seed, n=60, shift=0.0, d=5):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return rng.standard_normal((n, d)) + y[:, None] + shift, y


def test_otdd_is_pots_transport_at_the_cost_of_the_definition():
    (xa, ya), (xb, yb) = rows(0), rows(1, n=45, shift=0.7)

    def cost(x, y, z, w):
        out = 0.5 * ot.dist(x, z)
        for i in range(3):
            for j in range(3):
                p, q = x[y == i], z[w == j]
                gap = ot.gaussian.bures_wasserstein_distance(
                    p.mean(0), q.mean(0), np.cov(p.T), np.cov(q.T)
                )
                out[np.ix_(y == i, w == j)] += 0.5 * float(gap) ** 2
        return out

    exact = ot.emd2([], [], cost(xa, ya, xb, yb))
    assert otdd(xa, ya, xb, yb, epsilon=0.02) == pytest.approx(exact, rel=0.02)


def test_wide_features_take_the_same_class_distances():
    (xa, ya), (xb, yb) = rows(0), rows(1)
    pad = np.zeros((60, 70))
    wide = otdd(np.hstack([xa, pad]), ya, np.hstack([xb, pad]), yb)
    assert wide == pytest.approx(otdd(xa, ya, xb, yb), rel=1e-6)


@pytest.mark.parametrize("distance", [otdd, s_otdd])
def test_is_zero_for_itself_symmetric_and_blind_to_names(distance):
    a, b = rows(0), rows(1, n=45, shift=0.5)
    assert distance(*a, *a) == pytest.approx(0.0, abs=1e-6)
    value = distance(*a, *b)
    assert distance(*b, *a) == pytest.approx(value, rel=1e-6)
    renamed = np.array(list("zyx"))[b[1]]
    assert distance(*a, b[0], renamed) == pytest.approx(value, rel=1e-9)
    far = rows(1, n=45, shift=2.0)
    assert distance(*a, *far) > value
    assert distance(*a, a[0], np.roll(a[1], 7)) > distance(*a, *a)


def test_otdd_scales_with_the_square_and_thins_at_random():
    a, b = rows(0), rows(1, shift=0.5)
    value = otdd(*a, *b)
    assert otdd(10 * a[0], a[1], 10 * b[0], b[1]) == pytest.approx(100 * value, rel=1e-5)
    assert otdd(*a, *b, max_samples=50, seed=1) == otdd(*a, *b, max_samples=50, seed=1)
    assert otdd(*a, *b, max_samples=50) == pytest.approx(value, rel=0.4)


def test_s_otdd_by_a_loop_over_projections():
    (xa, ya), (xb, yb) = rows(0), rows(1, n=60, shift=0.3)
    scale, lines = joint_scale(xa, xb), 40
    from core.linalg.transport import directions

    u = directions(5, lines, 3)
    psi, powers = _draw_moments(lines, 3)

    def place(x, y, k):
        along = x @ u[k] / scale
        out = psi[k, 0] * along
        for i in range(5):
            m = int(powers[k, i])
            mean = np.array([(along[y == c] ** m).mean() for c in range(3)])
            out = out + psi[k, i + 1] * mean[y] / math.factorial(m)
        return np.sort(out)

    gaps = [np.mean((place(xa, ya, k) - place(xb, yb, k)) ** 2) for k in range(lines)]
    want = math.sqrt(np.mean(gaps))
    assert s_otdd(xa, ya, xb, yb, n_projections=lines, seed=3) == pytest.approx(want, rel=1e-10)


def test_the_orders_are_zero_truncated_poisson():
    psi, powers = _draw_moments(20_000, 0)
    rates = np.arange(1, 6)
    assert powers.min() == 1
    assert np.allclose(powers.mean(0), rates / (1 - np.exp(-rates)), atol=0.06)
    assert np.allclose(np.linalg.norm(psi, axis=1), 1.0)


def test_bad_input_is_named():
    a = rows(0)
    with pytest.raises(BadInput, match="5 features, b 4"):
        s_otdd(*a, *rows(1, d=4))
    with pytest.raises(BadInput, match="n_projections=0"):
        s_otdd(*a, *a, n_projections=0)
    with pytest.raises(BadInput, match="no class with two items"):
        otdd(a[0], np.arange(60), *a)
