"""Nearest items of an item, exactly, in the original space of any layer.

FAISS flat search: every stored row is compared, nothing is approximated; rows are added in
blocks, so that only the index itself grows with n.

Axes: n items, d dimensions, q queries, k neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from core.errors import BadInput

if TYPE_CHECKING:
    from core.types import Features

BLOCK = 16_384
METRICS = ("cosine", "euclidean")


def nearest_rows(
    base: np.ndarray, queries: np.ndarray, *, k: int = 10, metric: str = "cosine"
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest rows of ``base`` for each query, nearest first.

    Parameters
    ----------
    base, queries : ndarray, shapes (n, d) and (q, d)
        Finite rows; compared in float32.
    k : int
        Neighbours, at least 1; cut to n.
    metric : {"cosine", "euclidean"}
        A zero row has cosine 0 with every row.

    Returns
    -------
    rows : ndarray of int64, shape (q, k)
    scores : ndarray of float64, shape (q, k)
        Cosine in [-1, 1], or Euclidean distance.

    Raises
    ------
    BadInput
        Widths differ, NaN or infinite values, an unknown metric, k below 1.

    Examples
    --------
    >>> x = np.eye(3, dtype=np.float32)
    >>> rows, scores = nearest_rows(x, x[:1], k=1)
    >>> rows.tolist(), scores.tolist()
    ([[0]], [[1.0]])
    """
    import faiss

    _check(base, queries, k, metric)
    d = base.shape[1]
    index = faiss.IndexFlatIP(d) if metric == "cosine" else faiss.IndexFlatL2(d)
    for start in range(0, len(base), BLOCK):
        index.add(_ready(base[start : start + BLOCK], metric))
    scores, rows = index.search(_ready(queries, metric), min(k, len(base)))
    scores = scores.astype(np.float64)
    if metric == "euclidean":
        # FAISS gives squares, which rounding can take below zero for equal rows.
        scores = np.sqrt(np.maximum(scores, 0.0))
    return rows.astype(np.int64), scores


def nearest_items(
    features: Features,
    item: int,
    *,
    layer: str | None = None,
    k: int = 12,
    metric: str = "cosine",
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids of the k items nearest to ``item``, itself left out, and their scores.

    Raises
    ------
    BadInput
        The item has no features here, or as :func:`nearest_rows`.
    NotFound
        There is no such layer.
    """
    x = features.layer(layer)
    own = int(features.rows_of([item])[0])
    rows, scores = nearest_rows(x, np.asarray(x[own : own + 1]), k=k + 1, metric=metric)
    # Not simply the first: exact copies of the item tie with it.
    kept = rows[0] != own
    return features.ids[rows[0][kept][:k]], scores[0][kept][:k]


def _ready(rows: np.ndarray, metric: str) -> np.ndarray:
    out = np.ascontiguousarray(rows, dtype=np.float32)
    if metric == "cosine":
        norms = np.linalg.norm(out.astype(np.float64), axis=1, keepdims=True)
        out = (out / np.maximum(norms, 1e-12)).astype(np.float32)
    return out


def _check(base: np.ndarray, queries: np.ndarray, k: int, metric: str) -> None:
    for name, x in (("base", base), ("queries", queries)):
        if np.ndim(x) != 2 or not len(x):
            raise BadInput(f"{name} must be a matrix with rows, got shape {np.shape(x)}.")
        if not all(np.isfinite(part).all() for part in _blocks(x)):
            raise BadInput(f"{name} holds NaN or infinite values.", "Leave those rows out.")
    if base.shape[1] != queries.shape[1]:
        raise BadInput(
            f"queries have {queries.shape[1]} columns, base has {base.shape[1]}.",
            "Take both from one layer of one encoder.",
        )
    if metric not in METRICS:
        raise BadInput(f"metric={metric!r} is not known.", f"Use one of {', '.join(METRICS)}.")
    if k < 1:
        raise BadInput(f"k={k} is below 1.", "Ask for one neighbour or more.")


def _blocks(x: np.ndarray) -> Sequence[np.ndarray]:
    return [x[start : start + BLOCK] for start in range(0, len(x), BLOCK)]
