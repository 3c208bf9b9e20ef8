"""The factor ``s, V`` of ``X = U diag(s) V^T`` without U, in float64 and by blocks of rows.

What transferability measures need of U are products with class indicators,
``T^T U = (T^T X) V / s``, so U (n rows) is never formed and memory does not grow with n.
The Gram matrix is trusted up to a condition number of 1e5 (its error grows with the square);
beyond that a blocked QR, whose triangle is decomposed, gives the digits back.

Axes: n rows, d columns, k = numerical rank, C classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

BLOCK = 4096
GRAM_KAPPA = 1e5
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Factor:
    """Singular values and right vectors of a matrix, centred or not.

    Attributes
    ----------
    values : ndarray of float64, shape (k,)
        Descending, above ``s_1 max(n, d) 2.2e-16``.
    vectors : ndarray of float64, shape (d, k)
    mean : ndarray of float64, shape (d,)
        What was subtracted from the rows (zero when not centred).
    n : int
    """

    values: np.ndarray
    vectors: np.ndarray
    mean: np.ndarray
    n: int

    def left_products(self, sums: np.ndarray) -> np.ndarray:
        """Return ``T^T U`` (C, k) from ``T^T (X - mean)`` (C, d)."""
        return (sums @ self.vectors) / self.values


def thin_factor(x: np.ndarray, *, centre: bool = False) -> Factor:
    """Return singular values and right vectors of ``x`` above rounding.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Finite.
    centre : bool
        Subtract the mean row first.

    Returns
    -------
    Factor
        No values at all (k = 0) for a matrix of zeros, or a constant cloud when centred.

    Examples
    --------
    >>> import numpy as np
    >>> thin_factor(np.diag([3.0, 4.0, 0.0])).values
    array([4., 3.])
    """
    n, d = x.shape
    mean = x.mean(0, dtype=np.float64) if centre else np.zeros(d)
    if n > d:
        values, vectors = _from_gram(x, mean)
    else:
        _, values, right = np.linalg.svd(x.astype(np.float64) - mean, full_matrices=False)
        vectors = right.T
    # Centring itself leaves rounding of the order of eps times the features' own length.
    scale = float(np.linalg.norm(mean)) * np.sqrt(n)
    keep = values > max(n, d) * EPS * max(float(values[0]) if len(values) else 0.0, scale)
    return Factor(values[keep], vectors[:, keep], mean, n)


def _from_gram(x: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    d = x.shape[1]
    gram = np.zeros((d, d))
    for rows in blocks(x, mean):
        gram += rows.T @ rows
    squares, vectors = np.linalg.eigh(gram)
    if squares[0] * GRAM_KAPPA**2 > squares[-1]:
        return np.sqrt(squares[::-1]), vectors[:, ::-1]
    triangle = np.zeros((0, d))
    for rows in blocks(x, mean):
        triangle = np.asarray(np.linalg.qr(np.concatenate([triangle, rows]), mode="r"))
    _, values, right = np.linalg.svd(triangle, full_matrices=False)
    return values, right.T


def blocks(x: np.ndarray, mean: np.ndarray | float = 0.0) -> Iterator[np.ndarray]:
    """Yield ``x - mean`` in float64, 4,096 rows at a time."""
    for first in range(0, len(x), BLOCK):
        yield x[first : first + BLOCK].astype(np.float64) - mean


def class_sums(x: np.ndarray, codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the sum of the rows of each class (C, d) in float64.

    Parameters
    ----------
    x : ndarray, shape (n, d)
    codes : ndarray of int, shape (n,)
        In 0..C-1.
    n_classes : int
    """
    from scipy.sparse import csr_array

    sums = np.zeros((n_classes, x.shape[1]))
    for first, rows in zip(range(0, len(x), BLOCK), blocks(x), strict=True):
        mine = codes[first : first + BLOCK]
        one = np.ones(len(mine))
        sums += csr_array((one, (mine, np.arange(len(mine)))), (n_classes, len(mine))) @ rows
    return sums
