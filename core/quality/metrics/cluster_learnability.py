"""Cluster learnability, the CL of CLID: whether 1-NN relearns the model's own k-means clusters.

Lu et al. 2022 combine it with the intrinsic dimension. Exploratory: cluster number, metric
and split are read from secondary sources (about sqrt(n) clusters, cosine, half and half).
:func:`clid` combines both over a population as ``z(CL) - z(ID)``; its sign was fixed before
any label was seen.
"""

from __future__ import annotations

import numpy as np

from core.errors import BadInput
from core.quality.base import Metric, register
from core.quality.probes import knn_probe
from core.quality.sample import Sample

MAX_ROWS = 2000
FEWEST = 50


def cluster_learnability(x: np.ndarray, *, seed: int = 0) -> float:
    """Return the 1-NN accuracy on k-means labels of the unit rows, in [0, 1].

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Features; rows that are zero or not finite are left out. Above 2,000 rows a seeded
        subset is used.
    seed : int
        Seed of subset, clusters and split.

    Returns
    -------
    float
        NaN for fewer than 50 rows.

    References
    ----------
    Lu, Liu, Baratin, Laroche, Courville, Sordoni 2022, Using representation expressiveness and
    learnability to evaluate self-supervised learning methods.

    Examples
    --------
    >>> blobs = np.repeat(np.eye(8) * 20, 20, 0)
    >>> x = blobs + np.random.default_rng(0).standard_normal(blobs.shape)
    >>> cluster_learnability(x) > 0.5
    True
    """
    return _of(Sample(x, seed=seed))[0]


def _of(sample: Sample) -> tuple[float, int]:
    from sklearn.cluster import KMeans

    rng = np.random.default_rng(sample.seed)
    unit = sample.unit.cpu().numpy()
    unit = unit[rng.permutation(len(unit))[:MAX_ROWS]]
    n = len(unit)
    if n < FEWEST:
        return float("nan"), n
    found = KMeans(round(n**0.5), n_init=1, max_iter=50, random_state=sample.seed).fit(unit)
    half = n // 2
    labels = found.labels_
    probe = knn_probe(unit[:half], labels[:half], unit[half:], labels[half:], metric="cosine")
    return float(probe.accuracy), n


def clid(learnability: np.ndarray, dimension: np.ndarray) -> np.ndarray:
    """Return ``z(CL) - z(ID)`` over a population of models.

    Parameters
    ----------
    learnability, dimension : ndarray, shape (n_models,)
        One value a model; NaN stays NaN and leaves the others' scores alone.

    Raises
    ------
    BadInput
        Lengths differ.

    Examples
    --------
    >>> clid(np.array([0.0, 1.0]), np.array([2.0, 1.0])).tolist()
    [-2.0, 2.0]
    """
    a, b = np.asarray(learnability, dtype=np.float64), np.asarray(dimension, dtype=np.float64)
    if a.shape != b.shape:
        raise BadInput(f"learnability has {a.shape} values, dimension {b.shape}.", "One a model.")
    both = np.isfinite(a) & np.isfinite(b)
    out = np.full(a.shape, np.nan)
    if both.any():
        spread_a, spread_b = a[both].std() or 1.0, b[both].std() or 1.0
        out[both] = (a[both] - a[both].mean()) / spread_a - (b[both] - b[both].mean()) / spread_b
    return out


@register(
    "cluster_learnability",
    "Cluster learnability",
    family="relational",
    expected_sign=1,
    meaning="1-NN accuracy on the model's own k-means clusters (exploratory, part of CLID).",
    optional=True,
)
def compute(sample: Sample) -> Metric:
    """Return cluster learnability."""
    value, n = _of(sample)
    out = Metric(value, n)
    return out if n >= FEWEST else out.flagged("too_few_rows")
