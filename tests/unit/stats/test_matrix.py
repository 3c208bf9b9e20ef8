"""All pairs at once equal the pair by pair bootstrap and scipy on duplicated rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from core.errors import BadInput
from core.stats import spearman_cluster_bootstrap
from core.stats.matrix import partial_spearman, rho_difference, spearman_matrix

RNG = np.random.default_rng(1)
FAMILY = np.arange(90) % 17
X = np.c_[
    RNG.standard_normal((90, 3)) + RNG.standard_normal((17, 1))[FAMILY],
    RNG.integers(0, 4, 90),  # ties
]


def test_every_pair_is_the_single_bootstrap():
    found = spearman_matrix(X, FAMILY, n_boot=300, seed=4)
    for a in range(4):
        for b in range(a):
            one = spearman_cluster_bootstrap(X[:, a], X[:, b], FAMILY, n_boot=300, seed=4)
            pair = found.pair(a, b)
            assert pair.rho == pytest.approx(one.rho, abs=1e-12)
            assert np.allclose(pair.draws, one.draws, atol=2e-6)
            assert (pair.n, pair.n_clusters) == (one.n, one.n_clusters)


def test_a_resample_is_scipy_on_duplicated_rows():
    found = spearman_matrix(X, FAMILY, n_boot=5, seed=2)
    groups = FAMILY.max() + 1
    rng = np.random.default_rng(2)
    order = list(dict.fromkeys(FAMILY))
    counts = rng.multinomial(groups, np.full(groups, 1 / groups), size=5)
    for draw, drawn in zip(found.draws, counts, strict=True):
        rows = np.repeat(np.arange(90), [drawn[order.index(f)] for f in FAMILY])
        want = spearmanr(X[rows]).statistic
        assert np.allclose(draw, want, atol=2e-6)


def test_a_constant_variable_has_no_rho():
    found = spearman_matrix(np.c_[X[:, 0], np.ones(90)], FAMILY, n_boot=20)
    assert np.isnan(found.rho[0, 1])
    assert np.isnan(found.pair(0, 1).lo)


def test_partial_rho_is_that_of_residual_ranks():
    found = spearman_matrix(X[:, :3], FAMILY, n_boot=50)
    ranks = np.apply_along_axis(lambda c: c.argsort().argsort().astype(float), 0, X[:, :3])
    design = np.c_[np.ones(90), ranks[:, 2]]
    left = ranks[:, :2] - design @ np.linalg.lstsq(design, ranks[:, :2], rcond=None)[0]
    want = np.corrcoef(left.T)[0, 1]
    part = partial_spearman(found, 0, 1, 2)
    assert part.rho == pytest.approx(want, abs=1e-9)
    assert part.lo <= part.rho <= part.hi


def test_a_difference_with_itself_is_zero_and_is_paired():
    found = spearman_matrix(X, FAMILY, n_boot=200)
    same = rho_difference(found, (0, 1), (0, 1))
    assert (same.rho, same.lo, same.hi) == (0, 0, 0)
    other = rho_difference(found, (0, 1), (0, 2))
    wide = found.pair(0, 1).draws.std() + found.pair(0, 2).draws.std()
    assert 0 < other.draws.std() < wide


@pytest.mark.parametrize(
    ("values", "clusters", "n_boot"),
    [
        (np.full((9, 2), np.nan), np.arange(9), 10),
        (np.ones(9), np.arange(9), 10),
        (np.ones((9, 2)), np.arange(8), 10),
        (np.ones((9, 2)), np.arange(9), 0),
    ],
)
def test_bad_input_is_refused(values, clusters, n_boot):
    with pytest.raises(BadInput):
        spearman_matrix(values, clusters, n_boot=n_boot)
