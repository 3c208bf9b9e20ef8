"""The study's published claims beside what a population of ours shows, and a verdict per metric.

Claims as read in the study's abstract and in second-hand accounts of it; no number of the
study is repeated here but the two that were available (rho(SC, DSE) = -0.999, 4.5 % spread).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.quality.population import METRICS, RIDGES, Correlations, Population

WITHIN = ("ViT", "ResNet", "ConvNeXt", "RegNet")


@dataclass(frozen=True)
class Claim:
    """One claim of the study and what this population says.

    Attributes
    ----------
    claim : str
        In the study's sense, our words.
    ours : str
        What we found, with numbers.
    held : {"held", "did not hold", "partly", "cannot tell"}
    """

    claim: str
    ours: str
    held: str


@dataclass(frozen=True)
class Trust:
    """Whether to trust a metric somewhere.

    Attributes
    ----------
    metric, verdict : str
        ``verdict`` is "trust", "not here", "turns round" or "cannot tell".
    reason : str
        In words, with the count of data sets.
    n_sets, n_right, n_wrong : int
        Data sets with a number, and those where rho is clearly of the expected sign, or of the
        other (q below .05).
    """

    metric: str
    verdict: str
    reason: str
    n_sets: int
    n_right: int
    n_wrong: int


def trust(cells: pd.DataFrame, stratum: str, metrics: Sequence[str]) -> list[Trust]:
    """Judge each metric in one stratum over all data sets.

    A metric is trusted where rho has one sign with q below .05 on at least two thirds of the
    data sets and the opposite sign on none. The sign is the expected one; alpha-ReQ has none,
    so the more frequent one counts.

    Parameters
    ----------
    cells : DataFrame
        From :func:`core.quality.population.study_table`.
    stratum : str
        One of its strata.
    metrics : sequence of str
        Which metrics.
    """
    out = []
    for metric in metrics:
        rows = cells[(cells["stratum"] == stratum) & (cells["metric"] == metric)]
        known = rows[rows["rho"].notna()]
        title, sign, _ = METRICS[metric]
        clear = known[(known["q"] < 0.05) & (known["status"] == "ok")]
        up, down = int((clear["rho"] > 0).sum()), int((clear["rho"] < 0).sum())
        direction = sign or (1 if up >= down else -1)
        right, wrong = (up, down) if direction > 0 else (down, up)
        n = len(known)
        out.append(Trust(metric, *_judge(title, direction, n, right, wrong), n, right, wrong))
    return out


def _judge(title: str, sign: int, n: int, right: int, wrong: int) -> tuple[str, str]:
    way = "higher" if sign > 0 else "lower"
    if n == 0:
        return "cannot tell", "too few models or families"
    if right and wrong:
        return "turns round", f"{way} is better on {right} of {n} sets, worse on {wrong}"
    if right >= 2 * n / 3:
        return "trust", f"{way} goes with accuracy on {right} of {n} sets"
    if wrong >= 2 * n / 3:
        other = "lower" if sign > 0 else "higher"
        return "not here", f"against expectation, {other} goes with accuracy on {wrong} of {n} sets"
    if right or wrong:
        return "not here", f"clear on {right + wrong} of {n} sets only"
    return "cannot tell", f"clear on none of {n} sets"


def _rhos(cells: pd.DataFrame, metric: str, stratum: str) -> np.ndarray:
    rows = cells[(cells["metric"] == metric) & (cells["stratum"] == stratum)]
    return rows["rho"].dropna().to_numpy()


def _span(values: np.ndarray) -> str:
    if not len(values):
        return "n/a"
    return f"{np.mean(values):+.2f} ({values.min():+.2f} to {values.max():+.2f})"


def _claim_id(cells: pd.DataFrame) -> Claim:
    strata = ["All", *WITHIN, "supervised", "self-supervised"]
    means = {s: _rhos(cells, "twonn", s) for s in strata}
    known = [s for s in strata if len(means[s])]
    negative = [s for s in known if means[s].mean() < 0]
    share = len(negative) / len(known) if known else float("nan")
    held = "held" if share == 1.0 else "partly" if share > 0.5 else "did not hold"
    held = held if known else "cannot tell"
    return Claim(
        "Intrinsic dimension (TwoNN) is the most consistent metric, negative across "
        "architectures and objectives.",
        f"Mean rho over the sets: all {_span(means['All'])}; negative in {len(negative)} of "
        f"{len(known)} strata.",
        held,
    )


def _claim_rankme(cells: pd.DataFrame) -> Claim:
    pooled = _rhos(cells, "rankme", "All")
    inner = np.concatenate([_rhos(cells, "rankme", s) for s in WITHIN])
    gap = inner.mean() - pooled.mean() if len(inner) and len(pooled) else float("nan")
    held = "cannot tell" if not np.isfinite(gap) else "held" if gap > 0.1 else "did not hold"
    return Claim(
        "RankMe is weak over all models and strong within an architecture class.",
        f"Mean rho: pooled {_span(pooled)}, within classes {_span(inner)}.",
        held,
    )


def _claim_nesum(cells: pd.DataFrame) -> Claim:
    ssl, sup = (_rhos(cells, "ne_sum", s) for s in ("self-supervised", "supervised"))
    if not len(ssl) or not len(sup):
        held = "cannot tell"
    else:
        held = "held" if ssl.mean() > 0.3 > abs(sup.mean()) else "did not hold"
    return Claim(
        "NESum is predictive for self-supervised models, not for supervised ones.",
        f"Mean rho: self-supervised {_span(ssl)}, supervised {_span(sup)}.",
        held,
    )


def _claim_sc(cells: pd.DataFrame) -> Claim:
    ssl, sup = (_rhos(cells, "self_cluster", s) for s in ("self-supervised", "supervised"))
    if not len(ssl) or not len(sup):
        held = "cannot tell"
    else:
        held = "held" if ssl.mean() < -0.3 and abs(sup.mean()) < 0.3 else "did not hold"
    return Claim(
        "Self-Cluster is a negative predictor for self-supervised models, uninformative for "
        "supervised ones.",
        f"Mean rho: self-supervised {_span(ssl)}, supervised {_span(sup)}.",
        held,
    )


def _claim_mirror(population: Population) -> Claim:
    rho = []
    for dataset in population.datasets:
        found = Correlations(
            population, dataset, metrics=["self_cluster", "diffusion_spectral_entropy"], n_boot=100
        ).cell("All", "self_cluster", "diffusion_spectral_entropy")
        if found is not None:
            rho.append(found.rho)
    values = np.array(rho)
    worst = values.max() if len(values) else float("nan")
    held = "cannot tell" if not len(values) else "held" if worst < -0.97 else "did not hold"
    return Claim(
        "Diffusion spectral entropy mirrors Self-Cluster (the study: rho -0.999).",
        f"Rho between both: {_span(values)}.",
        held,
    )


def _claim_kappa(population: Population) -> Claim:
    table = ridge_panel(population)
    mean = table.groupby("probe")["rho"].mean()
    if not {"linear.0", "knn"} <= set(mean.index):
        return Claim("The condition number follows least squares only.", "n/a", "cannot tell")
    gone = abs(mean["knn"]) < abs(mean["linear.0"]) / 2 and abs(mean["linear.0"]) > 0.2
    return Claim(
        "The condition number goes with least-squares accuracy and not with 1-NN: an artefact of "
        "the solver.",
        f"Mean rho over the sets: least squares {mean['linear.0']:+.2f}, ridge 1e-2 "
        f"{mean.get('linear.0.01', float('nan')):+.2f}, 1-NN {mean['knn']:+.2f}.",
        "held" if gone else "did not hold",
    )


def _claim_alpha(population: Population) -> Claim:
    signs, words = set(), []
    for last in (30, 100, 0.9):
        values = alpha_rho(population, (11, last))["rho"].dropna()
        if len(values):
            signs.add(np.sign(values.mean()))
            end = f"{last:.0%}" if last < 1 else str(last)
            words.append(f"[11, {end}] {values.mean():+.2f}")
    held = "cannot tell" if not words else "held" if len(signs) > 1 else "did not hold"
    return Claim(
        "The sign of alpha-ReQ's correlation depends on the range of the fit.",
        f"Mean rho by range: {', '.join(words)}." if words else "n/a",
        held,
    )


def claims(population: Population, cells: pd.DataFrame) -> list[Claim]:
    """Return the study's claims with what this population shows.

    Parameters
    ----------
    population : Population
    cells : DataFrame
        :func:`core.quality.population.study_table` of it.
    """
    tables: tuple[Callable[[pd.DataFrame], Claim], ...] = (
        _claim_id, _claim_rankme, _claim_nesum, _claim_sc,
    )  # fmt: skip
    wholes: tuple[Callable[[Population], Claim], ...] = (_claim_mirror, _claim_kappa, _claim_alpha)
    return [make(cells) for make in tables] + [make(population) for make in wholes]


def ridge_panel(population: Population, *, metric: str = "condition_number") -> pd.DataFrame:
    """Return rho of a metric with every probe, ridge by ridge: dataset, probe, rho, lo, hi, n.

    The artefact panel: a correlation that is there for least squares only is the solver's.
    """
    rows = []
    for dataset in population.datasets:
        probes = [p for p in RIDGES if p in population.table]
        found = Correlations(population, dataset, metrics=[metric], probes=probes, n_boot=400)
        for probe in probes:
            cell = found.cell("All", metric, probe)
            if cell is not None and np.isfinite(cell.rho):
                rows.append(
                    {"dataset": dataset, "probe": probe, "rho": cell.rho, "lo": cell.lo,
                     "hi": cell.hi, "n": cell.n}
                )  # fmt: skip
    return pd.DataFrame(rows, columns=["dataset", "probe", "rho", "lo", "hi", "n"])


def alpha_rho(
    population: Population, fit_range: tuple[int, int | float], *, probe: str = "knn"
) -> pd.DataFrame:
    """Return rho of alpha-ReQ fitted over another range of the stored spectra.

    Parameters
    ----------
    population : Population
        Its table holds ``eigenvalues``.
    fit_range : (int, int or float)
        As :func:`core.quality.alpha_req` takes it.
    probe : str
        Accuracy to correlate with.

    Returns
    -------
    DataFrame
        dataset, rho, n (models with a fit), n_left_out.
    """
    from core.quality.metrics.alpha_req import power_law
    from core.stats.ranks import spearman

    table = population.table
    alpha = np.array(
        [power_law(np.asarray(v, dtype=np.float64), fit_range).alpha for v in table["eigenvalues"]]
    )
    rows = []
    for dataset in population.datasets:
        mask = (table["dataset"] == dataset).to_numpy()
        good = mask & np.isfinite(alpha)
        rho = spearman(alpha[good], table.loc[good, probe].to_numpy(dtype=np.float64))
        rows.append({"dataset": dataset, "rho": rho, "n": int(good.sum()),
                     "n_left_out": int(mask.sum() - good.sum())})  # fmt: skip
    return pd.DataFrame(rows)
