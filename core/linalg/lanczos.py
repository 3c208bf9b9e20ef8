"""Leading eigenpairs of a symmetric operator known only by its products.

Block Lanczos with full reorthogonalisation and thick restart (Wu and Simon 2000, "Thick-restart
Lanczos method for large symmetric eigenvalue problems"). All arithmetic is float64.

Axes: n rows of the operator, b columns of a block, j columns of the basis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

Apply = Callable[[torch.Tensor], torch.Tensor]

_TINY = 1e-300


@dataclass(frozen=True)
class Eigenpairs:
    """Leading eigenpairs found by :func:`top_eigenpairs`.

    Attributes
    ----------
    values : ndarray, shape (k,)
        Ritz values, largest first.
    vectors : Tensor, shape (n, k), float64
        Orthonormal Ritz vectors.
    residuals : ndarray, shape (k,)
        Norms of ``M v - value v``; each interval value ± residual holds an eigenvalue.
    products : int
        Number of operator products, one a column.
    """

    values: np.ndarray
    vectors: torch.Tensor
    residuals: np.ndarray
    products: int


def random_block(n: int, b: int, *, seed: int, device: torch.device | str = "cpu") -> torch.Tensor:
    """Return a seeded standard normal block, shape (n, b), float64."""
    block = np.random.default_rng(seed).standard_normal((n, b))
    return torch.from_numpy(block).to(device)


def top_eigenpairs(
    apply: Apply,
    start: torch.Tensor,
    *,
    k: int = 1,
    tol: float = 1e-8,
    max_basis: int = 48,
    max_products: int = 2000,
) -> Eigenpairs:
    """Return the k largest eigenvalues of a symmetric operator and their vectors.

    Parameters
    ----------
    apply : callable
        Maps a float64 block (n, b) to ``M @ block``.
    start : Tensor, shape (n, b)
        First block. It must not be orthogonal to the wanted vectors: mix in a random one.
    k : int
        Number of pairs (at most n).
    tol : float
        Stop when each residual is below ``tol`` times the largest absolute Ritz value.
    max_basis, max_products : int
        Largest basis before a restart, and the most products spent.

    Returns
    -------
    Eigenpairs
        With fewer than k pairs only when n < k.

    Examples
    --------
    >>> M = torch.diag(torch.tensor([3.0, 2.0, 1.0], dtype=torch.float64))
    >>> top_eigenpairs(lambda X: M @ X, random_block(3, 1, seed=0)).values.round(6).tolist()
    [3.0]
    """
    n = start.shape[0]
    k = min(k, n)
    block = _orthonormal(start.to(torch.float64))
    width = block.shape[1]
    max_basis = min(max(max_basis, 2 * k + 2 * width), n)
    basis = torch.zeros((n, max_basis + width), dtype=torch.float64, device=start.device)
    projected = np.zeros((max_basis + width, max_basis + width))
    used, products, step = 0, 0, 0
    while True:
        b = block.shape[1]
        basis[:, used : used + b] = block
        now = basis[:, : used + b]
        image = apply(block)
        products += b
        coupling = now.T @ image
        image = image - now @ coupling
        image = image - now @ (now.T @ image)
        column = coupling.cpu().numpy()
        projected[: used + b, used : used + b] = column
        projected[used : used + b, : used + b] = column.T
        used += b
        step += 1
        block, upper = _next_block(image, basis[:, :used])
        spent = block.shape[1] == 0 or used >= n or products >= max_products
        full = used + block.shape[1] > max_basis
        if not (spent or full or step % 4 == 0):
            continue
        values, rotation = np.linalg.eigh(_symmetric(projected[:used, :used]))
        values, rotation = values[::-1], rotation[:, ::-1]
        kept = min(k, used)
        residuals = np.linalg.norm(upper @ rotation[used - b :, :kept], axis=0)
        scale = max(abs(values[0]), abs(values[-1]), _TINY)
        if spent or (kept == k and np.all(residuals <= tol * scale)):
            vectors = basis[:, :used] @ torch.from_numpy(rotation[:, :kept].copy()).to(basis.device)
            return Eigenpairs(values[:kept].copy(), vectors, residuals, products)
        if full:
            keep = min(used - 1, max(k + 4, max_basis // 3))
            turned = torch.from_numpy(rotation[:, :keep].copy()).to(basis.device)
            basis[:, :keep] = basis[:, :used] @ turned
            projected[:] = 0.0
            projected[:keep, :keep] = np.diag(values[:keep])
            used = keep


def _next_block(image: torch.Tensor, basis: torch.Tensor) -> tuple[torch.Tensor, np.ndarray]:
    """Orthonormalise the remainder; columns that vanished are dropped (invariant subspace)."""
    if image.shape[1] == 1:
        norm = float(torch.linalg.vector_norm(image))
        if norm <= 1e-14 * max(1.0, norm):
            return image[:, :0], np.array([[norm]])
        block, upper = image / norm, np.array([[norm]])
    else:
        q, r = torch.linalg.qr(image)
        alive = torch.abs(torch.diagonal(r)) > 1e-14 * max(1.0, float(torch.abs(r).max()))
        block, upper = q[:, alive], r.cpu().numpy()
    # Second pass: a small remainder has lost its orthogonality to the basis.
    block = block - basis @ (basis.T @ block)
    if block.shape[1]:
        block = _orthonormal(block)
    return block, upper


def _orthonormal(block: torch.Tensor) -> torch.Tensor:
    if block.shape[1] == 1:
        return block / torch.linalg.vector_norm(block)
    return torch.linalg.qr(block)[0]


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    return 0.5 * (matrix + matrix.T)
