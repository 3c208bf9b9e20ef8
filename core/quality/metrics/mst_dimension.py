"""Intrinsic dimension from how the minimum spanning tree's length grows with the sample.

Beardwood, Halton, Hammersley 1959, Steele 1988: ``L(n) ~ n^(1 - 1/d)``; with b the slope of
``ln L`` on ``ln n`` over growing subsamples, ``d = 1 / (1 - b)``.
"""

from __future__ import annotations

import numpy as np

from core.errors import BadInput
from core.quality.base import Metric, register
from core.quality.metrics.twonn import distinct_rows
from core.quality.sample import Sample

MAX_ROWS = 2000
SIZES = 6
SMALLEST = 100
REPEATS = 3


def tree_length(x: np.ndarray) -> float:
    """Return the total Euclidean length of the minimum spanning tree of the rows.

    Prim's algorithm on rows of distances made when they are needed: memory is O(n d).

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Float64 rows.

    Examples
    --------
    >>> tree_length(np.array([[0.0], [1.0], [3.0]]))
    3.0
    """
    n = len(x)
    nearest = np.full(n, np.inf)
    outside = np.ones(n, dtype=bool)
    at, total = 0, 0.0
    for _ in range(n - 1):
        outside[at] = False
        step = x - x[at]
        np.minimum(nearest, np.einsum("nd,nd->n", step, step), out=nearest)
        at = int(np.where(outside, nearest, np.inf).argmin())
        total += float(np.sqrt(nearest[at]))
    return total


def mst_dimension(x: np.ndarray, *, repeats: int = REPEATS, seed: int = 0) -> float:
    """Return the spanning-tree estimate of the intrinsic dimension.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Features; rows that are not finite are left out, duplicates counted once. Above 2,000
        rows a seeded subset is used.
    repeats : int
        Subsamples of each size below the whole; their tree lengths are averaged.
    seed : int
        Seed of the subsamples.

    Returns
    -------
    float
        Above 1. NaN with fewer than 200 distinct rows, or where the slope is not in (0, 1).

    Raises
    ------
    BadInput
        ``repeats`` is less than one.

    References
    ----------
    Steele 1988, Growth rates of Euclidean minimal spanning trees with power weighted edges.

    Examples
    --------
    >>> 1.8 < mst_dimension(np.random.default_rng(0).random((1000, 2))) < 2.3
    True
    """
    if repeats < 1:
        raise BadInput(f"repeats={repeats} must be at least 1.", "3 is the default.")
    return _of(Sample(x, seed=seed), repeats)[0]


def _of(sample: Sample, repeats: int) -> tuple[float, int]:
    rows = sample.x.cpu().numpy().astype(np.float64)
    rows = rows[distinct_rows(rows)]
    rng = np.random.default_rng(sample.seed)
    rows = rows[rng.permutation(len(rows))[:MAX_ROWS]]
    n = len(rows)
    if n < 2 * SMALLEST:
        return float("nan"), n
    sizes = np.unique(np.geomspace(SMALLEST, n, SIZES).round().astype(int))
    lengths = [
        float(np.mean([tree_length(rows[rng.permutation(n)[:size]]) for _ in range(repeats)]))
        if size < n
        else tree_length(rows)
        for size in sizes
    ]
    slope = float(np.polyfit(np.log(sizes), np.log(lengths), 1)[0])
    return (1 / (1 - slope) if 0 < slope < 1 else float("nan")), n


@register(
    "mst_dimension",
    "Spanning-tree dimension",
    family="manifold",
    expected_sign=-1,
    meaning="Intrinsic dimension from the growth of the minimum spanning tree.",
    log=True,
    optional=True,
)
def compute(sample: Sample) -> Metric:
    """Return the estimate with three subsamples a size."""
    value, n = _of(sample, REPEATS)
    out = Metric(value, n)
    if n < 2 * SMALLEST:
        return out.flagged("too_few_rows")
    return out.flagged("lower_bound") if value > 20 else out
