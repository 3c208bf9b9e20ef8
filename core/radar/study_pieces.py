"""The pieces of the transfer study: one encoder and one target, kept in the store.

A piece ranks every blend of the target by RADAR in many configurations and by every baseline, and
trains the probes that say which blends really helped. It is found again by its parameters, so a
study that was stopped goes on where it was.

Axes: B blends, S seeds of the gain.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from core.analyses import inputs
from core.errors import BadInput
from core.radar import truth
from core.radar.rows import DomainRows
from core.results import Result
from core.types import LeftOut

if TYPE_CHECKING:
    from core.workspace import Workspace

Progress = Callable[[float, str], None]

KIND = "transfer-study-piece"

# What is changed against the base: flat geometry, all layers, anchors from the blend, partners
# of any class, theta and d, one Gaussian.
CONFIGS: dict[str, dict[str, Any]] = {
    "base": {},
    "late": {"layers": "late"},
    "sphere": {"geometry": "sphere"},
    "sphere, late": {"geometry": "sphere", "layers": "late"},
    "poincare": {"geometry": "poincare"},
    "target": {"direction": "target"},
    "target, late": {"direction": "target", "layers": "late"},
    "target, sphere": {"direction": "target", "geometry": "sphere"},
    "target, sphere, late": {"direction": "target", "geometry": "sphere", "layers": "late"},
    "same class": {"label_mode": "same"},
    "sphere, late, same class": {"geometry": "sphere", "layers": "late", "label_mode": "same"},
    "theta": {"descriptors": "theta"},
    "d": {"descriptors": "d"},
    "histogram": {"density": "histogram", "mode": "per_layer"},
    "sliced": {"density": "sliced", "repeats": 1},
    "mixture": {"density": "gmm", "mode": "per_layer", "repeats": 1, "n_samples": 2_000,
                "n_components": (1, 2)},
}  # fmt: skip
READINGS = {"joint": "all layers jointly", "per_layer": "mean over layers"}
_BASE = {"density": "gaussian", "label_mode": "any", "direction": "blend"}


def piece(workspace: Workspace, params: dict[str, Any], progress: Progress | None = None) -> Result:
    """Return one piece: the stored one, else computed and stored.

    Parameters
    ----------
    params : dict
        ``dataset``, ``model``, ``target``, ``sources``, ``configs``, ``measures``, ``n_pairs``,
        ``repeats``, ``gain_per_class``, ``gain_seeds``, ``gain_c``, ``n_projections``, ``seed``.

    Returns
    -------
    Result
        Tables ``blends`` (a row a blend: gain with interval, a column a measure) and
        ``measures``; the summary holds what the reading of the piece needs.
    """
    sources = inputs(workspace, params)
    stored = workspace.results.find(KIND, params, sources)
    if stored is not None:
        return stored
    return workspace.results.put(
        _compute(workspace, params, progress or (lambda _fraction, _message: None)), sources
    )


def _compute(workspace: Workspace, params: dict[str, Any], report: Progress) -> Result:
    from core.radar.blends import all_blends
    from core.transferability.foretell import gain_interval, reliability
    from core.transferability.measures import MEASURES

    began = time.perf_counter()
    data = DomainRows(workspace, params)
    blends = all_blends(params["sources"])
    found = truth.measure(data, params, blends, lambda f, words: report(0.5 * f, words))
    sizes = {name: len(data.rows(name)) for name in params["sources"]}
    table = pd.DataFrame({
        "blend": [" + ".join(members) for members in blends],
        "n_members": [len(members) for members in blends],
        "size": [sum(sizes[name] for name in members) for members in blends],
    })  # fmt: skip
    table = pd.concat([table, gain_interval(found.gains)], axis=1)
    table = table.merge(found.values.drop(columns="size", errors="ignore"), on="blend")
    lines = [
        (MEASURES[name].label, name, MEASURES[name].better, found.seconds[name],
         MEASURES[name].adapted, found.unavailable.get(name, ""))
        for name in params["measures"]
    ]  # fmt: skip
    scores, radar_lines, facts, left = _radar(data, params, lambda f, w: report(0.5 + 0.5 * f, w))
    if scores is not None:
        table = table.merge(scores, on="blend")
    measures = truth.measure_table(table, found.gains, [*radar_lines, *lines])
    summary = {
        "headline": f"{params['model']}, {params['target']}: {len(blends)} blends.",
        "n": found.n_test, "n_train": found.n_train, "leaks": found.leaks,
        "baseline": found.baseline, "baseline_sd": found.baseline_sd,
        "reliability": reliability(found.gains), "seconds": time.perf_counter() - began, **facts,
    }  # fmt: skip
    return Result(
        KIND, params, summary, {"blends": table, "measures": measures},
        left_out=(*data.left_out, *left),
    )  # fmt: skip


def _radar(
    data: DomainRows, params: dict[str, Any], report: Progress
) -> tuple[pd.DataFrame | None, list[Any], dict[str, Any], tuple[LeftOut, ...]]:
    """Score every blend in every configuration; an encoder of one layer has no score."""
    from core.radar.analysis import class_distance
    from core.radar.score import rank_blends

    target = data.domain(params["target"])
    domains = {name: data.domain(name) for name in params["sources"]}
    facts: dict[str, Any] = {"states": len(target.layers), "transitions": 0, "projected": False}
    if len(target.layers) < 2:
        reason = "one stored layer: RADAR needs the step from a layer to the next"
        return None, [], facts, (LeftOut(f"RADAR of {params['model']}", reason),)
    widths = [state.shape[1] for state in target.layers]
    equal = any(a == b for a, b in pairwise(widths))
    project = "none" if equal else "jl"
    frame, lines, left = None, [], []
    for index, name in enumerate(params["configs"]):
        report(index / len(params["configs"]), f"RADAR: {name}")
        options = {**_BASE, "n_pairs": params["n_pairs"], "repeats": params["repeats"],
                   "seed": params["seed"], "project": project, **CONFIGS[name]}  # fmt: skip
        try:
            out = rank_blends(target, domains, **options)
        except BadInput as err:
            left.append(LeftOut(f"RADAR, {name}", err.message))
            continue
        for reading, words in READINGS.items():
            if not np.isfinite(out.table[reading]).all():
                continue  # a histogram has no joint reading
            column = f"radar: {name}: {reading}"
            scored = out.table[["blend", reading]].rename(columns={reading: column})
            frame = scored if frame is None else frame.merge(scored, on="blend")
            lines.append((f"RADAR, {name}, {words}", column, "lower", out.seconds, "", ""))
        if name == "base":
            singles = {s: out.results[s] for s in params["sources"]}
            first = next(iter(singles.values()))
            facts |= {
                "transitions": len(first.kept_layers), "projected": project == "jl",
                "null": first.null, "nearest": min(s.excess for s in singles.values()),
                "farthest": max(s.excess for s in singles.values()),
                "far": class_distance(target, options),
            }  # fmt: skip
    return frame, lines, facts, tuple(left)
