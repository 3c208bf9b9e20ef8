"""Explore as a stored analysis: one map of one representation, or what changed between two.

``method`` "pca", "umap" or "tsne" gives a map; "changed" compares two representations of the
same items in their original spaces: which items changed neighbours or place
(:mod:`core.compare.changed`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from core.compare import maps
from core.compare.changed import VERDICTS, changed
from core.errors import BadInput, NotFound
from core.results import Result
from core.types import Features, LeftOut

if TYPE_CHECKING:
    from core.workspace import Workspace

Progress = Callable[[float, str], None]

KIND = "explore"
METHODS = ("pca", "umap", "tsne", "changed")
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

# A row asked for its neighbours costs n x d: beyond this many rows fewer are asked.
_MANY = 200_000

# Only what a method reads is part of its key: a PCA has no seed and no neighbours.
_READ_BY = {
    "pca": ("max_points", "k", "metric"),
    "umap": ("metric", "n_neighbors", "min_dist", "max_points", "seed", "k"),
    "tsne": ("metric", "n_neighbors", "max_points", "seed", "k"),
    "changed": ("metric", "reference", "reference_layer", "k", "max_points", "seed"),
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
    if method == "tsne":
        full["max_points"] = min(full["max_points"], maps.TSNE_MOST)
    if method == "changed":
        if not full["reference"]:
            raise BadInput(
                "method='changed' compares two representations and reference is empty.",
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
    """Make the map, or measure what changed; see :data:`DEFAULTS` for the parameters."""
    say = progress or (lambda _fraction, _message: None)
    features = workspace.features.get(params["dataset"], params["model"])
    if params["method"] == "changed":
        return _changed(workspace, features, params, say)
    x, ids, left_out = _rows(features, params["layer"], params)
    say(0.02, f"Reading {len(ids):,} rows")
    if params["method"] == "pca":
        found = maps.pca_map(x)
        xy, explained = found.xy, [float(v) for v in found.explained]
    elif params["method"] == "tsne":
        xy, explained = _tsne(x, params, say), []
    else:
        xy, explained = _umap(workspace, x, params, say), []
    asked = min(len(ids), 1_000 if len(ids) <= _MANY else 200)
    kept = maps.neighbours_kept(x, xy, k=params["k"], metric=params["metric"], sample=asked)
    say(1.0, "Done")
    summary = {
        "headline": _map_words(params, explained, kept),
        "n": len(ids),
        "explained": explained,
        "kept": kept,
        "chance": min(params["k"], len(ids) - 1) / max(len(ids) - 1, 1),
        "dim": int(x.shape[1]),
    }
    if asked < min(len(ids), 1_000):
        summary["asked"] = asked
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


def _tsne(x: np.ndarray, params: dict[str, Any], say: Progress) -> np.ndarray:
    return maps.tsne_map(
        x,
        metric=params["metric"],
        perplexity=float(params["n_neighbors"]),
        seed=params["seed"],
        progress=say,
    )


def _rows(
    features: Features, layer: str, params: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray, tuple[LeftOut, ...]]:
    # Finite rows, at most max_points of them; a memory-mapped layer is not copied whole.
    x = np.asarray(features.layer(layer))
    left_out: list[LeftOut] = []
    keep = np.flatnonzero(maps.finite_rows(x))
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
    if len(keep) == len(x):
        return x, features.ids, ()
    return x[keep], features.ids[keep], tuple(left_out)


def _map_words(params: dict[str, Any], explained: list[float], kept: float) -> str:
    share = f"{100 * kept:.0f}" if kept >= 0.01 else f"{100 * kept:.1f}"
    near = f"{share} % of each item's {params['k']} nearest neighbours are still near"
    if explained:
        return f"Two directions hold {100 * sum(explained):.0f} % of the variance; {near} here."
    return f"{near[0].upper()}{near[1:]} on this map; distances between far groups mean little."


def _changed(
    workspace: Workspace, features: Features, params: dict[str, Any], say: Progress
) -> Result:
    other = workspace.features.get(params["dataset"], params["reference"])
    a, b, ids, left_out = _both(features, other, params)
    if len(ids) <= params["k"]:
        raise BadInput(
            f"k={params['k']} neighbours need more than the {len(ids)} items both models have.",
            "Lower k.",
        )
    found = changed(a, b, k=params["k"], metric=params["metric"], seed=params["seed"], progress=say)
    table = pd.DataFrame(
        {
            "id": ids,
            "verdict": found.verdict.astype(object),
            "overlap": found.overlap,
            "jaccard": found.jaccard,
            "displacement": found.displacement,
            "p_neighbours": found.p_neighbours,
            "q_neighbours": found.q_neighbours,
            "p_place": found.p_place,
            "q_place": found.q_place,
        }
    )
    # Most moved first: fewest neighbours kept, then farthest.
    order = np.lexsort((ids, -found.displacement, found.overlap))
    table = table.iloc[order].reset_index(drop=True)
    summary = _summary(table, params["k"]) | {"folds": found.folds, "partners": found.partners}
    return Result(KIND, params, summary, {"changed": table}, left_out=left_out)


def _both(
    features: Features, other: Features, params: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[LeftOut, ...]]:
    """Return the rows both encoders have, by id, and what was left out."""
    a, ids, left_out = _rows(features, params["layer"], params)
    shared = np.isin(ids, other.ids)
    a, ids = a[shared], ids[shared]
    b = np.asarray(other.layer(params["reference_layer"]))[other.rows_of(ids)]
    fine = maps.finite_rows(b)
    lines = list(left_out)
    if not shared.all():
        lines.append(LeftOut("rows", f"without features of {other.model}", int((~shared).sum())))
    if not fine.all():
        lines.append(
            LeftOut(
                "rows", f"features of {other.model} that are not finite numbers", int((~fine).sum())
            )
        )
    return a[fine].astype(np.float64), b[fine].astype(np.float64), ids[fine], tuple(lines)


def _summary(table: pd.DataFrame, k: int) -> dict[str, Any]:
    n = len(table)
    chance = k / (n - 1)
    overlap = table["overlap"]
    counts = {name: int((table["verdict"] == name).sum()) for name in VERDICTS}
    if counts["cannot tell"]:
        tail = f"{n:,} items are too few to tell which of them moved."
    else:
        tail = (
            f"{counts['moved']:,} of {n:,} items moved: neither neighbours nor place are nearer "
            "than those of an item taken at random."
        )
    return {
        "headline": (
            f"A and B share {100 * overlap.mean():.0f} % of each item's {k} nearest neighbours "
            f"(chance {100 * chance:.1f} %); {tail}"
        ),
        "n": n,
        "overlap": float(overlap.mean()),
        "overlap_sd": float(overlap.std(ddof=1)),
        "chance": chance,
        "none": int((overlap == 0).sum()),
        "displacement": float(table["displacement"].median()),
        "verdicts": counts,
    }
