"""Correlations between metrics and accuracies over a population of models.

Spearman's rho a cell (stratum x metric x target), a bootstrap over families, and the false
discovery rate within a stratum. The families drawn are the same for every cell of a stratum
that has the same models, so that differences between cells are paired.

Axes: n models, G families, B resamples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from core.errors import BadInput
from core.stats.bootstrap import (
    bootstrap_ranks,
    cluster_codes,
    cluster_weights,
    summarise_draws,
)
from core.stats.fdr import benjamini_hochberg
from core.stats.ranks import row_products, spearman

FEWEST_MODELS = 8
FEWEST_FAMILIES = 4
ENOUGH_FAMILIES = 8
COLUMNS = (
    "stratum", "metric", "target", "rho", "lo", "hi", "p", "q", "n", "n_clusters",
    "n_nan", "status", "stars",
)  # fmt: skip


class _Draws:
    """Weights and resampled ranks, kept for every set of models that was met."""

    def __init__(self, clusters: np.ndarray, n_boot: int, seed: int) -> None:
        self.clusters, self.n_boot, self.seed = clusters, n_boot, seed
        self._weights: dict[bytes, np.ndarray] = {}
        self._ranks: dict[tuple[bytes, str], np.ndarray] = {}

    def weights(self, keep: np.ndarray) -> np.ndarray:
        key = keep.tobytes()
        if key not in self._weights:
            self._weights[key] = cluster_weights(self.clusters[keep], self.n_boot, self.seed)
        return self._weights[key]

    def ranks(self, keep: np.ndarray, name: str, values: np.ndarray) -> np.ndarray:
        key = (keep.tobytes(), name)
        if key not in self._ranks:
            self._ranks[key] = bootstrap_ranks(values[keep], self.weights(keep))
        return self._ranks[key]


def study_correlations(
    table: pd.DataFrame,
    *,
    metrics: Sequence[str],
    targets: Sequence[str],
    strata: Mapping[str, np.ndarray] | None = None,
    clusters: str = "family",
    n_boot: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return rho with its interval, p and q for every stratum, metric and target.

    Parameters
    ----------
    table : DataFrame
        One row a model.
    metrics, targets : sequence of str
        Columns to correlate; NaN leaves a model out of that cell only. A column is not
        correlated with itself.
    strata : mapping of str to bool array (n,), optional
        Sets of models (default: all of them).
    clusters : str
        Column with each model's family, the unit that is resampled.
    n_boot, seed : int
        Resamples and their seed.

    Returns
    -------
    DataFrame
        Columns stratum, metric, target, rho, lo, hi, p, q, n, n_clusters, n_nan, status,
        stars. ``status`` is "ok", "few families" (fewer than 8: drawn grey, no star) or
        "n/a" (fewer than 4 families or 8 models: no number). q adjusts over all cells of a
        stratum (Benjamini-Hochberg); one star q < .05, two q < .01.

    Raises
    ------
    BadInput
        A column is missing.

    References
    ----------
    Arputharaj, Joensson, Eilertsen 2026, A comparative study of label-free representation
    quality metrics in deep learning (cluster-robust bootstrap with Benjamini-Hochberg).

    Examples
    --------
    >>> t = pd.DataFrame({"m": range(24), "acc": range(24), "family": [i // 2 for i in range(24)]})
    >>> out = study_correlations(t, metrics=["m"], targets=["acc"], n_boot=200)
    >>> float(out.loc[0, "rho"]), int(out.loc[0, "n"]), out.loc[0, "status"]
    (1.0, 24, 'ok')
    """
    for column in (*metrics, *targets, clusters):
        if column not in table:
            raise BadInput(
                f"The table has no column {column!r}.", f"It has: {', '.join(table.columns)}."
            )
    masks = strata or {"All": np.ones(len(table), dtype=bool)}
    columns = {*metrics, *targets}
    values = {name: table[name].to_numpy(dtype=np.float64) for name in columns}
    draws = _Draws(cluster_codes(table[clusters].to_numpy()), n_boot, seed)
    rows = []
    for stratum, mask in masks.items():
        for metric in metrics:
            for target in targets:
                if metric != target:
                    cell = _cell(draws, values, np.asarray(mask, bool), metric, target)
                    rows.append({"stratum": stratum, "metric": metric, "target": target, **cell})
    out = pd.DataFrame(rows, columns=[c for c in COLUMNS if c not in ("q", "stars")])
    out["q"] = np.nan
    for _, at in out.groupby("stratum").groups.items():
        out.loc[at, "q"] = benjamini_hochberg(out.loc[at, "p"].to_numpy(dtype=np.float64))
    out["stars"] = [stars(q, s, n_boot) for q, s in zip(out["q"], out["status"], strict=True)]
    return out[list(COLUMNS)]


def _cell(
    draws: _Draws, values: Mapping[str, np.ndarray], mask: np.ndarray, metric: str, target: str
) -> dict[str, float | int | str]:
    """Return one cell; numbers are NaN where there are too few models or families."""
    a, b = values[metric], values[target]
    keep = mask & np.isfinite(a) & np.isfinite(b)
    n, groups = int(keep.sum()), len(np.unique(draws.clusters[keep]))
    if n < FEWEST_MODELS or groups < FEWEST_FAMILIES:
        nan = float("nan")
        return {
            "rho": nan, "lo": nan, "hi": nan, "p": nan, "n": n, "n_clusters": groups,
            "n_nan": 0, "status": "n/a",
        }  # fmt: skip
    rho = row_products(draws.ranks(keep, metric, a), draws.ranks(keep, target, b))
    found = summarise_draws(spearman(a[keep], b[keep]), rho, n, groups)
    status = "ok" if groups >= ENOUGH_FAMILIES else "few families"
    return {
        "rho": found.rho, "lo": found.lo, "hi": found.hi, "p": found.p, "n": n,
        "n_clusters": groups, "n_nan": found.n_nan, "status": status,
    }  # fmt: skip


def stars(q: float, status: str, n_boot: int) -> str:
    """Return the significance stars of a cell; none where families are too few.

    Three stars need 10,000 resamples, because the smallest p is ``2 / (B + 1)``.
    """
    if status != "ok" or not np.isfinite(q):
        return ""
    if q < 0.001 and n_boot >= 10_000:
        return "***"
    return "**" if q < 0.01 else "*" if q < 0.05 else ""


def simpson_check(correlations: pd.DataFrame, *, within: Sequence[str]) -> pd.DataFrame:
    """Compare the pooled rho with the mean rho within strata.

    Parameters
    ----------
    correlations : DataFrame
        From :func:`study_correlations`, with a stratum "All".
    within : sequence of str
        Strata that together partition the models (the architecture classes, say).

    Returns
    -------
    DataFrame
        metric, target, pooled, within (mean weighted by n), n_strata, reversed: True where
        the two have opposite signs.
    """
    # One record a cell: a frame for every metric would cost more than all the rest of a redraw.
    groups: dict[tuple[str, str], list[dict[Any, Any]]] = {}
    columns = ["metric", "target", "stratum", "rho", "n"]
    for cell in correlations[columns].to_dict("records"):
        groups.setdefault((cell["metric"], cell["target"]), []).append(cell)
    wanted = set(within)
    rows = []
    for (metric, target), cells in groups.items():
        pooled = [c["rho"] for c in cells if c["stratum"] == "All"]
        inner = [c for c in cells if c["stratum"] in wanted and np.isfinite(c["rho"])]
        if not pooled or not inner or not np.isfinite(pooled[0]):
            continue
        mean = float(np.average([c["rho"] for c in inner], weights=[c["n"] for c in inner]))
        rows.append(
            {
                "metric": metric,
                "target": target,
                "pooled": float(pooled[0]),
                "within": mean,
                "n_strata": len(inner),
                "reversed": bool(pooled[0] * mean < 0),
            }
        )
    return pd.DataFrame(
        rows, columns=["metric", "target", "pooled", "within", "n_strata", "reversed"]
    )
