"""One KODA problem of many rows, by column generation with a Cholesky certificate.

A small orthonormal basis Z holds what was learnt. The problem inside span(Z) is solved exactly
(a feasible point: lower bound) and its multiplier lam is tried on the whole: the leading
eigenpairs of A - lam B, by Lanczos, give the dual bound and the next columns of Z. The final
bound is made rigorous: if (mu + delta) I - (A - lam B) has a Cholesky factor, then
lmax(A - lam B) <= mu + delta. Where no matrix can be held, the bound rests on the Ritz value
and its residual, and the certificate says so.

Axes: n rows, p columns of Z (at most 40).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from core.contrast.solver import CERTIFIED_GAP, Solution, solve
from core.linalg.lanczos import Eigenpairs, random_block, top_eigenpairs

_MAX_COLUMNS = 40
_MAX_ROUNDS = 40
_LANCZOS_TOL = 1e-5
_DELTAS = [10.0**k for k in range(-10, -2)]


class Operator(Protocol):
    """A symmetric matrix known by its products with float64 blocks."""

    def __matmul__(self, x: torch.Tensor) -> torch.Tensor: ...


@dataclass(frozen=True)
class ColumnSolution:
    """A :class:`Solution` with the basis to start the next problem from."""

    solution: Solution
    basis: torch.Tensor
    certificate: str


class _Space:
    """Orthonormal Z with A Z and B Z."""

    def __init__(self, A: Operator, B: Operator, project: Callable | None) -> None:
        self.A, self.B, self.project = A, B, project
        self.Z = self.AZ = self.BZ = torch.empty(0)

    def add(self, block: torch.Tensor) -> int:
        """Take in new columns; return how many were not already in the span."""
        norms = torch.linalg.vector_norm(block, dim=0)
        q = self._outside(block / norms.clamp(min=1e-300))
        # What is left of columns already known is rounding: normalised, it would bring a
        # deflated direction back. So the remainder is cleaned again after it is scaled up.
        for _ in range(2):
            q, r = torch.linalg.qr(q)
            q = self._outside(q[:, torch.abs(torch.diagonal(r)) > 1e-8])
        q = torch.linalg.qr(q)[0]
        if not q.shape[1]:
            return 0
        images = self.A @ q, self.B @ q
        if self.Z.numel():
            self.Z = torch.cat([self.Z, q], dim=1)
            self.AZ = torch.cat([self.AZ, images[0]], dim=1)
            self.BZ = torch.cat([self.BZ, images[1]], dim=1)
        else:
            self.Z, self.AZ, self.BZ = q, images[0], images[1]
        return int(q.shape[1])

    def _outside(self, block: torch.Tensor) -> torch.Tensor:
        if self.Z.numel():
            block = block - self.Z @ (self.Z.T @ block)
        return self.project(block) if self.project is not None else block

    def forms(self) -> tuple[np.ndarray, np.ndarray]:
        a, b = (self.Z.T @ self.AZ).cpu().numpy(), (self.Z.T @ self.BZ).cpu().numpy()
        return 0.5 * (a + a.T), 0.5 * (b + b.T)

    def shrink(self, lam: float, y: np.ndarray, keep: int) -> None:
        """Keep the point itself and the leading directions of A - lam B, and one of low b."""
        a, b = self.forms()
        leading = np.linalg.eigh(a - lam * b)[1][:, ::-1][:, : keep - 2]
        low = np.linalg.eigh(b)[1][:, :1]
        turn = np.linalg.qr(np.concatenate([y[:, None], low, leading], axis=1))[0]
        rotation = torch.from_numpy(turn).to(self.Z.device)
        self.Z, self.AZ, self.BZ = self.Z @ rotation, self.AZ @ rotation, self.BZ @ rotation


def solve_columns(
    A: Operator,
    B: Operator,
    eps: float,
    start: torch.Tensor,
    *,
    tol: float = 1e-8,
    seed: int = 0,
    project: Callable[[torch.Tensor], torch.Tensor] | None = None,
    certify: bool = True,
    floor: float = 0.0,
) -> ColumnSolution:
    """Solve one KODA problem whose matrices are known by products.

    Parameters
    ----------
    A, B : Tensor (n, n) or Operator
        Float64, symmetric positive semidefinite.
    eps : float
        Bound on x' B x.
    start : Tensor, shape (n, p)
        Columns to begin with; one should meet the constraint if one is known.
    tol : float
        Stop when the gap is below ``tol`` times lmax(A).
    seed : int
        Seed of the random parts of Lanczos' first vectors.
    project : callable, optional
        Projection on the orthogonal complement of earlier directions (matrix-free deflation).
    certify : bool
        Make the bound rigorous by Cholesky where A and B are matrices.
    floor : float
        Least value of lmax(A) that counts as more than rounding.

    Returns
    -------
    ColumnSolution
        Its certificate is "cholesky", "eigen", "ritz" (an estimate from Lanczos) or "none".
    """
    space = _Space(A, B, project)
    space.add(start)
    n = start.shape[0]
    if not _feasible(space, eps, n, seed):
        return _settle_infeasible(A, B, eps, space, floor)
    upper, best_lam, mu, scale = np.inf, 0.0, 0.0, 0.0
    # An eigenvalue's error is about the square of its vector's residual.
    tightness = max(_LANCZOS_TOL, 0.1 * tol**0.5)
    for turn in range(_MAX_ROUNDS):
        inner = solve(*space.forms(), eps, tol=1e-13, floor=floor)
        lam = inner.multiplier
        found = _top(space, lam, inner.x, seed + turn, tightness)
        bound = float(found.values[0]) + lam * eps
        scale = max(scale, inner.scale)
        if bound < upper:
            upper, best_lam, mu = bound, lam, float(found.values[0])
        if upper - inner.objective <= tol * scale:
            break
        if not space.add(found.vectors):
            # The span already holds these vectors: only rounding or Lanczos is in the way.
            if tightness < 1e-10:
                break
            tightness *= 1e-2
        if space.Z.shape[1] > _MAX_COLUMNS:
            inner = solve(*space.forms(), eps, tol=1e-13, floor=floor)
            space.shrink(inner.multiplier, inner.x, _MAX_COLUMNS // 2)
    inner = solve(*space.forms(), eps, tol=1e-13, floor=floor)
    return _finish(space, inner, (best_lam, mu), eps, seed, certify=certify)


def _top(space: _Space, lam: float, y: np.ndarray, seed: int, tol: float) -> Eigenpairs:
    """Leading two eigenpairs of A - lam B, started at the current point."""
    x = space.Z @ torch.from_numpy(y[:, None]).to(space.Z.device)
    noise = random_block(x.shape[0], 1, seed=seed, device=x.device)
    # Without a random part Lanczos could stay in an invariant subspace that misses the top.
    first = x + 0.05 * noise / torch.linalg.vector_norm(noise)
    first = space.project(first) if space.project is not None else first
    return top_eigenpairs(_difference(space, lam), first, k=2, tol=tol)


def _feasible(space: _Space, eps: float, n: int, seed: int) -> bool:
    """Make sure span(Z) holds a point with b < eps; look for B's bottom when it does not."""
    device = space.Z.device
    for attempt, tol in enumerate((1e-2, 1e-4, 1e-7)):
        forms = space.forms()[1]
        low = float(np.linalg.eigvalsh(forms)[0])
        if low < eps * (1.0 - 1e-9):
            return True
        project = space.project

        def apply(block: torch.Tensor, project: Callable | None = project) -> torch.Tensor:
            out = -(space.B @ block)
            return project(out) if project is not None else out

        first = random_block(n, 1, seed=seed + 17 + attempt, device=device)
        if project is not None:
            first = project(first)
        space.add(top_eigenpairs(apply, first, tol=tol, max_products=400).vectors)
    return float(np.linalg.eigvalsh(space.forms()[1])[0]) < eps


def _settle_infeasible(
    A: Operator, B: Operator, eps: float, space: _Space, floor: float
) -> ColumnSolution:
    """Nothing below eps was found: decide with a full eigenproblem where matrices are held."""
    if isinstance(A, torch.Tensor) and isinstance(B, torch.Tensor):
        exact = solve(A.cpu().numpy(), B.cpu().numpy(), eps, floor=floor)
        return ColumnSolution(exact, space.Z, "eigen")
    a, b = space.forms()
    values, vectors = np.linalg.eigh(b)
    y = vectors[:, 0]
    x = (space.Z @ torch.from_numpy(y[:, None]).to(space.Z.device))[:, 0].cpu().numpy()
    scale = max(float(np.linalg.eigvalsh(a)[-1]), floor)
    found = Solution(x, float(y @ a @ y), float(values[0]), np.inf, np.nan, "infeasible", scale)
    return ColumnSolution(found, space.Z, "ritz")


def _finish(
    space: _Space,
    inner: Solution,
    dual: tuple[float, float],
    eps: float,
    seed: int,
    *,
    certify: bool,
) -> ColumnSolution:
    lam, mu = dual
    scale = max(inner.scale, 1e-300)
    certificate = "none"
    if certify:
        matrices = isinstance(space.A, torch.Tensor) and space.project is None
        if matrices:
            mu, certificate = _cholesky_bound(space, inner, lam, mu, seed)
        else:
            # Two independent starts: a Ritz value that is not the top would show as a rise.
            again = top_eigenpairs(
                _difference(space, lam),
                _fresh(space, seed + 101),
                k=1,
                tol=1e-9,
                max_products=300,
            )
            mu = max(mu, float(again.values[0] + again.residuals[0]))
            certificate = "ritz"
    upper = mu + lam * eps
    x = (space.Z @ torch.from_numpy(inner.x[:, None]).to(space.Z.device))[:, 0].cpu().numpy()
    wide = upper - inner.objective > CERTIFIED_GAP * scale
    # A Lanczos value is an estimate: however small the gap looks, it proves nothing.
    unproven = wide or certificate == "ritz"
    status = "not certified" if unproven and certify else inner.status
    solution = Solution(x, inner.objective, inner.constraint, lam, upper, status, inner.scale)
    return ColumnSolution(solution, space.Z, certificate)


def _difference(space: _Space, lam: float) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return the product with A - lam B, in the complement of earlier directions."""
    if isinstance(space.A, torch.Tensor) and isinstance(space.B, torch.Tensor):
        # Formed once: products are bound by memory, and one matrix is half of two.
        matrix = torch.sub(space.A, space.B, alpha=lam) if lam else space.A
        return lambda block: matrix @ block

    def apply(block: torch.Tensor) -> torch.Tensor:
        out = space.A @ block
        if lam:
            out = out - lam * (space.B @ block)
        return space.project(out) if space.project is not None else out

    return apply


def _fresh(space: _Space, seed: int) -> torch.Tensor:
    block = random_block(space.Z.shape[0], 1, seed=seed, device=space.Z.device)
    return space.project(block) if space.project is not None else block


def _cholesky_bound(
    space: _Space, inner: Solution, lam: float, mu: float, seed: int
) -> tuple[float, str]:
    """Raise mu until (mu) I - (A - lam B) is positive definite; that proves lmax <= mu."""
    assert isinstance(space.A, torch.Tensor)
    assert isinstance(space.B, torch.Tensor)
    scale = max(inner.scale, 1e-300)
    for delta in _DELTAS:
        matrix = lam * space.B - space.A
        matrix.diagonal().add_(mu + delta * scale)
        if int(torch.linalg.cholesky_ex(matrix)[1]) == 0:
            return mu + delta * scale, "cholesky"
        if delta == 1e-8:
            # The Ritz value was not sharp enough: sharpen it once before widening further.
            sharp = top_eigenpairs(_difference(space, lam), _fresh(space, seed + 7), tol=1e-9)
            mu = max(mu, float(sharp.values[0]))
    return mu + scale, "none"
