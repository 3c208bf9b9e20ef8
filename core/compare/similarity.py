"""Similarity of representations as a stored analysis: encoders against encoders, or layers.

``method`` "encoders" compares the default layers of several encoders with one another;
"layers" compares every layer of one encoder with every layer of itself or of another. Each
pair has its similarity, a 95 % interval from subsamples, and chance from permutations
(:mod:`core.compare.spread`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from core.compare.measures import MEASURES, Measure, measure
from core.compare.spread import LEAST_ROWS, Spread, spread
from core.errors import BadInput, NotFound
from core.results import Result
from core.types import Features, LeftOut

if TYPE_CHECKING:
    from core.workspace import Workspace

Progress = Callable[[float, str], None]
Space = tuple[str, str]  # model, layer

KIND = "similarity"
METHODS = ("encoders", "layers")
DEFAULTS: dict[str, Any] = {
    "dataset": "",
    "method": "encoders",
    "models": [],
    "model": "",
    "reference": "",
    "measure": "cka",
    "k": 10,
    "max_rows": 2_000,
    "n_draws": 100,
    "n_permutations": 99,
    "seed": 0,
}
# What a method does not read is no part of its key.
_UNREAD = {"encoders": ("model", "reference"), "layers": ("models",)}
_LIMITS = {
    "k": (1, 1_000),
    "max_rows": (LEAST_ROWS, 100_000),
    "n_draws": (2, 10_000),
    "n_permutations": (1, 10_000),
    "seed": (0, 2**32 - 1),
}


def resolve(workspace: Workspace, params: dict[str, Any]) -> dict[str, Any]:
    """Fill in the dataset and the encoders; check the rest.

    Raises
    ------
    BadInput
        A parameter out of range, or nothing to compare.
    NotFound
        No such dataset, or no features of it.
    """
    full = {**DEFAULTS, **params}
    if full["method"] not in METHODS:
        raise BadInput(
            f"method={full['method']!r} is not known.", f"Use one of: {', '.join(METHODS)}."
        )
    measure(str(full["measure"]))
    for name, (least, most) in _LIMITS.items():
        value = full[name]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise BadInput(
                f"{name} must be a whole number from {least:,} to {most:,}, got {value!r}.",
                f"The default is {DEFAULTS[name]:,}.",
            )
    if full["measure"] != "knn":
        full["k"] = DEFAULTS["k"]
    full["dataset"] = full["dataset"] or _first_dataset(workspace)
    workspace.dataset(full["dataset"])
    known = encoders(workspace, full["dataset"])
    if full["method"] == "encoders":
        full["models"] = _models(full["models"], known, full["dataset"])
    else:
        full["model"] = full["model"] or _first(known, full["dataset"])
        full["reference"] = full["reference"] or full["model"]
        found = [workspace.features.get(full["dataset"], full[m]) for m in ("model", "reference")]
        if full["model"] == full["reference"] and len(found[0].layers) < 2:
            raise BadInput(
                f"{full['model']} has one layer on {full['dataset']}: there is nothing to compare.",
                "Extract it with all layers, or name another encoder as reference.",
            )
    return {**full, **{name: DEFAULTS[name] for name in _UNREAD[full["method"]]}}


def encoders(workspace: Workspace, dataset: str) -> list[str]:
    """Return the encoders with features of a dataset, by name."""
    return sorted({e["model"] for e in workspace.features.list() if e["dataset"] == dataset})


def compute(
    workspace: Workspace, params: dict[str, Any], progress: Progress | None = None
) -> Result:
    """Compare the representations; see :data:`DEFAULTS` for the parameters."""
    how = measure(params["measure"])
    features = _features(workspace, params)
    spaces, pairs = _plan(features, params)
    ids, left_out = _rows(features, spaces, params)
    if len(ids) <= max(params["k"], LEAST_ROWS - 1):
        raise BadInput(
            f"{len(ids)} items have finite features under every encoder chosen; a comparison "
            f"needs at least {max(params['k'] + 1, LEAST_ROWS)}.",
            "Choose encoders extracted on the same items, or lower k.",
        )
    data = workspace.dataset(params["dataset"])
    by, groups = _groups(data.items, ids)
    arrays = [_Rows(features[m].layer(layer), features[m].rows_of(ids)) for m, layer in spaces]
    found = spread(
        arrays, pairs, how, groups=groups, k=params["k"], n_draws=params["n_draws"],
        n_permutations=params["n_permutations"], seed=params["seed"], progress=progress,
    )  # fmt: skip
    table = _table(spaces, pairs, found)
    summary = {
        "headline": _headline(table, params, how),
        "n": found.n,
        "title": how.title,
        "by": by,
        "groups": found.groups,
        "drawn": found.drawn,
        "drawn_k": found.drawn_k,
        "least": how.least,
        "rows": [list(spaces[i]) for i in dict.fromkeys(i for i, _ in _cells(spaces, params))],
        "columns": [list(spaces[j]) for j in dict.fromkeys(j for _, j in _cells(spaces, params))],
        "above_chance": int((table["q"] <= 0.05).sum()),
        "pairs": len(table),
        "flat": int(table["value"].isna().sum()),
    }
    return Result(KIND, params, summary, {"pairs": table}, left_out=left_out)


class _Rows:
    """Some rows of a stored layer, read when asked for."""

    def __init__(self, x: np.ndarray, rows: np.ndarray) -> None:
        self.x, self.rows = x, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: np.ndarray) -> np.ndarray:
        return np.asarray(self.x[self.rows[index]])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.x[self.rows], dtype=dtype)


def _first_dataset(workspace: Workspace) -> str:
    names = workspace.dataset_names()
    if not names:
        raise NotFound("This workspace holds no dataset.", "Import one, or prepare the demo.")
    return "emoji" if "emoji" in names else names[0]


def _first(known: list[str], dataset: str) -> str:
    if not known:
        raise NotFound(
            f"There are no features of {dataset!r}.", f"Run: theodolite extract {dataset} MODEL."
        )
    return "demo/vit-s14" if "demo/vit-s14" in known else known[0]


def _models(wanted: Any, known: list[str], dataset: str) -> list[str]:
    if isinstance(wanted, str) or not isinstance(wanted, list | tuple):
        raise BadInput(f"models must be a list of encoders, got {wanted!r}.", "Give two or more.")
    _first(known, dataset)
    models = sorted(set(wanted)) or known
    strange = [m for m in models if m not in known]
    if strange:
        raise NotFound(
            f"There are no features of {strange[0]!r} on {dataset!r}.",
            f"Run: theodolite extract {dataset} {strange[0]}, or choose from {', '.join(known)}.",
        )
    if len(models) < 2:
        raise BadInput(
            f"A comparison needs two encoders, {dataset!r} has features of one: {models[0]}.",
            "Extract a second encoder, or compare the layers of this one (method='layers').",
        )
    return models


def _features(workspace: Workspace, params: dict[str, Any]) -> dict[str, Features]:
    names = params["models"] or [params["model"], params["reference"]]
    return {name: workspace.features.get(params["dataset"], name) for name in names}


def _plan(
    features: dict[str, Features], params: dict[str, Any]
) -> tuple[list[Space], list[tuple[int, int]]]:
    """Return the spaces, and the pairs of them to compare: each unordered pair once."""
    if params["method"] == "encoders":
        spaces = [(name, found.default_layer) for name, found in features.items()]
    else:
        spaces = [(name, layer) for name, found in features.items() for layer in found.layers]
    cells = _cells(spaces, params)
    pairs = [(i, j) for i, j in cells if i < j or (i > j and (j, i) not in cells)]
    return spaces, pairs


def _cells(spaces: list[Space], params: dict[str, Any]) -> list[tuple[int, int]]:
    every = range(len(spaces))
    if params["method"] == "encoders" or params["model"] == params["reference"]:
        return [(i, j) for i in every for j in every]
    a = [i for i in every if spaces[i][0] == params["model"]]
    return [(i, j) for i in a for j in every if j not in a]


def _rows(
    features: dict[str, Features], spaces: list[Space], params: dict[str, Any]
) -> tuple[np.ndarray, tuple[LeftOut, ...]]:
    """Return the ids every space has finite features of, at most ``max_rows`` of them."""
    left_out: list[LeftOut] = []
    ids: np.ndarray | None = None
    every = np.unique(np.concatenate([f.ids for f in features.values()]))
    for found in features.values():
        ids = found.ids if ids is None else ids[np.isin(ids, found.ids)]
    assert ids is not None
    if len(ids) < len(every):
        lost = len(every) - len(ids)
        left_out.append(LeftOut("items", "no features under one of the encoders", lost))
    fine = np.ones(len(ids), dtype=bool)
    for model, layer in spaces:
        x, rows = features[model].layer(layer), features[model].rows_of(ids)
        for start in range(0, len(ids), 16_384):
            part = slice(start, start + 16_384)
            fine[part] &= np.isfinite(x[rows[part]]).all(axis=1)
    if not fine.all():
        left_out.append(
            LeftOut("items", "features that are not finite numbers", int((~fine).sum()))
        )
    ids = ids[fine]
    if len(ids) > params["max_rows"]:
        rng = np.random.default_rng(params["seed"])
        drawn = np.sort(rng.choice(len(ids), params["max_rows"], replace=False))
        why = f"not drawn: the comparison reads a random {params['max_rows']:,} (max_rows)"
        left_out.append(LeftOut("items", why, len(ids) - params["max_rows"]))
        ids = ids[drawn]
    return ids, tuple(left_out)


def _groups(items: pd.DataFrame, ids: np.ndarray) -> tuple[str, np.ndarray]:
    """Return what is drawn as one, "concept" or "item", and its name for every id."""
    if "concept" not in items.columns:
        return "item", ids.astype(str)
    concept = items.set_index("id")["concept"].reindex(ids).fillna("").astype(str).to_numpy()
    groups = np.where(concept != "", concept, np.char.add("id ", ids.astype(str)))
    # Too few concepts to draw half of them say nothing about spread.
    return (
        ("concept", groups) if len(np.unique(groups)) >= LEAST_ROWS else ("item", ids.astype(str))
    )


def _table(spaces: list[Space], pairs: list[tuple[int, int]], found: Spread) -> pd.DataFrame:
    left = [spaces[i] for i, _ in pairs]
    right = [spaces[j] for _, j in pairs]
    return pd.DataFrame(
        {
            "a": [m for m, _ in left], "layer_a": [layer for _, layer in left],
            "b": [m for m, _ in right], "layer_b": [layer for _, layer in right],
            "value": found.value, "low": found.low, "high": found.high, "sd": found.sd,
            "value_drawn": found.drawn_value, "chance": found.chance,
            "chance_high": found.chance_high, "p": found.p, "q": found.q,
        }
    )  # fmt: skip


def _headline(table: pd.DataFrame, params: dict[str, Any], how: Measure) -> str:
    told = table.dropna(subset="value")
    if told.empty:
        return "No pair can be compared: the representations do not vary."
    most, least = told.loc[told["value"].idxmax()], told.loc[told["value"].idxmin()]
    beyond = int((told["q"] <= 0.05).sum())
    all_or = "every pair" if beyond == len(told) else f"{beyond} of {len(told)} pairs"
    words = (
        f"Most alike by {how.title}: {_named(most, params)}, {_interval(most)}. "
        f"Least alike: {_named(least, params)}, {_interval(least)}."
        if len(told) > 1
        else f"{how.title}: {_named(most, params)}, {_interval(most)}."
    )
    return f"{words[0].upper()}{words[1:]} Beyond chance: {all_or}."


def _named(row: pd.Series, params: dict[str, Any]) -> str:
    if params["method"] == "encoders":
        return f"{row['a']} and {row['b']}"
    if params["model"] == params["reference"]:
        return f"{row['layer_a']} and {row['layer_b']}"
    return f"{row['a']} {row['layer_a']} and {row['b']} {row['layer_b']}"


def _interval(row: pd.Series) -> str:
    return f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


__all__ = ["DEFAULTS", "KIND", "MEASURES", "METHODS", "compute", "encoders", "resolve"]
