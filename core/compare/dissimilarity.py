"""Representational similarity analysis (RSA): how alike two representations order pairs.

Kriegeskorte, Mur and Bandettini, Frontiers in Systems Neuroscience 2:4, 2008: Spearman's
correlation of the dissimilarities of all pairs of samples under the one representation with
those under the other.

Axes: n samples, d_a and d_b dimensions, m pairs of samples.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from core.compare.cka import paired
from core.errors import BadInput
from core.stats.ranks import spearman

DISSIMILARITIES = ("correlation", "cosine", "euclidean")
MAX_PAIRS = 2_000_000
_BLOCK = 16_384  # pairs compared at once


def rsa(
    a: np.ndarray,
    b: np.ndarray,
    *,
    dissimilarity: str = "correlation",
    max_pairs: int = MAX_PAIRS,
    seed: int = 0,
) -> float:
    """Return Spearman's rho of the dissimilarities of all pairs of samples.

    Parameters
    ----------
    a, b : ndarray, shapes (n, d_a) and (n, d_b)
        Paired rows, n >= 4.
    dissimilarity : {"correlation", "cosine", "euclidean"}
        One minus Pearson's correlation of two rows, one minus their cosine, or distance. A
        row without direction (constant, or zero) has similarity 0 with every row.
    max_pairs : int
        With more than this many pairs (n above about 2,000), that many are drawn at random:
        the standard error this adds is below ``1 / sqrt(max_pairs)``.
    seed : int
        Of the drawn pairs.

    Returns
    -------
    float
        In [-1, 1]; 1 when both order all pairs alike; NaN when one has no spread.

    Raises
    ------
    BadInput
        Row counts differ, NaN, fewer than four rows, an unknown dissimilarity, no pairs.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(30, 4))
    >>> round(rsa(x, 2.0 * x), 12)
    1.0

    References
    ----------
    doi 10.3389/neuro.06.004.2008.
    """
    a, b = paired(a, b, min_rows=4)
    if dissimilarity not in DISSIMILARITIES:
        raise BadInput(
            f"dissimilarity={dissimilarity!r} is not known.",
            f"Use one of {', '.join(DISSIMILARITIES)}.",
        )
    if max_pairs < 1:
        raise BadInput(f"max_pairs={max_pairs} leaves no pair.", f"The default is {MAX_PAIRS:,}.")
    n = len(a)
    if n * (n - 1) // 2 <= max_pairs:
        pairs = np.triu_indices(n, 1)
        return spearman(*(dissimilarities(x, dissimilarity)[pairs] for x in (a, b)))
    rng = np.random.default_rng(seed)
    left = rng.integers(0, n, size=max_pairs)
    right = (left + rng.integers(1, n, size=max_pairs)) % n  # never the same row twice
    return spearman(*(_of_pairs(x, left, right, dissimilarity) for x in (a, b)))


def dissimilarities(x: np.ndarray, kind: str = "correlation") -> np.ndarray:
    """Return the dissimilarities of all rows, float64, shape (n, n), zero on the diagonal."""
    x = _scaled(np.asarray(x, dtype=np.float64), kind)
    found = x @ x.T
    if kind == "euclidean":
        squares = np.diag(found)
        found = np.sqrt(np.maximum(squares[:, None] + squares[None, :] - 2.0 * found, 0.0))
    else:
        found = 1.0 - found
    np.fill_diagonal(found, 0.0)
    return np.asarray(found)


def unit_ranks(dissimilarity: np.ndarray) -> np.ndarray:
    """Return centred ranks of all pairs, of norm 1: the dot product of two is their RSA.

    Parameters
    ----------
    dissimilarity : ndarray, shape (n, n)
        Symmetric; its diagonal is not read.

    Returns
    -------
    ndarray of float64, shape (n, n)
        Symmetric, zero on the diagonal; all zero when no pair differs from another.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(12, 3))
    >>> y = np.random.default_rng(1).normal(size=(12, 5))
    >>> dot = (unit_ranks(dissimilarities(x)) * unit_ranks(dissimilarities(y))).sum()
    >>> bool(np.isclose(dot, rsa(x, y)))
    True
    """
    pairs = np.triu_indices(len(dissimilarity), 1)
    ranks = rankdata(dissimilarity[pairs])
    ranks -= ranks.mean()
    norm = np.sqrt(2.0) * float(np.linalg.norm(ranks))
    out = np.zeros(dissimilarity.shape)
    if norm > 0:
        out[pairs] = ranks / norm
    return out + out.T


def _scaled(x: np.ndarray, kind: str) -> np.ndarray:
    if kind == "euclidean":
        return x - x.mean(axis=0)
    if kind == "correlation":
        size = np.linalg.norm(x, axis=1, keepdims=True)
        x = x - x.mean(axis=1, keepdims=True)
        # A constant row leaves only rounding, which has no direction.
        x[np.linalg.norm(x, axis=1) <= 1e-12 * size[:, 0]] = 0.0
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-300))


def _of_pairs(x: np.ndarray, left: np.ndarray, right: np.ndarray, kind: str) -> np.ndarray:
    x = _scaled(x, kind)
    out = np.empty(len(left))
    for start in range(0, len(left), _BLOCK):
        part = slice(start, start + _BLOCK)
        p, q = x[left[part]], x[right[part]]
        if kind == "euclidean":
            out[part] = np.linalg.norm(p - q, axis=1)
        else:
            out[part] = 1.0 - np.einsum("ij,ij->i", p, q)
    return out
