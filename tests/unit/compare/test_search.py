"""Exact search against scikit-learn, ties, zero rows, refusals."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from core.compare import search
from core.errors import BadInput
from core.types import Features


@pytest.mark.parametrize("metric", search.METRICS)
def test_agrees_with_scikit_learn(metric, monkeypatch):
    monkeypatch.setattr(search, "BLOCK", 64)  # several blocks
    rng = np.random.default_rng(0)
    base, queries = rng.normal(size=(500, 12)), rng.normal(size=(20, 12))
    rows, scores = search.nearest_rows(base, queries, k=7, metric=metric)
    distance, want = NearestNeighbors(n_neighbors=7, metric=metric).fit(base).kneighbors(queries)
    assert np.array_equal(rows, want)
    expected = 1 - distance if metric == "cosine" else distance
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_item_leaves_itself_out_even_among_copies():
    x = np.zeros((6, 3), np.float32)
    x[:3, 0], x[3:, 1] = 1, 1
    found = Features(np.array([10, 11, 12, 20, 21, 22]), {"out": x}, "d", "m", "out")
    ids, scores = search.nearest_items(found, 11, k=2)
    assert set(ids) == {10, 12}
    np.testing.assert_allclose(scores, 1.0)
    ids, _ = search.nearest_items(found, 11, k=50)
    assert len(ids) == 5


def test_zero_row_has_no_direction():
    x = np.array([[0.0, 0.0], [1.0, 0.0]])
    _, scores = search.nearest_rows(x, x[:1], k=2)
    assert scores.tolist() == [[0.0, 0.0]]


def test_refusals():
    x = np.ones((4, 3))
    with pytest.raises(BadInput, match="columns"):
        search.nearest_rows(x, np.ones((1, 2)))
    with pytest.raises(BadInput, match="NaN"):
        search.nearest_rows(np.full((4, 3), np.nan), x)
    with pytest.raises(BadInput, match="metric"):
        search.nearest_rows(x, x, metric="dot")
    with pytest.raises(BadInput, match="below 1"):
        search.nearest_rows(x, x, k=0)
    with pytest.raises(BadInput, match="matrix"):
        search.nearest_rows(np.ones(3), x)
