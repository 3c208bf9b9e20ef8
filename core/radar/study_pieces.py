"""The pieces of the transfer study: one encoder and one target, kept in the store.

A piece is found again by its parameters, so a study that was stopped goes on where it was.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from core.analyses import inputs
from core.radar.rows import DomainRows
from core.results import Result
from core.stats import spearman, spearman_permutation
from core.transferability.measures import MEASURES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.workspace import Workspace

KIND = "transfer-study-piece"

# Each differs from the first in what its name says; every one is read jointly and per layer.
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "page default": {},
    "spherical": {"geometry": "sphere"},
    "late layers": {"layers": "late"},
    "spherical, late layers": {"geometry": "sphere", "layers": "late"},
    "anchors from the target": {"direction": "target"},
    "partners of the same class": {"label_mode": "same"},
    "theta alone": {"descriptors": "theta"},
    "d alone": {"descriptors": "d"},
    "sliced transport": {"density": "sliced"},
}
READINGS = {"joint": "joint", "per_layer": "mean over layers"}
BASELINES = (
    "size", "distance_of_means", "distance_of_class_means", "leep", "nce", "logme", "transrate",
    "h_score", "s_otdd",
)  # fmt: skip


def piece(workspace: Workspace, params: dict[str, Any]) -> Result:
    """Return one encoder and target: the stored answer, else computed and stored.

    Parameters
    ----------
    params : dict
        ``dataset``, ``model``, ``target``, ``sources``, ``configurations``, ``n_pairs``,
        ``repeats``, ``gain_per_class``, ``gain_seeds``, ``gain_c`` and ``seed``.

    Returns
    -------
    Result
        Table ``blends`` (gain with its sd over seeds, and every measure) and ``measures``
        (rho with the gain, permutation p, Kendall, seconds).
    """
    sources = inputs(workspace, params)
    stored = workspace.results.find(KIND, params, sources)
    if stored is not None:
        return stored
    return workspace.results.put(compute_piece(workspace, params), sources)


def compute_piece(workspace: Workspace, params: dict[str, Any]) -> Result:
    """Compute one encoder and target; reads the workspace only."""
    from core.radar.blends import all_blends
    from core.transferability.gain import probe_gain
    from core.transferability.measures import measure_blends

    data = DomainRows(workspace, params)
    parts = {name: data.labelled(name) for name in params["sources"]}
    target = data.labelled(params["target"])
    members = all_blends(params["sources"])
    gains = probe_gain(
        target, data.labelled(params["target"], "test"), parts, members,
        per_class=params["gain_per_class"], seeds=params["gain_seeds"], c=params["gain_c"],
        seed=params["seed"],
    )  # fmt: skip
    plain = measure_blends(
        target, parts, members, names=BASELINES, seed=params["seed"], n_projections=100,
        probe_c=params["gain_c"],
    )  # fmt: skip
    table = gains.table.drop(columns="gain_seeds").merge(plain.values, on="blend")
    table["n_members"] = table["blend"].str.count(r" \+ ") + 1
    seconds = dict(plain.seconds)
    scores, spent = _radar(data, params)
    table = table.merge(scores, on="blend") if len(scores.columns) > 1 else table
    seconds |= spent
    measures = correlations(table, seconds)
    summary = {
        "headline": f"{len(table)} blends for {params['target']}.",
        "n": len(target[1]),
        "n_test": gains.n_test,
        "baseline": gains.baseline,
        "gain_low": float(table["gain"].min()),
        "gain_high": float(table["gain"].max()),
        "layers": len(data.features.layers),
        "radar": bool(spent),
    }
    return Result(
        KIND, params, summary, {"blends": table, "measures": measures}, {}, tuple(data.left_out)
    )


def _radar(data: DomainRows, params: dict[str, Any]) -> tuple[pd.DataFrame, dict[str, float]]:
    """Score all blends under every configuration; nothing where no two layers share a width."""
    from core.radar.score import rank_blends

    seconds: dict[str, float] = {}
    out = pd.DataFrame()
    domains = {n: data.domain(n) for n in (params["target"], *params["sources"])}
    widths = [state.shape[1] for state in domains[params["target"]].layers]
    if not any(a == b for a, b in pairwise(widths)):
        return out, seconds
    shared = {
        "n_pairs": params["n_pairs"], "repeats": params["repeats"], "seed": params["seed"],
        "density": "gaussian", "label_mode": "any",
    }  # fmt: skip
    for name in params["configurations"]:
        ranking = rank_blends(
            domains[params["target"]],
            {n: domains[n] for n in params["sources"]},
            **{**shared, **CONFIGURATIONS[name]},
        )
        table = ranking.table[["blend", *READINGS]]
        for reading in READINGS:
            seconds[f"radar:{name}:{reading}"] = ranking.seconds
        columns = {reading: f"radar:{name}:{reading}" for reading in READINGS}
        table = table.rename(columns=columns)
        out = table if out.empty else out.merge(table, on="blend")
    return out, seconds


def label(measure: str) -> tuple[str, str]:
    """Return a measure's family and name as shown.

    Examples
    --------
    >>> label("radar:late layers:joint")
    ('RADAR', 'late layers, joint')
    >>> label("size")
    ('plain', 'blend size')
    """
    if measure.startswith("radar:"):
        _, name, reading = measure.split(":")
        return "RADAR", f"{name}, {READINGS[reading]}"
    plain = measure == "size" or measure.startswith("distance_of")
    return ("plain" if plain else "baseline"), MEASURES[measure].label


def correlations(table: pd.DataFrame, seconds: dict[str, float]) -> pd.DataFrame:
    """Correlate every measure with the gain, its sign turned so that + is good.

    Returns
    -------
    DataFrame
        measure, family, name, better, rho (Spearman; nan where the measure is constant), p
        (permutation, exact up to eight blends), kendall, rho_within_size (among blends of one
        size, weighted by their number), n, seconds.
    """
    rows = []
    gain = table["gain"].to_numpy(dtype=float)
    for column in seconds:
        radar = column.startswith("radar:")
        better = "lower" if radar else MEASURES[column].better
        value = table[column].to_numpy(dtype=float) * (-1 if better == "lower" else 1)
        test = spearman_permutation(value, gain)
        family, name = label(column)
        rows.append({
            "measure": column, "family": family, "name": name, "better": better,
            "rho": test.rho, "p": test.p, "kendall": _kendall(value, gain),
            "rho_within_size": _within_size(value, gain, table["n_members"]),
            "n": test.n, "seconds": seconds[column],
        })  # fmt: skip
    return pd.DataFrame(rows)


def _kendall(value: np.ndarray, gain: np.ndarray) -> float:
    from scipy.stats import kendalltau

    known = np.isfinite(value)
    return float(kendalltau(value[known], gain[known]).statistic)


def _within_size(value: np.ndarray, gain: np.ndarray, sizes: Sequence[int] | pd.Series) -> float:
    """Mean rho among blends of equally many members, weighted by their number."""
    groups = [at for at in pd.Series(sizes).groupby(np.asarray(sizes)).indices.values()]
    found = [(len(at), spearman(value[at], gain[at])) for at in groups if len(at) >= 3]
    found = [(n, rho) for n, rho in found if np.isfinite(rho)]
    total = sum(n for n, _ in found)
    return sum(n * rho for n, rho in found) / total if total else float("nan")
