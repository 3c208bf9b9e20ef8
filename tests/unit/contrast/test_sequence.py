"""Deflation, low rank, column generation and the matrix-free path agree with one another."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from contrast_problems import gaussian, planted, random_psd, recall

from core.contrast import koda_dense, koda_features, koda_kernels, sequence, spec_dense
from core.contrast.columns import solve_columns
from core.contrast.lowrank import gram, reduce
from core.contrast.solver import solve
from core.errors import BadInput
from core.linalg.kernels import make_kernel, match_group_size


@pytest.fixture(scope="module")
def planted_problem():
    return planted()


@pytest.mark.parametrize("seed", range(4))
def test_directions_are_orthonormal_and_feasible(seed):
    rng = np.random.default_rng(seed)
    A, B = random_psd(rng, 30), random_psd(rng, 30)
    result = koda_dense(A, B, epsilon=0.3 * np.linalg.eigvalsh(B)[-1], n_directions=6)
    X = result.directions
    assert np.abs(X @ X.T - np.eye(len(X))).max() < 1e-10
    values = np.einsum("ki,ij,kj->k", X, A, X)
    assert np.allclose(values, result.objective, atol=1e-10)


@pytest.mark.parametrize("seed", range(25))
def test_column_generation_agrees_with_the_full_eigenproblem(seed, monkeypatch):
    rng = np.random.default_rng(300 + seed)
    n = int(rng.integers(5, 70))
    A, B = random_psd(rng, n), random_psd(rng, n)
    low, high = np.linalg.eigvalsh(B)[[0, -1]]
    eps = low + rng.uniform(0.05, 0.9) * (high - low)
    full = koda_dense(A, B, epsilon=eps, n_directions=3)
    monkeypatch.setattr(sequence, "EIGEN_LIMIT", 2)
    fast = koda_dense(A, B, epsilon=eps, n_directions=3)
    assert fast.status[0] == full.status[0]
    shared = min(len(full.status), len(fast.status))
    good = [k for k in range(shared) if full.status[k] != "infeasible"]
    scale = full.scale[0]
    assert np.abs(fast.objective[good] - full.objective[good]).max() <= 1e-7 * scale
    assert fast.gap[good].max() <= 1e-7 * scale
    assert {fast.certificate[k] for k in good} <= {"cholesky", "eigen"}


@pytest.mark.parametrize("case", range(12))
def test_low_rank_equals_dense(case):
    rng = np.random.default_rng(400 + case)
    n, d1, d2 = 40, int(rng.integers(2, 12)), int(rng.integers(2, 12))
    pa, pb = rng.standard_normal((n, d1)), rng.standard_normal((n, d2))
    if case % 3 == 0:
        pb[:, 0] = pa[:, 0]  # shared range: the pivoted factor must drop a column
    A, B = pa @ pa.T, pb @ pb.T
    eps = 0.2 * np.linalg.eigvalsh(B)[-1]
    low = koda_features(pa, pb, epsilon=eps, n_directions=3)
    full = koda_dense(A, B, epsilon=eps, n_directions=3)
    assert np.allclose(low.objective, full.objective, rtol=1e-9, atol=1e-9)
    X = low.directions
    assert np.abs(X @ X.T - np.eye(3)).max() < 1e-10 or low.range_mass.min() < 1.0 - 1e-9
    assert np.einsum("ki,ij,kj->k", X, A, X) == pytest.approx(low.objective / low.range_mass)


@pytest.mark.parametrize("seed", range(8))
def test_too_tight_an_epsilon_is_flagged(seed):
    # Equal column spans: B has no zero on the range, so a tight epsilon forces filler.
    rng = np.random.default_rng(500 + seed)
    pa = rng.standard_normal((50, 5))
    pb = pa @ rng.standard_normal((5, 5))
    A, B = reduce(pa, pb).A[:5, :5], reduce(pa, pb).B[:5, :5]
    ratio = float(np.linalg.eigvals(np.linalg.solve(B, A)).real.max())
    eps = 0.5 * np.linalg.eigvalsh(B)[0]
    result = koda_features(pa, pb, epsilon=float(eps), n_directions=1)
    assert result.range_mass[0] < 1.0 - 1e-6
    assert result.objective[0] == pytest.approx(eps * ratio, rel=1e-7)
    assert any("too tight" in note for note in result.notes)


def test_gram_of_blocks_is_the_plain_product():
    rng = np.random.default_rng(0)
    pa, pb = rng.standard_normal((9000, 5)), rng.standard_normal((9000, 3)).astype(np.float32)
    both = np.concatenate([pa, pb.astype(np.float64)], axis=1)
    assert np.allclose(gram(pa, pb), both.T @ both, rtol=1e-12)


def test_new_samples_are_scored_as_the_old_ones():
    rng = np.random.default_rng(21)
    pa, pb = rng.standard_normal((80, 6)), rng.standard_normal((80, 4))
    result = koda_features(pa, pb, epsilon=5.0, n_directions=3)
    assert np.allclose(result.score(pa, pb), result.directions.T, atol=1e-9)
    with pytest.raises(BadInput, match="columns"):
        result.score(pa[:, :3], pb)
    with pytest.raises(BadInput, match="features"):
        koda_dense(np.eye(3), np.eye(3), epsilon=2.0).score(pa, pb)


def test_planted_clusters_are_found_and_spec_misses_them(planted_problem):
    A, B, wanted = planted_problem
    for eps in (1.5, 3.0):
        result = koda_dense(A, B, epsilon=eps, n_directions=6)
        assert max(result.relative_gap) <= 1e-6
        assert recall(result.directions, wanted) == [1.0] * 5
    assert np.mean(recall(spec_dense(A, B, n_directions=5).directions, wanted)) < 0.5


def test_matrix_free_equals_dense(planted_problem):
    A, B, _ = planted_problem
    A, B = A[:300, :300], B[:300, :300]
    full = koda_dense(A, B, epsilon=2.0, n_directions=4)

    class Product:
        def __init__(self, M):
            self.M = torch.from_numpy(np.ascontiguousarray(M))

        def __matmul__(self, x):
            return self.M @ x

    free = sequence.solve_sequence_free(Product(A), Product(B), 300, 2.0, 4)
    X = np.stack([f.y for f in free])
    assert np.abs(X @ X.T - np.eye(4)).max() < 1e-10
    assert [f.certificate for f in free] == ["ritz"] * 4
    assert np.allclose([f.solution.objective for f in free], full.objective, atol=1e-6)
    assert all(f.solution.gap <= 1e-6 * f.solution.scale for f in free)


def test_blocks_of_kernel_rows_give_the_dense_answer(monkeypatch):
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((130, 4)), rng.standard_normal((130, 4))
    a, b = (match_group_size(make_kernel(t), 6.0) for t in (x, y))
    dense = koda_kernels(a, b, n_directions=2)
    monkeypatch.setattr("core.contrast.methods.DENSE_LIMIT", 100)
    monkeypatch.setattr("core.linalg.kernels._BLOCK_CELLS", 8000)
    free = koda_kernels(a, b, n_directions=2)
    assert free.certificate == ("ritz", "ritz")
    assert np.allclose(free.objective, dense.objective, atol=1e-6)


def test_random_features_keep_the_planted_clusters():
    rng = np.random.default_rng(8)
    n, d = 300, 16
    a = rng.standard_normal((n, d))
    b = rng.standard_normal((n, d))
    wanted = []
    for k, size in enumerate((24, 21, 18, 15)):
        rows = np.arange(k * 30, k * 30 + size)
        a[rows] = 3 * rng.standard_normal(d) + 0.1 * rng.standard_normal((size, d))
        wanted.append(rows)
    ka, kb = (match_group_size(make_kernel(t), 22.0) for t in (a, b))
    exact = koda_kernels(ka, kb, epsilon=2.0, n_directions=5)
    assert recall(exact.directions, wanted) == [1.0] * 4
    errors = []
    for r in (250, 500):
        result = koda_kernels(ka, kb, epsilon=2.0, n_features=r, n_directions=5)
        assert recall(result.directions, wanted) == [1.0] * 4
        errors.append(abs(result.objective[0] / exact.objective[0] - 1.0))
    assert errors[1] <= max(errors[0], 0.05)
    assert errors[1] < 0.15


def test_joint_kernel_finds_what_one_modality_cannot():
    # Image tight in both; the text of one cluster is scattered by B alone.
    rng = np.random.default_rng(9)
    n, d = 300, 12
    image_a = rng.standard_normal((n, d))
    image_b = rng.standard_normal((n, d))
    text_a, text_b = rng.standard_normal((n, d)), rng.standard_normal((n, d))
    wanted = np.arange(20)
    for decoy in range(6):
        rows = np.arange(20, 50) + 30 * decoy
        for table in (image_a, image_b):
            table[rows] = 2 * rng.standard_normal(d) + 0.15 * rng.standard_normal((30, d))
    for table in (image_a, image_b, text_a):
        table[wanted] = 2 * rng.standard_normal(d) + 0.15 * rng.standard_normal((20, d))

    def gains(a, b):
        ka, kb = (match_group_size(make_kernel(t), 12.0) for t in (a, b))
        return recall(koda_kernels(ka, kb, n_directions=3).directions, [wanted])[0]

    joint = gains({"i": image_a, "t": text_a}, {"i": image_b, "t": text_b})
    assert joint >= 0.9
    assert gains(image_a, image_b) <= 0.5


def test_column_generation_restarts_from_a_full_basis():
    rng = np.random.default_rng(33)
    A, B = (torch.from_numpy(random_psd(rng, 120)) for _ in range(2))
    start = torch.from_numpy(rng.standard_normal((120, 39)))
    eps = 0.2 * float(torch.linalg.eigvalsh(B)[-1])
    step = solve_columns(A, B, eps, start)
    exact = solve(A.numpy(), B.numpy(), eps)
    assert step.basis.shape[1] <= 42
    assert step.solution.objective == pytest.approx(exact.objective, rel=1e-7)


def test_gaussian_helper_matches_the_kernel():
    x = np.random.default_rng(1).standard_normal((20, 3))
    k = make_kernel(x)
    rows = k.parts[0].numpy()
    assert np.allclose(k.dense().numpy(), gaussian(rows, k.scales[0]), atol=1e-12)
