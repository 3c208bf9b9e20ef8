"""Rank correlations with the gain: exact p, ties, ceilings, intervals."""

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from core.errors import BadInput
from core.stats import kendall_permutation
from core.transferability.foretell import foretell, gain_interval, reliability


def test_both_correlations_are_scipys():
    rng = np.random.default_rng(0)
    value, gains = rng.normal(size=31), rng.normal(size=(4, 31))
    out = foretell(value, gains, np.ones(31, int), better="higher")
    assert np.isclose(out.rho, stats.spearmanr(value, gains.mean(0)).statistic)
    assert np.isclose(out.kendall, stats.kendalltau(value, gains.mean(0)).statistic)
    assert not out.exact
    assert out.n == 31
    lower = foretell(-value, gains, np.ones(31, int), better="lower")
    assert np.isclose(lower.rho, out.rho)


def test_the_p_of_seven_blends_is_exact():
    # The known critical value: |rho| = .786 has p = .048 with seven items, and no less.
    order = np.array([1, 2, 3, 4, 5, 6, 7.0])
    found = {}
    for change in permutations(range(7)):
        rho = 1 - 6 * ((order - np.array(change) - 1) ** 2).sum() / (7 * 48)
        found[round(rho, 6)] = found.get(round(rho, 6), 0) + 1
    beyond = sum(n for rho, n in found.items() if abs(rho) >= 0.785) / 5040
    other = np.array([1, 2, 5, 3, 4, 7, 6.0])
    rho = stats.spearmanr(order, other).statistic
    out = foretell(order, other[None], np.ones(7, int), better="higher")
    share = sum(n for r, n in found.items() if abs(r) >= rho - 1e-6) / 5040
    assert out.exact
    assert np.isclose(out.p, share)
    assert np.isclose(beyond, 0.048, atol=0.001)


@pytest.mark.parametrize("n", [4, 6, 8])
def test_kendalls_exact_p_without_ties_is_scipys(n):
    rng = np.random.default_rng(n)
    a, b = rng.permutation(n).astype(float), rng.permutation(n).astype(float)
    out = kendall_permutation(a, b)
    want = stats.kendalltau(a, b, method="exact")
    assert np.isclose(out.rho, want.statistic)
    assert np.isclose(out.p, want.pvalue)


def test_kendalls_p_with_ties_is_that_of_every_order():
    a, b = np.array([1, 1, 2, 3, 4.0]), np.array([2, 1, 1, 3, 3.0])
    seen = stats.kendalltau(a, b).statistic
    every = [abs(stats.kendalltau(a, b[list(p)]).statistic) for p in permutations(range(5))]
    share = np.mean(np.array(every) >= abs(seen) - 1e-12)
    assert np.isclose(kendall_permutation(a, b).p, share)


def test_no_order_is_not_a_number():
    flat = foretell(np.ones(5), np.arange(5.0)[None], np.ones(5, int))
    assert np.isnan(flat.rho)
    assert np.isnan(flat.p)
    assert np.isnan(flat.kendall)
    alike = foretell(np.arange(5.0), np.zeros((3, 5)), np.ones(5, int))
    assert np.isnan(alike.rho)
    assert np.isnan(kendall_permutation(np.arange(2.0), np.arange(2.0)).rho)


def test_blends_of_equal_size_are_compared_among_themselves():
    sizes = np.array([1, 1, 1, 2, 2, 2])
    gain = np.array([[1, 2, 3, 13, 12, 11.0]])  # size decides, within size the order turns
    value = np.array([1, 2, 3, 11, 12, 13.0])
    out = foretell(value, gain, sizes, better="higher")
    assert out.rho > 0.6
    assert np.isclose(out.rho_within_size, 0.0)
    assert np.isnan(foretell(value[:2], gain[:, :2], sizes[:2]).rho_within_size)


def test_shapes_and_words_are_checked():
    with pytest.raises(BadInput, match="values has 3"):
        foretell(np.arange(3.0), np.zeros((2, 4)), np.ones(4, int))
    with pytest.raises(BadInput, match="better="):
        foretell(np.arange(4.0), np.zeros((2, 4)), np.ones(4, int), better="up")


def test_reliability_is_spearman_and_brown():
    rng = np.random.default_rng(3)
    truth, n = rng.normal(size=400), 4
    gains = truth + rng.normal(size=(n, 400))
    found = reliability(gains)
    # Each seed is half truth, half noise: correlation .5, stepped up to four seeds .8.
    assert 0.75 < found < 0.85
    mean = gains.mean(0)
    assert abs(np.corrcoef(truth, mean)[0, 1] - np.sqrt(found)) < 0.03
    assert np.isnan(reliability(gains[:1]))
    assert reliability(np.stack([np.arange(9.0), -np.arange(9.0)])) == 0.0


def test_the_interval_over_seeds_is_students():
    gains = np.random.default_rng(5).normal(0.1, 0.02, size=(6, 3))
    out = gain_interval(gains)
    for at in range(3):
        low, high = stats.t.interval(
            0.95, 5, gains[:, at].mean(), gains[:, at].std(ddof=1) / np.sqrt(6)
        )
        assert np.isclose(out["gain_low"][at], low)
        assert np.isclose(out["gain_high"][at], high)
    one = gain_interval(gains[:1])
    assert one[["gain_sd", "gain_low", "gain_high"]].isna().all(axis=None)
