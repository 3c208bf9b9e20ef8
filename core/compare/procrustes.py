"""Procrustes distance of two representations.

Grounding representation similarity through statistical testing (arXiv 2108.01661):
``||A||_F^2 + ||B||_F^2 - 2 ||A^T B||_*`` on centred rows of Frobenius norm 1.

Axes: n samples, d_a and d_b dimensions.
"""

from __future__ import annotations

import numpy as np

from core.compare.cka import paired


def procrustes_distance(a: np.ndarray, b: np.ndarray) -> float:
    """Return the squared distance left after the best rotation.

    Parameters
    ----------
    a, b : ndarray, shapes (n, d_a) and (n, d_b)
        Paired rows; the narrower one counts as padded with zeros.

    Returns
    -------
    float
        In [0, 2]; 0 for equal up to rotation, isotropic scale and shift; NaN when one of them
        does not vary.

    Raises
    ------
    BadInput
        Row counts differ, or NaN.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(30, 4))
    >>> abs(round(procrustes_distance(x, 3.0 * x @ np.eye(4)[::-1] + 1.0), 12))
    0.0

    References
    ----------
    arXiv 2108.01661.
    """
    a, b = paired(a, b)
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    norms = np.linalg.norm(a) * np.linalg.norm(b)
    if norms == 0:
        return float("nan")
    nuclear = np.linalg.svd(a.T @ b, compute_uv=False).sum() / norms
    return float(max(2.0 - 2.0 * nuclear, 0.0))
