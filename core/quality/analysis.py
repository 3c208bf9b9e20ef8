"""Which model suits my data: every encoder's metrics and probes on one dataset.

Metrics are taken from the training rows without their labels, accuracies from the test rows.
All encoders are measured on the same items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from core.errors import BadInput, NotFound
from core.quality.tables import (
    encoder_facts,
    metric_table,
    model_table,
    prediction_table,
    short_title,
    spec_table,
    spectrum_table,
    sweep_table,
    twonn_table,
)
from core.results import Result
from core.types import Features, LeftOut

if TYPE_CHECKING:
    from core.data.dataset import Dataset
    from core.quality.record import Record
    from core.workspace import Workspace

KIND = "quality"
DEFAULTS: dict[str, Any] = {
    "dataset": "emoji",
    "models": [],
    "layers": {},
    "label": "label",
    "cluster": "",
    "ridge": 1e-6,
    "n_boot": 2000,
    "n_draws": 5,
    "seed": 0,
}
#: Below this many encoders no correlation is claimed.
ENOUGH_MODELS = 8
_CLUSTERS = ("concept", "group_id")

Progress = Callable[[float, str], None]

# Training rows a feature between which a linear probe is on its interpolation peak
# (d = 200: .66 at half as many rows, .15 at as many, .84 at twice as many, .98 at ten times).
PEAK = (0.5, 2.0)


def resolve(workspace: Workspace, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters with every default and automatic choice filled in.

    Raises
    ------
    BadInput
        A column is missing or a number is out of range.
    NotFound
        The dataset, a model's features or a layer are not there.
    """
    full = {**DEFAULTS, **params}
    dataset = workspace.dataset(str(full["dataset"]))
    # In one order, each once: the same choice has the same key however it was typed.
    full["models"] = sorted(set(full["models"])) or default_models(workspace, dataset)
    if not full["models"]:
        raise NotFound(
            f"There are no features of dataset {dataset.name!r} yet.",
            f"Run `theodolite extract {dataset.name} demo/vit-s14`.",
        )
    full["layers"] = dict(full["layers"] or {})
    for model in full["models"]:
        features = workspace.features.get(dataset.name, model)
        layer = str(full["layers"].get(model) or features.default_layer)
        features.layer(layer)
        full["layers"][model] = layer
    full["layers"] = {model: full["layers"][model] for model in full["models"]}
    columns = dataset.items.columns
    if not full["cluster"]:
        full["cluster"] = next((c for c in _CLUSTERS if c in columns), "")
    for name in ("label", "cluster"):
        if full[name] and full[name] not in columns:
            raise BadInput(
                f"{name}={full[name]!r} is not a column of {dataset.name!r}.",
                f"Its columns are: {', '.join(map(str, columns))}.",
            )
    _check_numbers(full)
    return full


def _check_numbers(full: dict[str, Any]) -> None:
    for name, low in (("n_boot", 100), ("n_draws", 0), ("seed", 0)):
        full[name] = int(full[name])
        if full[name] < low:
            raise BadInput(
                f"{name}={full[name]} must be at least {low}.", f"The default is {DEFAULTS[name]}."
            )
    full["ridge"] = float(full["ridge"])
    if not (np.isfinite(full["ridge"]) and full["ridge"] >= 0):
        raise BadInput(f"ridge={full['ridge']} must be 0 or positive.", "The default is 1e-6.")


def default_models(workspace: Workspace, dataset: Dataset) -> list[str]:
    """Return the models with features of the dataset, of its own modality, each once."""
    stored = [e["model"] for e in workspace.features.list() if e["dataset"] == dataset.name]
    wanted = [m for m in stored if encoder_facts(m)["modality"] in ("", dataset.kind)]
    return sorted(set(wanted))


def compute(
    workspace: Workspace, params: Mapping[str, Any], progress: Progress | None = None
) -> Result:
    """Measure every encoder of ``params["models"]`` on the dataset.

    Parameters
    ----------
    workspace : Workspace
        Holds the dataset and the features.
    params : dict
        As :func:`resolve` returns them.
    progress : callable, optional
        Called with a fraction in [0, 1] and a message.

    Returns
    -------
    Result
        Tables ``models``, ``metrics``, ``sweep``, ``spectrum``, ``twonn``, ``predictions``,
        ``specs`` and, for eight or more encoders, ``correlations``.
    """
    from core.quality.record import score_record

    dataset = workspace.dataset(params["dataset"])
    models: list[str] = params["models"]
    features = {m: workspace.features.get(dataset.name, m) for m in models}
    items, left_out = _common_items(dataset, features, params["label"])
    train, test = split_items(items, params["label"], params["cluster"], params["seed"])
    records: dict[str, Record] = {}
    for at, model in enumerate(models):
        layer = params["layers"][model]
        table = features[model].layer(layer)

        def tell(fraction: float, message: str, at: int = at, model: str = model) -> None:
            if progress is not None:
                progress((at + fraction) / len(models), f"{model}: {message}")

        tell(0.0, f"reading {layer}")
        xtr, xte = (
            np.asarray(table[features[model].rows_of(part["id"].to_numpy())])
            for part in (train, test)
        )
        records[model] = score_record(
            xtr, train[params["label"]].to_numpy(), xte, test[params["label"]].to_numpy(),
            clusters=test[params["cluster"]].to_numpy() if params["cluster"] else None,
            ridge=params["ridge"], n_boot=params["n_boot"], n_draws=params["n_draws"],
            seed=params["seed"], progress=tell,
        )  # fmt: skip
    left_out += [
        LeftOut(model, "rows that are not finite", record.n_dropped)
        for model, record in records.items()
        if record.n_dropped
    ]
    return _result(params, records, train, test, left_out)


def _common_items(
    dataset: Dataset, features: Mapping[str, Features], label: str
) -> tuple[pd.DataFrame, list[LeftOut]]:
    """Return the items that have a label and features of every model."""
    items = dataset.items
    left = []
    has_label = items[label].notna() & (items[label].astype(str) != "")
    if not has_label.all():
        left.append(LeftOut(dataset.name, f"no {label}", int((~has_label).sum())))
    keep = has_label.to_numpy()
    for model, found in features.items():
        there = items["id"].isin(found.ids).to_numpy()
        if (keep & ~there).any():
            left.append(LeftOut(model, "no features of these items", int((keep & ~there).sum())))
        keep = keep & there
    if not keep.any():
        raise BadInput(
            f"No item of {dataset.name!r} has a label and features of every chosen model.",
            "Choose fewer models, or extract again.",
        )
    return items[keep], left


def split_items(
    items: pd.DataFrame, label: str, cluster: str, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return training and test items: the dataset's own split, else 80/20 by label.

    Items of one cluster never lie on both sides.
    """
    given = items["split"].astype(str)
    if (given == "test").any() and (given == "train").any():
        return items[given == "train"], items[given == "test"]
    unit = items[cluster] if cluster else items["id"]
    firsts = items.groupby(unit.to_numpy(), sort=True)[label].first()
    rng = np.random.default_rng(seed)
    held: set[Any] = set()
    for _, group in firsts.groupby(firsts.to_numpy(), sort=True):
        n_test = round(0.2 * len(group))
        held.update(rng.permutation(group.index.to_numpy())[:n_test])
    test = unit.isin(held).to_numpy()
    if not test.any() or test.all():
        raise BadInput(
            f"{len(items)} items are too few to hold some out for testing.",
            "Give at least five items a label, or a split column with train and test.",
        )
    return items[~test], items[test]


def _result(
    params: Mapping[str, Any],
    records: Mapping[str, Record],
    train: pd.DataFrame,
    test: pd.DataFrame,
    left_out: Sequence[LeftOut],
) -> Result:
    models = model_table(params, records)
    models = models.sort_values(judging_probe(models)[0], ascending=False, ignore_index=True)
    groups = test[params["cluster"]].to_numpy() if params["cluster"] else np.arange(len(test))
    lead = _lead(models, records, groups, params)
    tables = {
        "models": models,
        "metrics": metric_table(records),
        "sweep": sweep_table(records),
        "spectrum": spectrum_table(records),
        "twonn": twonn_table(records),
        "predictions": prediction_table(records, test, params["label"]),
        "specs": spec_table(),
    }
    if len(records) >= ENOUGH_MODELS:
        tables["correlations"] = _correlations(tables, params)
    summary = {
        "headline": _headline(models, lead),
        "n": len(train) + len(test),
        "n_train": len(train),
        "n_test": len(test),
        "n_classes": int(train[params["label"]].nunique()),
        "n_models": len(records),
        "correlations": "computed"
        if len(records) >= ENOUGH_MODELS
        else f"n/a, too few models ({len(records)} of {ENOUGH_MODELS} needed)",
        **lead,
    }
    return Result(KIND, dict(params), summary, tables, {}, tuple(left_out))


def _correlations(tables: Mapping[str, pd.DataFrame], params: Mapping[str, Any]) -> pd.DataFrame:
    from core.quality.base import metric_specs
    from core.quality.study import study_correlations

    names = list(metric_specs())
    wide = tables["metrics"].pivot(index="model", columns="metric", values="value")
    study = tables["models"].join(wide[names], on="model")
    return study_correlations(
        study, metrics=names, targets=["linear", "knn"], clusters="family",
        n_boot=params["n_boot"], seed=params["seed"],
    )  # fmt: skip


def judging_probe(models: pd.DataFrame) -> tuple[str, str]:
    """Return the probe the answer rests on, "linear" or "knn", and why.

    With about as many training rows as features a nearly unregularised linear probe sits on
    its interpolation peak and measures its solver, not the encoder: on the emoji set
    (1,278 rows, 1,280 features) ridge 1e-6 gives EfficientNet-Lite0 28 % where 1-NN gives
    60 %. Encoders of different widths are then compared by 1-NN, which has no such peak.
    """
    low, high = PEAK
    peaked = models[models["rows_per_feature"].between(low, high)]
    if peaked.empty:
        return "linear", ""
    names = ", ".join(short_title(title) for title in peaked["title"])
    return "knn", (
        f"1-NN decides: {names} {'has' if len(peaked) == 1 else 'have'} about as many features "
        "as there are training rows, where a linear probe measures its solver"
    )


def _lead(
    models: pd.DataFrame,
    records: Mapping[str, Record],
    groups: np.ndarray,
    params: Mapping[str, Any],
) -> dict[str, Any]:
    """Compare the two best encoders on the same test items, clusters resampled together."""
    from core.stats.intervals import cluster_mean_interval

    probe, reason = judging_probe(models)
    best = models.iloc[0]
    out: dict[str, Any] = {
        "judge": probe,
        "judge_reason": reason,
        "best": str(best["model"]),
        "best_title": str(best["title"]),
        "best_accuracy": [float(best[c]) for c in (probe, f"{probe}_lo", f"{probe}_hi")],
        "best_linear": str(models.loc[models["linear"].idxmax(), "model"]),
        "best_knn": str(models.loc[models["knn"].idxmax(), "model"]),
    }
    if len(models) < 2:
        return out
    second = models.iloc[1]
    a, b = (getattr(records[m["model"]], probe).correct for m in (best, second))
    out["second"], out["second_title"] = str(second["model"]), str(second["title"])
    if len(a) == len(b) == len(groups):
        gap = cluster_mean_interval(
            a.astype(float) - b, groups, n_boot=params["n_boot"], seed=params["seed"]
        )
        out["lead"] = [gap.value, gap.lo, gap.hi]
    return out


def _headline(models: pd.DataFrame, lead: Mapping[str, Any]) -> str:
    title = short_title(models.iloc[0]["title"])
    other = short_title(lead.get("second_title", ""))
    accuracy, low, high = (100 * v for v in lead["best_accuracy"])
    value = f"{accuracy:.1f} % [{low:.1f}, {high:.1f}]"
    how = "with 1-NN" if lead["judge"] == "knn" else "with a linear probe"
    if "second" not in lead:
        return f"{title} reaches {value} {how}; there is nothing to compare."
    gap = lead.get("lead")
    if gap and gap[1] > 0:
        return (
            f"{title} suits this data best: {value} {how}, "
            f"{100 * gap[0]:.1f} points [{100 * gap[1]:.1f}, {100 * gap[2]:.1f}] ahead of "
            f"{other}."
        )
    return f"Cannot tell {title} ({value} {how}) from {other}: their difference is within chance."
