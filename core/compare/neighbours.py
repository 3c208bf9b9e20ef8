"""Mutual nearest neighbours: how many neighbours two representations share.

The Platonic representation hypothesis (arXiv 2405.07987), the mutual k-nearest-neighbour
alignment: the mean share of common members of the two k-neighbourhoods.

Axes: n samples, d dimensions, k neighbours.
"""

from __future__ import annotations

import numpy as np

from core.compare.cka import paired
from core.errors import BadInput

BLOCK = 1024  # rows compared at once
_TABLE = 16_000_000  # distances held at once: memory stays flat in n
METRICS = ("cosine", "euclidean")


def neighbour_ids(x: np.ndarray, *, k: int = 10, metric: str = "cosine") -> np.ndarray:
    """Return the k nearest other rows of each row, unordered, shape (n, k), int64."""
    if metric == "cosine":
        x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    half = (x**2).sum(axis=1) / 2.0
    found = np.empty((len(x), k), dtype=np.int64)
    step = max(1, min(BLOCK, _TABLE // max(len(x), 1)))
    for start in range(0, len(x), step):
        distance = half - x[start : start + step] @ x.T  # (block, n)
        own = np.arange(len(distance))
        distance[own, start + own] = np.inf
        if k < len(x) - 1:
            found[start : start + step] = np.argpartition(distance, k - 1, axis=1)[:, :k]
        else:
            found[start : start + step] = np.argsort(distance, axis=1, kind="stable")[:, :k]
    return found


def mutual_knn(a: np.ndarray, b: np.ndarray, *, k: int = 10, metric: str = "cosine") -> float:
    """Return the mean share of common k nearest neighbours.

    Parameters
    ----------
    a, b : ndarray, shapes (n, d_a) and (n, d_b)
        Paired rows.
    k : int
        Neighbours, 1 <= k < n.
    metric : {"cosine", "euclidean"}

    Returns
    -------
    float
        In [0, 1]; about k / (n - 1) for unrelated representations.

    Raises
    ------
    BadInput
        Row counts differ, NaN, an unknown metric, or k out of range.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(30, 4))
    >>> mutual_knn(x, 2.0 * x, k=5)
    1.0

    References
    ----------
    arXiv 2405.07987, section on the alignment metric.
    """
    a, b = paired(a, b)
    if not 1 <= k < len(a):
        raise BadInput(f"k must be at least 1 and below the {len(a)} samples, got {k}.", "Lower k.")
    if metric not in METRICS:
        raise BadInput(f"metric={metric!r} is not known.", f"Use one of {', '.join(METRICS)}.")
    na, nb = (neighbour_ids(x, k=k, metric=metric) for x in (a, b))
    shared = (na[:, :, None] == nb[:, None, :]).sum(axis=(1, 2))
    return float(shared.mean() / k)


def unit_neighbours(order: np.ndarray, k: int) -> np.ndarray:
    """Return who is among whose k nearest, scaled: the dot product of two is their overlap.

    Parameters
    ----------
    order : ndarray, shape (n, n)
        Row i rises with the distance from i; its diagonal is not read.
    k : int
        Neighbours, 1 <= k < n.

    Returns
    -------
    ndarray of float64, shape (n, n)
        ``1 / sqrt(n k)`` where j is a neighbour of i, else 0; all zero when all are equally far.

    Examples
    --------
    >>> far = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    >>> float((unit_neighbours(far, 1) ** 2).sum())
    1.0
    """
    n = len(order)
    far = np.array(order, dtype=np.float64)
    np.fill_diagonal(far, np.inf)
    nearest, furthest = far.min(), np.where(np.isfinite(far), far, -np.inf).max()
    if furthest - nearest <= 1e-12 * max(abs(furthest), abs(nearest), 1.0):
        return np.zeros((n, n))
    near = np.argpartition(far, k - 1, axis=1)[:, :k]
    out = np.zeros((n, n))
    np.put_along_axis(out, near, 1.0 / np.sqrt(n * k), axis=1)
    return out


def distance_order(x: np.ndarray, *, metric: str = "cosine") -> np.ndarray:
    """Return a matrix whose row i rises with the distance from row i, float64, shape (n, n)."""
    x = np.asarray(x, dtype=np.float64)
    if metric == "cosine":
        x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    return np.asarray((x**2).sum(axis=1)[None, :] / 2.0 - x @ x.T)
