"""Retrieval between two encoders: how often a sample finds itself among all others.

Ranks are mid-ranks (number of greater scores plus half the number of equal ones), so that
constant rows score like chance and not like a perfect match.

Axes: n samples, k relative features.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.errors import BadInput
from core.linalg.whitening import as_matrix
from core.stitching.representation import unit_rows

BLOCK = 1024  # query rows compared at once: memory stays flat in n


def match_ranks(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the 0-based mid-rank of row r of ``b`` among all rows of ``b`` for query ``a[r]``.

    Parameters
    ----------
    a, b : ndarray, shape (n, k)
        Paired rows, compared by cosine.

    Returns
    -------
    ndarray of float64, shape (n,)
        0 for a perfect match, (n - 1) / 2 when all scores are equal.

    Raises
    ------
    BadInput
        Shapes differ, or NaN or infinity.
    """
    a, b = as_matrix(a, "a"), as_matrix(b, "b")
    if a.shape != b.shape:
        raise BadInput(
            f"a and b must have one shape, got {a.shape} and {b.shape}.",
            "Retrieval compares paired rows in one relative space.",
        )
    ua, ub = unit_rows(a), unit_rows(b)
    n = len(a)
    ranks = np.empty(n)
    for start in range(0, n, BLOCK):
        scores = ua[start : start + BLOCK] @ ub.T  # (block, n)
        own = np.arange(start, min(start + BLOCK, n))
        true = scores[own - start, own][:, None]
        # Equal rows give products that differ in the last bits: those are ties.
        slack = 1e-12 * np.maximum(np.abs(true), 1.0)
        greater = (scores > true + slack).sum(axis=1)
        equal = (np.abs(scores - true) <= slack).sum(axis=1) - 1
        ranks[own] = greater + equal / 2.0
    return ranks


def retrieval(a: np.ndarray, b: np.ndarray, *, ks: Sequence[int] = (1, 5)) -> dict[str, float]:
    """Return recall at k, mean reciprocal rank and median rank of paired rows.

    Parameters
    ----------
    a, b : ndarray, shape (n, k)
        Relative features of the same items from two encoders: queries and gallery.
    ks : sequence of int
        Depths of the recall.

    Returns
    -------
    dict
        ``R@k`` for each k, ``MRR``, ``median_rank`` (1 is best), ``n``, ``chance`` (1/n).

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(20, 4))
    >>> retrieval(x, x)["R@1"], round(retrieval(np.ones((20, 4)), x)["R@1"], 2)
    (1.0, 0.05)
    """
    ranks = match_ranks(a, b)
    out: dict[str, float] = {f"R@{k}": float((ranks < k).mean()) for k in ks}
    out["MRR"] = float((1.0 / (ranks + 1.0)).mean())
    out["median_rank"] = float(np.median(ranks) + 1.0)
    out["n"] = float(len(ranks))
    out["chance"] = 1.0 / len(ranks)
    return out
