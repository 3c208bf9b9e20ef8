"""KODA on features: the n x n problem reduced to the joint rank of the two tables.

K_A = Pa Pa', K_B = Pb Pb', Phi = [Pa Pb]. A pivoted Cholesky factor of G = Phi' Phi gives an
orthonormal basis Q = Phi P R^-1 of the joint range, never formed, in which both kernels are
small matrices (the symmetric form of arXiv 2606.04180, Prop. 4.3). Directions outside the
range have a = b = 0: one extra null coordinate stands for all of them.

Axes: n rows, d1 and d2 columns, m = d1 + d2, rho joint rank.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.linalg import lapack, solve_triangular
from scipy.linalg.blas import dsyrk

from core.errors import BadInput
from core.linalg.random_features import FourierTable

Features = np.ndarray | torch.Tensor | FourierTable

_ROWS = 4096
_DROP = 1e-12  # pivots below this share of the largest are rounding


@dataclass(frozen=True)
class Reduction:
    """Both kernels in an orthonormal basis of the joint range.

    Attributes
    ----------
    A, B : ndarray, shape (q, q), float64
        q = rho, or rho + 1 with the null coordinate last.
    back : ndarray, shape (m, rho)
        P R^-1: features times this is the basis.
    rank : int
    null : bool
        Whether the null coordinate is there (n > rho).
    """

    A: np.ndarray
    B: np.ndarray
    back: np.ndarray
    rank: int
    null: bool

    def weights(self, y: np.ndarray) -> np.ndarray:
        """Return u = P R^-1 y, shape (m,): x = Phi u, and the score of a new sample."""
        return self.back @ y[: self.rank]


def gram(phi_a: Features, phi_b: Features) -> np.ndarray:
    """Return [Pa Pb]' [Pa Pb], shape (m, m), summed in float64 over blocks of rows.

    On the CPU by BLAS syrk (half the products of a general multiplication).
    """
    d1, d2 = phi_a.shape[1], phi_b.shape[1]
    if isinstance(phi_a, torch.Tensor) and isinstance(phi_b, torch.Tensor) and phi_a.is_cuda:
        total = torch.zeros((d1 + d2, d1 + d2), dtype=torch.float64, device=phi_a.device)
        for at in range(0, len(phi_a), _ROWS):
            both = torch.cat([phi_a[at : at + _ROWS], phi_b[at : at + _ROWS]], 1).double()
            total += both.T @ both
        return total.cpu().numpy()
    out = np.zeros((d1 + d2, d1 + d2), order="F")
    block = np.empty((_ROWS, d1 + d2))
    for at in range(0, len(phi_a), _ROWS):
        rows = block[: min(_ROWS, len(phi_a) - at)]
        rows[:, :d1] = _host(phi_a[at : at + _ROWS])
        rows[:, d1:] = _host(phi_b[at : at + _ROWS])
        out = dsyrk(1.0, rows.T, beta=1.0, c=out, overwrite_c=True)
    return out + np.triu(out, 1).T


def reduce(phi_a: Features, phi_b: Features) -> Reduction:
    """Reduce two feature tables to their joint range.

    Parameters
    ----------
    phi_a, phi_b : ndarray or Tensor, shapes (n, d1) and (n, d2)
        Features of the same n samples: K_A = Pa Pa', K_B = Pb Pb'.

    Raises
    ------
    BadInput
        The numbers of rows differ, or both tables are zero.

    Examples
    --------
    >>> r = reduce(np.eye(4)[:, :2], np.eye(4)[:, 1:3])
    >>> r.rank, r.null, r.A.shape
    (3, True, (4, 4))
    """
    n, d1 = phi_a.shape
    if len(phi_b) != n:
        raise BadInput(f"target has {n:,} rows and reference {len(phi_b):,}; they must match.")
    G = gram(phi_a, phi_b)
    size = float(np.diag(G).max())
    if not size > 0.0:
        raise BadInput("Both tables of features are zero: there is nothing to contrast.")
    factor, pivots, rank, _ = lapack.dpstrf(G, tol=_DROP * size)
    upper = np.triu(factor)[:rank]
    order = pivots - 1
    R = np.empty_like(upper)
    R[:, order] = upper
    R_a, R_b = R[:, :d1], R[:, d1:]
    null = n > rank
    A, B = _framed(R_a @ R_a.T, null), _framed(R_b @ R_b.T, null)
    back = np.zeros((G.shape[0], rank))
    back[order[:rank]] = solve_triangular(upper[:, :rank], np.eye(rank))
    return Reduction(A, B, back, int(rank), null)


def _framed(matrix: np.ndarray, null: bool) -> np.ndarray:
    return np.pad(matrix, (0, 1)) if null else matrix


def lift(phi_a: Features, phi_b: Features, u: np.ndarray) -> np.ndarray:
    """Return Phi u for weights u of shape (m, k): the directions over the samples, (n, k)."""
    d1 = phi_a.shape[1]
    out = np.empty((len(phi_a), u.shape[1]))
    for at in range(0, len(phi_a), _ROWS):
        left = np.asarray(_host(phi_a[at : at + _ROWS]), dtype=np.float64)
        right = np.asarray(_host(phi_b[at : at + _ROWS]), dtype=np.float64)
        out[at : at + _ROWS] = left @ u[:d1] + right @ u[d1:]
    return out


def _host(block: np.ndarray | torch.Tensor) -> np.ndarray:
    return block.cpu().numpy() if isinstance(block, torch.Tensor) else block
