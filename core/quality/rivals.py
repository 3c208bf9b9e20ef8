"""Whether one metric goes with accuracy more closely than another, judged on the same models.

Two intervals that overlap do not say that two correlations are equal: both rest on the same
models. The difference is resampled in pairs, whole families together (spec section 8).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from core.errors import BadInput
from core.quality.population import FEWEST_FAMILIES, FEWEST_MODELS, METRICS, STUDY, Population
from core.stats.fdr import benjamini_hochberg
from core.stats.matrix import rho_difference, spearman_matrix


def rivals(
    population: Population,
    dataset: str,
    metric: str,
    probe: str,
    *,
    metrics: Sequence[str] = STUDY,
    n_boot: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return by how much a metric's rank correlation with accuracy exceeds each other's.

    Each correlation is turned into its metric's expected direction (alpha-ReQ has none: the
    sign of its rho here), so that a positive difference favours ``metric``.

    Parameters
    ----------
    population : Population
        The models shown.
    dataset : str
        One of its data sets.
    metric : str
        The one compared.
    probe : str
        Column of the accuracy.
    metrics : sequence of str
        The others; ``metric`` itself is left out.
    n_boot, seed : int
        Resamples of whole families.

    Returns
    -------
    DataFrame
        metric, rho (its own, in its direction), difference, lo, hi (95 %), p, q
        (Benjamini-Hochberg over the rows), n, n_clusters. Each row rests on the models that
        have both values; NaN with fewer than 8 models or 4 families, or a constant column.

    Raises
    ------
    BadInput
        The data set or the metric is unknown.

    Examples
    --------
    >>> from core.quality.population import zoo
    >>> found = rivals(zoo(), "letters", "ne_sum", "knn", n_boot=200).set_index("metric")
    >>> bool(found.loc["rankme", "lo"] > 0)
    True
    """
    if dataset not in population.datasets or metric not in METRICS:
        raise BadInput(
            f"dataset={dataset!r}, metric={metric!r}: nothing to compare.",
            f"Data sets: {', '.join(population.datasets)}; metrics: {', '.join(METRICS)}.",
        )
    rows = population.table[population.table["dataset"] == dataset]
    out = []
    for other in metrics:
        if other == metric:
            continue
        values = rows[[metric, other, probe]].to_numpy(dtype=np.float64)
        whole = np.isfinite(values).all(1)
        out.append(
            {"metric": other}
            | _difference(
                values[whole], rows["family"].to_numpy()[whole], (metric, other), n_boot, seed
            )
        )
    found = pd.DataFrame(out)
    return found.assign(q=benjamini_hochberg(found["p"].to_numpy(dtype=np.float64)))


def _difference(
    values: np.ndarray, families: np.ndarray, names: tuple[str, str], n_boot: int, seed: int
) -> dict[str, float]:
    nan = float("nan")
    counted = {"n": len(values), "n_clusters": len(np.unique(families))}
    if counted["n"] < FEWEST_MODELS or counted["n_clusters"] < FEWEST_FAMILIES:
        return {"rho": nan, "difference": nan, "lo": nan, "hi": nan, "p": nan, **counted}
    matrix = spearman_matrix(values, families, n_boot=n_boot, seed=seed)
    one, two = (
        METRICS[name][1] or float(np.sign(matrix.rho[at, 2])) or 1.0
        for at, name in enumerate(names)
    )
    found = rho_difference(matrix, (0, 2), (1, 2), signs=(one, two))
    return {"rho": float(two * matrix.rho[1, 2]), "difference": found.rho, "lo": found.lo,
            "hi": found.hi, "p": found.p, **counted}  # fmt: skip
