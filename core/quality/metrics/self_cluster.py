"""Self-Cluster: how far the directions of the rows are from spread evenly.

Tsitsulin, Munkhoeva, Perozzi 2023, Definition 3.5 (with the norm squared, as their
expectation and maximum require): ``(Q - E) / (n^2 - E)``, ``Q = |W^T W|_F^2`` for unit rows
W, ``E = n + n (n - 1) / d``.
"""

from __future__ import annotations

import numpy as np

from core.quality.base import Metric, register
from core.quality.sample import Sample


def clustering(purity: float, n: int, d: int) -> float:
    """Return the score from ``|W^T W|_F^2``; NaN for fewer than two rows or one column."""
    expected = n + n * (n - 1) / d
    # With one column every unit row is +-1 and the score is 0/0: all directions are one.
    return (purity - expected) / (n**2 - expected) if n > 1 and d > 1 else float("nan")


def self_cluster(x: np.ndarray) -> float:
    """Return the Self-Cluster score.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Features; rows that are zero or not finite are left out.

    Returns
    -------
    float
        0 for directions spread evenly, 1 when all rows are parallel; at least ``-1/(n-1)``
        or ``-1/(d-1)``. NaN when fewer than two rows remain. With c the mean squared cosine
        of distinct rows it is ``(d c - 1) / (d - 1)``.

    References
    ----------
    Tsitsulin, Munkhoeva, Perozzi 2023, Unsupervised embedding quality evaluation, Def. 3.5.

    Examples
    --------
    >>> round(self_cluster(np.vstack([np.eye(8), -np.eye(8)])), 4)
    -0.0667
    """
    sample = Sample(x)
    return clustering(sample.unit_purity, len(sample.unit), sample.d)


@register(
    "self_cluster",
    "Self-Cluster",
    family="relational",
    expected_sign=-1,
    meaning="How much rows point the same ways (0 spread, 1 all parallel). Lower: more varied.",
    study=True,
)
def compute(sample: Sample) -> Metric:
    """Return Self-Cluster of the unit rows."""
    n = len(sample.unit)
    out = Metric(clustering(sample.unit_purity, n, sample.d), n)
    return out if n > 1 else out.flagged("too_few_rows")
