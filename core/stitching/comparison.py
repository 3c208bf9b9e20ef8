"""Are two stitching methods different? Paired, over the same seeds and the same pairs.

A seed draws the parallel rows, the support and the anchors of every method, and a pair of
encoders is as hard for one method as for another, so methods are compared cell by cell. Both
are drawn anew: seeds and unordered pairs of encoders, with replacement, each cell weighing as
often as its seed and its pair were drawn (two-way cluster bootstrap). p-values are adjusted by
Benjamini and Hochberg over all comparisons of one table.

Axes: S seeds, U unordered pairs, B resamples.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pandas as pd

from core.errors import BadInput
from core.stats.fdr import benjamini_hochberg

N_BOOT = 2000


def pair_means(values: np.ndarray) -> np.ndarray:
    """Return the mean of both directions of every pair of different encoders.

    Parameters
    ----------
    values : ndarray, shape (S, N, N)
        Accuracy of the head of encoder i on features of encoder j.

    Returns
    -------
    ndarray of float64, shape (S, U)
        U = N (N - 1) / 2; pairs that are NaN throughout are left away.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 3 or values.shape[1] != values.shape[2] or values.shape[1] < 2:
        raise BadInput(
            f"values must have shape (seeds, N, N) with N >= 2, got {values.shape}.",
            "Give one matrix a seed.",
        )
    i, j = np.triu_indices(values.shape[1], 1)
    both = (values[:, i, j] + values[:, j, i]) / 2.0
    return np.asarray(both[:, ~np.isnan(both).all(axis=0)])


def method_intervals(
    matrices: Mapping[str, np.ndarray], *, n_boot: int = N_BOOT, seed: int = 0
) -> pd.DataFrame:
    """Return the mean over pairs and seeds of each method with its 95 % interval.

    Returns
    -------
    DataFrame
        method, mean, low, high, n_pairs, n_seeds.
    """
    cells = _cells(matrices)
    draws = {m: _draws(v, n_boot, seed) for m, v in cells.items()}
    rows = []
    for method, v in cells.items():
        low, high = np.quantile(draws[method], [0.025, 0.975])
        rows.append({
            "method": method, "mean": v.mean(), "low": low, "high": high,
            "n_pairs": v.shape[1], "n_seeds": len(v),
        })  # fmt: skip
    return pd.DataFrame(rows)


def compare_methods(
    matrices: Mapping[str, np.ndarray], *, n_boot: int = N_BOOT, seed: int = 0
) -> pd.DataFrame:
    """Compare every two methods, paired by seed and by pair of encoders.

    Parameters
    ----------
    matrices : mapping of str to ndarray, each of shape (S, N, N)
        One array a method, over the same seeds and encoders.
    n_boot, seed : int
        Resamples, and the seed that draws them.

    Returns
    -------
    DataFrame
        a, b, difference (mean of a minus mean of b), low, high (95 %), p (two-sided,
        ``2 (min tail + 1) / (B + 1)``), q (Benjamini-Hochberg over the rows), n_pairs, n_seeds.
        Empty for a single method.

    Raises
    ------
    BadInput
        Shapes differ, or no matrix is given.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> base = rng.uniform(0.3, 0.6, (5, 4, 4))
    >>> got = compare_methods({"better": base + 0.1, "base": base})
    >>> round(float(got.difference[0]), 3), bool(got.q[0] < 0.01)
    (0.1, True)
    """
    cells = _cells(matrices)
    rows = []
    for a, b in combinations(cells, 2):
        gap = cells[a] - cells[b]  # (S, U)
        draws = _draws(gap, n_boot, seed)
        low, high = np.quantile(draws, [0.025, 0.975])
        tail = min(int((draws <= 0).sum()), int((draws >= 0).sum()))
        rows.append({
            "a": a, "b": b, "difference": gap.mean(), "low": low, "high": high,
            "p": min(1.0, 2.0 * (tail + 1) / (n_boot + 1)),
            "n_pairs": gap.shape[1], "n_seeds": len(gap),
        })  # fmt: skip
    columns = ["a", "b", "difference", "low", "high", "p", "q", "n_pairs", "n_seeds"]
    frame = pd.DataFrame(rows, columns=[c for c in columns if c != "q"])
    frame["q"] = benjamini_hochberg(frame["p"].to_numpy(dtype=np.float64))
    return frame[columns]


def _cells(matrices: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    cells = {method: pair_means(values) for method, values in matrices.items()}
    if len({v.shape for v in cells.values()}) != 1:
        raise BadInput(
            "matrices must hold at least one method, all over the same seeds and encoders; got "
            f"shapes {[v.shape for v in cells.values()]}.",
            "Run the methods in one comparison.",
        )
    return cells


def _draws(values: np.ndarray, n_boot: int, seed: int) -> np.ndarray:
    """Return the resampled means, shape (B,); the same seed pairs the draws of all methods."""
    S, U = values.shape
    rng = np.random.default_rng(np.random.SeedSequence([seed, 6]))
    seeds = rng.multinomial(S, np.full(S, 1.0 / S), n_boot)  # (B, S)
    pairs = rng.multinomial(U, np.full(U, 1.0 / U), n_boot)  # (B, U)
    return np.asarray(((seeds @ values) * pairs).sum(axis=1) / (S * U))
