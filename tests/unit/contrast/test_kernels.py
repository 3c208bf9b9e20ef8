"""Kernels, bandwidths, random features and Lanczos against numpy and sklearn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import cosine_similarity, rbf_kernel

from core.errors import BadInput
from core.linalg import kernels as module
from core.linalg.kernels import (
    leading_eigenvalue,
    make_kernel,
    match_group_size,
    median_distance,
    unit_rows,
)
from core.linalg.lanczos import random_block, top_eigenpairs
from core.linalg.random_features import cosine_features, fourier_features


@pytest.fixture
def x():
    return np.random.default_rng(0).standard_normal((50, 7))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 3])
def test_lanczos_equals_eigh(seed, k):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 150))
    M = rng.standard_normal((n, n))
    M = torch.from_numpy(M + M.T)
    found = top_eigenpairs(lambda b: M @ b, random_block(n, 2, seed=1), k=k, tol=1e-10)
    exact = np.linalg.eigvalsh(M.numpy())[::-1][:k]
    assert np.allclose(found.values, exact, rtol=1e-8)
    V = found.vectors.numpy()
    assert np.abs(V.T @ V - np.eye(k)).max() < 1e-10


def test_lanczos_in_an_invariant_subspace():
    M = torch.diag(torch.tensor([5.0, 5.0, 1.0, 0.0, 0.0], dtype=torch.float64))
    found = top_eigenpairs(lambda b: M @ b, random_block(5, 1, seed=0), k=2)
    assert found.values[0] == pytest.approx(5.0)


def test_rbf_and_cosine_match_sklearn(x):
    rows = unit_rows(x)
    rbf = make_kernel(x, factor=0.7)
    sigma = 0.7 * median_distance(rows)
    assert np.allclose(rbf.dense().numpy(), rbf_kernel(rows, gamma=1 / (2 * sigma**2)), atol=1e-12)
    assert rbf.bandwidths == pytest.approx({"x": sigma})
    cosine = make_kernel(x, kind="cosine", centered=False)
    assert np.allclose(cosine.dense().numpy(), cosine_similarity(x), atol=1e-12)
    assert cosine.bandwidths == {}


def test_product_kernel_is_the_hadamard_product(x):
    y = np.random.default_rng(1).standard_normal((50, 4))
    for kind in ("rbf", "cosine"):
        both = make_kernel({"i": x, "t": y}, kind=kind).dense()
        one, two = (make_kernel(t, kind=kind).dense() for t in (x, y))
        assert np.allclose(both, one * two, atol=1e-12)


def test_rotation_scaling_and_order_change_nothing(x):
    q = np.linalg.qr(np.random.default_rng(2).standard_normal((7, 7)))[0]
    order = np.random.default_rng(3).permutation(50)
    for kind in ("rbf", "cosine"):
        base = make_kernel(x, kind=kind).dense().numpy()
        assert np.allclose(make_kernel(4.0 * x @ q, kind=kind).dense(), base, atol=1e-10)
        moved = make_kernel(x[order], kind=kind).dense().numpy()
        assert np.allclose(moved, base[np.ix_(order, order)], atol=1e-10)


def test_blocks_multiply_as_the_matrix(x, monkeypatch):
    kernel = make_kernel(x)
    block = random_block(50, 3, seed=0)
    monkeypatch.setattr(module, "_BLOCK_CELLS", 500)
    assert torch.allclose(kernel @ block, kernel.dense() @ block)


@pytest.mark.parametrize("m", [1.5, 4.0, 20.0])
def test_group_size_is_the_leading_eigenvalue(x, m):
    found = match_group_size(make_kernel(x), m)
    assert leading_eigenvalue(found) == pytest.approx(m, rel=1e-3)
    assert np.linalg.eigvalsh(found.dense())[-1] == pytest.approx(m, rel=1e-3)


def test_group_size_below_the_duplicates_is_refused(x):
    repeated = np.concatenate([x, np.repeat(x[:1], 9, axis=0)])
    with pytest.raises(BadInput, match="same"):
        match_group_size(make_kernel(repeated), 5.0)
    for wrong in (1.0, 60.0):
        with pytest.raises(BadInput, match="out of reach"):
            match_group_size(make_kernel(x), wrong)


def test_random_features_converge_and_are_seeded(x):
    kernel = make_kernel(x)
    exact = kernel.dense().numpy()
    for orthogonal in (False, True):
        phi = fourier_features(kernel, 3000, seed=4, orthogonal=orthogonal).numpy()
        assert phi.shape == (50, 6000)
        assert np.allclose((phi * phi).sum(1), 1.0, atol=1e-5)
        assert np.abs(phi @ phi.T - exact).mean() < 2.0 / np.sqrt(2 * 3000)
    again = fourier_features(kernel, 10, seed=4)
    assert torch.equal(again, fourier_features(kernel, 10, seed=4))
    assert not torch.equal(again, fourier_features(kernel, 10, seed=5))


def test_joint_random_features_are_those_of_the_product(x):
    kernel = make_kernel({"i": x, "t": x[:, :3] ** 2})
    phi = fourier_features(kernel, 6000, seed=0).numpy()
    assert np.abs(phi @ phi.T - kernel.dense().numpy()).max() < 0.06


def test_cosine_products_exact_when_small_and_unbiased_when_wide():
    rng = np.random.default_rng(0)
    small = make_kernel(
        {"i": rng.standard_normal((30, 5)), "t": rng.standard_normal((30, 4))}, kind="cosine"
    )
    phi = cosine_features(small).numpy()
    assert phi.shape == (30, 20)
    assert np.allclose(phi @ phi.T, small.dense(), atol=1e-6)
    wide = make_kernel(
        {"i": rng.standard_normal((30, 80)), "t": rng.standard_normal((30, 70))}, kind="cosine"
    )
    phi = cosine_features(wide, 20_000).numpy()
    off = ~np.eye(30, dtype=bool)
    error = (phi @ phi.T - wide.dense().numpy())[off]
    assert abs(error.mean()) < 2e-3
    assert error.std() < 3.0 / np.sqrt(20_000)


@pytest.mark.parametrize(
    ("table", "kind", "words"),
    [
        (np.ones(4), "rbf", "table"),
        (np.array([[1.0, np.nan], [0.0, 1.0]]), "rbf", "not finite"),
        (np.ones((5, 3)), "rbf", "same"),
        (np.eye(3), "poly", "not known"),
        ({}, "rbf", "no modality"),
        ({"a": np.eye(3), "b": np.eye(4)}, "cosine", "differ"),
    ],
)
def test_bad_tables_are_refused(table, kind, words):
    with pytest.raises(BadInput, match=words):
        make_kernel(table, kind=kind)


def test_kernels_refuse_what_they_are_not_for(x):
    cosine, rbf = make_kernel(x, kind="cosine"), make_kernel(x)
    with pytest.raises(BadInput, match="Gaussian"):
        fourier_features(cosine, 5)
    with pytest.raises(BadInput, match="at least 1"):
        fourier_features(rbf, 0)
    with pytest.raises(BadInput, match="cosine kernel"):
        cosine_features(rbf)
    with pytest.raises(BadInput, match="none"):
        match_group_size(cosine, 4.0)
