"""Mid-ranks, plain and weighted, and Spearman's correlation on them.

A resample that draws item i ``w_i`` times has the same ranks as physically duplicated rows:
value v has mid-rank ``sum_{u<v} w + (sum_{u=v} w + 1) / 2``. That is linear in w, so the
ranks of B resamples are one product ``W T`` with ``T_ji = 1[v_j < v_i] + 1[v_j = v_i] / 2``.

Axes: n items, B resamples.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from core.errors import BadInput


def as_pair(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two float64 vectors of equal length.

    Raises
    ------
    BadInput
        They are not vectors of the same length.
    """
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if left.ndim != 1 or left.shape != right.shape:
        raise BadInput(
            f"Two vectors of equal length were expected, got shapes {left.shape} and "
            f"{right.shape}.",
            "Give one value an item in both.",
        )
    return left, right


def mid_ranks(values: np.ndarray) -> np.ndarray:
    """Return average ranks (1 ... n), float64, shape (n,).

    Examples
    --------
    >>> mid_ranks(np.array([3.0, 1.0, 3.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    return np.asarray(rankdata(values, method="average"), dtype=np.float64)


def rank_operator(values: np.ndarray) -> np.ndarray:
    """Return ``T`` with ``T_ji = 1[v_j < v_i] + 1[v_j = v_i] / 2``, shape (n, n)."""
    below = values[:, None] < values[None, :]
    same = values[:, None] == values[None, :]
    return below + 0.5 * same


def weighted_mid_ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the mid-ranks of every item in every resample.

    Parameters
    ----------
    values : ndarray, shape (n,)
        Finite values; ties are exact equality.
    weights : ndarray, shape (B, n)
        How often each item is drawn.

    Returns
    -------
    ndarray of float64, shape (B, n)
        Ranks as in the duplicated sample; an item of weight 0 gets the rank it would split.

    Examples
    --------
    >>> weighted_mid_ranks(np.array([1.0, 2.0]), np.array([[2, 1]])).tolist()
    [[1.5, 3.0]]
    """
    counts = np.atleast_2d(np.asarray(weights, dtype=np.float64))
    return counts @ rank_operator(np.asarray(values, dtype=np.float64)) + 0.5


def standardised(ranks: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return ``sqrt(w) (r - mean) / spread`` of each row, shape (B, n).

    The weighted correlation of two variables is then a plain product of rows, so that many
    pairs share the work. A row without spread is NaN.
    """
    mean = np.einsum("bi,bi->b", weights, ranks) / weights.sum(1)
    out = ranks - mean[:, None]
    out *= np.sqrt(weights)
    spread = np.sqrt(np.einsum("bi,bi->b", out, out))
    with np.errstate(invalid="ignore", divide="ignore"):
        out /= np.where(spread > 0, spread, np.nan)[:, None]
    return out


def row_products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the correlation of each row of two :func:`standardised` tables, shape (B,)."""
    return np.clip(np.einsum("bi,bi->b", a, b), -1.0, 1.0)


def weighted_pearson(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted Pearson correlation of each row, shape (B,).

    ``a``, ``b`` and ``weights`` have shape (B, n). A row without spread is NaN.
    """
    return row_products(standardised(a, weights), standardised(b, weights))


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Return Spearman's rho with average ranks, in [-1, 1].

    NaN when a vector is constant or holds fewer than two values. Values must be finite: drop
    missing pairs first, a NaN never enters a rank.

    Examples
    --------
    >>> round(spearman(np.array([1.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0])), 6)
    0.5
    """
    left, right = as_pair(a, b)
    if len(left) < 2:
        return float("nan")
    weights = np.ones((1, len(left)))
    rho = weighted_pearson(mid_ranks(left)[None], mid_ranks(right)[None], weights)
    return float(rho[0])
