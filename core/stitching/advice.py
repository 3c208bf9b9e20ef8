"""Which encoder can replace which, at what loss: retention with an interval over concepts."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.stitching.matrix import StitchResult

KEEP = 0.90  # share of the native accuracy that counts as a good swap
N_BOOT = 1000


def retention_intervals(
    result: StitchResult, y_test: np.ndarray, groups: np.ndarray, *, seed: int = 0
) -> pd.DataFrame:
    """Return retention per ordered pair with a 95 % cluster-bootstrap interval.

    Parameters
    ----------
    result : StitchResult
    y_test : ndarray, shape (n_test,)
        Labels as given to the method.
    groups : ndarray, shape (n_test,)
        Units that are resampled together: variants of one concept are no fresh evidence.
    seed : int

    Returns
    -------
    DataFrame
        i, j (positions), stitched, native, retention, sd (over seeds; NaN for one), low, high,
        verdict: "swap" when the interval lies above 90 %, "train a new head" when below, else
        "cannot tell".
    """
    codes = np.searchsorted(result.classes, y_test)
    right = (result.predictions == codes).mean(axis=0)  # (N, N, n_test)
    native = (result.native_predictions == codes).astype(float)  # (N, n_test)
    units, member = np.unique(groups, return_inverse=True)
    rng = np.random.default_rng(np.random.SeedSequence([seed, 5]))
    draws = rng.multinomial(len(units), np.full(len(units), 1 / len(units)), N_BOOT)
    weights = draws[:, member].astype(float)  # (N_BOOT, n_test)
    base = weights @ native.T  # (N_BOOT, N)
    rows = []
    n = len(native)
    for i in range(n):
        for j in range(n):
            if i == j:
                continue
            kept = (weights @ right[i, j]) / np.maximum(base[:, j], 1e-12)
            low, high = np.quantile(kept, [0.025, 0.975])
            per_seed = result.accuracy[:, i, j] / max(result.native[j], 1e-12)
            rows.append({
                "i": i, "j": j, "stitched": result.mean[i, j], "native": result.native[j],
                "retention": result.retention[i, j],
                "sd": float(per_seed.std(ddof=1)) if len(per_seed) > 1 else np.nan,
                "low": low, "high": high, "verdict": _verdict(low, high),
            })  # fmt: skip
    return pd.DataFrame(rows)


def _verdict(low: float, high: float) -> str:
    if low >= KEEP:
        return "swap"
    return "train a new head" if high < KEEP else "cannot tell"


def headline(table: pd.DataFrame, names: list[str]) -> str:
    """Return the answer in one sentence: the pair that keeps most, and the one that keeps least."""
    best, worst = table.loc[table["retention"].idxmax()], table.loc[table["retention"].idxmin()]
    words = f"{_pair(best, names)} keeps {_kept(best)} of native accuracy"
    if len(table) > 1:
        words += f"; worst, {_pair(worst, names)} keeps {_kept(worst)}"
    return words + "."


def _pair(row: pd.Series, names: list[str]) -> str:
    return f"{names[int(row['i'])]} → {names[int(row['j'])]}"


def _kept(row: pd.Series) -> str:
    spread = f" ± {100 * row['sd']:.0f}" if np.isfinite(row["sd"]) else ""
    return f"{100 * row['retention']:.0f} %{spread}"
