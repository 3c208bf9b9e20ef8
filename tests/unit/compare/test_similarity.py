"""CKA, mutual neighbours and Procrustes distance against independent re-derivations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import procrustes
from sklearn.neighbors import NearestNeighbors

from core.compare import linear_cka, mutual_knn, neighbours, procrustes_distance
from core.errors import BadInput


def pair() -> tuple[np.ndarray, np.ndarray]:
    u = np.random.default_rng(61).standard_normal((200, 12))
    noise = np.random.default_rng(63).standard_normal((200, 20))
    return u, u @ np.random.default_rng(62).standard_normal((12, 20)) + noise


def similar(x: np.ndarray) -> np.ndarray:
    rotation = np.linalg.qr(np.random.default_rng(5).normal(size=(x.shape[1],) * 2))[0]
    return 2.5 * x @ rotation + 4.0


def cka_n_by_n(a: np.ndarray, b: np.ndarray) -> float:
    H = np.eye(len(a)) - 1 / len(a)
    K, L = H @ a @ a.T @ H, H @ b @ b.T @ H
    return float((K * L).sum() / np.sqrt((K * K).sum() * (L * L).sum()))


def test_cka_reference_value():
    assert np.isclose(linear_cka(*pair()), 0.7769789286807803, rtol=1e-10)


@pytest.mark.parametrize("n", [200, 11])
def test_cka_both_routes_agree_with_the_definition(n):
    a, b = (x[:n] for x in pair())
    assert np.isclose(linear_cka(a, b), cka_n_by_n(a, b), rtol=1e-10)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("k", [1, 10, 199])
def test_mutual_neighbours_against_scikit_learn(metric, k):
    a, b = pair()
    found = []
    for x in (a, b):
        ids = (
            NearestNeighbors(n_neighbors=k, metric=metric).fit(x).kneighbors(return_distance=False)
        )
        found.append([set(row) for row in ids])
    expected = np.mean([len(p & q) / k for p, q in zip(*found, strict=True)])
    assert np.isclose(mutual_knn(a, b, k=k, metric=metric), expected)


def test_procrustes_against_scipy():
    a, b = pair()
    b = b[:, :12]
    disparity = procrustes(a, b)[2]
    assert np.isclose(procrustes_distance(a, b), 2 - 2 * np.sqrt(1 - disparity))


@pytest.mark.parametrize("measure", [linear_cka, procrustes_distance, mutual_knn])
def test_invariances_symmetry_and_order(measure):
    a, b = pair()
    value = measure(a, b)
    assert np.isclose(value, measure(b, a))
    order = np.random.default_rng(0).permutation(200)
    assert np.isclose(value, measure(a[order], b[order]))
    if measure is mutual_knn:
        assert np.isclose(value, measure(3.0 * a, b))
    else:
        assert np.isclose(value, measure(similar(a), b))


def test_degenerate_and_bad_input():
    a, b = pair()
    flat = np.ones_like(a)
    assert np.isnan(linear_cka(flat, b))
    assert np.isnan(procrustes_distance(flat, b))
    assert abs(procrustes_distance(a, similar(a))) < 1e-9
    for measure in (linear_cka, procrustes_distance, mutual_knn):
        with pytest.raises(BadInput, match="200 and 199 rows"):
            measure(a, b[:-1])
    with pytest.raises(BadInput, match="below the 200 samples"):
        mutual_knn(a, b, k=200)
    with pytest.raises(BadInput, match="metric='l1'"):
        mutual_knn(a, b, metric="l1")


def test_neighbours_do_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=(300, 5))
    whole = np.sort(neighbours.neighbour_ids(x, k=4), axis=1)
    monkeypatch.setattr(neighbours, "_TABLE", 7 * 300)
    np.testing.assert_array_equal(np.sort(neighbours.neighbour_ids(x, k=4), axis=1), whole)
