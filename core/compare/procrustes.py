"""Procrustes distance and similarity of two representations.

Grounding representation similarity through statistical testing (arXiv 2108.01661):
``||A||_F^2 + ||B||_F^2 - 2 ||A^T B||_*`` on centred columns of Frobenius norm 1. The
similarity is the nuclear norm itself, ``1 - distance / 2``.

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
    sizes = np.linalg.norm(a), np.linalg.norm(b)
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    norms = np.linalg.norm(a) * np.linalg.norm(b)
    # Equal rows leave only the rounding of their mean, which is no variation.
    if any(np.linalg.norm(x) <= 1e-12 * size for x, size in zip((a, b), sizes, strict=True)):
        return float("nan")
    nuclear = np.linalg.svd(a.T @ b, compute_uv=False).sum() / norms
    return float(max(2.0 - 2.0 * nuclear, 0.0))


def procrustes_similarity(a: np.ndarray, b: np.ndarray) -> float:
    """Return ``1 - procrustes_distance / 2``, in [0, 1]; NaN when one of them does not vary.

    With d near or above n a rotation fits noise, and unrelated representations look alike:
    read it against a permutation null.

    Raises
    ------
    BadInput
        As :func:`procrustes_distance`.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(30, 4))
    >>> round(procrustes_similarity(x, 3.0 * x), 12)
    1.0
    """
    return 1.0 - procrustes_distance(a, b) / 2.0


def unit_factor(gram: np.ndarray) -> np.ndarray:
    """Return F of norm 1 with ``F F^T`` the centred Gram matrix, over its trace, shape (n, r).

    The Procrustes similarity of two is the nuclear norm of ``F^T G``.

    Parameters
    ----------
    gram : ndarray, shape (n, n)
        Inner products of rows, around any origin.

    Returns
    -------
    ndarray of float64, shape (n, r)
        One zero column when nothing varies.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(12, 3))
    >>> y = np.random.default_rng(1).normal(size=(12, 5))
    >>> F, G = unit_factor(x @ x.T), unit_factor(y @ y.T)
    >>> nuclear = np.linalg.svd(F.T @ G, compute_uv=False).sum()
    >>> bool(np.isclose(nuclear, procrustes_similarity(x, y)))
    True
    """
    means = gram.mean(axis=1)
    centred = gram - means[:, None] - means[None, :] + means.mean()
    values, vectors = np.linalg.eigh((centred + centred.T) / 2.0)
    top = float(np.abs(gram).max(initial=0.0))
    kept = values > 1e-12 * max(float(values[-1]), 1e-3 * top)
    if not kept.any():
        return np.zeros((len(gram), 1))
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept] / values[kept].sum()))
