"""Retrieval with mid-ranks: perfect, chance, ties, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata

from core.errors import BadInput
from core.stitching import match_ranks, ranking, retrieval


def rows(n: int = 60, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 8))


def test_identical_rows_find_themselves():
    got = retrieval(rows(), 3.0 * rows())
    assert got["R@1"] == got["MRR"] == got["median_rank"] == 1.0


def test_ranks_against_scipy():
    a, b = rows(), rows() + 0.7 * rows(seed=1)
    ua, ub = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))
    expected = [rankdata(-row)[r] - 1 for r, row in enumerate(ua @ ub.T)]
    np.testing.assert_allclose(match_ranks(a, b), expected)


def test_both_directions_of_one_pass_and_blocks_change_nothing(monkeypatch):
    a, b = rows(), rows() + 0.7 * rows(seed=1)
    forth, back = ranking.paired_ranks(a, b)
    np.testing.assert_array_equal(forth, match_ranks(a, b))
    np.testing.assert_array_equal(back, match_ranks(b, a))
    monkeypatch.setattr(ranking, "BLOCK", 7)
    np.testing.assert_array_equal(ranking.paired_ranks(a, b), (forth, back))


def test_recall_grows_with_k_and_unrelated_rows_score_like_chance():
    a, b = rows(2500), rows(2500, seed=1)
    got = retrieval(a, b, ks=(1, 5, 250))
    assert got["R@1"] <= got["R@5"] <= got["R@250"]
    assert abs(got["R@250"] - 0.1) < 0.03
    assert got["chance"] == 1 / 2500


@pytest.mark.parametrize("value", [1.0, 0.0])
def test_constant_gallery_is_no_perfect_match(value):
    got = retrieval(rows(), np.full((60, 8), value))
    assert got["R@1"] == 0.0
    assert got["median_rank"] == 30.5


def test_nan_and_shapes_are_refused():
    x = rows()
    with pytest.raises(BadInput, match="one shape"):
        retrieval(x, x[:, :3])
    x[3, 3] = np.nan
    with pytest.raises(BadInput, match="first row 3"):
        retrieval(rows(), x)
