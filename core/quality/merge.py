"""The user's own encoders among the study's models, measured exactly as these were.

A metric depends on how many rows and which pictures it saw, so the values of a quality result
(all training rows) are not comparable with the study's (a seeded 1,000 of them). Here a stored
feature matrix of a demo dataset is measured again with the study's rows, splits and probes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from core.errors import BadInput
from core.quality.population import METRICS, Population, from_table
from core.quality.tables import encoder_facts
from core.quality.zoo.sets import StudyItems, demo_items

if TYPE_CHECKING:
    from core.workspace import Workspace

#: Demo datasets whose pictures are sets of the study.
DATASETS = ("emoji", "clipart")
SCOPE = "study-rows"
RECIPE = 1


def candidates(workspace: Workspace) -> dict[str, list[str]]:
    """Return the models with features of a demo dataset of the study, each with its datasets."""
    out: dict[str, list[str]] = {}
    for entry in workspace.features.list():
        picture = encoder_facts(entry["model"])["modality"] in ("", "image")
        known = out.setdefault(entry["model"], []) if picture else []
        if entry["dataset"] in DATASETS and entry["dataset"] not in known:
            known.append(entry["dataset"])
    return {model: found for model, found in sorted(out.items()) if found}


def study_rows(workspace: Workspace, dataset: str, model: str) -> list[dict[str, Any]]:
    """Return one row a set of the study for stored features, measured once and kept.

    Parameters
    ----------
    workspace : Workspace
    dataset : str
        "emoji" or "clipart".
    model : str
        With features of every item the study uses, in its default layer.

    Raises
    ------
    BadInput
        Another dataset; items or features that the study uses are missing or not finite.
    NotFound
        There are no features of this dataset and model.
    """
    if dataset not in DATASETS:
        raise BadInput(
            f"{dataset!r} is not a dataset of the study.", f"Choose one of: {', '.join(DATASETS)}."
        )
    features = workspace.features.get(dataset, model)
    key = f"{RECIPE}/{features.key}/{features.default_layer}"
    stored = workspace.notes.get(SCOPE, key)
    if stored is None:
        items = workspace.dataset(dataset).items.sort_values("id", ignore_index=True)
        missing = ~items["id"].isin(features.ids)
        if missing.any():
            raise BadInput(
                f"{model} has no features of {int(missing.sum())} of {len(items)} {dataset} items, "
                "and metrics of different rows cannot be compared.",
                "Extract or import features of all of them.",
            )
        x = np.asarray(features.layer()[features.rows_of(items["id"].to_numpy())])
        stored = [_row(x, part, model) for part in demo_items(dataset, items)]
        workspace.notes.put(SCOPE, key, stored)
    return list(stored)


def _row(x: np.ndarray, part: StudyItems, model: str) -> dict[str, Any]:
    from core.device import one_thread
    from core.quality.zoo.measure import measure_features

    rows = x[part.rows]
    if not np.isfinite(rows).all():
        raise BadInput(f"{model} has features that are not finite.", "Extract them again.")
    facts = encoder_facts(model)
    about = {
        "model": model, "family": facts["family"] or model, "dataset": part.name, "n": len(rows),
        "architecture": facts["arch_class"] or "yours", "d": int(rows.shape[1]), "failed": "",
        "objective": "supervised" if facts["objective"] == "supervised" else "yours",
    }  # fmt: skip
    with one_thread():
        return about | measure_features(rows, part.labels, part.train)


def own_population(rows: Sequence[dict[str, Any]], population: Population) -> Population:
    """Return measured rows as a population that can be drawn over another.

    CLID compares a model with its population, so it stays empty here.

    Raises
    ------
    BadInput
        There are no rows.
    """
    if not rows:
        raise BadInput("There are no measured encoders.", "Choose at least one.")
    own = from_table(pd.DataFrame(rows), title="yours", datasets=population.datasets, about={})
    own.table["clid"] = np.nan
    return own


def places(population: Population, own: Population, metric: str, probe: str) -> pd.DataFrame:
    """Return where own encoders stand among a population's models.

    Returns
    -------
    DataFrame
        model, dataset, value, above (share of the population's models with a lower value),
        accuracy, ahead_of (share with a lower accuracy), n (models compared), flags. A metric
        without a value has NaN in value and above.
    """
    if metric not in METRICS:
        raise BadInput(f"{metric!r} is unknown.", f"Choose one of: {', '.join(METRICS)}.")
    rows = []
    for row in own.table.to_dict("records"):
        there = population.table[population.table["dataset"] == row["dataset"]]
        value, accuracy = float(row[metric]), float(row[probe])
        known = there[metric].dropna().astype(float)
        rows.append(
            {
                "model": row["model"], "dataset": row["dataset"], "value": value,
                "above": float((known < value).mean()) if np.isfinite(value) else float("nan"),
                "accuracy": accuracy, "ahead_of": float((there[probe] < accuracy).mean()),
                "n": len(there), "flags": str(row.get(f"flags.{metric}", "")),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def run_merge(
    workspace: Workspace,
    *,
    models: Sequence[str],
    progress: Callable[[float, str], None] | None = None,
) -> None:
    """Measure models for :func:`study_rows`: the work of a job.

    Parameters
    ----------
    models : sequence of str
        Those of :func:`candidates`; others are left out.
    progress : callable, optional
        Called with a fraction in [0, 1] and a message.

    Raises
    ------
    BadInput
        No model has features of a dataset of the study.
    """
    known = candidates(workspace)
    chosen = [model for model in models if model in known]
    if not chosen:
        raise BadInput(
            f"None of the models {', '.join(models) or '(none named)'} has features of "
            f"{' or '.join(DATASETS)}.",
            f"Choose among: {', '.join(known) or 'none; extract features first'}.",
        )
    pairs = [(dataset, model) for model in chosen for dataset in known[model]]
    for at, (dataset, model) in enumerate(pairs):
        if progress is not None:
            progress(at / len(pairs), f"{model} on {dataset}")
        study_rows(workspace, dataset, model)


def is_measured(workspace: Workspace, dataset: str, model: str) -> bool:
    """Return whether :func:`study_rows` answers at once."""
    features = workspace.features.get(dataset, model)
    key = f"{RECIPE}/{features.key}/{features.default_layer}"
    return workspace.notes.get(SCOPE, key) is not None
