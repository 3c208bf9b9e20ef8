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
    return paired_ranks(a, b)[0]


def paired_ranks(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mid-ranks in both directions from one pass over the similarities.

    Parameters
    ----------
    a, b : ndarray, shape (n, k)
        As in :func:`match_ranks`.

    Returns
    -------
    forth, back : ndarray of float64, shape (n,)
        Ranks of queries of ``a`` in ``b``, and of ``b`` in ``a``.
    """
    a, b = as_matrix(a, "a"), as_matrix(b, "b")
    if a.shape != b.shape:
        raise BadInput(
            f"a and b must have one shape, got {a.shape} and {b.shape}.",
            "Retrieval compares paired rows in one relative space.",
        )
    ua, ub = unit_rows(a), unit_rows(b)
    n = len(a)
    true = np.einsum("nk,nk->n", ua, ub)
    # Equal rows give products that differ in the last bits: those are ties.
    slack = 1e-12 * np.maximum(np.abs(true), 1.0)
    forth, back = np.zeros(n), np.zeros(n)
    for start in range(0, n, BLOCK):
        rows = slice(start, start + BLOCK)
        for other in range(0, n, BLOCK):
            columns = slice(other, other + BLOCK)
            scores = ua[rows] @ ub[columns].T  # (block, block)
            forth[rows] += _before(scores, true[rows, None], slack[rows, None], axis=1)
            back[columns] += _before(scores, true[columns], slack[columns], axis=0)
    # A sample ties with itself once, which is not a tie.
    return forth - 0.5, back - 0.5


def _before(scores: np.ndarray, true: np.ndarray, slack: np.ndarray, *, axis: int) -> np.ndarray:
    """Return how many scores are greater, ties counting half."""
    above = np.count_nonzero(scores > true + slack, axis=axis)
    level = np.count_nonzero(scores >= true - slack, axis=axis)
    return np.asarray((above + level) / 2.0)


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
    return _figures(match_ranks(a, b), ks)


def paired_retrieval(
    a: np.ndarray, b: np.ndarray, *, ks: Sequence[int] = (1, 5)
) -> tuple[dict[str, float], dict[str, float]]:
    """Return :func:`retrieval` of ``a`` in ``b`` and of ``b`` in ``a``, from one pass."""
    forth, back = paired_ranks(a, b)
    return _figures(forth, ks), _figures(back, ks)


def _figures(ranks: np.ndarray, ks: Sequence[int]) -> dict[str, float]:
    out: dict[str, float] = {f"R@{k}": float((ranks < k).mean()) for k in ks}
    out["MRR"] = float((1.0 / (ranks + 1.0)).mean())
    out["median_rank"] = float(np.median(ranks) + 1.0)
    out["n"] = float(len(ranks))
    out["chance"] = 1.0 / len(ranks)
    return out
