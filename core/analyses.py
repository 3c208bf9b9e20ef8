"""The analyses by name: settle the parameters, look for a stored answer, else compute it.

The page, the command line and the Python API all come through here, so that the same
parameters have the same key and an answer computed in one place is there in the others.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from types import ModuleType
from typing import TYPE_CHECKING, Any

from core.errors import BadInput, NotFound, UserError
from core.results import Result

if TYPE_CHECKING:
    from core.workspace import Workspace

Progress = Callable[[float, str], None]

ANALYSES: dict[str, str] = {
    "transfer": "core.radar.analysis",
    "transfer-truth": "core.radar.truth",
    "transfer-robustness": "core.radar.robustness",
    "transfer-classes": "core.radar.classes",
    "transfer-study": "core.radar.study",
    "quality": "core.quality.analysis",
    "model-study": "core.quality.model_study",
    "contrast": "core.contrast.analysis",
    "alignment": "core.contrast.alignment",
    "contrast-study": "core.contrast.study",
    "stitching": "core.stitching.analysis",
    "stitching-study": "core.stitching.study",
    "explore": "core.compare.analysis",
    "similarity": "core.compare.similarity",
}

# Libraries whose version can move the last digits of a result.
_VERSIONED = ("numpy", "scipy", "scikit-learn", "torch", "faiss-cpu", "umap-learn")


def names() -> list[str]:
    """Return the names of the analyses."""
    return list(ANALYSES)


def module(name: str) -> ModuleType:
    """Return the module of one analysis.

    Raises
    ------
    NotFound
        There is no analysis of that name.
    """
    if name not in ANALYSES:
        raise NotFound(f"There is no analysis {name!r}.", f"Choose one of: {', '.join(ANALYSES)}.")
    return importlib.import_module(ANALYSES[name])


def defaults(name: str) -> dict[str, Any]:
    """Return the parameters of an analysis with their defaults."""
    return dict(module(name).DEFAULTS)


def resolve(name: str, workspace: Workspace, **params: Any) -> dict[str, Any]:
    """Return the full parameters: checked, defaults filled in.

    Raises
    ------
    BadInput
        A parameter is unknown, or its value cannot be used.
    NotFound
        A dataset, a model or features that are not in this workspace.
    """
    known = defaults(name)
    unknown = sorted(set(params) - set(known))
    if unknown:
        raise BadInput(
            f"{name} has no parameter {unknown[0]!r}.", f"It takes: {', '.join(sorted(known))}."
        )
    return dict(module(name).resolve(workspace, {**known, **params}))


def inputs(workspace: Workspace, params: dict[str, Any]) -> dict[str, str]:
    """Return the digests of the data a result rests on: the dataset and each model's features.

    A study names several data sets, ``datasets``: their digests are told apart by the name.
    """
    several = params.get("datasets")
    if isinstance(several, list | tuple):
        found: dict[str, str] = {}
        for name in several:
            one = inputs(workspace, {**params, "datasets": None, "dataset": name})
            found |= {f"{name}/{what}": key for what, key in one.items()}
        return found
    dataset = str(params.get("dataset") or "")
    if not dataset:
        return {}
    found = {"dataset": workspace.dataset(dataset).digest}
    # Oldest first: of several feature sets of one model the newest counts, as in features.get.
    keys = {
        entry["model"]: entry["key"]
        for entry in workspace.features.list()
        if entry["dataset_digest"] == found["dataset"]
        or (entry["dataset"] == dataset and not entry["dataset_digest"])
    }
    for value in params.values():
        for model in value if isinstance(value, list | tuple) else [value]:
            # A space, MODEL|DOMAIN, rests on the features of its model.
            name = model.partition("|")[0] if isinstance(model, str) else ""
            if name in keys:
                found[name] = keys[name]
    return found


def find(name: str, workspace: Workspace, **params: Any) -> Result | None:
    """Return the stored result of these parameters, or None."""
    full = resolve(name, workspace, **params)
    return workspace.results.find(name, full, inputs(workspace, full))


def current(name: str, workspace: Workspace) -> Result | None:
    """Return the stored result a page opens with: that of the defaults, else the newest."""
    try:
        found = find(name, workspace)
    except UserError:
        # No dataset, or no features of the default encoders: nothing to look up.
        found = None
    return found or workspace.results.latest(name)


def run(
    name: str,
    workspace: Workspace,
    *,
    progress: Progress | None = None,
    force: bool = False,
    **params: Any,
) -> Result:
    """Return the result of an analysis: the stored one if there is one, else computed and stored.

    Parameters
    ----------
    name : str
        "transfer", "quality", "contrast", "stitching" or "explore".
    workspace : Workspace
        Where datasets and features are read and the result is kept.
    progress : callable, optional
        Called with a fraction in [0, 1] and a message; it may raise ``Cancelled``.
    force : bool
        Compute again even if a result is stored.
    **params
        See ``defaults(name)``.

    Raises
    ------
    BadInput, NotFound
        As ``resolve``.
    """
    full = resolve(name, workspace, **params)
    sources = inputs(workspace, full)
    if not force:
        stored = workspace.results.find(name, full, sources)
        if stored is not None:
            return stored
    start = time.perf_counter()
    result: Result = module(name).compute(workspace, full, progress=progress)
    result = replace(
        result,
        params=full,
        seconds=round(time.perf_counter() - start, 3),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
    )
    return workspace.results.put(result, sources)


def versions() -> dict[str, str]:
    """Return the versions of the libraries the numbers come from, and our own."""
    found = {}
    for package in ("theodolite", *_VERSIONED):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "from source"
    return found
