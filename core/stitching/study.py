"""The analysis "stitching-study": whether the published ordering holds on real encoders.

Every encoder of each data set, on pictures and on names in several languages: random, k-means
and learned anchors under cosine and whitened inner product, and translators per pair; over
seeds, with the sweeps that explain the result (shrinkage, number of anchors, support size).
arXiv 2605.30596 reports that PARAM with WIP lies far above random anchors with cosine between
CNN and transformer, and random anchors with WIP often below those with cosine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.device import single_threaded
from core.errors import BadInput, NotFound
from core.results import Result
from core.stitching.analysis import default_models, ordered
from core.stitching.methods import METHODS, method_of
from core.types import LeftOut

if TYPE_CHECKING:
    from core.stitching.study_pieces import Pieces
    from core.workspace import Workspace

Progress = Callable[[float, str], None]

KIND = "stitching-study"
DEFAULTS: dict[str, Any] = {
    "dataset": "",
    "datasets": [],
    "models": [],
    "label": "label",
    "domains": ["en", "de", "ru", "zh"],
    "methods": [
        "cosine-random", "wip-random", "wip-mixture", "cosine-param_single", "wip-param_single",
        "cosine-param", "wip-param", "ortho", "ridge", "cca", "irp",
    ],
    "n_anchors": 100,
    "n_support": 800,
    "n_parallel": 800,
    "steps": 300,
    "head": "logistic",
    "seeds": 5,
    "seed": 0,
    "sweep_methods": ["cosine-random", "wip-random", "wip-param"],
    "sweep_seeds": 3,
    "sweep_steps": 100,
    "anchor_counts": [10, 25, 50, 100, 200, 300],
    "support_sizes": [50, 100, 200, 400, 800],
    "shrinkages": ["0.001", "lw", "0.05", "0.2", "0.5", "0.8", "1"],
}  # fmt: skip
SETS = ("emoji", "clipart", "names")
SWEPT = ("emoji",)  # the sweeps explain the result; one data set keeps the study in minutes
NEAR_COPIES = ("demo/minilm-l6-int8",)  # across languages a rounded copy adds only rows


@dataclass(frozen=True)
class Case:
    """One comparison of the study: a data set and the spaces stitched on it."""

    name: str
    title: str
    dataset: str
    spaces: tuple[str, ...]
    sweep: tuple[str, ...] = ()


def resolve(workspace: Workspace, params: dict[str, Any]) -> dict[str, Any]:
    """Check the parameters; empty ``datasets`` and ``models`` mean all there are.

    Raises
    ------
    BadInput
        An unknown method, an empty sweep, a number out of range.
    NotFound
        A data set that is not here, or none with two encoders.
    """
    full = {**DEFAULTS, **params}
    asked = [full["dataset"]] if full["dataset"] else list(full["datasets"])
    there = workspace.dataset_names()
    sets = [workspace.dataset(n).name for n in asked] or [n for n in SETS if n in there]
    every = [m for name in sets for m in encoders(workspace, name)]
    models = ordered(full["models"]) or ordered(every)
    for name in (*full["methods"], *full["sweep_methods"]):
        method_of(name)
    if not full["methods"]:
        raise BadInput("methods is empty.", "Choose at least one, for instance 'wip-param'.")
    for name in ("n_anchors", "n_support", "n_parallel", "steps", "seeds", "sweep_seeds",
                 "sweep_steps"):  # fmt: skip
        if not isinstance(full[name], int) or full[name] < 1:
            raise BadInput(
                f"{name} must be a whole number of at least 1, got {full[name]!r}.",
                f"The default is {DEFAULTS[name]}.",
            )
    out = {**full, "dataset": "", "datasets": sets, "models": models}
    if not cases(workspace, out):
        raise NotFound(
            "No data set here has features of two encoders, so there is nothing to stitch.",
            "Extract features: `theodolite extract emoji demo/vit-s14`.",
        )
    return out


def encoders(workspace: Workspace, dataset: str) -> list[str]:
    """Return every encoder of a data set that reads its kind, towers of dual encoders included."""
    from core.encoders.registry import describe

    kind = workspace.dataset(dataset).kind
    plain = default_models(workspace, dataset)
    found = {e["model"] for e in workspace.features.list() if e["dataset"] == dataset}
    towers = [m for m in found - set(plain) if m.startswith("demo/")]
    return ordered([*plain, *(m for m in towers if describe(m, workspace).modality == kind)])


def cases(workspace: Workspace, params: dict[str, Any]) -> list[Case]:
    """Return the comparisons that can be made: one a data set, and one across languages."""
    found = []
    for name in params["datasets"]:
        data = workspace.dataset(name)
        spaces = [m for m in encoders(workspace, name) if m in params["models"]]
        if len(spaces) < 2:
            continue
        plain = tuple(m for m in default_models(workspace, name) if m in spaces)
        swept = plain if name in SWEPT and params["sweep_methods"] else ()
        found.append(Case(name, data.title or name, name, tuple(spaces), swept))
        domains = [d for d in params["domains"] if (data.items["domain"] == d).any()]
        if data.kind == "text" and len(domains) > 1:
            across = tuple(f"{m}|{d}" for m in spaces if m not in NEAR_COPIES for d in domains)
            title = f"{data.title or name}, across languages"
            found.append(Case(f"{name}-languages", title, name, across))
    return found


def compute(
    workspace: Workspace, params: dict[str, Any], progress: Progress | None = None
) -> Result:
    """Compute or collect every piece and return the study; what is stored is not done again."""
    with single_threaded():
        return _compute(workspace, params, progress or (lambda _fraction, _message: None))


def _compute(workspace: Workspace, params: dict[str, Any], report: Progress) -> Result:
    from core.stitching.study_tables import collect

    todo, left_out = _possible(workspace, params)
    main: dict[str, dict[str, Result]] = {}
    curves: list[tuple[dict[str, Any], Result]] = []
    steps = _Steps(report, len(todo) * len(params["methods"]) + _sweep_count(todo, params))
    for case in todo:
        pieces = _pieces(workspace, case.dataset, list(case.spaces), params)
        main[case.name] = {
            method: pieces.get(method, _options(params), steps.next(f"{case.title}: {method}"))
            for method in params["methods"]
        }
    for case in todo:
        if case.sweep:
            pieces = _pieces(workspace, case.dataset, list(case.sweep), params)
            curves += _sweep(pieces, case, params, steps)
    return collect(workspace, params, todo, main, curves, left_out)


def _possible(
    workspace: Workspace, params: dict[str, Any]
) -> tuple[list[Case], tuple[LeftOut, ...]]:
    """Return the cases whose rows can be stitched; one that cannot must not stop the others.

    Raises
    ------
    BadInput
        None can.
    """
    from core.stitching.rows import read_rows

    kept, left = [], []
    for case in cases(workspace, params):
        try:
            read_rows(workspace, case.dataset, list(case.spaces), params["label"], params["seed"])
        except BadInput as err:
            left.append(LeftOut(case.title, err.message))
        else:
            kept.append(case)
    if not kept:
        raise BadInput(
            "None of the data sets can be stitched: "
            + " ".join(line.reason for line in left), "Check their split and labels.",
        )  # fmt: skip
    return kept, tuple(left)


def _pieces(
    workspace: Workspace, dataset: str, spaces: list[str], params: dict[str, Any]
) -> Pieces:
    from core.stitching.study_pieces import Pieces

    return Pieces(workspace, dataset, spaces, params["label"], params["head"], params["seed"])


def _options(params: dict[str, Any], **other: Any) -> dict[str, Any]:
    names = ("n_anchors", "n_support", "n_parallel", "steps", "seeds")
    return {**{name: params[name] for name in names}, "shrink": "auto", **other}


def _sweep_count(todo: list[Case], params: dict[str, Any]) -> int:
    axes = len(params["anchor_counts"]) + len(params["support_sizes"]) + len(params["shrinkages"])
    swept = len([case for case in todo if case.sweep])
    return swept * (1 + axes * len(params["sweep_methods"]))


def _sweep(
    pieces: Pieces, case: Case, params: dict[str, Any], steps: _Steps
) -> list[tuple[dict[str, Any], Result]]:
    """Return the curves of one data set: over shrinkage, number of anchors, support size.

    Anchors and support are swept at the shrinkage that the automatic choice takes for that
    method, so that only one thing changes along a curve.
    """
    base = _options(params, seeds=params["sweep_seeds"], steps=params["sweep_steps"])
    found = []
    for method in params["sweep_methods"]:
        told = steps.next(f"{case.title}: {method}, shrinkage")
        kind = METHODS[method].shrinkage_kind
        chosen: Any = "auto"
        if kind:
            taken = pieces.get(method, base, told).summary["shrinkage"]
            chosen = taken if taken == "lw" else float(taken)
        axes: list[tuple[str, str, list[Any]]] = [
            ("anchors", "n_anchors", params["anchor_counts"]),
            ("support", "n_support", params["support_sizes"]),
        ]
        if kind:
            values = [v if v == "lw" else float(v) for v in params["shrinkages"]]
            axes.append(("shrinkage", "shrink", values))
        for axis, name, values in axes:
            for value in values:
                options = {**base, "shrink": chosen, name: value}
                told = steps.next(f"{case.title}: {method}, {axis} {value}")
                head = {"case": case.name, "axis": axis, "x": str(value), "method": method}
                found.append((head, pieces.get(method, options, told)))
    return found


class _Steps:
    """The progress of many pieces as one."""

    def __init__(self, report: Progress, total: int) -> None:
        self._report, self._total, self._done = report, max(total, 1), 0

    def next(self, words: str) -> Progress:
        """Begin the next piece and return its own progress callback."""
        at = self._done
        self._done += 1
        self._report(min(at / self._total, 0.99), words)

        def told(fraction: float, message: str) -> None:
            self._report(min((at + fraction) / self._total, 0.99), f"{words}: {message}")

        return told
