"""Spearman's rho of many variables at once, with one bootstrap over clusters for all pairs.

A resample of whole clusters draws cluster g ``c_g`` times, so the mid-ranks of every item are
``C M + 1/2`` with M the clusters' sums of the rank operator: G products instead of n. The
weighted mean rank is ``(W + 1) / 2`` exactly (W items drawn), so nothing is centred by sums.

Axes: n items, v variables, G clusters, B resamples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.errors import BadInput
from core.stats.bootstrap import SpearmanBootstrap, cluster_codes, summarise_draws
from core.stats.ranks import rank_operator

# Small enough that a chunk's ranks stay in the processor's cache.
_CHUNK = 64


@dataclass(frozen=True)
class SpearmanMatrix:
    """Rank correlations of all pairs of variables.

    Attributes
    ----------
    rho : ndarray, shape (v, v)
        Spearman's rho of the sample; NaN for a constant variable.
    draws : ndarray, shape (B, v, v), float32
        Resampled rho. All pairs share the resamples: differences of two are paired.
    n, n_clusters : int
        Items and clusters.
    """

    rho: np.ndarray
    draws: np.ndarray
    n: int
    n_clusters: int

    def pair(self, a: int, b: int) -> SpearmanBootstrap:
        """Return rho, interval and p of one pair."""
        draws = self.draws[:, a, b].astype(np.float64)
        return summarise_draws(float(self.rho[a, b]), draws, self.n, self.n_clusters)


def spearman_matrix(
    values: np.ndarray, clusters: np.ndarray, *, n_boot: int = 2000, seed: int = 0
) -> SpearmanMatrix:
    """Return rho of every pair of columns with a bootstrap over clusters.

    Parameters
    ----------
    values : ndarray, shape (n, v)
        Finite values, one column a variable.
    clusters : array, shape (n,)
        Cluster of each item.
    n_boot, seed : int
        Resamples and seed; the same draws as
        :func:`core.stats.spearman_cluster_bootstrap` has for the same clusters.

    Returns
    -------
    SpearmanMatrix
        Draws are exact to float32 (2e-7), far inside the bootstrap's own error.

    Raises
    ------
    BadInput
        A value is not finite, shapes differ, or there is nothing to correlate.

    Examples
    --------
    >>> x = np.arange(12.0)
    >>> found = spearman_matrix(np.c_[x, -(x**3)], np.arange(12) // 2, n_boot=100)
    >>> found.pair(0, 1).rho, round(found.pair(0, 1).hi, 5)
    (-1.0, -1.0)
    """
    table = np.asarray(values, dtype=np.float64)
    codes = cluster_codes(clusters)
    if table.ndim != 2 or len(table) != len(codes) or len(table) < 2:
        raise BadInput(
            f"values have shape {table.shape}, clusters {codes.shape}: at least two rows and one "
            "cluster a row were expected.",
            "Give one row an item.",
        )
    if not np.isfinite(table).all():
        raise BadInput("values hold NaN or infinity.", "Leave those items out first.")
    if n_boot < 1:
        raise BadInput(f"n_boot={n_boot} must be at least 1.", "2000 is the default.")
    n, v = table.shape
    groups = int(codes.max()) + 1
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(groups, np.full(groups, 1.0 / groups), size=n_boot)
    member = np.zeros((groups, n))
    member[codes, np.arange(n)] = 1
    # (G, n v): what one draw of a cluster adds to every item's rank in every variable.
    adds = np.concatenate([member @ rank_operator(table[:, j]) for j in range(v)], axis=1)
    draws = np.empty((n_boot, v, v), dtype=np.float32)
    single = adds.astype(np.float32)
    for start in range(0, n_boot, _CHUNK):
        some = counts[start : start + _CHUNK].astype(np.float32)
        draws[start : start + _CHUNK] = _correlate(some, single, codes, n, v)
    once = np.ones((1, groups), dtype=np.float64)
    rho = _correlate(once, adds, codes, n, v)[0]
    return SpearmanMatrix(rho, draws, n, groups)


def _correlate(
    counts: np.ndarray, adds: np.ndarray, codes: np.ndarray, n: int, v: int
) -> np.ndarray:
    weights = counts[:, codes]  # (b, n)
    ranks = (counts @ adds).reshape(len(counts), v, n)  # less the 1/2 that the mean lacks too
    ranks -= weights.sum(1)[:, None, None] / 2
    ranks *= np.sqrt(weights)[:, None, :]
    gram = ranks @ ranks.transpose(0, 2, 1)
    spread = np.sqrt(np.einsum("bvv->bv", gram))
    with np.errstate(invalid="ignore", divide="ignore"):
        rho = gram / (spread[:, :, None] * spread[:, None, :])
    constant = spread <= 1e-3  # ranks are halves: a spread is 0 or at least about one half
    rho[constant[:, :, None] | constant[:, None, :]] = np.nan
    return np.clip(rho, -1.0, 1.0)


def partial_spearman(matrix: SpearmanMatrix, a: int, b: int, given: int) -> SpearmanBootstrap:
    """Return the partial rank correlation of two variables given a third, with its bootstrap.

    ``(r_ab - r_ac r_bc) / sqrt((1 - r_ac^2)(1 - r_bc^2))`` of Spearman's rho.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> c = rng.standard_normal(400)
    >>> x = np.c_[c + rng.standard_normal(400), c + rng.standard_normal(400), c]
    >>> found = spearman_matrix(x, np.arange(400), n_boot=200)
    >>> bool(abs(partial_spearman(found, 0, 1, 2).rho) < 0.15 < found.rho[0, 1])
    True
    """

    def part(r: np.ndarray) -> np.ndarray:
        ab, ac, bc = r[..., a, b], r[..., a, given], r[..., b, given]
        with np.errstate(invalid="ignore", divide="ignore"):
            out = (ab - ac * bc) / np.sqrt((1 - ac**2) * (1 - bc**2))
        return np.where(np.isfinite(out), np.clip(out, -1.0, 1.0), np.nan)

    draws = part(matrix.draws.astype(np.float64))
    return summarise_draws(float(part(matrix.rho)), draws, matrix.n, matrix.n_clusters)


def rho_difference(
    matrix: SpearmanMatrix,
    first: tuple[int, int],
    second: tuple[int, int],
    *,
    signs: tuple[float, float] = (1.0, 1.0),
) -> SpearmanBootstrap:
    """Return the difference of two correlations with its paired bootstrap.

    ``rho`` is the difference, each correlation times its sign, and ``lo``, ``hi``, ``p`` belong
    to it.

    Examples
    --------
    >>> x = np.arange(30.0)
    >>> noise = np.random.default_rng(0).standard_normal(30)
    >>> found = spearman_matrix(np.c_[x, x**2, noise], np.arange(30) // 2, n_boot=200)
    >>> rho_difference(found, (0, 1), (0, 2)).lo > 0
    True
    """
    one, two = signs
    draws = one * matrix.draws[:, first[0], first[1]] - two * matrix.draws[:, second[0], second[1]]
    rho = float(one * matrix.rho[first] - two * matrix.rho[second])
    return summarise_draws(rho, draws.astype(np.float64), matrix.n, matrix.n_clusters)
