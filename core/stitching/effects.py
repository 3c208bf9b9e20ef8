"""What each learned anchor does: what it covers, how like the others it is, what it is worth.

Axes: N encoders, n test rows, k anchors, C classes.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.linalg.whitening import Whitening
from core.stats.intervals import cluster_mean_interval
from core.stitching.heads import Head
from core.stitching.representation import unit_rows

_BLOCK = 4_000_000  # entries of the (rows, k, C) block that is held at once


def nearest_anchors(
    x: np.ndarray, anchors: np.ndarray, stats: Whitening
) -> tuple[np.ndarray, np.ndarray]:
    """Return the closest anchor of each sample, by cosine in the whitened space.

    Parameters
    ----------
    x, anchors : ndarray, shapes (n, d) and (k, d)
        Unwhitened.
    stats : Whitening

    Returns
    -------
    nearest : ndarray of int64, shape (n,)
    cosine : ndarray of float64, shape (n,), in [-1, 1]
        A sample that no anchor covers has a small one.
    """
    cosines = unit_rows(stats.transform(x)) @ unit_rows(stats.transform(anchors)).T  # (n, k)
    nearest = cosines.argmax(axis=1)
    return nearest, cosines[np.arange(len(x)), nearest]


def correlations(anchors: np.ndarray, stats: Whitening) -> np.ndarray:
    """Return the largest absolute cosine of each anchor with another one, shape (k,)."""
    unit = unit_rows(stats.transform(anchors))
    cosines = np.abs(unit @ unit.T)  # (k, k)
    np.fill_diagonal(cosines, 0.0)
    return np.asarray(cosines.max(axis=1))


def drop_one(head: Head, rel: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return how accuracy changes when one anchor is silenced, for each anchor.

    The anchor's coordinate is set to its training mean, which takes it out of a standardised
    linear head; the head is not trained again.

    Parameters
    ----------
    head : Head
        Trained on relative features.
    rel : ndarray, shape (n, k)
        Relative test features.
    y : ndarray of int, shape (n,)

    Returns
    -------
    ndarray of float64, shape (k,)
        Accuracy without the anchor minus accuracy with it: below 0 where the anchor helps.

    Examples
    --------
    >>> eye = np.eye(2)
    >>> head = Head(np.zeros(2), np.ones(2), eye, np.zeros(2))
    >>> drop_one(head, np.array([[1.0, 0.0], [2.0, 0.1]]), np.array([0, 0])).tolist()
    [-0.5, 0.0]
    """
    z = (rel - head.mean) / head.scale  # (n, k)
    n, k = z.shape
    right = np.zeros(k)
    base = 0
    step = max(1, _BLOCK // max(1, k * head.weights.shape[1]))
    for start in range(0, n, step):
        part = z[start : start + step]
        scores = part @ head.weights + head.bias  # (rows, C)
        without = scores[:, None, :] - part[:, :, None] * head.weights  # (rows, k, C)
        true = y[start : start + step]
        right += (without.argmax(axis=2) == true[:, None]).sum(axis=0)
        base += int((scores.argmax(axis=1) == true).sum())
    return (right - base) / n


def cover_gap(
    cover: pd.DataFrame, failing: pd.Series, groups: pd.Series, *, seed: int = 0
) -> dict[str, float]:
    """Return whether items that fail when stitched are covered less well by the anchors.

    Parameters
    ----------
    cover : DataFrame
        id, cosine: the closest anchor of every test item under one encoder.
    failing : Series of int
        Ids of the items that fail.
    groups : Series, indexed by id
        Units that are resampled together.
    seed : int

    Returns
    -------
    dict
        ``failing`` and ``others`` (mean cosines), ``difference``, ``low``, ``high`` (95 %,
        whole groups resampled) and the counts ``n_failing``, ``n_others``. Without failing
        items, or with nothing else, the figures are NaN.
    """
    fails = cover["id"].isin(failing).to_numpy()
    value = cover["cosine"].to_numpy(float)
    out = {"n_failing": float(fails.sum()), "n_others": float((~fails).sum())}
    if not fails.any() or fails.all():
        nan = float("nan")
        return {**out, "failing": nan, "others": nan, "difference": nan, "low": nan, "high": nan}
    units = groups.loc[cover["id"]].astype(str).to_numpy()
    # The difference of two means is the mean of these: each item's share of its own side.
    signed = np.where(fails, value / fails.mean(), -value / (~fails).mean())
    spread = cluster_mean_interval(signed, units, seed=seed)
    return {
        **out, "failing": float(value[fails].mean()), "others": float(value[~fails].mean()),
        "difference": spread.value, "low": spread.lo, "high": spread.hi,
    }  # fmt: skip
