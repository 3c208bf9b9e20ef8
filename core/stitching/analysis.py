"""The analysis "stitching": swap one encoder for another under the same head.

Every ordered pair of encoders, several methods on the same parallel rows, several seeds
(arXiv 2209.15430, arXiv 2605.30596; protocol and defaults in our stitching specification).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from core.device import single_threaded
from core.errors import BadInput, NotFound
from core.results import Result
from core.stitching.methods import method_of
from core.stitching.spaces import across_domains, split_space

if TYPE_CHECKING:
    import pandas as pd

    from core.stitching.matrix import StitchResult
    from core.stitching.rows import Rows
    from core.stitching.setting import Setting
    from core.workspace import Workspace

Progress = Callable[[float, str], None]

KIND = "stitching"
DEFAULTS: dict[str, Any] = {
    "dataset": "emoji",
    "models": [],
    "label": "label",
    "methods": ["cosine-random", "wip-random", "cosine-param", "wip-param", "ridge"],
    "n_anchors": 100,
    "n_support": 800,
    "n_parallel": 800,
    "shrink": "auto",
    "head": "logistic",
    "steps": 300,
    "seeds": 3,
    "seed": 0,
}
_ORDER = ("demo/vit-s14", "demo/efficientnet-lite0", "demo/mobilenetv2", "demo/squeezenet1.1")
CONTROL_STEPS = 100  # the broken-pairs control needs no finely trained anchors
_RANGES = {
    "n_anchors": (2, 5000), "n_support": (2, 50_000), "n_parallel": (20, 10_000_000),
    "steps": (1, 20_000), "seeds": (1, 50), "seed": (0, 2**31 - 1),
}  # fmt: skip


def resolve(workspace: Workspace, params: dict[str, Any]) -> dict[str, Any]:
    """Check the parameters; an empty ``models`` means every encoder that reads this data.

    Raises
    ------
    BadInput
        A method, a number or a column that cannot be used, or fewer than two models.
    NotFound
        No such dataset, or no features of a model.
    """
    full = {**DEFAULTS, **params}
    dataset = workspace.dataset(str(full["dataset"]))
    models = ordered(full["models"]) or default_models(workspace, dataset.name)
    if len(models) < 2:
        raise BadInput(
            f"Stitching compares encoders and {dataset.name!r} has features of {len(models)}.",
            f"Extract another: `theodolite extract {dataset.name} MODEL`.",
        )
    across_domains(models)
    for model in models:
        workspace.features.get(dataset.name, split_space(model)[0])
    methods = list(dict.fromkeys(full["methods"]))
    if not methods:
        raise BadInput("methods is empty.", "Choose at least one, for instance 'wip-param'.")
    for name in methods:
        method_of(name)
    for name, (low, high) in _RANGES.items():
        value = full[name]
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise BadInput(
                f"{name} must be a whole number from {low:,} to {high:,}, got {value!r}.",
                f"The default is {DEFAULTS[name]}.",
            )
    return {
        **full, "models": models, "methods": methods, "shrink": _shrink(full["shrink"]),
    }  # fmt: skip


def _shrink(value: Any) -> str | float:
    if value in ("auto", "lw"):
        return str(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise BadInput(
            f"shrink must be 'auto', 'lw' or a number in [0, 1], got {value!r}.", "Use 'auto'."
        )
    return number


def ordered(models: Sequence[str]) -> list[str]:
    """Return each model once, in one fixed order: the same choice has the same key."""
    rank = {name: at for at, name in enumerate(_ORDER)}
    return sorted(set(models), key=lambda m: (rank.get(split_space(m)[0], len(rank)), m))


def default_models(workspace: Workspace, dataset: str) -> list[str]:
    """Return the encoders that read this kind of data; towers of dual encoders are not added."""
    from core.encoders.registry import describe

    kind = workspace.dataset(dataset).kind
    found = []
    for model in {e["model"] for e in workspace.features.list() if e["dataset"] == dataset}:
        try:
            info = describe(model, workspace)
        except NotFound:  # features from elsewhere, of a model nobody described
            found.append(model)
            continue
        if info.modality == kind and not info.pair:
            found.append(model)
    return ordered(found)


def titles(workspace: Workspace, models: Sequence[str]) -> list[str]:
    """Return the names people read."""
    from core.encoders.registry import describe

    found = []
    for space in models:
        model, domain = split_space(space)
        try:
            # "(ImageNet)" and the like do not fit an axis.
            name = describe(model, workspace).title.split(" (")[0] or model
        except NotFound:
            name = model
        found.append(f"{name}, {domain}" if domain else name)
    return found


def compute(
    workspace: Workspace, params: dict[str, Any], progress: Progress | None = None
) -> Result:
    """Return the matrices of all methods with everything the page shows beside them."""
    # Three hundred steps of training carry a rounding of the sums into the anchors: on one
    # thread the same seed gives the same numbers however many cores there are.
    with single_threaded():
        return _compute(workspace, params, progress)


def _compute(workspace: Workspace, params: dict[str, Any], progress: Progress | None) -> Result:
    from core.stitching.matrix import run_method
    from core.stitching.rows import read_rows
    from core.stitching.setting import StitchOptions, prepare

    report = progress or (lambda _fraction, _message: None)
    report(0.0, "Reading features")
    models, seed = params["models"], params["seed"]
    rows = read_rows(workspace, params["dataset"], models, params["label"], seed)
    options = StitchOptions(
        n_anchors=params["n_anchors"], n_support=params["n_support"],
        n_parallel=params["n_parallel"], shrinkage=params["shrink"],
        seeds=tuple(range(seed, seed + params["seeds"])), head=params["head"],
        steps=params["steps"],
    )  # fmt: skip
    setting = prepare(rows.train, rows.test, rows.y_train, rows.y_test, options)
    results, shares = [], _shares(params["methods"])
    for name, (start, end) in zip(params["methods"], shares, strict=True):
        results.append(run_method(setting, name, _between(report, start, end)))
    report(0.92, "Control with shuffled pairs")
    preferred = _preferred(results)
    control = run_method(setting.control(seed, CONTROL_STEPS), preferred.method)
    report(0.96, "Writing tables")
    return _result(workspace, params, rows, setting, results, preferred, control)


def _shares(methods: Sequence[str]) -> list[tuple[float, float]]:
    """Return where each method starts and ends on the progress bar: training takes longest."""
    weights = [8.0 if method_of(m).learned else 2.0 for m in methods]
    at, spans = 0.02, []
    for weight in weights:
        spans.append((at, at + 0.9 * weight / sum(weights)))
        at = spans[-1][1]
    return spans


def _between(report: Progress, start: float, end: float) -> Progress:
    return lambda fraction, message: report(start + (end - start) * fraction, message)


def _preferred(results: Sequence[StitchResult]) -> StitchResult:
    """Return the best relative method; a translator only when there is nothing else."""
    relative = [r for r in results if not method_of(r.method).translator]
    return max(relative or results, key=lambda r: float(r.off_diagonal.mean()))


def _result(
    workspace: Workspace,
    params: dict[str, Any],
    rows: Rows,
    setting: Setting,
    results: list[StitchResult],
    preferred: StitchResult,
    control: StitchResult,
) -> Result:
    import numpy as np

    from core.stitching import tables
    from core.stitching.advice import headline, retention_intervals
    from core.stitching.comparison import compare_methods

    models = params["models"]
    names = titles(workspace, models)
    advice = retention_intervals(preferred, rows.y_test, rows.groups_test, seed=params["seed"])
    words = headline(advice, names)
    for column in ("i", "j"):
        advice[column] = np.take(models, advice[column])
    failures, confusion = tables.failure_tables(results, models, rows)
    summary = tables.summary_table(results, models)
    _, counts = np.unique(rows.y_test, return_counts=True)
    found: dict[str, pd.DataFrame] = {
        "summary": summary,
        "cells": tables.cell_table(results, models),
        "matrix": tables.matrix_table(results, models),
        "native": tables.native_table(setting, preferred, models),
        "advice": advice,
        "similarity": tables.similarity_table(setting, models),
        "failures": failures,
        "confusion": confusion,
        "comparison": compare_methods({r.method: r.accuracy for r in results}, seed=params["seed"]),
        **_learned_tables(params, rows, setting),
    }
    best = summary.set_index("method").loc[preferred.method]
    return Result(
        KIND,
        params,
        {
            "headline": words,
            "n": len(rows.y_test),
            "n_train": len(rows.y_train),
            "n_classes": len(setting.classes),
            "n_parallel": setting.n_parallel,
            "n_support": len(setting.draw(params["seed"]).support),
            "preferred": preferred.method,
            "preferred_title": method_of(preferred.method).title,
            "titles": dict(zip(models, names, strict=True)),
            "accuracy": float(best["accuracy"]), "accuracy_sd": float(best["accuracy_sd"]),
            "retention": float(best["retention"]), "worst": float(best["worst"]),
            "majority": float(counts.max() / counts.sum()),
            "native_mean": float(preferred.native.mean()),
            "control": float(control.off_diagonal.mean()),
            "swap": int((advice["verdict"] == "swap").sum()), "pairs": len(advice),
            "shrinkage_reason": _reason(setting, params),
            "split": rows.split_note,
        },
        found,
        _mixings(params, setting),
        left_out=rows.left_out,
    )  # fmt: skip


def _mixings(params: dict[str, Any], setting: Setting) -> dict[str, Any]:
    """Return the learned mixing weights of the first seed, one array a kind of anchors.

    They are what a kit takes along; float32 is exact enough for weights that sum to one.
    """
    import numpy as np

    learned = {m.anchors: m for m in map(method_of, params["methods"]) if m.learned}
    return {
        f"mixing_{kind}": setting.param(method, params["seed"]).mixing.astype(np.float32)
        for kind, method in learned.items()
    }


def _kinds(params: dict[str, Any]) -> list[str]:
    """Return the kinds of anchors a shrinkage is used for, learned ones first."""
    kinds = [method_of(m).shrinkage_kind for m in params["methods"]]
    return sorted({k for k in kinds if k}, key=lambda k: (not k.startswith("param"), k))


def _reason(setting: Setting, params: dict[str, Any]) -> str:
    kinds = _kinds(params)
    choice = setting.choice(kinds[0]) if kinds else None
    if choice is not None:
        return f"Shrinkage {choice.shrinkage}, chosen without labels. {choice.reason}"
    if not kinds:
        return "None of the methods whitens."
    return f"Shrinkage {params['shrink']}, as asked."


def _learned_tables(
    params: dict[str, Any], rows: Rows, setting: Setting
) -> dict[str, pd.DataFrame]:
    """Return anchors, losses and health, where the methods have them."""
    from core.stitching import tables

    kinds = _kinds(params)
    if not kinds:
        return {}
    out = {
        "health": tables.health_table(setting, kinds[0], params["models"]),
        "shrinkage": tables.shrinkage_table(setting, kinds),
    }
    if kinds[0].startswith("param"):
        method = next(method_of(m) for m in params["methods"] if method_of(m).anchors == kinds[0])
        fits = [setting.param(method, s) for s in setting.options.seeds]
        given = (fits[0], setting, params["seed"], kinds[0], params["models"], rows)
        weights, about = tables.anchor_tables(*given)
        # What an anchor is worth is asked under WIP, the similarity it was learned for.
        worth = tables.drop_table(setting, method_of(f"wip-{kinds[0]}"), params["seed"])
        out |= {
            "anchors": weights, "anchor_facts": about.join(worth),
            "cover": tables.cover_table(*given), "losses": tables.loss_table(fits),
        }  # fmt: skip
    return out
