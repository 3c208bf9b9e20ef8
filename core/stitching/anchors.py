"""Anchors that need no training: every kind is a mixing matrix over the support rows.

A row of the mixing matrix says which support samples make one anchor; the same matrix serves
every encoder, so that anchors of different encoders correspond. Random, farthest-point and
k-means anchors pick single samples (one-hot rows, arXiv 2209.15430); k-means mixtures average
the samples nearest to a centroid, the start of PARAM Single (arXiv 2605.30596).

Axes: m support rows, k anchors, d feature dimensions.
"""

from __future__ import annotations

import warnings

import numpy as np

from core.errors import BadInput
from core.stitching.representation import standard_unit_rows


def check_count(n_anchors: int, m: int) -> int:
    """Return the number of anchors, at most m; raise :class:`BadInput` below 2."""
    if n_anchors < 2 or m < 2:
        raise BadInput(
            f"n_anchors must be at least 2 over at least 2 support rows, got {n_anchors} over {m}.",
            "Ask for more anchors or give more parallel rows.",
        )
    return min(n_anchors, m)


def one_hot(rows: np.ndarray, m: int) -> np.ndarray:
    """Return the mixing matrix, shape (k, m), whose anchors are the support ``rows``."""
    P = np.zeros((len(rows), m))
    P[np.arange(len(rows)), rows] = 1.0
    return P


def random_anchors(m: int, n_anchors: int, *, seed: int = 0) -> np.ndarray:
    """Return ``n_anchors`` support samples drawn without replacement, shape (k, m).

    Examples
    --------
    >>> random_anchors(5, 2, seed=0).sum(axis=1).tolist()
    [1.0, 1.0]
    """
    k = check_count(n_anchors, m)
    return one_hot(np.random.default_rng(seed).choice(m, k, replace=False), m)


def fps_anchors(x: np.ndarray, n_anchors: int, *, seed: int = 0) -> np.ndarray:
    """Return farthest-point anchors of one space, shape (k, m).

    Each next anchor is the support sample farthest from those chosen, in centred,
    standardised, unit rows; the first is random. O(k m d).
    """
    u = standard_unit_rows(x)  # (m, d)
    k = check_count(n_anchors, len(u))
    chosen = [int(np.random.default_rng(seed).integers(len(u)))]
    nearest = np.full(len(u), np.inf)
    for _ in range(k - 1):
        nearest = np.minimum(nearest, 2.0 - 2.0 * (u @ u[chosen[-1]]))
        nearest[chosen] = -np.inf
        chosen.append(int(nearest.argmax()))
    return one_hot(np.array(chosen), len(u))


def kmeans_anchors(x: np.ndarray, n_anchors: int, *, seed: int = 0) -> np.ndarray:
    """Return the samples nearest to k-means centroids (each sample once), shape (k, m)."""
    u = standard_unit_rows(x)
    distance = _centroid_distances(u, check_count(n_anchors, len(u)), seed)  # (k, m)
    rows: list[int] = []
    for row in distance:
        row[rows] = np.inf
        rows.append(int(row.argmin()))
    return one_hot(np.array(rows), len(u))


def mixture_anchors(
    x: np.ndarray, n_anchors: int, *, width: int | None = None, seed: int = 0
) -> np.ndarray:
    """Return uniform mixtures of the ``width`` samples nearest to each k-means centroid.

    Parameters
    ----------
    x : ndarray, shape (m, d)
        Support rows of the reference encoder.
    width : int, optional
        Samples averaged per anchor; by default m/10 kept within 20 and 100. Fewer than 20
        give noisy anchors.

    Returns
    -------
    ndarray of float64, shape (k, m)
        Rows sum to 1.
    """
    u = standard_unit_rows(x)
    m = len(u)
    width = min(width or mixture_width(m), m)
    distance = _centroid_distances(u, check_count(n_anchors, m), seed)  # (k, m)
    near = np.argpartition(distance, width - 1, axis=1)[:, :width]  # (k, width)
    P = np.zeros_like(distance)
    np.put_along_axis(P, near, 1.0 / width, axis=1)
    return P


def mixture_width(m: int) -> int:
    """Return the least effective support per anchor: m/10 kept within 20 and 100."""
    return int(np.clip(m // 10, 20, 100))


def effective_support(mixing: np.ndarray) -> np.ndarray:
    """Return ``exp(entropy)`` of each mixing row: how many samples make an anchor, shape (k,).

    Examples
    --------
    >>> effective_support(np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])).round(6).tolist()
    [2.0, 1.0]
    """
    safe = np.where(mixing > 0, mixing, 1.0)
    return np.exp(-(mixing * np.log(safe)).sum(axis=1))


def _centroid_distances(u: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Squared distances of k-means centroids to the rows, shape (k, m)."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        # Fewer distinct rows than clusters is met by duplicates among the anchors: allowed.
        warnings.simplefilter("ignore", ConvergenceWarning)
        centres = KMeans(k, n_init=1, max_iter=50, random_state=seed).fit(u).cluster_centers_
    return (centres**2).sum(1)[:, None] - 2.0 * centres @ u.T + (u**2).sum(1)[None, :]
