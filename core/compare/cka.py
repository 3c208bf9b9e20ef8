"""Linear centred kernel alignment (CKA) of two representations.

Similarity of neural network representations revisited (arXiv 1905.00414), Eq. 3:
``||A^T B||_F^2 / (||A^T A||_F ||B^T B||_F)`` on centred columns.

Axes: n samples, d_a and d_b dimensions.
"""

from __future__ import annotations

import numpy as np

from core.errors import BadInput
from core.linalg.whitening import as_matrix


def paired(a: np.ndarray, b: np.ndarray, *, min_rows: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return ``a`` and ``b`` as finite float64 matrices with as many rows, or raise BadInput."""
    a, b = as_matrix(a, "a", min_rows=min_rows), as_matrix(b, "b", min_rows=min_rows)
    if len(a) != len(b):
        raise BadInput(
            f"a and b must describe the same samples, got {len(a)} and {len(b)} rows.",
            "Take both by id, in one order.",
        )
    return a, b


def linear_cka(a: np.ndarray, b: np.ndarray) -> float:
    """Return the linear CKA of two representations of the same samples.

    Parameters
    ----------
    a, b : ndarray, shapes (n, d_a) and (n, d_b)
        Paired rows.

    Returns
    -------
    float
        In [0, 1]; 1 for equal up to rotation, isotropic scale and shift; NaN when one of them
        does not vary. It rises towards 1 when d is much larger than n, whatever the data.

    Raises
    ------
    BadInput
        Row counts differ, or NaN.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(30, 4))
    >>> round(linear_cka(x, 3.0 * x @ np.eye(4)[::-1] + 1.0), 12)
    1.0

    References
    ----------
    arXiv 1905.00414, Eq. 3.
    """
    a, b = paired(a, b)
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    if max(a.shape[1], b.shape[1]) <= len(a):
        # d x d products, reduced in float64: the n x n Gram matrices are never built.
        cross = float(np.linalg.norm(a.T @ b)) ** 2
        own = float(np.linalg.norm(a.T @ a) * np.linalg.norm(b.T @ b))
    else:
        K, H = a @ a.T, b @ b.T  # (n, n)
        cross = float((K * H).sum())
        own = float(np.linalg.norm(K) * np.linalg.norm(H))
    return cross / own if own > 0 else float("nan")
