"""How well a measure foretells the gain: rank correlations over blends, with their doubt.

RADAR, arXiv 2605.23028, judges a measure by Spearman's rho between minus the score and the gain
over all non-empty blends of a target. The permutation p is exact up to eight blends; nested
blends share data, so p is optimistic. Kendall's tau, the correlation among blends of equal size
and the ceiling set by the noise of the gains are ours.

Axes: B blends, S seeds of the gain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.errors import BadInput
from core.stats import kendall_permutation, spearman, spearman_permutation


@dataclass(frozen=True)
class Foretold:
    """One measure against the gain; signs are turned so that + is good.

    Attributes
    ----------
    rho, p : float
        Spearman's rho and its two-sided permutation p.
    exact : bool
        Whether every order was tried (up to eight blends).
    kendall, kendall_p : float
    rho_within_size : float
        Mean rho among blends of equal size, weighted by their number; nan where no size has
        three blends.
    rho_sd : float
        Standard deviation of rho over the seeds of the gain; nan with one seed.
    n : int
        Blends.
    """

    rho: float
    p: float
    exact: bool
    kendall: float
    kendall_p: float
    rho_within_size: float
    rho_sd: float
    n: int


def foretell(
    values: np.ndarray, gains: np.ndarray, sizes: np.ndarray, *, better: str = "lower"
) -> Foretold:
    """Correlate a measure of B blends with their gains.

    Parameters
    ----------
    values : ndarray, shape (B,)
        The measure; nan where it could not be computed.
    gains : ndarray, shape (S, B)
        One row a seed; their mean is what is foretold.
    sizes : ndarray of int, shape (B,)
        Members of each blend.
    better : {"lower", "higher"}
        Which end of the measure promises the larger gain.

    Returns
    -------
    Foretold
        All nan for a constant measure or constant gains: there is no order.

    Raises
    ------
    BadInput
        Shapes that do not fit, or an unknown ``better``.

    Examples
    --------
    >>> gains = np.array([[0.0, 0.1, 0.2, 0.3]])
    >>> out = foretell(np.array([4.0, 3.0, 2.0, 1.0]), gains, np.ones(4, int))
    >>> out.rho, round(out.p, 3), out.exact
    (1.0, 0.083, True)
    """
    gains = np.atleast_2d(np.asarray(gains, dtype=np.float64))
    if better not in ("lower", "higher"):
        raise BadInput(f"better={better!r} is not known.", "Use 'lower' or 'higher'.")
    if gains.shape[1] != len(values) or len(sizes) != len(values):
        raise BadInput(
            f"values has {len(values)} blends, gains {gains.shape[1]}, sizes {len(sizes)}.",
            "Give one of each for every blend.",
        )
    value = np.asarray(values, dtype=np.float64) * (-1.0 if better == "lower" else 1.0)
    gain = gains.mean(0)
    rank, tau = spearman_permutation(value, gain), kendall_permutation(value, gain)
    whole = bool(np.isfinite(value).all())
    seeds = np.array([spearman(value, row) for row in gains if whole])
    many = len(seeds) > 1 and bool(np.isfinite(seeds).all())
    return Foretold(
        rank.rho, rank.p, rank.exact, tau.rho, tau.p, _within(value, gain, np.asarray(sizes)),
        float(np.std(seeds, ddof=1)) if many else float("nan"), rank.n,
    )  # fmt: skip


def _within(value: np.ndarray, gain: np.ndarray, sizes: np.ndarray) -> float:
    total, weight = 0.0, 0
    for size in np.unique(sizes):
        at = np.flatnonzero((sizes == size) & np.isfinite(value))
        rho = spearman(value[at], gain[at]) if len(at) >= 3 else float("nan")
        if np.isfinite(rho):
            total, weight = total + len(at) * rho, weight + len(at)
    return total / weight if weight else float("nan")


def reliability(gains: np.ndarray) -> float:
    """Return how far another set of seeds would rank the blends alike, in [0, 1].

    The mean rank correlation of two seeds' gains, stepped up to S seeds (Spearman and Brown).
    No measure can be expected to correlate above its square root. All seeds share the
    target's test items, so the noise of those is not in it.

    Parameters
    ----------
    gains : ndarray, shape (S, B)

    Returns
    -------
    float
        nan with one seed or constant gains; 0 where seeds disagree.

    Examples
    --------
    >>> round(reliability(np.array([[0.1, 0.2, 0.3], [0.1, 0.2, 0.4]])), 6)
    1.0
    """
    gains = np.atleast_2d(np.asarray(gains, dtype=np.float64))
    n = len(gains)
    found = [spearman(gains[i], gains[j]) for i in range(n) for j in range(i)]
    if not found or not np.isfinite(found).all():
        return float("nan")
    mean = max(float(np.mean(found)), 0.0)
    return n * mean / (1.0 + (n - 1) * mean)


def gain_interval(gains: np.ndarray, level: float = 0.95) -> pd.DataFrame:
    """Return the mean gain of each blend with Student's interval over seeds.

    Parameters
    ----------
    gains : ndarray, shape (S, B)

    Returns
    -------
    DataFrame
        gain, gain_sd, gain_low, gain_high; the last three nan with one seed.
    """
    from scipy.stats import t

    gains = np.atleast_2d(np.asarray(gains, dtype=np.float64))
    n = len(gains)
    mean = gains.mean(0)
    sd = gains.std(0, ddof=1) if n > 1 else np.full(len(mean), np.nan)
    half = (t.ppf(0.5 + level / 2, n - 1) if n > 1 else np.nan) * sd / np.sqrt(n)
    return pd.DataFrame(
        {"gain": mean, "gain_sd": sd, "gain_low": mean - half, "gain_high": mean + half}
    )
