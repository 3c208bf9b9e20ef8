"""SPEC: the eigenvectors of K_A - eta K_B (arXiv 2506.06231), as a baseline.

SPEC's first direction is KODA's at epsilon = b(x_SPEC), where the multiplier is eta: one point
of the epsilon path. From features the covariance form is used, reduced by the same pivoted
Cholesky factor as KODA's: R (I_A - eta I_B) R', symmetric, rho x rho.

Axes: n samples, k directions.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.linalg import eigh

from core.contrast.clusters import orient
from core.contrast.lowrank import Features, lift, reduce
from core.contrast.types import SpecResult
from core.errors import BadInput
from core.linalg.kernels import DENSE_LIMIT, Kernel, Table, make_kernel, match_group_size
from core.linalg.lanczos import random_block, top_eigenpairs
from core.linalg.random_features import FourierTable, cosine_features, fourier_table


def spec(
    target: Table,
    reference: Table,
    *,
    eta: float = 1.0,
    kernel: str = "cosine",
    group_size: float = 6.0,
    n_features: int | None = None,
    n_directions: int = 10,
    centered: bool = True,
    seed: int = 0,
) -> SpecResult:
    """Return the directions most dominant in the target by SPEC.

    Parameters
    ----------
    target, reference : ndarray (n, d) or mapping of modalities
        Features of the same samples.
    eta : float
        Weight of the reference's kernel.
    kernel : {"cosine", "rbf"}
    group_size : float
        lmax(K), raw, that sets both bandwidths (rbf).
    n_features : int, optional
        Random frequencies (rbf) or projections (product of cosines); None: exact.
    n_directions, centered, seed

    Returns
    -------
    SpecResult

    Examples
    --------
    >>> x = np.random.default_rng(0).standard_normal((50, 6))
    >>> spec(x, x, n_directions=1).eigenvalues.round(9).tolist()
    [0.0]
    """
    a = make_kernel(target, kind=kernel, centered=centered, seed=seed, name="target")
    b = make_kernel(reference, kind=kernel, centered=centered, seed=seed, name="reference")
    if a.n != b.n:
        raise BadInput(f"target has {a.n:,} rows and reference {b.n:,}; they must match.")
    if kernel == "rbf":
        a, b = (
            match_group_size(a, group_size, seed=seed),
            match_group_size(b, group_size, seed=seed),
        )
    single = kernel == "cosine" and len(a.parts) == len(b.parts) == 1
    if single or n_features is not None:
        return spec_features(
            *feature_pair(a, b, n_features, seed), eta=eta, n_directions=n_directions
        )
    if a.n > DENSE_LIMIT:
        raise BadInput(
            f"An exact SPEC of {a.n:,} rows needs a matrix of that size; 3,000 is the limit.",
            "Give n_features.",
        )
    return spec_dense(a.dense(), b.dense(), eta=eta, n_directions=n_directions, seed=seed)


def feature_pair(
    a: Kernel, b: Kernel, n_features: int | None, seed: int, *, orthogonal: bool = False
) -> tuple[torch.Tensor | FourierTable, torch.Tensor | FourierTable]:
    """Return the feature tables of two kernels, with independent seeds for A and B."""
    if a.kind == "cosine":
        wide = n_features or 3000
        return cosine_features(a, wide, seed=seed), cosine_features(b, wide, seed=seed + 1)
    count = n_features or 1000
    return (
        fourier_table(a, count, seed=seed, orthogonal=orthogonal),
        fourier_table(b, count, seed=seed + 1, orthogonal=orthogonal),
    )


def spec_dense(
    K_a: np.ndarray | torch.Tensor,
    K_b: np.ndarray | torch.Tensor,
    *,
    eta: float = 1.0,
    n_directions: int = 10,
    seed: int = 0,
) -> SpecResult:
    """SPEC on given kernel matrices, shape (n, n), by Lanczos."""
    A, B = (torch.as_tensor(K, dtype=torch.float64) for K in (K_a, K_b))
    difference = A - eta * B
    k = min(n_directions, len(A))
    found = top_eigenpairs(
        lambda x: difference @ x,
        random_block(len(A), 2 if len(A) > 2 else 1, seed=seed, device=A.device),
        k=k,
        tol=1e-10,
        max_basis=max(64, 4 * k),
    )
    x = found.vectors
    a = (x * (A @ x)).sum(0).cpu().numpy()
    b = (x * (B @ x)).sum(0).cpu().numpy()
    directions = orient(np.ascontiguousarray(x.T.cpu().numpy()))
    return SpecResult(found.values / len(A), directions, a, b, eta)


def spec_features(
    phi_a: Features,
    phi_b: Features,
    *,
    eta: float = 1.0,
    n_directions: int = 10,
) -> SpecResult:
    """SPEC in covariance form, from features of shape (n, d1) and (n, d2)."""
    reduced = reduce(phi_a, phi_b)
    A, B = reduced.A[: reduced.rank, : reduced.rank], reduced.B[: reduced.rank, : reduced.rank]
    k = min(n_directions, reduced.rank)
    values, y = eigh(A - eta * B, subset_by_index=(reduced.rank - k, reduced.rank - 1))
    values, y = values[::-1], y[:, ::-1]
    x = lift(phi_a, phi_b, reduced.back @ y)
    a, b = np.einsum("ik,ij,jk->k", y, A, y), np.einsum("ik,ij,jk->k", y, B, y)
    return SpecResult(values / len(phi_a), orient(x.T), a, b, eta)
