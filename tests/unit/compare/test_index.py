"""The index: exact against scikit-learn, recall told truly, -1 and bad rows never shown."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from core.compare import index
from core.compare.index import build, found
from core.errors import BadInput


def cloud(n: int = 400, d: int = 8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize("metric", index.METRICS)
def test_exact_search_is_scikit_learns(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "BLOCK", 64)
    x, queries = cloud(), cloud(20, seed=1)
    held = build(x, metric=metric)
    rows, scores = held.search(queries, k=7)
    distance, want = NearestNeighbors(n_neighbors=7, metric=metric).fit(x).kneighbors(queries)
    assert (held.kind, held.recall, held.sampled) == ("flat", 1.0, 0)
    np.testing.assert_array_equal(rows, want)
    expected = 1 - distance if metric == "cosine" else distance
    np.testing.assert_allclose(scores, expected, atol=1e-5)


@pytest.mark.parametrize("metric", index.METRICS)
@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_the_recall_told_is_the_recall_there_is(kind: str, metric: str) -> None:
    x = cloud(6_000, 12)
    held = build(x, metric=metric, kind=kind)
    assert held.kind == kind
    assert held.recall >= 0.95
    queries = x[np.random.default_rng(5).choice(6_000, 300, replace=False)]
    near = held.search(queries, k=10)[0]
    truth = build(x, metric=metric, kind="flat").search(queries, k=10)[0]
    recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(near, truth, strict=True)])
    assert abs(recall - held.recall) < 0.04


def test_a_search_too_narrow_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing wanted the search stays at one cell: recall is then well below 1, and told."""
    monkeypatch.setattr(index, "_WANTED", 0.0)
    held = build(cloud(4_000, 16), kind="ivf")
    assert held.effort == 1
    assert held.recall < 0.7


def test_auto_is_exact_up_to_its_limit() -> None:
    x = cloud(300)
    assert build(x, exact_up_to=300).kind == "flat"
    assert build(x, exact_up_to=299).kind == "ivf"


def test_bad_rows_are_left_out_and_counted() -> None:
    x = cloud(50)
    x[3], x[4, 2], x[7] = np.nan, np.inf, 0.0
    held = build(x)
    assert (held.not_finite, held.zero, len(held.rows)) == (2, 1, 47)
    rows, _ = held.search(x[:1], k=50)
    assert rows.shape == (1, 47)
    assert not {3, 4, 7} & set(rows[0])
    assert rows[0, 0] == 0
    assert build(x, metric="euclidean").zero == 0


def test_places_without_an_answer_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_WANTED", 0.0)
    held = build(cloud(400), kind="ivf")  # one cell of ten is looked into
    rows, scores = held.search(cloud(400)[:1], k=400)
    assert (rows[0] == -1).any()
    assert np.isnan(scores[rows == -1]).all()
    kept, told = found(rows[0], scores[0])
    assert (kept >= 0).all()
    assert np.isfinite(told).all()
    assert len(set(kept.tolist())) == len(kept) > 0


def test_same_seed_same_answers() -> None:
    x = cloud(2_000)
    one, two = (build(x, kind="ivf", seed=3).search(x[:50], k=5)[0] for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_refusals() -> None:
    x = cloud(20)
    with pytest.raises(BadInput, match="No row"):
        build(np.zeros((5, 3)))
    with pytest.raises(BadInput, match="matrix"):
        build(np.ones(3))
    with pytest.raises(BadInput, match="metric"):
        build(x, metric="dot")
    with pytest.raises(BadInput, match="kind"):
        build(x, kind="lsh")
    with pytest.raises(BadInput, match="8 columns"):
        build(x).search(np.ones((1, 3)))
    with pytest.raises(BadInput, match="finite"):
        build(x).search(np.full((1, 8), np.nan))
    with pytest.raises(BadInput, match="direction"):
        build(x).search(np.zeros((1, 8)))
    with pytest.raises(BadInput, match="below 1"):
        build(x).search(x[:1], k=0)
