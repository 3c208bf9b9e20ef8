"""Explore as a stored analysis: one map of one representation, or what moved between two.

``method`` "pca" or "umap" gives a map; "moved" compares two representations of the same
items by the neighbours each item keeps, in the original spaces (mutual nearest neighbours,
arXiv 2405.07987).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from core.compare import maps
from core.errors import BadInput, NotFound
from core.results import Result
from core.types import Features, LeftOut

if TYPE_CHECKING:
    from core.workspace import Workspace

Progress = Callable[[float, str], None]

KIND = "explore"
METHODS = ("pca", "umap", "moved")
DEFAULTS: dict[str, Any] = {
    "dataset": "",
    "model": "",
    "layer": "",
    "method": "pca",
    "metric": "cosine",
    "n_neighbors": 15,
    "min_dist": 0.1,
    "reference": "",
    "reference_layer": "",
    "k": 10,
    "max_points": 50_000,
    "seed": 0,
}

# Only what a method reads is part of its key: a PCA has no seed and no neighbours.
_READ_BY = {
    "pca": ("max_points", "k", "metric"),
    "umap": ("metric", "n_neighbors", "min_dist", "max_points", "seed", "k"),
    "moved": ("metric", "reference", "reference_layer", "k", "max_points", "seed"),
}


def resolve(workspace: Workspace, params: dict[str, Any]) -> dict[str, Any]:
    """Fill in the dataset, model and layers; check the rest.

    Raises
    ------
    BadInput
        A parameter out of range.
    NotFound
        No such dataset, or no features of it.
    """
    full = {**DEFAULTS, **params}
    method = full["method"]
    if method not in METHODS:
        raise BadInput(f"method={method!r} is not known.", f"Use one of: {', '.join(METHODS)}.")
    _check_numbers(full)
    full["dataset"] = full["dataset"] or _first_dataset(workspace)
    workspace.dataset(full["dataset"])
    full["model"] = full["model"] or _first_model(workspace, full["dataset"])
    full["layer"] = _layer(workspace, full["dataset"], full["model"], full["layer"])
    if method == "moved":
        if not full["reference"]:
            raise BadInput(
                "method='moved' compares two representations and reference is empty.",
                "Name the second model.",
            )
        full["reference_layer"] = _layer(
            workspace, full["dataset"], full["reference"], full["reference_layer"]
        )
    unread = set(DEFAULTS) - {"dataset", "model", "layer", "method", *_READ_BY[method]}
    return {**full, **{name: DEFAULTS[name] for name in unread}}


def _check_numbers(full: dict[str, Any]) -> None:
    if full["metric"] not in ("cosine", "euclidean"):
        raise BadInput(f"metric={full['metric']!r} is not known.", "Use 'cosine' or 'euclidean'.")
    for name, least in (("n_neighbors", 2), ("k", 1), ("max_points", 10), ("seed", 0)):
        value = full[name]
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise BadInput(
                f"{name} must be a whole number of at least {least}, got {value!r}.",
                f"The default is {DEFAULTS[name]}.",
            )
    if not 0.0 <= float(full["min_dist"]) < 1.0:
        raise BadInput(f"min_dist must be in [0, 1), got {full['min_dist']!r}.", "Try 0.1.")


def _first_dataset(workspace: Workspace) -> str:
    names = workspace.dataset_names()
    if not names:
        raise NotFound("This workspace holds no dataset.", "Import one, or prepare the demo.")
    return "emoji" if "emoji" in names else names[0]


def _first_model(workspace: Workspace, dataset: str) -> str:
    found = sorted(e["model"] for e in workspace.features.list() if e["dataset"] == dataset)
    if not found:
        raise NotFound(
            f"There are no features of {dataset!r}.", f"Run: theodolite extract {dataset} MODEL."
        )
    return "demo/vit-s14" if "demo/vit-s14" in found else found[0]


def _layer(workspace: Workspace, dataset: str, model: str, layer: str) -> str:
    features = workspace.features.get(dataset, model)
    name = layer or features.default_layer
    features.layer(name)
    return name


def compute(
    workspace: Workspace, params: dict[str, Any], progress: Progress | None = None
) -> Result:
    """Make the map, or measure what moved; see :data:`DEFAULTS` for the parameters."""
    say = progress or (lambda _fraction, _message: None)
    features = workspace.features.get(params["dataset"], params["model"])
    if params["method"] == "moved":
        return _moved(workspace, features, params, say)
    x, ids, left_out = _rows(features, params["layer"], params)
    say(0.02, f"Reading {len(ids):,} rows")
    if params["method"] == "pca":
        found = maps.pca_map(x)
        xy, explained = found.xy, [float(v) for v in found.explained]
    else:
        xy, explained = _umap(workspace, x, params, say), []
    kept = maps.neighbours_kept(x, xy, k=params["k"], metric=params["metric"])
    say(1.0, "Done")
    summary = {
        "headline": _map_words(params, explained, kept),
        "n": len(ids),
        "explained": explained,
        "kept": kept,
        "chance": min(params["k"], len(ids) - 1) / max(len(ids) - 1, 1),
        "dim": int(x.shape[1]),
    }
    table = pd.DataFrame({"id": ids, "x": xy[:, 0], "y": xy[:, 1]})
    return Result(KIND, params, summary, {"map": table}, left_out=left_out)


def _umap(workspace: Workspace, x: np.ndarray, params: dict[str, Any], say: Progress) -> np.ndarray:
    return maps.umap_map(
        x,
        metric=params["metric"],
        n_neighbors=params["n_neighbors"],
        min_dist=params["min_dist"],
        seed=params["seed"],
        progress=say,
        root=workspace.root,
    )


def _rows(
    features: Features, layer: str, params: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray, tuple[LeftOut, ...]]:
    # Finite rows, at most max_points of them: a browser cannot select among more.
    x = np.asarray(features.layer(layer))
    left_out: list[LeftOut] = []
    keep = np.flatnonzero(np.isfinite(x).all(axis=1))
    if len(keep) < len(x):
        lost = len(x) - len(keep)
        left_out.append(LeftOut("rows", "features that are not finite numbers", lost))
    if len(keep) > params["max_points"]:
        drawn = np.random.default_rng(params["seed"]).choice(
            len(keep), params["max_points"], replace=False
        )
        rest = len(keep) - params["max_points"]
        left_out.append(LeftOut("rows", "not drawn: a map shows a random sample", rest))
        keep = keep[np.sort(drawn)]
    return x[keep], features.ids[keep], tuple(left_out)


def _map_words(params: dict[str, Any], explained: list[float], kept: float) -> str:
    near = f"{100 * kept:.0f} % of each item's {params['k']} nearest neighbours are still near"
    if explained:
        return f"Two directions hold {100 * sum(explained):.0f} % of the variance; {near} here."
    return f"{near[0].upper()}{near[1:]} on this map; distances between far groups mean little."


def _moved(
    workspace: Workspace, features: Features, params: dict[str, Any], say: Progress
) -> Result:
    from core.compare.neighbours import neighbour_ids

    other = workspace.features.get(params["dataset"], params["reference"])
    a, ids, left_out = _rows(features, params["layer"], params)
    shared = np.isin(ids, other.ids)
    a, ids = a[shared], ids[shared]
    b = np.asarray(other.layer(params["reference_layer"]))[other.rows_of(ids)]
    fine = np.isfinite(b).all(axis=1)
    a, b, ids = a[fine].astype(np.float64), b[fine].astype(np.float64), ids[fine]
    if len(ids) <= params["k"]:
        raise BadInput(
            f"k={params['k']} neighbours need more than the {len(ids)} items both models have.",
            "Lower k.",
        )
    say(0.2, "Neighbours under A")
    near_a = neighbour_ids(a, k=params["k"], metric=params["metric"])
    say(0.6, "Neighbours under B")
    near_b = neighbour_ids(b, k=params["k"], metric=params["metric"])
    overlap = (near_a[:, :, None] == near_b[:, None, :]).sum(axis=(1, 2)) / params["k"]
    say(1.0, "Done")
    chance = params["k"] / (len(ids) - 1)
    none = int((overlap == 0).sum())
    summary = {
        "headline": (
            f"A and B share {100 * overlap.mean():.0f} % of each item's {params['k']} nearest "
            f"neighbours (chance {100 * chance:.1f} %); {none:,} of {len(ids):,} items share none."
        ),
        "n": len(ids),
        "overlap": float(overlap.mean()),
        "overlap_sd": float(overlap.std(ddof=1)),
        "chance": chance,
        "none": none,
    }
    table = pd.DataFrame({"id": ids, "overlap": overlap}).sort_values(
        ["overlap", "id"], ignore_index=True
    )
    return Result(KIND, params, summary, {"moved": table}, left_out=left_out)
