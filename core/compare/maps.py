"""Two-dimensional maps of one representation: PCA at once, UMAP or t-SNE when it is ready.

PCA: eigenvectors of the covariance in float64, signs fixed, so the picture is the same each
time. UMAP (arXiv 1802.03426): seeded, single-threaded, on at most 50 principal directions.
t-SNE (van der Maaten and Hinton 2008; Barnes-Hut, arXiv 1301.3342): likewise, from a PCA start.
A map is for looking; every number about it is taken in the original space.

Axes: n samples, d dimensions, k neighbours.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import BadInput

if TYPE_CHECKING:
    from core.results import Result
    from core.workspace import Workspace

Progress = Callable[[float, str], None]

# Further directions cost UMAP time and hardly move its neighbours.
UMAP_DIRECTIONS = 50
# Above this, Barnes-Hut takes many minutes: a sample is placed and the rest left out.
TSNE_MOST = 10_000
_BLOCK = 8192
# Base rows compared at once when neighbours are looked for: memory stays flat in n.
_BASE = 65_536


@dataclass(frozen=True)
class PcaMap:
    """The leading principal directions of a cloud of points.

    Attributes
    ----------
    xy : ndarray of float64, shape (n, k)
        Coordinates, centred.
    explained : ndarray of float64, shape (k,)
        Share of the total variance along each, in [0, 1]; zeros when nothing varies.
    axes : ndarray of float64, shape (d, k)
        Unit directions; the entry of largest size in each is positive.
    """

    xy: np.ndarray
    explained: np.ndarray
    axes: np.ndarray


def pca_map(x: np.ndarray, *, k: int = 2) -> PcaMap:
    """Return the first ``k`` principal coordinates.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Finite, n >= 2. Any float type; sums run in float64.
    k : int
        Directions, at least 1. Where d < k the missing coordinates are zero.

    Raises
    ------
    BadInput
        Not a matrix, fewer than two rows, or not finite.

    Examples
    --------
    >>> found = pca_map(np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]]))
    >>> found.xy[:, 0].round(6).tolist(), found.explained.round(6).tolist()
    ([-5.0, 0.0, 5.0], [1.0, 0.0])
    """
    _check(x)
    mean = np.mean(x, axis=0, dtype=np.float64)
    covariance = np.zeros((x.shape[1], x.shape[1]))
    for start in range(0, len(x), _BLOCK):
        block = x[start : start + _BLOCK].astype(np.float64) - mean
        covariance += block.T @ block
    # The total is the trace: a constant cloud has none, and then no direction explains any.
    total = float(np.trace(covariance))
    axes = _leading(covariance, min(k, x.shape[1]))
    xy, explained = np.zeros((len(x), k)), np.zeros(k)
    for start in range(0, len(x), _BLOCK):
        block = x[start : start + _BLOCK].astype(np.float64) - mean
        xy[start : start + _BLOCK, : axes.shape[1]] = block @ axes
    if total > 0:
        explained = np.clip((xy**2).sum(axis=0) / total, 0.0, 1.0)
    padded = np.zeros((x.shape[1], k))
    padded[:, : axes.shape[1]] = axes
    return PcaMap(xy, explained, padded)


def _leading(covariance: np.ndarray, k: int) -> np.ndarray:
    from scipy.linalg import eigh

    d = len(covariance)
    _, vectors = eigh(covariance, subset_by_index=[d - k, d - 1])
    vectors = vectors[:, ::-1]
    largest = np.abs(vectors).argmax(axis=0)
    return vectors * np.where(vectors[largest, np.arange(k)] < 0, -1.0, 1.0)


def umap_map(
    x: np.ndarray,
    *,
    metric: str = "cosine",
    n_neighbors: int = 15,
    min_dist: float = 0.1,
    seed: int = 0,
    progress: Progress | None = None,
    root: Path | None = None,
) -> np.ndarray:
    """Return UMAP coordinates, float64, shape (n, 2); the same for the same seed.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Finite, n >= 4.
    metric : {"cosine", "euclidean"}
        Cosine: rows are scaled to length one, where Euclidean distance orders pairs as the
        cosine does.
    n_neighbors : int
        At least 2; cut to n - 1.
    min_dist : float
        How tightly points may sit, in [0, 1).
    progress : callable, optional
        Called with fraction and message.
    root : Path, optional
        A workspace whose warm process is asked first (:mod:`core.compare.warm`).

    Raises
    ------
    BadInput
        As :func:`pca_map`, fewer than four rows, or a parameter out of range.

    References
    ----------
    McInnes, Healy and Melville, arXiv 1802.03426.
    """
    _check(x, least=4)
    if not (n_neighbors >= 2 and 0.0 <= min_dist < 1.0):
        raise BadInput(
            f"n_neighbors must be at least 2 and min_dist in [0, 1), got {n_neighbors} "
            f"and {min_dist}.",
            "15 and 0.1 are good for most data.",
        )
    say = progress or (lambda _fraction, _message: None)
    say(0.05, "Reducing to principal directions")
    rows = scaled(x, metric)
    if rows.shape[1] > UMAP_DIRECTIONS:
        rows = pca_map(rows, k=UMAP_DIRECTIONS).xy
    rows = np.ascontiguousarray(rows, dtype=np.float32)
    settings = {
        "n_neighbors": min(n_neighbors, len(rows) - 1),
        "min_dist": min_dist,
        "random_state": seed,
        # A spectral start fails on a handful of points.
        "init": "spectral" if len(rows) > 20 else "random",
    }
    say(0.3, f"Placing {len(rows):,} points (a first map takes a minute longer)")
    xy = None
    if root is not None:
        from core.compare import warm

        xy = warm.place(root, rows, settings, progress)
    if xy is None:
        xy = fit_umap(rows, settings)
    say(0.9, "Measuring what the map keeps")
    return xy - xy.mean(axis=0)


def fit_umap(rows: np.ndarray, settings: dict[str, Any]) -> np.ndarray:
    """Return raw UMAP coordinates, float64, shape (n, 2); single-threaded, so reproducible."""
    import umap

    model = umap.UMAP(metric="euclidean", n_jobs=1, **settings)
    return np.asarray(model.fit_transform(rows), dtype=np.float64)


def tsne_map(
    x: np.ndarray,
    *,
    metric: str = "cosine",
    perplexity: float = 30.0,
    seed: int = 0,
    progress: Progress | None = None,
) -> np.ndarray:
    """Return t-SNE coordinates, float64, shape (n, 2); the same for the same seed.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Finite, n >= 4.
    metric : {"cosine", "euclidean"}
        As :func:`umap_map`.
    perplexity : float
        About how many neighbours a point minds, at least 2; cut to (n - 1) / 3.

    Raises
    ------
    BadInput
        As :func:`pca_map`, fewer than four rows, or a parameter out of range.

    References
    ----------
    van der Maaten and Hinton 2008, Visualizing data using t-SNE. arXiv 1301.3342.
    """
    _check(x, least=4)
    if not perplexity >= 2:
        raise BadInput(f"perplexity must be at least 2, got {perplexity}.", "Try 30.")
    from sklearn.manifold import TSNE

    say = progress or (lambda _fraction, _message: None)
    say(0.05, "Reducing to principal directions")
    rows = scaled(x, metric)
    if rows.shape[1] > UMAP_DIRECTIONS:
        rows = pca_map(rows, k=UMAP_DIRECTIONS).xy
    say(0.2, f"Placing {len(rows):,} points")
    start = pca_map(rows).xy
    # The usual start: so small that the first steps are free to order the points.
    start = 1e-4 * start / max(float(start[:, 0].std()), 1e-300)
    model = TSNE(
        perplexity=min(perplexity, (len(rows) - 1) / 3),
        init=start.astype(np.float32),
        random_state=seed,
        n_jobs=1,
    )
    xy = np.asarray(model.fit_transform(rows.astype(np.float32)), dtype=np.float64)
    say(0.9, "Measuring what the map keeps")
    return xy - xy.mean(axis=0)


def scaled(x: np.ndarray, metric: str) -> np.ndarray:
    """Return the rows in float64, at length one for the cosine; zero rows stay zero.

    Raises
    ------
    BadInput
        An unknown metric.
    """
    rows = np.asarray(x, dtype=np.float64)
    if metric == "euclidean":
        return rows
    if metric != "cosine":
        raise BadInput(f"metric={metric!r} is not known here.", "Use 'cosine' or 'euclidean'.")
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def neighbours_kept(
    x: np.ndarray,
    xy: np.ndarray,
    *,
    k: int = 10,
    metric: str = "cosine",
    sample: int = 1000,
    seed: int = 0,
) -> float:
    """Return the share of each row's k nearest neighbours that are still so on the map.

    Parameters
    ----------
    x, xy : ndarray, shapes (n, d) and (n, 2)
        Original rows and their places.
    k : int
        Neighbours; cut to n - 1.
    sample : int
        Rows that are asked, drawn by ``seed``; all rows are candidates.

    Returns
    -------
    float
        In [0, 1]; about k / (n - 1) for a map that shows nothing.
    """
    if metric not in ("cosine", "euclidean"):
        raise BadInput(f"metric={metric!r} is not known here.", "Use 'cosine' or 'euclidean'.")
    n = len(x)
    k = min(k, n - 1)
    asked = np.arange(n)
    if n > sample:
        asked = np.sort(np.random.default_rng(seed).choice(n, sample, replace=False))
    near, drawn = _nearest(x, asked, k, metric), _nearest(xy, asked, k, "euclidean")
    shared = [len(np.intersect1d(a, b)) for a, b in zip(near, drawn, strict=True)]
    return float(np.mean(shared) / k)


def _nearest(x: np.ndarray, asked: np.ndarray, k: int, metric: str) -> np.ndarray:
    """Return the k nearest other rows of each asked row, shape (asked, k)."""
    queries = scaled(x[asked], metric)
    best = np.full((len(asked), k), np.inf)
    found = np.zeros((len(asked), k), dtype=np.int64)
    for begin in range(0, len(x), _BASE):
        rows = scaled(x[begin : begin + _BASE], metric)
        half = 0.5 * (rows**2).sum(axis=1)
        for start in range(0, len(asked), 256):
            part = slice(start, start + 256)
            distance = half - queries[part] @ rows.T  # (block, base): order of |a - b|^2
            own = asked[part] - begin
            here = np.flatnonzero((own >= 0) & (own < len(rows)))
            distance[here, own[here]] = np.inf
            near = np.argpartition(distance, min(k, len(rows)) - 1, axis=1)[:, :k]
            both = np.hstack([best[part], np.take_along_axis(distance, near, axis=1)])
            index = np.hstack([found[part], near + begin])
            keep = np.argpartition(both, k - 1, axis=1)[:, :k]
            best[part] = np.take_along_axis(both, keep, axis=1)
            found[part] = np.take_along_axis(index, keep, axis=1)
    return found


def finite_rows(x: np.ndarray) -> np.ndarray:
    """Return which rows hold only finite numbers, bool, shape (n,); blocks of memory.

    Examples
    --------
    >>> finite_rows(np.array([[1.0, 2.0], [np.nan, 0.0]])).tolist()
    [True, False]
    """
    if not len(x):
        return np.zeros(0, dtype=bool)
    blocks = [x[start : start + _BASE] for start in range(0, len(x), _BASE)]
    return np.concatenate([np.isfinite(block).all(axis=1) for block in blocks])


def _check(x: np.ndarray, least: int = 2) -> None:
    if np.ndim(x) != 2 or len(x) < least or np.shape(x)[1] < 1:
        raise BadInput(
            f"x must be a matrix of at least {least} rows, got shape {np.shape(x)}.",
            "Choose a dataset with more items.",
        )
    if not finite_rows(np.asarray(x)).all():
        raise BadInput("x holds NaN or infinite values.", "Leave those rows out.")


def run_map(workspace: Workspace, *, progress: Progress | None = None, **params: Any) -> Result:
    """Make or find a stored map; the work of a "map" job.

    Parameters
    ----------
    workspace : Workspace
    progress : callable, optional
    **params
        Of the "explore" analysis: dataset, model, layer, method, metric, seed ...
    """
    from core import analyses
    from core.compare import warm

    os.environ.setdefault("NUMBA_CACHE_DIR", str(workspace.root / "cache" / "numba"))
    if params.get("method") == "umap":
        warm.start(workspace.root)
    return analyses.run("explore", workspace, progress=progress, **params)
