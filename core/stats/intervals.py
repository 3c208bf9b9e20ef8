"""Intervals of a share: Wilson's for independent items, resampled for clustered ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from core.errors import BadInput
from core.stats.bootstrap import cluster_codes, cluster_weights


class Interval(NamedTuple):
    """A value between its bounds."""

    value: float
    lo: float
    hi: float


def wilson_interval(successes: int, n: int, *, level: float = 0.95) -> Interval:
    """Return the share of successes with Wilson's score interval, in [0, 1].

    NaN for n = 0.

    References
    ----------
    Wilson 1927; Brown, Cai, DasGupta 2001, Interval estimation for a binomial proportion.

    Examples
    --------
    >>> tuple(round(v, 4) for v in wilson_interval(8, 10))
    (0.8, 0.4902, 0.9433)
    """
    if not 0 <= successes <= max(n, 0):
        raise BadInput(f"successes={successes} must lie in 0 ... n={n}.", "Count again.")
    if n == 0:
        return Interval(float("nan"), float("nan"), float("nan"))
    z = float(norm.ppf(0.5 + level / 2))
    share = successes / n
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return Interval(share, max(0.0, float(centre - half)), min(1.0, float(centre + half)))


def cluster_mean_interval(
    values: np.ndarray, clusters: np.ndarray, *, n_boot: int = 2000, seed: int = 0
) -> Interval:
    """Return the mean with a 95 % percentile interval from resampling whole clusters.

    The pictures of one concept in six styles are not six independent items; Wilson's interval
    would be too narrow there.

    Parameters
    ----------
    values : array of float or bool, shape (n,)
        Finite values.
    clusters : array, shape (n,)
        Cluster of each item.

    Examples
    --------
    >>> cluster_mean_interval(np.array([1, 1, 0, 0]), np.array([0, 0, 1, 1]), n_boot=99).lo
    0.0
    """
    data = np.asarray(values, dtype=np.float64)
    if not len(data):
        return Interval(float("nan"), float("nan"), float("nan"))
    weights = cluster_weights(clusters, n_boot, seed)
    means = weights @ data / weights.sum(1)
    lo, hi = np.percentile(means, [2.5, 97.5])
    return Interval(float(data.mean()), float(lo), float(hi))


def cluster_share_interval(
    hits: np.ndarray, clusters: np.ndarray, *, n_boot: int = 2000, seed: int = 0
) -> Interval:
    """Return the share of hits with an interval that is honest when all or none of them hit.

    Resampling cannot leave 0 or 1 then: its interval would have no width and say that nothing
    is unknown. Wilson's is taken instead, with each cluster counted as one item.

    Parameters
    ----------
    hits : array of bool, shape (n,)
        Which items were right.
    clusters : array, shape (n,)
        Cluster of each item.

    Examples
    --------
    >>> all_right = cluster_share_interval(np.ones(12, bool), np.arange(12) // 2)
    >>> all_right.value, round(all_right.lo, 2), all_right.hi
    (1.0, 0.61, 1.0)
    """
    right = np.asarray(hits, dtype=bool)
    if len(right) and right.all() == right.any():
        n = int(cluster_codes(clusters).max()) + 1
        return wilson_interval(n if right.all() else 0, n)
    return cluster_mean_interval(right, clusters, n_boot=n_boot, seed=seed)
