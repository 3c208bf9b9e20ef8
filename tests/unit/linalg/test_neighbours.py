from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from core.errors import BadInput
from core.linalg.neighbours import nearest_neighbours


def reference(base, queries=None, k=2):
    """Distances and indices by scipy, ties to the lowest index."""
    found = base if queries is None else queries
    distance = cdist(np.asarray(found, np.float64), np.asarray(base, np.float64))
    if queries is None:
        np.fill_diagonal(distance, np.inf)
    index = np.argsort(distance, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distance, index, 1), index


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [12, 300, 2500])
def test_self_search_is_exact(n, dtype):
    x = np.random.default_rng(n).standard_normal((n, 9)).astype(dtype)
    found = nearest_neighbours(torch.from_numpy(x), k=3)
    distance, index = reference(x, k=3)
    np.testing.assert_allclose(found.distances.numpy(), distance, rtol=1e-12)
    np.testing.assert_array_equal(found.indices.numpy(), index)


def test_query_search_is_exact():
    rng = np.random.default_rng(0)
    base, queries = rng.standard_normal((2100, 6)), rng.standard_normal((333, 6))
    found = nearest_neighbours(torch.from_numpy(base), torch.from_numpy(queries), k=1)
    distance, index = reference(base, queries, 1)
    np.testing.assert_allclose(found.distances.numpy(), distance, rtol=1e-12)
    np.testing.assert_array_equal(found.indices.numpy(), index)


def test_ties_go_to_the_lowest_row_even_beyond_the_candidates():
    base = np.zeros((400, 4), dtype=np.float32)
    base[200:] = 1
    queries = np.array([[0, 0, 0, 0.1], [1, 1, 1, 0.9]], dtype=np.float32)
    found = nearest_neighbours(torch.from_numpy(base), torch.from_numpy(queries), k=3)
    assert found.indices.tolist() == [[0, 1, 2], [200, 201, 202]]
    assert found.n_redone == 2


def test_a_far_offset_does_not_cancel():
    rng = np.random.default_rng(1)
    x = (1000 + 1e-2 * rng.standard_normal((600, 16))).astype(np.float32)
    found = nearest_neighbours(torch.from_numpy(x), k=2)
    np.testing.assert_allclose(found.distances.numpy(), reference(x)[0], rtol=1e-9)


def test_an_outlier_costs_a_second_look_but_no_error():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((500, 8)).astype(np.float32)
    x[0] *= 1e5
    found = nearest_neighbours(torch.from_numpy(x), k=2)
    distance, index = reference(x)
    np.testing.assert_allclose(found.distances.numpy(), distance, rtol=1e-9)
    np.testing.assert_array_equal(found.indices.numpy(), index)
    assert found.n_redone > 0


@pytest.mark.parametrize("k", [0, 5])
def test_impossible_k(k):
    with pytest.raises(BadInput, match="neighbours"):
        nearest_neighbours(torch.zeros((5, 2)), k=k)


def test_widths_must_agree():
    with pytest.raises(BadInput, match="columns"):
        nearest_neighbours(torch.zeros((5, 2)), torch.zeros((5, 3)), k=1)
