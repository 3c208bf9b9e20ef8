"""An index of one layer: exact up to 200,000 rows, approximate above with its recall measured.

Rows that hold NaN or infinity are left out and counted; so are zero rows under the cosine,
which have no direction. FAISS fills an answer that is too short with -1: here such places are
-1 with a NaN score, and :func:`found` drops them.

Axes: n rows, m rows in the index, d dimensions, q queries, k neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from core.errors import BadInput

EXACT_UP_TO = 200_000
KINDS = ("auto", "flat", "ivf", "hnsw")
METRICS = ("cosine", "euclidean")
BLOCK = 16_384
_LINKS = 32  # HNSW: neighbours a node
_TRAIN = 40  # IVF: training rows a cell
_SAMPLE, _SAMPLE_K, _WANTED = 200, 10, 0.95  # queries and neighbours recall is read from


@dataclass(frozen=True)
class Index:
    """Rows of a layer, ready to be searched.

    Attributes
    ----------
    kind : {"flat", "ivf", "hnsw"}
        Exact, cells, or a graph.
    metric : {"cosine", "euclidean"}
    rows : ndarray of int64, shape (m,)
        Which rows are in it.
    not_finite, zero : int
        Rows left out.
    recall : float
        Share of the 10 nearest that are found, mean over a sample of rows; 1 when exact.
    sampled : int
        Rows recall was read from; 0 when exact.
    effort : int
        Cells looked into (IVF), or candidates kept (HNSW); 0 when exact.
    """

    kind: str
    metric: str
    rows: np.ndarray
    not_finite: int
    zero: int
    recall: float
    sampled: int
    effort: int
    held: Any = field(repr=False)

    @property
    def dim(self) -> int:
        """Width of a row."""
        return int(self.held.d)

    def search(self, queries: np.ndarray, *, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest rows of each query, nearest first.

        Parameters
        ----------
        queries : ndarray, shape (q, d)
            Finite; no zero row under the cosine.
        k : int
            Neighbours, at least 1; cut to m.

        Returns
        -------
        rows : ndarray of int64, shape (q, k)
            -1 where an approximate search found fewer.
        scores : ndarray of float64, shape (q, k)
            Cosine in [-1, 1], or Euclidean distance; NaN beside -1.

        Raises
        ------
        BadInput
            Another width, NaN, a zero query under the cosine, k below 1.
        """
        wanted = np.asarray(queries)
        if wanted.ndim != 2 or not len(wanted) or wanted.shape[1] != self.dim:
            raise BadInput(
                f"queries must be a matrix with {self.dim} columns, got shape {wanted.shape}.",
                "Take them from the layer that is searched.",
            )
        if k < 1:
            raise BadInput(f"k={k} is below 1.", "Ask for one neighbour or more.")
        not_finite, zero = _unusable(wanted, self.metric)
        if (not_finite | zero).any():
            why = "not finite numbers" if not_finite.any() else "zero: it has no direction"
            raise BadInput(f"A query is {why}.", "Search for another item.")
        scores, at = self.held.search(_scaled(wanted, self.metric), min(k, len(self.rows)))
        return _answer(self.rows, at, scores, self.metric)


def build(
    x: np.ndarray,
    *,
    metric: str = "cosine",
    kind: str = "auto",
    exact_up_to: int = EXACT_UP_TO,
    seed: int = 0,
) -> Index:
    """Index the rows of a layer.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Read in blocks and compared in float32.
    metric : {"cosine", "euclidean"}
    kind : {"auto", "flat", "ivf", "hnsw"}
        "auto" is flat up to ``exact_up_to`` rows, IVF above.
    exact_up_to : int
        See ``kind``.
    seed : int
        Of the rows that train the cells and of those recall is read from.

    Returns
    -------
    Index
        An approximate one searches as widely as 95 % recall takes, or as it can.

    Raises
    ------
    BadInput
        Not a matrix, no usable row, an unknown metric or kind.

    Examples
    --------
    >>> rows, scores = build(np.eye(3)).search(np.eye(3)[:1], k=2)
    >>> rows.tolist(), scores.round(6).tolist()
    ([[0, 1]], [[1.0, 0.0]])
    """
    import faiss

    if np.ndim(x) != 2 or not len(x) or not np.shape(x)[1]:
        raise BadInput(f"x must be a matrix with rows, got shape {np.shape(x)}.")
    for name, value, known in (("metric", metric, METRICS), ("kind", kind, KINDS)):
        if value not in known:
            raise BadInput(f"{name}={value!r} is not known.", f"Use one of {', '.join(known)}.")
    rows, not_finite, zero = _usable(x, metric)
    if not len(rows):
        raise BadInput(
            "No row can be searched: all are zero or not finite.", "Extract the features again."
        )
    d = int(x.shape[1])
    flat = faiss.IndexFlatIP(d) if metric == "cosine" else faiss.IndexFlatL2(d)
    if kind == "auto":
        kind = "flat" if len(rows) <= exact_up_to else "ivf"
    rng = np.random.default_rng(seed)
    held = flat if kind == "flat" else _approximate(kind, flat, x, rows, metric, rng)
    for start in range(0, len(rows), BLOCK):
        held.add(_scaled(x[rows[start : start + BLOCK]], metric))
    if kind == "flat":
        return Index("flat", metric, rows, not_finite, zero, 1.0, 0, 0, held)
    recall, sampled, effort = _tune(held, kind, x, rows, metric, rng)
    return Index(kind, metric, rows, not_finite, zero, recall, sampled, effort, held)


def found(rows: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return one query's answer without the places where nothing was found.

    Examples
    --------
    >>> found(np.array([4, -1]), np.array([0.5, np.nan]))[0].tolist()
    [4]
    """
    there = rows >= 0
    return rows[there], scores[there]


def _usable(x: np.ndarray, metric: str) -> tuple[np.ndarray, int, int]:
    kept, bad, empty = [], 0, 0
    for start in range(0, len(x), BLOCK):
        not_finite, zero = _unusable(np.asarray(x[start : start + BLOCK]), metric)
        kept.append(start + np.flatnonzero(~(not_finite | zero)))
        bad, empty = bad + int(not_finite.sum()), empty + int(zero.sum())
    return np.concatenate(kept).astype(np.int64), bad, empty


def _unusable(x: np.ndarray, metric: str) -> tuple[np.ndarray, np.ndarray]:
    not_finite = ~np.isfinite(x).all(axis=1)
    if metric != "cosine":
        return not_finite, np.zeros(len(x), dtype=bool)
    return not_finite, ~not_finite & ~np.any(x, axis=1)


def _scaled(x: np.ndarray, metric: str) -> np.ndarray:
    if metric == "cosine":
        wide = np.asarray(x, dtype=np.float64)
        x = wide / np.linalg.norm(wide, axis=1, keepdims=True)
    return np.ascontiguousarray(x, dtype=np.float32)


def _answer(
    rows: np.ndarray, at: np.ndarray, scores: np.ndarray, metric: str
) -> tuple[np.ndarray, np.ndarray]:
    there = at >= 0
    values = np.asarray(scores, dtype=np.float64)
    if metric == "euclidean":
        # FAISS gives squares, which rounding can take below zero for equal rows.
        values = np.sqrt(np.maximum(values, 0.0))
    return np.where(there, rows[np.maximum(at, 0)], -1), np.where(there, values, np.nan)


def _approximate(
    kind: str, flat: Any, x: np.ndarray, rows: np.ndarray, metric: str, rng: np.random.Generator
) -> Any:
    import faiss

    how = faiss.METRIC_INNER_PRODUCT if metric == "cosine" else faiss.METRIC_L2
    d = int(x.shape[1])
    if kind == "hnsw":
        return faiss.IndexHNSWFlat(d, _LINKS, how)
    cells = int(np.clip(np.sqrt(len(rows)), 1, max(len(rows) // _TRAIN, 1)))
    held = faiss.IndexIVFFlat(flat, d, cells, how)
    held.cp.seed = int(rng.integers(1, 2**31 - 1))
    some = rng.choice(len(rows), min(len(rows), _TRAIN * cells), replace=False)
    held.train(_scaled(x[rows[np.sort(some)]], metric))
    return held


def _tune(
    held: Any, kind: str, x: np.ndarray, rows: np.ndarray, metric: str, rng: np.random.Generator
) -> tuple[float, int, int]:
    """Widen the search until a sample of rows finds 95 % of its true neighbours."""
    import faiss

    n = min(_SAMPLE, len(rows))
    k = min(_SAMPLE_K, len(rows))
    queries = _scaled(x[rows[np.sort(rng.choice(len(rows), n, replace=False))]], metric)
    truth = _exact(x, rows, queries, k, metric)
    limit = held.nlist if kind == "ivf" else max(2 * _LINKS, min(len(rows), 2048))
    effort = min(1 if kind == "ivf" else 2 * _LINKS, limit)
    while True:
        if kind == "ivf":
            held.nprobe = effort
        else:
            faiss.ParameterSpace().set_index_parameter(held, "efSearch", effort)
        near = held.search(queries, k)[1]
        recall = float((near[:, :, None] == truth[:, None, :]).any(axis=2).mean())
        if recall >= _WANTED or effort >= limit:
            return recall, n, effort
        effort = min(2 * effort, limit)


def _exact(x: np.ndarray, rows: np.ndarray, queries: np.ndarray, k: int, metric: str) -> np.ndarray:
    """Return the true nearest of the queries, places in ``rows``, block by block, (q, k)."""
    import faiss

    d = queries.shape[1]
    best = np.full((len(queries), k), -np.inf)
    places = np.full((len(queries), k), -1, dtype=np.int64)
    for start in range(0, len(rows), 4 * BLOCK):
        part = _scaled(x[rows[start : start + 4 * BLOCK]], metric)
        flat = faiss.IndexFlatIP(d) if metric == "cosine" else faiss.IndexFlatL2(d)
        flat.add(part)
        scores, at = flat.search(queries, min(k, len(part)))
        both = np.concatenate([best, scores if metric == "cosine" else -scores], axis=1)
        where = np.concatenate([places, at + start], axis=1)
        order = np.argsort(-both, axis=1, kind="stable")[:, :k]
        best = np.take_along_axis(both, order, axis=1)
        places = np.take_along_axis(where, order, axis=1)
    return places
