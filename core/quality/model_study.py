"""The analysis "model-study": the registry's pretrained models on one data set of the user's.

What :mod:`core.quality.zoo` does with 260 small networks, done with real checkpoints: features
of the default layer, every label-free metric on the training rows, probes on the test rows, and
the correlations across models. Each finished model is kept, so that a stopped study goes on; a
model that cannot be measured is a line with its reason and is tried again next time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from core.errors import BadInput, Cancelled, NeedsWeights, NotFound, UserError
from core.quality.analysis import split_items
from core.quality.population import GROUPS, Population, from_table
from core.quality.registry import ARCHITECTURES, POPULATIONS, model_registry
from core.results import Result
from core.types import LeftOut

if TYPE_CHECKING:
    from core.data.dataset import Dataset
    from core.types import Features
    from core.workspace import Workspace

KIND = "model-study"
DEFAULTS: dict[str, Any] = {
    "dataset": "emoji",
    "population": "core260",
    "models": [],
    "label": "label",
    "max_rows": 10_000,
    "batch_size": 16,
    "device": "",
    "n_boot": 2000,
    "seed": 0,
}
#: Scope of the kept rows, and the number that is raised when a row would come out otherwise.
SCOPE = "model-study"
RECIPE = 1
LISTS = ("eigenvalues", "twonn_x", "twonn_y")
_CLUSTERS = ("concept", "group_id")

Progress = Callable[[float, str], None]


def resolve(workspace: Workspace, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters checked; an empty ``models`` means the whole population.

    Raises
    ------
    BadInput
        The data set has no pictures or no such label, or a number is out of range.
    NotFound
        There is no such data set.
    """
    full = {**DEFAULTS, **params}
    dataset = workspace.dataset(str(full["dataset"]))
    if dataset.kind != "image":
        raise BadInput(
            f"{dataset.name!r} holds {dataset.kind}s, and the registry's models read pictures.",
            "Choose a data set of pictures: `theodolite datasets` lists them.",
        )
    if full["label"] not in dataset.items.columns:
        raise BadInput(
            f"label={full['label']!r} is not a column of {dataset.name!r}.",
            f"Its columns are: {', '.join(map(str, dataset.items.columns))}.",
        )
    for name, low in (("max_rows", 100), ("batch_size", 1), ("n_boot", 100), ("seed", 0)):
        full[name] = int(full[name])
        if full[name] < low:
            raise BadInput(
                f"{name}={full[name]} must be at least {low}.", f"The default is {DEFAULTS[name]}."
            )
    table = registry_facts(str(full["population"]))
    full["models"] = list(dict.fromkeys(map(str, full["models"]))) or list(table)
    return full


def registry_facts(population: str = "all") -> dict[str, dict[str, Any]]:
    """Return what the registry says of each model, by the id that loads it.

    Parameters
    ----------
    population : {"all", "core260"}

    Returns
    -------
    dict
        model id to family, architecture, objective, group and n_params.
    """
    if population not in POPULATIONS:
        raise BadInput(
            f"population={population!r} is unknown.", f"Choose one of: {', '.join(POPULATIONS)}."
        )
    from core.encoders.vision_registry import model_id

    return {
        model_id(row): {
            "family": row["family"], "architecture": row["arch_class"],
            "objective": row["objective"], "group": row["objective_group"],
            "n_params": round(1e6 * float(row["params_M"])),
        }
        for row in model_registry(population).to_dict("records")
    }  # fmt: skip


def _facts(workspace: Workspace, model: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the registry's facts of a model, or what its own info says."""
    if model in known:
        return dict(known[model])
    from core.encoders import describe

    try:
        info = describe(model, workspace)
    except NotFound:
        return {"family": model, "architecture": "other", "objective": "", "group": "other",
                "n_params": 0}  # fmt: skip
    group = info.objective.replace("-", "_")
    return {
        "family": info.family or model,
        "architecture": info.arch_class if info.arch_class in ARCHITECTURES else "other",
        "objective": info.objective, "group": group if group in GROUPS else "other",
        "n_params": round(1e6 * info.params_m),
    }  # fmt: skip


@dataclass(frozen=True)
class _Rows:
    """The items every model is measured on, the same for all."""

    ids: np.ndarray
    labels: np.ndarray
    train: np.ndarray

    @staticmethod
    def of(dataset: Dataset, label: str, seed: int) -> _Rows:
        items = dataset.items.sort_values("id", ignore_index=True)
        items = items[items[label].notna() & (items[label].astype(str) != "")]
        cluster = next((c for c in _CLUSTERS if c in items.columns), "")
        train, test = split_items(items, label, cluster, seed)
        kept = items[items["id"].isin([*train["id"], *test["id"]])]
        codes = np.unique(kept[label].to_numpy(dtype=str), return_inverse=True)[1]
        return _Rows(kept["id"].to_numpy(), codes, kept["id"].isin(train["id"]).to_numpy())


def compute(
    workspace: Workspace, params: Mapping[str, Any], progress: Progress | None = None
) -> Result:
    """Measure every model of ``params["models"]`` that can be, and correlate across them.

    Parameters
    ----------
    workspace : Workspace
        Holds the data set; receives features and the finished rows.
    params : dict
        As :func:`resolve` returns them.
    progress : callable, optional
        Called with a fraction in [0, 1] and a message; it may raise ``Cancelled``.

    Returns
    -------
    Result
        Tables ``rows`` (one a measured model, in the form of the study's table), ``models``
        (every model: state, reason, CPU seconds, peak MiB) and ``rho`` (see
        :mod:`core.quality.stored`; absent when nothing was measured).
    """
    dataset = workspace.dataset(params["dataset"])
    shared = _Rows.of(dataset, params["label"], params["seed"])
    known = registry_facts()
    rows, states = [], []
    for at, model in enumerate(params["models"]):

        def tell(fraction: float, message: str = "", at: int = at, model: str = model) -> None:
            if progress is not None:
                progress((at + fraction) / len(params["models"]), f"{model}: {message}")

        tell(0.0, "looking for it")
        row, state = _one(workspace, dataset, model, params, shared, tell)
        about = {"model": model, **_facts(workspace, model, known)}
        states.append(about | state)
        if row is not None:
            rows.append(about | row | {"failed": ""})
    return _result(params, dataset, shared, rows, pd.DataFrame(states))


def _one(
    workspace: Workspace,
    dataset: Dataset,
    model: str,
    params: Mapping[str, Any],
    shared: _Rows,
    tell: Progress,
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return a model's cells, or None, and its state: the failure of one is not the end."""
    from core.data.memory import peak_mb, reset_peak

    reset_peak()
    start = time.process_time()
    try:
        row, fresh = _kept_or_measured(workspace, dataset, model, params, shared, tell)
    except Cancelled:
        raise
    except UserError as error:
        kind = "weights are not here" if isinstance(error, NeedsWeights) else "cannot be used"
        row, state, reason = None, kind, str(error)
    except (RuntimeError, ValueError, ArithmeticError, MemoryError, OSError, ImportError) as error:
        # Whatever a foreign checkpoint does on loading or running is that model's reason.
        row, state, reason = None, "failed", f"{type(error).__name__}: {error}"
    else:
        state, reason = "measured" if fresh else "kept", ""
    return row, {
        "state": state, "reason": reason, "cpu_s": round(time.process_time() - start, 2),
        "peak_mib": peak_mb(),
    }  # fmt: skip


def _kept_or_measured(
    workspace: Workspace,
    dataset: Dataset,
    model: str,
    params: Mapping[str, Any],
    shared: _Rows,
    tell: Progress,
) -> tuple[dict[str, Any], bool]:
    key = (
        f"{RECIPE}/{dataset.digest}/{params['label']}/{params['max_rows']}/{params['seed']}/{model}"
    )
    stored: dict[str, Any] | None = workspace.notes.get(SCOPE, key)
    features = _there(workspace, dataset.name, model)
    # Features may be removed to save room; features that changed make a row that is no more.
    if stored is not None and (features is None or stored["features"] == features.key):
        return dict(stored["row"]), False
    if features is None:
        features = _extract(workspace, dataset, model, params, tell)
    tell(0.9, "measuring")
    row = _measure(features, model, params, shared) | {"dataset": dataset.name}
    workspace.notes.put(SCOPE, key, {"features": features.key, "row": row})
    return row, True


def _there(workspace: Workspace, dataset: str, model: str) -> Features | None:
    """Return a model's stored features, computed here or imported under its id."""
    from core.data.feature_import import PREFIX

    for name in (model, f"{PREFIX}{model}"):
        try:
            return workspace.features.get(dataset, name)
        except NotFound:
            continue
    return None


def _extract(
    workspace: Workspace,
    dataset: Dataset,
    model: str,
    params: Mapping[str, Any],
    tell: Progress,
) -> Features:
    from core.encoders import describe
    from core.extract import run_extract

    info = describe(model, workspace)
    if info.status == "not-loadable":
        raise BadInput(
            info.reason, f"Import its features on the Models page under the name {model}."
        )

    def told(fraction: float, message: str) -> None:
        tell(0.9 * fraction, message)

    return run_extract(
        workspace, dataset.name, model, layers="default", batch_size=params["batch_size"],
        device=params["device"] or None, progress=told,
    )  # fmt: skip


def _measure(
    features: Features, model: str, params: Mapping[str, Any], shared: _Rows
) -> dict[str, Any]:
    from core.device import one_thread
    from core.quality.zoo.measure import measure_features

    missing = int((~np.isin(shared.ids, features.ids)).sum())
    if missing:
        raise BadInput(
            f"{model} has no features of {missing} of {len(shared.ids)} items, and metrics of "
            "different rows cannot be compared.",
            "Extract or import features of all of them.",
        )
    x = np.asarray(features.layer()[features.rows_of(shared.ids)])
    bad = int((~np.isfinite(x).all(1)).sum())
    if bad:
        raise BadInput(f"{model} has {bad} of {len(x)} rows that are not finite.", "Leave it out.")
    with one_thread():
        cells = measure_features(x, shared.labels, shared.train, max_rows=params["max_rows"])
    return {"layer": features.default_layer, "d": int(x.shape[1]), "n": len(x), **cells}


def _result(
    params: Mapping[str, Any],
    dataset: Dataset,
    shared: _Rows,
    rows: list[dict[str, Any]],
    states: pd.DataFrame,
) -> Result:
    from core.quality.stored import compute_blocks

    tables = {"models": states}
    if rows:
        tables["rows"] = pd.DataFrame(rows)
        whole = from_rows(tables["rows"], dataset.name, {})
        tables["rho"] = compute_blocks(whole, n_boot=params["n_boot"], seed=params["seed"])
    gone = states[~states["state"].isin(["measured", "kept"])]
    left = tuple(
        LeftOut("models", f"{name}; the first: {part['model'].iloc[0]}: {part['reason'].iloc[0]}",
                len(part))
        for name, part in gone.groupby("state", sort=True)
    )  # fmt: skip
    headline = f"{len(rows)} of {len(states)} models measured on {dataset.name}"
    headline += f"; {len(gone)} could not be, each with its reason." if len(gone) else "."
    summary = {
        "headline": headline, "n": len(shared.ids), "n_models": len(rows),
        "n_failed": len(gone), "n_train": int(shared.train.sum()),
        "n_test": int((~shared.train).sum()), "n_classes": int(shared.labels.max()) + 1,
        "cpu_s": round(float(states["cpu_s"].sum()), 1),
    }  # fmt: skip
    return Result(KIND, dict(params), summary, tables, {}, left)


def from_rows(rows: pd.DataFrame, dataset: str, about: dict[str, Any]) -> Population:
    """Return measured models as a population of one data set."""
    title = f"your models on {dataset}"
    return from_table(rows, title=title, datasets={dataset: dataset}, about=about)


def population_of(result: Result) -> Population | None:
    """Return the population of a stored study, or None when no model could be measured."""
    if "rows" not in result.tables:
        return None
    about = {"versions": result.versions, "created": result.created, **result.summary}
    return from_rows(result.tables["rows"], str(result.params["dataset"]), about)
