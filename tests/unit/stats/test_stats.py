"""Ranks, bootstrap, false discovery, permutation and intervals against scipy and formulas."""

from __future__ import annotations

import json
import math
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as ss

from core.errors import BadInput
from core.stats import (
    benjamini_hochberg,
    cluster_mean_interval,
    cluster_share_interval,
    cluster_weights,
    mid_ranks,
    sign_flip_p,
    spearman,
    spearman_cluster_bootstrap,
    spearman_permutation,
    weighted_mid_ranks,
    wilson_interval,
)
from core.stats.ranks import weighted_pearson

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "quality" / "reference_values.json").read_text()
)


def tied_pair():
    x = np.random.default_rng(50).standard_normal(60).round(1)
    return x, x + np.random.default_rng(51).standard_normal(60).round(1)


def test_spearman_with_ties_reference():
    x, y = tied_pair()
    want = REFERENCE["stats/spearman_ties"]["value"]["rho"]
    assert spearman(x, y) == pytest.approx(want, abs=1e-14)
    np.testing.assert_array_equal(mid_ranks(x), ss.rankdata(x))


def test_bootstrap_reference():
    x, y = tied_pair()
    want = REFERENCE["stats/bootstrap_spearman"]["value"]
    drawn = np.random.default_rng(52).integers(0, 60, (200, 60))
    weights = np.stack([np.bincount(row, minlength=60) for row in drawn]).astype(float)
    rho = weighted_pearson(weighted_mid_ranks(x, weights), weighted_mid_ranks(y, weights), weights)
    np.testing.assert_allclose(rho[:5], want["first5"], atol=1e-13)
    assert rho.mean() == pytest.approx(want["mean"], abs=1e-12)
    assert np.percentile(rho, 2.5) == pytest.approx(want["q025"], abs=1e-12)
    assert np.percentile(rho, 97.5) == pytest.approx(want["q975"], abs=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.integers(5, 30), st.integers(0, 10_000))
def test_weighted_ranks_equal_duplicated_rows(n, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 5, n).astype(float), rng.integers(0, 5, n).astype(float)
    counts = rng.integers(0, 4, n)
    weights = counts[None].astype(float)
    ours = weighted_pearson(weighted_mid_ranks(a, weights), weighted_mid_ranks(b, weights), weights)
    left, right = np.repeat(a, counts), np.repeat(b, counts)
    if len(set(left)) < 2 or len(set(right)) < 2:
        assert math.isnan(ours[0])
    else:
        assert ours[0] == pytest.approx(ss.spearmanr(left, right).statistic, abs=1e-12)


def test_cluster_bootstrap_equals_a_loop_over_duplicated_rows():
    rng = np.random.default_rng(0)
    families = np.repeat(np.arange(9), 4)
    a = rng.standard_normal(36).round(1) + families * 0.1
    b = a + rng.standard_normal(36)
    found = spearman_cluster_bootstrap(a, b, families, n_boot=60, seed=5)
    weights = cluster_weights(families, 60, 5)
    for draw, w in zip(found.draws, weights.astype(int), strict=True):
        want = ss.spearmanr(np.repeat(a, w), np.repeat(b, w)).statistic
        assert draw == pytest.approx(want, abs=1e-12)
    usable = found.draws
    tail = min((usable <= 0).sum(), (usable >= 0).sum())
    assert found.p == pytest.approx(min(1, 2 * (tail + 1) / 61))
    assert found.lo == pytest.approx(np.percentile(usable, 2.5))
    assert (found.n, found.n_clusters, found.n_nan) == (36, 9, 0)


def test_whole_clusters_are_drawn():
    weights = cluster_weights(np.array(["a", "a", "b", "c"]), 50, 1)
    np.testing.assert_array_equal(weights[:, 0], weights[:, 1])
    np.testing.assert_array_equal(weights[:, 1:].sum(1), np.full(50, 3))


def test_bootstrap_leaves_missing_pairs_out():
    a = np.array([1.0, 2, 3, np.nan, 5, 6])
    b = np.array([1.0, 3, 2, 4, np.inf, 6])
    found = spearman_cluster_bootstrap(a, b, np.arange(6), n_boot=50)
    assert found.n == 4
    assert found.rho == pytest.approx(ss.spearmanr(a[[0, 1, 2, 5]], b[[0, 1, 2, 5]]).statistic)
    nothing = spearman_cluster_bootstrap(a[:1], b[:1], np.arange(1), n_boot=50)
    assert math.isnan(nothing.rho)
    flat = spearman_cluster_bootstrap(np.ones(6), b, np.arange(6), n_boot=50)
    assert math.isnan(flat.rho)
    assert flat.n_nan == 50


def test_same_seed_same_draws_other_seed_others():
    a = np.arange(20.0)
    b = a + np.random.default_rng(1).standard_normal(20) * 8
    one = spearman_cluster_bootstrap(a, b, np.arange(20) // 2, n_boot=100, seed=1)
    same = spearman_cluster_bootstrap(a, b, np.arange(20) // 2, n_boot=100, seed=1)
    other = spearman_cluster_bootstrap(a, b, np.arange(20) // 2, n_boot=100, seed=2)
    np.testing.assert_array_equal(one.draws, same.draws)
    assert not np.array_equal(one.draws, other.draws)


def test_cluster_bootstrap_covers_where_the_naive_one_does_not():
    rng = np.random.default_rng(3)
    families = np.repeat(np.arange(20), 6)
    hit = {"cluster": 0, "naive": 0}
    for _ in range(120):
        shared = rng.standard_normal((2, 20)) * math.sqrt(0.86)
        own = rng.standard_normal((2, 120)) * math.sqrt(0.14)
        a, b = shared[:, families] + own
        for name, clusters in (("cluster", families), ("naive", np.arange(120))):
            found = spearman_cluster_bootstrap(a, b, clusters, n_boot=200)
            hit[name] += found.lo <= 0 <= found.hi
    assert hit["cluster"] / 120 > 0.85
    assert hit["naive"] / 120 < 0.75


def test_benjamini_hochberg():
    p = np.array([0.01, 0.02, 0.03, 0.04, 0.5])
    np.testing.assert_allclose(benjamini_hochberg(p), [0.05, 0.05, 0.05, 0.05, 0.5], atol=1e-15)
    p = np.random.default_rng(54).random(25) ** 2
    want = REFERENCE["stats/bh"]["value"]["fdr_bh"]
    np.testing.assert_allclose(benjamini_hochberg(p), want, atol=1e-12)
    np.testing.assert_allclose(benjamini_hochberg(p), ss.false_discovery_control(p), atol=1e-15)


def test_benjamini_hochberg_keeps_nan_and_shape():
    p = np.array([[0.01, np.nan], [0.04, 0.2]])
    q = benjamini_hochberg(p)
    assert math.isnan(q[0, 1])
    want = ss.false_discovery_control([0.01, 0.04, 0.2])
    np.testing.assert_allclose(q[[0, 1, 1], [0, 0, 1]], want)
    assert benjamini_hochberg(np.empty(0)).shape == (0,)
    with pytest.raises(BadInput):
        benjamini_hochberg(np.array([1.2]))


def test_permutation_is_exact_for_few_items():
    a, b = np.array([1.0, 2, 3, 4, 5]), np.array([2.0, 1, 4, 3, 5])
    found = spearman_permutation(a, b)
    null = [ss.spearmanr(a, b[list(order)]).statistic for order in permutations(range(5))]
    want = np.mean(np.abs(null) >= abs(found.rho) - 1e-12)
    assert found.exact
    assert found.p == pytest.approx(want, abs=1e-12)


def test_permutation_sampled_agrees_with_scipy():
    rng = np.random.default_rng(0)
    a = rng.standard_normal(25)
    b = 0.4 * a + rng.standard_normal(25)
    found = spearman_permutation(a, b, n_perm=4000)
    assert not found.exact
    assert found.p == pytest.approx(ss.spearmanr(a, b).pvalue, abs=0.02)
    assert found == spearman_permutation(a, b, n_perm=4000)


@pytest.mark.parametrize("a", [[1.0, 2], [1.0, 1, 1, 1], [np.nan, np.nan, 1, 2]])
def test_permutation_of_too_little(a):
    found = spearman_permutation(np.array(a), np.arange(len(a), dtype=float))
    assert math.isnan(found.rho)
    assert math.isnan(found.p)


@pytest.mark.parametrize(("k", "n"), [(0, 10), (8, 10), (10, 10), (391, 1000)])
def test_wilson(k, n):
    want = ss.binomtest(k, n).proportion_ci(method="wilson")
    got = wilson_interval(k, n)
    assert got.value == k / n
    assert got.lo == pytest.approx(want.low, abs=1e-12)
    assert got.hi == pytest.approx(want.high, abs=1e-12)


def test_intervals_of_nothing():
    assert math.isnan(wilson_interval(0, 0).value)
    assert math.isnan(cluster_mean_interval(np.empty(0), np.empty(0)).value)
    with pytest.raises(BadInput):
        wilson_interval(3, 2)


@pytest.mark.parametrize("right", [True, False])
def test_all_or_none_right_leaves_what_so_few_clusters_leave_open(right):
    found = cluster_share_interval(np.full(40, right), np.repeat(list("abcde"), 8))
    want = ss.binomtest(5 if right else 0, 5).proportion_ci(method="wilson")
    assert found.value == float(right)
    assert (found.lo, found.hi) == pytest.approx((want.low, want.high), abs=1e-12)
    some = np.arange(40) < 39
    assert cluster_share_interval(some, np.arange(40)) == cluster_mean_interval(some, np.arange(40))


def test_clustered_mean_is_wider_than_wilson():
    right = np.repeat(np.random.default_rng(2).random(40) < 0.7, 6)
    clustered = cluster_mean_interval(right, np.repeat(np.arange(40), 6))
    alone = wilson_interval(int(right.sum()), len(right))
    assert clustered.value == pytest.approx(right.mean())
    assert clustered.hi - clustered.lo > 1.8 * (alone.hi - alone.lo)


@pytest.mark.parametrize(
    "call",
    [
        lambda: spearman(np.ones(3), np.ones(4)),
        lambda: spearman(np.ones((3, 2)), np.ones((3, 2))),
        lambda: spearman_cluster_bootstrap(np.ones(3), np.ones(3), np.ones(2)),
        lambda: cluster_weights(np.arange(3), 0, 0),
        lambda: cluster_weights(np.empty(0), 5, 0),
    ],
)
def test_bad_input(call):
    with pytest.raises(BadInput):
        call()


def test_spearman_of_too_little():
    assert math.isnan(spearman(np.ones(1), np.ones(1)))
    assert math.isnan(spearman(np.ones(5), np.arange(5.0)))


def test_signs_of_few_values_are_all_tried():
    rng = np.random.default_rng(1)
    for n in (3, 6, 9):
        values = rng.normal(0.3, 1, n)
        signs = np.array(list(product((1, -1), repeat=n)))
        means = np.abs((signs * values).mean(1))
        want = (means >= abs(values.mean()) - 1e-12).mean()
        assert np.isclose(sign_flip_p(values), want)
    assert sign_flip_p(np.array([0.1, np.nan, 0.2, 0.3])) == 0.25
    assert np.isnan(sign_flip_p(np.array([0.1, 0.2, np.nan])))
