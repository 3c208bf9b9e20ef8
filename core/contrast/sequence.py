"""Directions one after another, each orthogonal to those before.

The paper projects (its Prop. 4.2), which leaves span(U) as free filler with a = b = 0: for
K_A = K_B = I_3, U = e1 and eps = 1/2 the projected problem returns a point of a problem that
has none. Here the found direction is *removed*: a Householder reflection H takes it to the
first axis, and the rows and columns of that axis are cut off. Exact orthogonality, no filler.
Where no matrix is held, every product and every start is kept in the complement, which is the
same compression.

Axes: n rows, k directions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from core.contrast.columns import ColumnSolution, Operator, solve_columns
from core.contrast.solver import CERTIFIED_GAP, Solution, solve
from core.linalg.lanczos import random_block

EIGEN_LIMIT = 600  # up to here a full eigenproblem is the faster way
_ROUNDING = 1e-8  # a later lmax(A) below this share of the first is what deflation left over

Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Direction:
    """A solution in the coordinates of the first problem, and how it was certified."""

    solution: Solution
    y: np.ndarray
    certificate: str


def solve_sequence(
    A: torch.Tensor,
    B: torch.Tensor,
    eps: float,
    n_directions: int,
    *,
    tol: float = 1e-9,
    seed: int = 0,
    certify: bool = True,
    progress: Progress | None = None,
    enough: Callable[[Direction], bool] | None = None,
) -> list[Direction]:
    """Find directions one after another for matrices that are held.

    Stops early at the first infeasible problem, which is the last entry.

    Parameters
    ----------
    A, B : Tensor, shape (n, n), float64
        Overwritten.
    eps, n_directions, tol, seed, certify
        As in :func:`core.contrast.koda_dense`; ``certify=False`` skips the Cholesky proof.
    progress : callable, optional
        Called with (share done, message).
    enough : callable, optional
        Called with each direction found; True ends the sequence.
    """
    found: list[Direction] = []
    reflectors: list[np.ndarray] = []
    basis: torch.Tensor | None = None
    floor = 0.0
    for k in range(min(n_directions, A.shape[0])):
        if progress is not None:
            progress(k / n_directions, f"direction {k + 1} of {n_directions}")
        if A.shape[0] <= EIGEN_LIMIT:
            solution = solve(A.cpu().numpy(), B.cpu().numpy(), eps, tol=1e-12, floor=floor)
            certificate = "eigen"
        else:
            start = _start(A.shape[0], basis, seed, A.device)
            step = solve_columns(
                A, B, eps, start, tol=tol, seed=seed + k, certify=certify, floor=floor
            )
            if certify:
                step = _retried(A, B, eps, step, seed + k, floor)
            solution, certificate, basis = step.solution, step.certificate, step.basis
        floor = floor or _ROUNDING * solution.scale
        found.append(Direction(solution, _lifted(solution.x, reflectors), certificate))
        if solution.status == "infeasible" or A.shape[0] == 1:
            break
        if enough is not None and enough(found[-1]):
            break
        v = _reflector(solution.x)
        reflectors.append(v)
        column = torch.from_numpy(v).to(A.device)
        A, B = _compressed(A, column), _compressed(B, column)
        if basis is not None:
            basis = (basis - 2.0 * torch.outer(column, column @ basis))[1:]
    return found


def solve_sequence_free(
    A: Operator,
    B: Operator,
    n: int,
    eps: float,
    n_directions: int,
    *,
    tol: float = 1e-8,
    seed: int = 0,
    device: torch.device | str = "cpu",
    progress: Progress | None = None,
) -> list[Direction]:
    """Find directions for operators known only by products; certificates are "ritz"."""
    found: list[Direction] = []
    kept = torch.empty((n, 0), dtype=torch.float64, device=device)
    basis: torch.Tensor | None = None
    floor = 0.0
    for k in range(min(n_directions, n)):
        if progress is not None:
            progress(k / n_directions, f"direction {k + 1} of {n_directions}")

        def project(block: torch.Tensor, kept: torch.Tensor = kept) -> torch.Tensor:
            return block - kept @ (kept.T @ block)

        start = _start(n, basis, seed, device)
        step = solve_columns(A, B, eps, start, tol=tol, seed=seed + k, project=project, floor=floor)
        floor = floor or _ROUNDING * step.solution.scale
        found.append(Direction(step.solution, step.solution.x, step.certificate))
        if step.solution.status == "infeasible":
            break
        basis = step.basis
        new = project(torch.from_numpy(step.solution.x[:, None]).to(device))
        kept = torch.cat([kept, new / torch.linalg.vector_norm(new)], dim=1)
    return found


def _retried(
    A: torch.Tensor, B: torch.Tensor, eps: float, step: ColumnSolution, seed: int, floor: float
) -> ColumnSolution:
    """Start again with another seed where a wide gap means a missed eigenvector."""
    wide = step.solution.gap > CERTIFIED_GAP * max(step.solution.scale, 1e-300)
    if not wide or step.certificate == "eigen":
        return step
    return solve_columns(A, B, eps, step.basis, tol=1e-10, seed=seed + 1009, floor=floor)


def _start(
    n: int, basis: torch.Tensor | None, seed: int, device: torch.device | str
) -> torch.Tensor:
    """Earlier columns, a random one, and the last axis (the null coordinate, if there is one)."""
    first = random_block(n, 2, seed=seed + 31, device=device)
    first[:, 1] = 0.0
    first[-1, 1] = 1.0
    return first if basis is None else torch.cat([basis, first], dim=1)


def _reflector(x: np.ndarray) -> np.ndarray:
    """Return the unit v with (I - 2 v v') x = -sign(x_1) e1 (the sign that cannot cancel)."""
    v = x / np.linalg.norm(x)
    v[0] += 1.0 if v[0] >= 0.0 else -1.0
    return v / np.linalg.norm(v)


def _compressed(M: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return (H M H)[1:, 1:] as a view of M, which is overwritten."""
    w = M @ v
    w = 2.0 * (w - (v @ w) * v)
    M -= torch.outer(v, w)
    M -= torch.outer(w, v)
    return M[1:, 1:]


def _lifted(x: np.ndarray, reflectors: list[np.ndarray]) -> np.ndarray:
    """Take a vector of a compressed problem back to the first problem's coordinates."""
    for v in reversed(reflectors):
        x = np.concatenate([[0.0], x])
        x = x - 2.0 * (v @ x) * v
    return x
