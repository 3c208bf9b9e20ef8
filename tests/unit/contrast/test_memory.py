"""Many rows: what is formed as it is read is what would have been held, and no product is n^2."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from core.contrast import analysis, clusters, methods, scale
from core.contrast.lowrank import gram, lift
from core.contrast.methods import koda
from core.contrast.words import Vocabulary
from core.linalg import kernels, random_features
from core.linalg.kernels import make_kernel, unit_rows
from core.linalg.random_features import FourierTable, fourier_features, fourier_table

N = 320
RNG = np.random.default_rng(0)
B = RNG.standard_normal((N, 12)).astype(np.float32)
A = B.copy()
A[:30] = A[0] + 0.05 * B[:30]
A[30:60] = A[40] + 0.05 * B[30:60]


@pytest.fixture
def few(monkeypatch):
    """Let 320 rows be many."""
    for module in (kernels, methods, scale, random_features):
        monkeypatch.setattr(module, "EXACT_LIMIT", 200)
    monkeypatch.setattr(clusters, "_ONE_BLOCK", 200)
    monkeypatch.setattr(clusters, "_NEAR_ROWS", 64)
    monkeypatch.setattr(analysis, "_MAP_ROWS", 64)


def test_a_table_that_is_formed_as_it_is_read_is_the_table(few):
    kernel = make_kernel({"a": A, "b": B}, factor=0.7)
    whole = fourier_features(kernel, 50, seed=3, orthogonal=True)
    table = fourier_table(kernel, 50, seed=3, orthogonal=True)
    assert isinstance(table, FourierTable)
    assert table.shape == tuple(whole.shape)
    assert torch.allclose(table[100:233], whole[100:233], atol=1e-6)
    some = np.array([5, 300, 2])
    assert torch.allclose(table[some], whole[some], atol=1e-6)
    assert np.allclose(gram(table, table), gram(whole, whole), atol=1e-4)
    u = RNG.standard_normal((200, 3))
    assert np.allclose(lift(table, table, u), lift(whole, whole, u), atol=1e-4)


def test_few_rows_are_held(few):
    kernel = make_kernel(A[:150])
    assert isinstance(fourier_table(kernel, 20), torch.Tensor)


def test_blocks_of_a_kernel_are_the_same_without_a_scaled_copy(few):
    kernel = make_kernel({"a": A, "b": B}, factor=0.7)
    rows, cols = np.array([3, 310, 90]), slice(100, 300)
    found = kernel.block(rows, cols)
    assert "joined" not in kernel._known
    kernel.joined()
    assert torch.equal(found, kernel.block(rows, cols))


def test_nothing_of_the_search_for_a_scale_is_quadratic_in_many_rows(few, monkeypatch):
    """The scale is chosen on 3,000 rows; the kernel of all is then never multiplied with."""
    monkeypatch.setattr(kernels, "DENSE_LIMIT", 150)
    monkeypatch.setattr(scale, "DENSE_LIMIT", 150)
    seen = []
    monkeypatch.setattr(kernels.Kernel, "__matmul__", lambda self, x: seen.append(self.n))
    result = koda(A, B, n_directions=2, seed=0)
    assert not seen
    assert np.isfinite(result.group_size)
    assert result.group_size > 1.0


def test_the_answer_over_many_rows_is_that_of_the_held_tables(few, monkeypatch):
    options = {"group_size": 6.0, "n_features": 60, "n_directions": 3, "seed": 0}
    lazily = koda(A, B, **options)
    monkeypatch.setattr(random_features, "EXACT_LIMIT", 10_000)
    held = koda(A, B, **options)
    assert np.allclose(lazily.objective, held.objective, rtol=1e-5)
    assert np.allclose(np.abs(lazily.directions), np.abs(held.directions), atol=1e-4)


def test_neighbours_and_maps_do_not_depend_on_the_block(few, monkeypatch):
    kernel = make_kernel(A, factor=0.7)
    rows = np.arange(30)
    far, score = clusters.neighbours_of_set(kernel, rows, 9)
    shown = analysis._pca_map(kernel)
    monkeypatch.setattr(clusters, "_ONE_BLOCK", 10_000)
    monkeypatch.setattr(kernels, "EXACT_LIMIT", 10_000)
    whole, mean = clusters.neighbours_of_set(kernel, rows, 9)
    assert np.array_equal(far, whole)
    assert np.allclose(score, mean, atol=1e-12)
    assert np.allclose(shown, analysis._pca_map(kernel), atol=1e-5)


def test_the_only_word_of_all_captions_describes_nothing():
    """Items that came as a matrix are called "row 0", "row 1", ...: one word for all."""
    known = Vocabulary([f"row {i}" for i in range(50)])
    assert known.describe(np.arange(10)) == []
    assert known.describe(np.arange(10), among=np.arange(30)) == []


@pytest.mark.parametrize("centered", [True, False])
def test_unit_rows_by_blocks_are_the_plain_formula_bit_for_bit(centered):
    x = RNG.standard_normal((9001, 5)).astype(np.float32)
    x[17] = 0
    table = x.astype(np.float64)
    if centered:
        table = table - table.mean(axis=0)
    length = np.linalg.norm(table, axis=1, keepdims=True)
    want = np.divide(table, length, out=np.zeros_like(table), where=length > 0)
    before = x.copy()
    assert np.array_equal(unit_rows(x, centered=centered), want)
    assert np.array_equal(x, before)
