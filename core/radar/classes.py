"""The analysis "transfer-classes": which class carries the divergence between two domains.

RADAR, arXiv 2605.23028, section 3, applied inside one class at a time: anchors and both partners
have the class, and the null is one half of the target's items of the class against the other. A
class has few items, so only the excess over its own null is read, and its interval is wide.

Axes: S sources, C classes, L transitions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from core.device import single_threaded
from core.errors import BadInput
from core.radar import analysis
from core.radar.rows import DomainRows
from core.radar.types import Domain
from core.results import Result
from core.types import LeftOut

if TYPE_CHECKING:
    from core.workspace import Workspace

Progress = Callable[[float, str], None]

KIND = "transfer-classes"
_RADAR = tuple(name for name in analysis.DEFAULTS if not name.startswith("gain"))
DEFAULTS: dict[str, Any] = {
    **{name: analysis.DEFAULTS[name] for name in _RADAR},
    # Inside one class the joint density has more parameters than items to rest on.
    "mode": "per_layer",
    "n_pairs": 1_000,
    "repeats": 8,
    "least": 8,
}
_SURE = 2.0  # standard deviations


def resolve(workspace: Workspace, params: dict[str, Any]) -> dict[str, Any]:
    """Check the parameters; target and sources are filled in as for "transfer".

    Raises
    ------
    BadInput
        ``least`` below 4 (two halves with a pair each), or what "transfer" refuses.
    NotFound
        No such dataset or features.
    """
    full = {**DEFAULTS, **params}
    base = analysis.resolve(workspace, {name: full[name] for name in _RADAR})
    if not isinstance(full["least"], int) or full["least"] < 4:
        raise BadInput(
            f"least must be a whole number of at least 4, got {full['least']!r}.",
            "A class needs two halves with a pair each.",
        )
    return {**full, **{name: base[name] for name in _RADAR}, "label_mode": "any"}


def compute(
    workspace: Workspace, params: dict[str, Any], progress: Progress | None = None
) -> Result:
    """Score every source inside every class.

    Returns
    -------
    Result
        ``classes``: source, label, n_target, n_source, score, sd, null, null_sd, excess,
        excess_sd, sure (the excess is two standard deviations above 0). ``steps``: source,
        label, layer, name, excess, sd. Classes with fewer than ``least`` items in the target
        or the source are left out.

    Raises
    ------
    BadInput
        The items have no labels, or no class is large enough.
    """
    with single_threaded():
        return _compute(workspace, params, progress or (lambda _fraction, _message: None))


def _compute(workspace: Workspace, params: dict[str, Any], report: Progress) -> Result:
    data = DomainRows(workspace, params)
    if not data.has_labels:
        raise BadInput(
            "The items have no labels, so there are no classes to look into.",
            "Import the dataset with a column 'label'.",
        )
    target = data.domain(params["target"])
    options = analysis.config_options(params)
    rows, steps, left = [], [], []
    for index, name in enumerate(params["sources"]):
        report(index / len(params["sources"]), f"Classes of {name}")
        found, found_steps, missing = _source(target, data.domain(name), options, params["least"])
        rows += found
        steps += found_steps
        left += missing
    if not rows:
        raise BadInput(
            f"No class has {params['least']} items in the target and in a source.",
            "Lower least, or bring more items.",
        )
    table = pd.DataFrame(rows)
    return Result(
        KIND, params,
        {"headline": _headline(table), "n": len(target),
         "classes": sorted(set(table["label"])), "least": params["least"]},
        {"classes": table, "steps": pd.DataFrame(steps)},
        left_out=(*data.left_out, *left),
    )  # fmt: skip


def of_class(domain: Domain, label: str) -> Domain:
    """Return the items of one class, without their label: the name tells draws apart."""
    rows = np.flatnonzero(np.asarray(domain.labels) == label)
    return Domain(
        tuple(state[rows] for state in domain.layers), None, f"{domain.name}, {label}",
        domain.layer_names,
    )  # fmt: skip


def _source(
    target: Domain, source: Domain, options: dict[str, Any], least: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[LeftOut]]:
    from core.radar.score import radar_score

    rows, steps, left = [], [], []
    for label in np.unique(np.concatenate([target.labels, source.labels])):
        mine, theirs = of_class(target, label), of_class(source, label)
        n = min(len(mine), len(theirs))
        if n < least:
            what = f"{label} of {source.name}"
            left.append(LeftOut(what, f"{n} items, fewer than {least}"))
            continue
        out = radar_score(mine, theirs, **options)
        rows.append({
            "source": source.name, "label": str(label), "n_target": len(mine),
            "n_source": len(theirs), "score": out.score, "sd": out.sd, "null": out.null,
            "null_sd": out.null_sd, "excess": out.excess, "excess_sd": out.excess_sd,
            "sure": bool(out.excess > _SURE * out.excess_sd),
        })  # fmt: skip
        gap = out.per_layer - out.null_layer
        spread = np.sqrt(out.per_layer_sd**2 + out.null_layer_sd**2)
        steps += [
            {"source": source.name, "label": str(label), "layer": at, "name": name,
             "excess": gap[at], "sd": spread[at]}
            for at, name in enumerate(out.kept_layers)
        ]  # fmt: skip
    return rows, steps, left


def carriers(table: pd.DataFrame) -> pd.DataFrame:
    """Return for each source the class with the largest excess and whether it stands out.

    Returns
    -------
    DataFrame
        source, label, excess, times (the excess over the median of the other classes; nan
        where that is within its own spread of 0), stands_out (two standard deviations below it
        is still above every other class), mean; nearest first.
    """
    rows = []
    for source, mine in table.groupby("source"):
        top = mine.loc[mine["excess"].idxmax()]
        others = mine[mine["label"] != top["label"]]
        rest = others["excess"]
        usual = float(rest.median()) if len(rest) else float("nan")
        if not usual > float(others["excess_sd"].median()):
            usual = float("nan")  # a ratio to noise says nothing
        low = top["excess"] - _SURE * top["excess_sd"]
        rows.append({
            "source": source, "label": top["label"], "excess": top["excess"],
            "times": top["excess"] / usual,
            "stands_out": bool(len(rest) and low > rest.max()),
            "mean": float(mine["excess"].mean()),
        })  # fmt: skip
    return pd.DataFrame(rows).sort_values("mean", ignore_index=True)


def _headline(table: pd.DataFrame) -> str:
    found = carriers(table)
    clear = found[found["stands_out"]]
    if not len(clear):
        return "No single class carries the divergence: all classes move, within their intervals."
    parts = [
        f"{row['label']} for {row['source']}"
        + (f" ({row['times']:.1f} times the usual)" if np.isfinite(row["times"]) else "")
        for _, row in clear.iterrows()
    ]
    return f"The divergence is carried most by {', '.join(parts)}."
