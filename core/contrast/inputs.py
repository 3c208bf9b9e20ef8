"""What the contrast functions take: matrices, features, epsilon in any of its units."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from core.contrast.types import EPSILON_MODES
from core.device import one_thread
from core.errors import BadInput
from core.linalg.kernels import Kernel, leading_eigenvalue
from core.linalg.random_features import FourierTable

Matrix = np.ndarray | torch.Tensor


@dataclass(frozen=True)
class MatrixSimilarity:
    """A kernel that is held as a matrix."""

    matrix: np.ndarray

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.matrix)

    def block(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Return k(rows, cols)."""
        return self.matrix[np.ix_(rows, cols)]


@dataclass(frozen=True)
class FeatureSimilarity:
    """The kernel of a table of features."""

    phi: Matrix | FourierTable

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.phi)

    def block(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Return k(rows, cols)."""
        left, right = self.phi[rows], self.phi[cols]
        out = left @ right.T
        return out.double().cpu().numpy() if isinstance(out, torch.Tensor) else np.asarray(out)


def raw_epsilon(
    mode: str, value: float, n: int, reference: Kernel | Matrix, *, rank: int | None = None
) -> float:
    """Return epsilon in raw units (K_ii = 1).

    Parameters
    ----------
    mode : {"unit_trace", "floor", "quantile", "fraction"}
        ``value`` is in units of K_B / n; raw; a quantile of K_B's eigenvalues (0 to 1); a share
        of lmax(K_B).
    value : float
    n : int
    reference : Kernel or array
        K_B, or its reduced form, for the last two modes.
    rank : int, optional
        Number of covariance eigenvalues the quantile runs over.

    Raises
    ------
    BadInput
        Unknown mode, a value out of range, or a quantile of a kernel too large to diagonalise.
    """
    if mode not in EPSILON_MODES:
        raise BadInput(f"epsilon_mode={mode!r} is not known.", f"Use one of {EPSILON_MODES}.")
    if not np.isfinite(value) or value < 0.0:
        raise BadInput(f"epsilon={value} must be a number of at least 0.")
    if mode in ("unit_trace", "floor"):
        return value * n if mode == "unit_trace" else value
    if value > 1.0:
        raise BadInput(f"epsilon={value} is a share in mode {mode!r}: at most 1.")
    if isinstance(reference, Kernel):
        if mode == "quantile":
            raise BadInput(
                f"The eigenvalues of an exact kernel of {reference.n:,} rows are not computed.",
                "Use n_features, or the epsilon modes 'floor' or 'fraction'.",
            )
        return value * leading_eigenvalue(reference)
    matrix = reference.cpu().numpy() if isinstance(reference, torch.Tensor) else reference
    spectrum = np.sort(np.linalg.eigvalsh(matrix))[::-1]
    if mode == "fraction":
        return value * float(spectrum[0])
    if rank is not None:
        padded = np.zeros(rank)
        padded[: min(rank, len(spectrum))] = spectrum[:rank]
        spectrum = padded
    return float(np.quantile(np.maximum(spectrum, 0.0), value))


@contextmanager
def lapack_thread() -> Iterator[None]:
    """One thread for LAPACK-bound work, in torch, numpy and scipy alike."""
    with one_thread(), threadpool_limits(limits=1, user_api="blas"):
        yield


def square_matrix(matrix: Matrix, name: str) -> torch.Tensor:
    """Return a symmetric float64 matrix, or say what is wrong with it."""
    out = torch.as_tensor(matrix, dtype=torch.float64)
    if out.ndim != 2 or out.shape[0] != out.shape[1] or not len(out):
        raise BadInput(f"{name} has shape {tuple(out.shape)}; a square matrix (n, n) is needed.")
    if not bool(torch.isfinite(out).all()):
        raise BadInput(f"{name} holds a value that is not finite.")
    if float((out - out.T).abs().max()) > 1e-8 * max(float(out.abs().max()), 1e-300):
        raise BadInput(f"{name} is not symmetric.", "A kernel matrix has k(i, j) = k(j, i).")
    return 0.5 * (out + out.T)
