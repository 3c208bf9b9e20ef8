"""A population of measured models: one row a model and data set, and what the metrics say of it.

The 260 small networks of :mod:`core.quality.zoo` are one; ``theodolite quality study`` makes
others of the same form. Correlations are taken within a data set; q adjusts over all metrics
and data sets of a stratum (Benjamini-Hochberg), with one probe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from core.errors import BadInput, NotFound
from core.quality.metrics.cluster_learnability import clid
from core.quality.registry import ARCHITECTURES
from core.quality.study import ENOUGH_FAMILIES, FEWEST_FAMILIES, FEWEST_MODELS, stars
from core.stats.bootstrap import SpearmanBootstrap
from core.stats.fdr import benjamini_hochberg
from core.stats.matrix import SpearmanMatrix, partial_spearman, spearman_matrix

#: Metrics of a population: column, words, expected sign, log axis. The study's seven first.
METRICS: dict[str, tuple[str, int, bool]] = {
    "rankme": ("RankMe", 1, True),
    "ne_sum": ("NESum", 1, True),
    "alpha_req": ("alpha-ReQ", 0, False),
    "condition_number": ("Condition number", -1, True),
    "self_cluster": ("Self-Cluster", -1, False),
    "diffusion_spectral_entropy": ("Diffusion spectral entropy", 1, False),
    "twonn": ("TwoNN dimension", -1, True),
    "rankme_per_d": ("RankMe over width", 1, False),
    "ne_sum_per_d": ("NESum over width", 1, False),
    "alpha_req_90pct": ("alpha-ReQ to 90 %", 0, False),
    "alpha_distance": ("alpha-ReQ, distance to 1", -1, False),
    "dse_s1": ("Diffusion entropy, sigma 1", 1, False),
    "stable_rank": ("Stable rank", 1, True),
    "participation_ratio": ("Participation ratio", 1, True),
    "normalized_std": ("Collapse alarm", 1, False),
    "uniformity": ("Uniformity", -1, False),
    "coherence": ("Coherence", 0, True),
    "levina_bickel": ("Levina-Bickel dimension", -1, True),
    "mst_dimension": ("Spanning-tree dimension", -1, True),
    "cluster_learnability": ("Cluster learnability", 1, False),
    "clid": ("CLID (exploratory)", 1, False),
    "d": ("Feature width", 0, True),
}
STUDY = tuple(METRICS)[:7]
#: Groups of objectives. The networks trained for this study are of the first two.
GROUPS: dict[str, str] = {
    "supervised": "supervised",
    "ssl": "self-supervised",
    "vision_language": "vision-language",
    "other": "objective not known",
}
PROBES: dict[str, str] = {
    "knn": "1-NN",
    "linear": "linear probe (ridge 1e-6)",
    "linear.0": "least squares, no ridge",
    "linear.0.0001": "linear probe (ridge 1e-4)",
    "linear.0.01": "linear probe (ridge 1e-2)",
    "knn_cosine": "1-NN, cosine",
}
RIDGES = ("linear.0", "linear", "linear.0.0001", "linear.0.01", "knn")


@dataclass(frozen=True)
class Population:
    """Measured models.

    Attributes
    ----------
    title : str
        What the models are, in words.
    table : DataFrame
        One row a model and data set: model, family, architecture, group (a key of :data:`GROUPS`),
        objective, d, n_params, dataset, the metrics, the probes, eigenvalues, twonn_x, twonn_y.
    datasets : mapping of str to str
        Data sets present, with their words.
    about : dict
        Versions, date, failures.
    """

    title: str
    table: pd.DataFrame
    datasets: dict[str, str]
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def n_models(self) -> int:
        """Number of models."""
        return int(self.table["model"].nunique())


def from_table(
    table: pd.DataFrame, *, title: str, datasets: dict[str, str], about: dict[str, Any]
) -> Population:
    """Return a population from a stored table: names shortened, CLID added within each set."""
    frame = table[table["failed"] == ""].rename(
        columns=lambda name: name.removeprefix("metric.") if name.startswith("metric.") else name
    )
    if "group" not in frame:
        frame["group"] = np.where(frame["objective"] == "supervised", "supervised", "ssl")
    frame = frame.assign(
        clid=np.nan,
        # The width bounds both; alpha near 1 is claimed best, so its distance is a metric too.
        rankme_per_d=frame["rankme"].astype(float) / frame["d"],
        ne_sum_per_d=frame["ne_sum"].astype(float) / frame["d"],
        alpha_distance=(frame["alpha_req"].astype(float) - 1).abs(),
    )
    for _, at in frame.groupby("dataset").groups.items():
        cells = frame.loc[at]
        frame.loc[at, "clid"] = clid(
            cells["cluster_learnability"].to_numpy(dtype=float),
            cells["twonn"].to_numpy(dtype=float),
        )
    present = {name: words for name, words in datasets.items() if (frame["dataset"] == name).any()}
    return Population(title, frame.reset_index(drop=True), present, about)


@cache
def zoo(path: Path | None = None) -> Population:
    """Return the networks trained for this study.

    Raises
    ------
    NotFound
        The table is not installed.
    """
    import json

    from core.quality.zoo.run import TITLE
    from core.quality.zoo.sets import TITLES, study_dir

    file = path or study_dir() / "zoo.parquet"
    if not file.is_file():
        raise NotFound(f"The study's table {file.name} is missing.", "Install the package again.")
    about = json.loads(file.with_suffix(".json").read_text())
    return from_table(pd.read_parquet(file), title=TITLE, datasets=TITLES, about=about)


def strata(table: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the strata as masks over rows: all, each architecture class, each objective group."""
    out = {"All": np.ones(len(table), dtype=bool)}
    present = set(table["architecture"])
    for name in [a for a in ARCHITECTURES if a in present] + sorted(present - set(ARCHITECTURES)):
        out[str(name)] = (table["architecture"] == name).to_numpy()
    for key, words in GROUPS.items():
        mask = (table["group"] == key).to_numpy()
        if mask.any():
            out[words] = mask
    return out


def select(
    population: Population,
    *,
    architectures: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    max_params: float | None = None,
) -> Population:
    """Return the models that pass a filter; None keeps all."""
    table = population.table
    keep = np.ones(len(table), dtype=bool)
    if architectures is not None:
        keep &= table["architecture"].isin(list(architectures)).to_numpy()
    if groups is not None:
        keep &= table["group"].isin(list(groups)).to_numpy()
    if max_params is not None:
        keep &= (table["n_params"] <= max_params).to_numpy()
    shown = table[keep].reset_index(drop=True)
    return Population(population.title, shown, population.datasets, population.about)


class Correlations:
    """Rank correlations within one data set, computed stratum by stratum and kept.

    Parameters
    ----------
    population : Population
    dataset : str
        One of its data sets.
    metrics, probes : sequence of str
        Columns.
    n_boot, seed : int
        Resamples of whole families.
    """

    def __init__(
        self,
        population: Population,
        dataset: str,
        *,
        metrics: Sequence[str] = STUDY,
        probes: Sequence[str] = ("knn", "linear"),
        n_boot: int = 1000,
        seed: int = 0,
    ) -> None:
        if dataset not in population.datasets:
            raise BadInput(
                f"There is no data set {dataset!r} in this population.",
                f"Choose one of: {', '.join(population.datasets)}.",
            )
        table = population.table
        self.rows = table[table["dataset"] == dataset].reset_index(drop=True)
        self.names = list(dict.fromkeys([*metrics, *probes, "d"]))
        self.metrics, self.probes = list(metrics), list(probes)
        self.strata = strata(self.rows)
        self.n_boot, self.seed = n_boot, seed
        self._kept: dict[tuple[str, tuple[str, ...]], SpearmanMatrix | None] = {}
        self._whole: dict[str, tuple[str, ...]] = {}

    def _matrix(self, stratum: str, names: tuple[str, ...]) -> SpearmanMatrix | None:
        """Return the matrix of these columns over the models that have all of them."""
        key = (stratum, names)
        if key not in self._kept:
            values = self.rows.loc[self.strata[stratum], list(names)].to_numpy(dtype=np.float64)
            families = self.rows.loc[self.strata[stratum], "family"].to_numpy()
            whole = np.isfinite(values).all(1)
            enough = whole.sum() >= FEWEST_MODELS
            enough &= len(np.unique(families[whole])) >= FEWEST_FAMILIES
            self._kept[key] = (
                spearman_matrix(values[whole], families[whole], n_boot=self.n_boot, seed=self.seed)
                if enough
                else None
            )
        return self._kept[key]

    def _place(self, stratum: str, *wanted: str) -> tuple[SpearmanMatrix | None, list[int]]:
        """Return a matrix with these columns: the shared one, or their own where values lack."""
        if stratum not in self._whole:
            values = self.rows.loc[self.strata[stratum], self.names].to_numpy(dtype=np.float64)
            complete = np.isfinite(values).all(0)
            self._whole[stratum] = tuple(
                name for name, ok in zip(self.names, complete, strict=True) if ok
            )
        whole = names = self._whole[stratum]
        if not set(wanted) <= set(whole):
            # A column with gaps shares its models, and so one matrix, with every whole probe.
            gaps = [name for name in wanted if name not in whole]
            names = tuple(
                dict.fromkeys([*gaps, *(p for p in [*self.probes, "d"] if p in whole), *wanted])
            )
        return self._matrix(stratum, names), [names.index(name) for name in wanted]

    def cell(self, stratum: str, a: str, b: str) -> SpearmanBootstrap | None:
        """Return rho of two columns, or None with too few models or families."""
        matrix, at = self._place(stratum, a, b)
        return None if matrix is None else matrix.pair(at[0], at[1])

    def partial(self, stratum: str, a: str, b: str, given: str = "d") -> SpearmanBootstrap | None:
        """Return the partial rho of two columns given a third (the feature width)."""
        matrix, at = self._place(stratum, a, b, given)
        return None if matrix is None else partial_spearman(matrix, *at)

    def table(self, probe: str) -> pd.DataFrame:
        """Return a row a stratum and metric: rho, lo, hi, p, n, n_clusters, status."""
        out = []
        for stratum in self.strata:
            for metric in self.metrics:
                found = self.cell(stratum, metric, probe)
                out.append(
                    {
                        "stratum": stratum, "metric": metric, "probe": probe,
                        **correlation_row(found),
                    }
                )  # fmt: skip
        return pd.DataFrame(out)


def agreement(population: Population, dataset: str, metrics: Sequence[str]) -> np.ndarray:
    """Return the rank correlations of metrics among themselves on one data set.

    Parameters
    ----------
    population : Population
    dataset : str
        One of its data sets.
    metrics : sequence of str
        M columns.

    Returns
    -------
    ndarray of float64, shape (M, M)
        Each pair over the models that have both; NaN for fewer than eight of them and for a
        constant column. No interval: the matrix says which metrics are one, not how surely.

    Examples
    --------
    >>> rows = pd.DataFrame({"dataset": "a", "x": range(9), "y": range(9, 0, -1)})
    >>> agreement(Population("nine", rows, {"a": "A"}, {}), "a", ["x", "y"])[0]
    array([ 1., -1.])
    """
    rows = population.table.loc[population.table["dataset"] == dataset, list(metrics)]
    found = rows.astype(np.float64).replace([np.inf, -np.inf], np.nan)
    return found.corr(method="spearman", min_periods=FEWEST_MODELS).to_numpy(dtype=np.float64)


def correlation_row(found: SpearmanBootstrap | None) -> dict[str, Any]:
    """Return rho, lo, hi, p, n, n_clusters and status of a cell; NaN and "n/a" without one."""
    nan = float("nan")
    if found is None or not np.isfinite(found.rho):
        return {"rho": nan, "lo": nan, "hi": nan, "p": nan, "n": found.n if found else 0,
                "n_clusters": found.n_clusters if found else 0, "status": "n/a"}  # fmt: skip
    status = "ok" if found.n_clusters >= ENOUGH_FAMILIES else "few families"
    return {"rho": found.rho, "lo": found.lo, "hi": found.hi, "p": found.p, "n": found.n,
            "n_clusters": found.n_clusters, "status": status}  # fmt: skip


def study_table(
    population: Population,
    *,
    probe: str = "knn",
    metrics: Sequence[str] = STUDY,
    n_boot: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return every stratum, metric and data set of a population with q and stars.

    Parameters
    ----------
    population : Population
    probe : str
        One of :data:`PROBES`.
    metrics : sequence of str
        Columns of :data:`METRICS`.

    Returns
    -------
    DataFrame
        dataset, stratum, metric, probe, rho, lo, hi, p, q, n, n_clusters, status, stars.

    Raises
    ------
    BadInput
        The probe or a metric is unknown.
    """
    unknown = [name for name in metrics if name not in METRICS]
    if probe not in PROBES or unknown:
        raise BadInput(
            f"{(unknown or [probe])[0]!r} is unknown.",
            f"Metrics: {', '.join(METRICS)}; probes: {', '.join(PROBES)}.",
        )
    parts = []
    for dataset in population.datasets:
        found = Correlations(
            population, dataset, metrics=metrics, probes=[probe], n_boot=n_boot, seed=seed
        )
        parts.append(found.table(probe).assign(dataset=dataset))
    return adjusted(pd.concat(parts, ignore_index=True), n_boot)


def adjusted(cells: pd.DataFrame, n_boot: int) -> pd.DataFrame:
    """Return the cells with q over all metrics and data sets of a stratum, and stars."""
    out = cells.assign(q=np.nan)
    for _, at in out.groupby("stratum").groups.items():
        out.loc[at, "q"] = benjamini_hochberg(out.loc[at, "p"].to_numpy(dtype=np.float64))
    out["stars"] = [stars(q, s, n_boot) for q, s in zip(out["q"], out["status"], strict=True)]
    return out
