"""The tables of a quality result, one row an encoder, a metric, a ridge or a point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from core.quality.record import Record

MOST_EIGENVALUES = 2048


def encoder_facts(model: str) -> dict[str, str]:
    """Return title, modality, family, arch_class and objective; empty where not known."""
    from core.encoders.catalogue import DEMO

    info = DEMO.get(model)
    if info is None:
        modality = "text" if model.endswith("/text") else ""
        return {
            "title": model, "modality": modality, "family": model.split(":")[0],
            "arch_class": "", "objective": "",
        }  # fmt: skip
    return {
        "title": info.title, "modality": info.modality, "family": info.family,
        "arch_class": info.arch_class, "objective": info.objective,
    }  # fmt: skip


def short_title(title: str) -> str:
    """Return an encoder's title without what stands in brackets.

    Examples
    --------
    >>> short_title("SqueezeNet 1.1 (ImageNet)")
    'SqueezeNet 1.1'
    >>> short_title("LiT-style pair, trained here: ViT-S/14 with MiniLM (image tower)")
    'LiT ViT-S/14'
    """
    lit = title.replace("LiT-style pair, trained here: ", "LiT ")
    return lit.split(" (")[0].split(" with ")[0]


def model_table(params: Mapping[str, Any], records: Mapping[str, Record]) -> pd.DataFrame:
    """Return one row an encoder: what it is, its accuracies and their intervals."""
    rows = []
    for model, r in records.items():
        facts = encoder_facts(model)
        rows.append(
            {
                "model": model, "title": facts["title"], "layer": params["layers"][model],
                "family": facts["family"], "arch_class": facts["arch_class"],
                "objective": facts["objective"], "d": r.linear.d,
                "n_train": r.linear.n_train, "n_test": r.linear.n_test,
                "rows_per_feature": r.linear.rows_per_feature,
                "linear": r.linear.accuracy, "linear_lo": r.linear_interval.lo,
                "linear_hi": r.linear_interval.hi, "linear_per_class": r.linear.per_class,
                "linear_wilson_lo": r.linear.interval.lo, "linear_wilson_hi": r.linear.interval.hi,
                "knn": r.knn.accuracy, "knn_lo": r.knn_interval.lo, "knn_hi": r.knn_interval.hi,
                "knn_per_class": r.knn.per_class, "knn_cosine": r.knn_cosine.accuracy,
            }
        )  # fmt: skip
    return pd.DataFrame(rows).sort_values("linear", ascending=False, ignore_index=True)


def metric_table(records: Mapping[str, Record]) -> pd.DataFrame:
    """Return one row an encoder and metric; a metric's details are named ``metric.detail``."""
    rows = []
    for model, record in records.items():
        for name, metric in record.metrics.items():
            lo, hi = metric.band or (float("nan"), float("nan"))
            rows.append(
                {
                    "model": model, "metric": name, "value": metric.value, "lo": lo, "hi": hi,
                    "n_used": metric.n_used, "flags": " ".join(metric.flags),
                }
            )  # fmt: skip
            rows += [
                {
                    "model": model, "metric": f"{name}.{extra}", "value": value,
                    "lo": float("nan"), "hi": float("nan"), "n_used": metric.n_used, "flags": "",
                }
                for extra, value in metric.detail.items()
            ]  # fmt: skip
    return pd.DataFrame(rows)


def sweep_table(records: Mapping[str, Record]) -> pd.DataFrame:
    """Return the linear probe over ridges, one row an encoder and ridge."""
    rows = [
        {
            "model": model, "ridge": ridge, "accuracy": probe.accuracy,
            "lo": probe.interval.lo, "hi": probe.interval.hi,
            "rows_per_feature": probe.rows_per_feature,
        }
        for model, record in records.items()
        for ridge, probe in record.sweep.items()
    ]  # fmt: skip
    return pd.DataFrame(rows)


def spectrum_table(records: Mapping[str, Record]) -> pd.DataFrame:
    """Return the covariance eigenvalues of every encoder, from the largest."""
    parts = [
        pd.DataFrame({"model": m, "i": np.arange(1, len(top) + 1), "eigenvalue": top})
        for m, record in records.items()
        for top in [record.eigenvalues[:MOST_EIGENVALUES]]
    ]
    return pd.concat(parts, ignore_index=True)


def twonn_table(records: Mapping[str, Record]) -> pd.DataFrame:
    """Return the points of the TwoNN plot of every encoder."""
    parts = [
        pd.DataFrame({"model": m, "ln_mu": record.twonn_x, "height": record.twonn_y})
        for m, record in records.items()
    ]
    return pd.concat(parts, ignore_index=True)


def prediction_table(records: Mapping[str, Record], test: pd.DataFrame, label: str) -> pd.DataFrame:
    """Return what each probe said of each test item; encoders with lost rows are left away."""
    parts = [
        pd.DataFrame(
            {
                "id": test["id"].to_numpy(),
                "model": model,
                "label": test[label].astype(str).to_numpy(),
                "linear": record.linear.predicted.astype(str),
                "knn": record.knn.predicted.astype(str),
            }
        )
        for model, record in records.items()
        if len(record.linear.predicted) == len(test)
    ]
    columns = ["id", "model", "label", "linear", "knn"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def spec_table() -> pd.DataFrame:
    """Return the metrics' titles and meanings, so that a page need not load the metrics."""
    from core.quality.base import metric_specs

    rows = [
        {
            "metric": spec.name, "title": spec.title, "family": spec.family,
            "expected_sign": spec.expected_sign, "meaning": spec.meaning,
            "study": spec.study, "log": spec.log, "unit": spec.unit,
        }
        for spec in metric_specs().values()
    ]  # fmt: skip
    return pd.DataFrame(rows)
