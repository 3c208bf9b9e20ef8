"""The analysis "transfer-study": every encoder and target, every blend and measure.

Does RADAR (arXiv 2605.23028) foretell which sources help? For every target domain all blends
of the sources are trained and scored; each measure's order is correlated with the measured
gain, and averaged over targets. Sources never hold a concept of the target's test items.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pandas as pd

from core.device import single_threaded
from core.errors import BadInput, NotFound
from core.radar.study_pieces import CONFIGURATIONS, piece
from core.results import Result
from core.types import LeftOut

if TYPE_CHECKING:
    from core.workspace import Workspace

Progress = Callable[[float, str], None]

KIND = "transfer-study"
DEFAULTS: dict[str, Any] = {
    "dataset": "",
    "datasets": [],
    "models": [],
    # Sliced transport takes as long as all the others together: by name only.
    "configurations": [name for name in CONFIGURATIONS if name != "sliced transport"],
    "most_sources": 5,  # of more domains, the next five by name after the target, in a circle
    "n_pairs": 1_000,
    "repeats": 2,
    "gain_per_class": 6,
    "gain_seeds": 3,
    "gain_c": 0.05,
    "seed": 0,
}
LEAST_DOMAINS = 4  # three sources make seven blends: fewer cannot rank


def resolve(workspace: Workspace, params: dict[str, Any]) -> dict[str, Any]:
    """Check the parameters; empty ``datasets`` and ``models`` mean all there are.

    Raises
    ------
    BadInput
        A number out of range, or an unknown configuration.
    NotFound
        No data set here has four domains, labels, a split and features.
    """
    full = {**DEFAULTS, **params}
    for name in ("n_pairs", "repeats", "gain_per_class", "gain_seeds"):
        if not isinstance(full[name], int) or full[name] < 1:
            raise BadInput(f"{name}={full[name]!r}, expected a whole number of at least 1.")
    if not 3 <= int(full["most_sources"]) <= 6:
        raise BadInput(f"most_sources={full['most_sources']!r} must lie between 3 and 6.")
    unknown = sorted(set(full["configurations"]) - set(CONFIGURATIONS))
    if unknown:
        raise BadInput(
            f"configurations holds {unknown[0]!r}.", f"Known: {'; '.join(CONFIGURATIONS)}."
        )
    asked = [full["dataset"]] if full["dataset"] else list(full["datasets"])
    named = asked or workspace.dataset_names()
    sets = [workspace.dataset(n).name for n in named]
    sets = [name for name in sets if not _unfit(workspace, name)]
    out = {**full, "dataset": "", "datasets": sets}
    out["models"] = list(full["models"]) or sorted(
        {entry["model"] for entry in workspace.features.list() if entry["dataset"] in sets}
    )
    if not cases(workspace, out):
        raise NotFound(
            "No data set here has four domains, labels, a split and features.",
            "Recompute the demo's layers: `theodolite extract emoji --model demo/vit-s14 "
            "--layers all`.",
        )
    return out


def _unfit(workspace: Workspace, name: str) -> str:
    """Return why a data set cannot take part, or nothing."""
    items = workspace.dataset(name).items
    n_domains = len(set(items["domain"]) - {""})
    if n_domains < LEAST_DOMAINS:
        return (
            f"{n_domains} domain{'s' * (n_domains != 1)}: fewer than {LEAST_DOMAINS} leave no "
            "blends to rank"
        )
    if (items["label"] == "").any():
        return "items without a label: no gain can be measured"
    if not {"train", "test"} <= set(items["split"]):
        return "no train and test split: no gain can be measured"
    return ""


def _reads(workspace: Workspace, model: str, dataset: str) -> bool:
    """Whether an encoder reads what a data set holds; an imported one is taken at its word."""
    from core.encoders.registry import describe

    try:
        about = describe(model, workspace)
    except NotFound:
        return True
    return about.modality == workspace.dataset(dataset).kind


def cases(workspace: Workspace, params: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parameters of every piece: data set, encoder, target and its sources."""
    names = (
        "configurations", "n_pairs", "repeats", "gain_per_class", "gain_seeds", "gain_c", "seed",
    )  # fmt: skip
    shared = {name: params[name] for name in names}
    there = {(entry["dataset"], entry["model"]) for entry in workspace.features.list()}
    found = []
    for dataset in params["datasets"]:
        domains = sorted(set(workspace.dataset(dataset).items["domain"]) - {""})
        for model in params["models"]:
            # A caption is the same in every style: a text encoder would compare equal domains.
            if (dataset, model) not in there or not _reads(workspace, model, dataset):
                continue
            for at, target in enumerate(domains):
                others = [*domains[at + 1 :], *domains[:at]][: params["most_sources"]]
                case = {"dataset": dataset, "model": model, "target": target}
                found.append({**case, "sources": sorted(others), **shared})
    return found


def compute(
    workspace: Workspace, params: dict[str, Any], progress: Progress | None = None
) -> Result:
    """Compute or collect every piece; what is stored is not done again.

    Returns
    -------
    Result
        Tables ``means`` (data set, encoder, measure: mean rho over targets, and its lowest and
        highest value with one target left out), ``measures`` (the same for each target) and
        ``targets``.
    """
    report = progress or (lambda _fraction, _message: None)
    todo = cases(workspace, params)
    done = []
    with single_threaded():
        for number, case in enumerate(todo):
            report(number / len(todo), f"{case['dataset']}, {case['model']}: {case['target']}")
            done.append(piece(workspace, case))
    left_out = [
        LeftOut(name, reason, len(workspace.dataset(name).items))
        for name in workspace.dataset_names()
        if (reason := _unfit(workspace, name))
    ]
    return collect(params, todo, done, left_out)


def collect(
    params: dict[str, Any], todo: list[dict[str, Any]], done: list[Result], left_out: list[LeftOut]
) -> Result:
    """Lay the pieces together and put them into words."""
    from core.radar.study_reading import headline, means, reading

    heads = [{k: c[k] for k in ("dataset", "model", "target")} for c in todo]
    measures = pd.concat(
        [r.tables["measures"].assign(**h) for h, r in zip(heads, done, strict=True)],
        ignore_index=True,
    )
    targets = pd.DataFrame(
        [
            {**h, **{k: v for k, v in r.summary.items() if k != "headline"}}
            for h, r in zip(heads, done, strict=True)
        ]
    )
    table = means(measures)
    alone = targets[~targets["radar"]].drop_duplicates(["dataset", "model"])
    left_out += [
        LeftOut(f"RADAR of {row.model} on {row.dataset}", "no two layers of equal width are stored")
        for row in alone.itertuples()
    ]
    return Result(
        KIND,
        params,
        {
            "headline": headline(table),
            "reading": reading(table, targets),
            "n": int(targets["n"].sum()),
            "n_pieces": len(done),
            "n_blends": int(measures.groupby(["dataset", "model", "target"])["n"].max().sum()),
        },
        {"means": table, "measures": measures, "targets": targets},
        left_out=tuple(left_out),
    )
