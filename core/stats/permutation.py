"""Permutation tests: correlations by reordering, means by signs; exact where few."""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

import numpy as np

from core.stats.ranks import as_pair, mid_ranks, spearman

# 8! = 40,320 orders take 30 ms; 9! would take ten times that for nothing.
EXACT_UP_TO = 8


class Permutation(NamedTuple):
    """Spearman's rho and its two-sided permutation p."""

    rho: float
    p: float
    n: int
    exact: bool


def spearman_permutation(
    a: np.ndarray, b: np.ndarray, *, n_perm: int = 9999, seed: int = 0
) -> Permutation:
    """Test rho = 0 by permuting ``b``: the two-sided share of ``|rho_perm| >= |rho|``.

    Parameters
    ----------
    a, b : array of float, shape (n,)
        Pairs with a NaN or infinity are left out.
    n_perm : int
        Sampled orders when more than eight pairs remain; p is then ``(hits + 1)/(n_perm + 1)``.

    Returns
    -------
    Permutation
        NaN rho and p when fewer than three pairs remain or one side is constant. With three
        pairs the smallest possible p is 1/3: few items cannot be significant.

    Examples
    --------
    >>> out = spearman_permutation(np.arange(4.0), np.arange(4.0))
    >>> out.rho, round(out.p, 4), out.exact
    (1.0, 0.0833, True)
    """
    left, right = as_pair(a, b)
    keep = np.isfinite(left) & np.isfinite(right)
    left, right = left[keep], right[keep]
    n = len(left)
    rho = spearman(left, right) if n >= 3 else float("nan")
    if not np.isfinite(rho):
        return Permutation(float("nan"), float("nan"), n, n <= EXACT_UP_TO)
    ranks_a, ranks_b = mid_ranks(left), mid_ranks(right)
    centred = (ranks_a - ranks_a.mean()) / np.linalg.norm(ranks_a - ranks_a.mean())
    other = (ranks_b - ranks_b.mean()) / np.linalg.norm(ranks_b - ranks_b.mean())
    exact = n <= EXACT_UP_TO
    if exact:
        orders = np.array(list(permutations(range(n))))
    else:
        rng = np.random.default_rng(seed)
        orders = rng.permuted(np.tile(np.arange(n), (n_perm, 1)), axis=1)
    # Rounding must not turn a tie with the observed value into a miss.
    hits = int((np.abs(other[orders] @ centred) >= abs(rho) - 1e-12).sum())
    p = hits / len(orders) if exact else (hits + 1) / (n_perm + 1)
    return Permutation(rho, float(p), n, exact)


def kendall_permutation(a: np.ndarray, b: np.ndarray) -> Permutation:
    """Return Kendall's tau-b and its two-sided p: every order of up to eight pairs.

    Parameters
    ----------
    a, b : array of float, shape (n,)
        Pairs with a NaN or infinity are left out.

    Returns
    -------
    Permutation
        ``rho`` is tau-b. Above eight pairs p is SciPy's (exact without ties, else normal).
        NaN when fewer than three pairs remain or one side is constant.

    Examples
    --------
    >>> out = kendall_permutation(np.arange(4.0), np.arange(4.0))
    >>> out.rho, round(out.p, 4), out.exact
    (1.0, 0.0833, True)
    """
    from scipy.stats import kendalltau

    left, right = as_pair(a, b)
    keep = np.isfinite(left) & np.isfinite(right)
    left, right = left[keep], right[keep]
    n = len(left)
    if n < 3 or np.ptp(left) == 0 or np.ptp(right) == 0:
        return Permutation(float("nan"), float("nan"), n, n <= EXACT_UP_TO)
    out = kendalltau(left, right)
    if n > EXACT_UP_TO:
        return Permutation(float(out.statistic), float(out.pvalue), n, False)
    i, j = np.triu_indices(n, 1)
    signs = np.sign(left[i] - left[j])
    orders = np.array(list(permutations(range(n))))
    # The ties of both sides stay the same under every order: the sum alone decides.
    sums = np.sign(right[orders[:, i]] - right[orders[:, j]]) @ signs
    seen = abs(float(np.sign(right[i] - right[j]) @ signs))
    hits = int((np.abs(sums) >= seen - 1e-12).sum())
    return Permutation(float(out.statistic), hits / len(orders), n, True)


def sign_flip_p(values: np.ndarray, *, n_perm: int = 9999, seed: int = 0) -> float:
    """Return the two-sided p of a mean of zero when every value could have had either sign.

    Parameters
    ----------
    values : array of float, shape (n,)
        One value a cluster (a target, say); NaN and infinite ones are left out.
    n_perm : int
        Sign patterns drawn where there are more than that; else all 2^n are tried.

    Returns
    -------
    float
        nan below three values. With six values it cannot fall below 1/32.

    Examples
    --------
    >>> sign_flip_p(np.array([0.2, 0.5, 0.1, 0.4, 0.3, 0.6]))
    0.03125
    """
    from scipy.stats import permutation_test

    kept = np.asarray(values, dtype=np.float64).ravel()
    kept = kept[np.isfinite(kept)]
    if len(kept) < 3:
        return float("nan")
    out = permutation_test(
        (kept,), np.mean, permutation_type="samples", vectorized=True, n_resamples=n_perm,
        rng=np.random.default_rng(seed),
    )  # fmt: skip
    return float(out.pvalue)
