"""Which measure foretells the gain? RADAR beside the plain ones, on the same blends."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.stats import spearman, spearman_permutation

MEASURES: dict[str, tuple[str, int]] = {
    "RADAR": ("score", -1),
    "RADAR, joint": ("joint", -1),
    "RADAR, mean over layers": ("per_layer", -1),
    "blend size": ("size", 1),
    "distance of means": ("distance_of_means", -1),
    "distance of class means": ("distance_of_class_means", -1),
}


def correlate(table: pd.DataFrame, seconds: float = float("nan")) -> pd.DataFrame:
    """Correlate every measure with the gain, its sign turned so that + is good.

    Returns
    -------
    DataFrame
        measure, better, rho (Spearman), p (permutation; exact up to eight blends), kendall,
        rho_within_size (mean of the rhos among blends of one size, weighted by their
        number; nan where no size has three), n, seconds.
    """
    from scipy.stats import kendalltau

    rows = []
    gain = table["gain"].to_numpy(dtype=float)
    for name, (column, sign) in MEASURES.items():
        value = sign * table[column].to_numpy(dtype=float)
        test = spearman_permutation(value, gain)
        within = [
            (len(at), spearman(value[at], gain[at]))
            for at in table.groupby("n_members").indices.values()
            if len(at) >= 3
        ]
        within = [(n, rho) for n, rho in within if np.isfinite(rho)]
        total = sum(n for n, _ in within)
        rows.append({
            "measure": name,
            "better": "lower" if sign < 0 else "higher",
            "rho": test.rho,
            "p": test.p,
            "kendall": float(kendalltau(value, gain).statistic),
            "rho_within_size": sum(n * rho for n, rho in within) / total if total else np.nan,
            "n": test.n,
            "seconds": seconds if name.startswith("RADAR") else table.attrs.get(
                "seconds_baselines", np.nan
            ),
        })  # fmt: skip
    return pd.DataFrame(rows)
