"""Measure one trained network on the six sets: every label-free metric, two probes, spectra."""

from __future__ import annotations

import resource
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from core.quality.base import Metric, metric_specs
from core.quality.label_free import label_free_metrics, metric_rows
from core.quality.probes import knn_probe, ridge_sweep
from core.quality.record import curves
from core.quality.zoo.nets import count_macs
from core.quality.zoo.plan import ModelSpec
from core.quality.zoo.sets import StudySet
from core.quality.zoo.train import extract, train

if TYPE_CHECKING:
    from torch import nn

RIDGES = (0.0, 1e-6, 1e-4, 1e-2)
METRIC_ROWS = 1000
TWONN_POINTS = 60


def _metric_cells(metrics: dict[str, Metric]) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for name, metric in metrics.items():
        finite = np.isfinite(metric.value)
        cells[f"metric.{name}"] = float(metric.value) if finite else None
        cells[f"flags.{name}"] = ",".join(metric.flags)
        cells[f"n.{name}"] = metric.n_used
    return cells


def _label_free(x: np.ndarray, *, max_rows: int = METRIC_ROWS) -> dict[str, Any]:
    """Return the cells that need no label: metrics and the two curves of the pinned view."""
    cells = _metric_cells(
        label_free_metrics(x, names=list(metric_specs(optional=True)), max_rows=max_rows)
    )
    spectrum, ln_mu, height = curves(x[metric_rows(len(x), max_rows=max_rows)])
    cells["eigenvalues"] = spectrum.astype(np.float32).tolist()
    n_points = min(TWONN_POINTS, len(ln_mu))
    keep = np.unique(np.linspace(0, max(0, len(ln_mu) - 1), n_points).round().astype(int))
    cells["twonn_x"] = ln_mu[keep].astype(np.float32).tolist()
    cells["twonn_y"] = height[keep].astype(np.float32).tolist()
    return cells


def _probed(x: np.ndarray, labels: np.ndarray, train: np.ndarray) -> dict[str, Any]:
    pair = (x[train], labels[train], x[~train], labels[~train])
    sweep = ridge_sweep(*pair, ridges=RIDGES)
    cells: dict[str, Any] = {"n_train": len(pair[0]), "n_test": len(pair[2])}
    cells["n_classes"] = int(labels.max()) + 1
    for ridge, result in sweep.items():
        cells[f"linear.{ridge:g}"] = float(result.accuracy)
    cells["linear"] = cells["linear.1e-06"]
    cells["knn"] = float(knn_probe(*pair).accuracy)
    cells["knn_cosine"] = float(knn_probe(*pair, metric="cosine").accuracy)
    return cells


def measure_features(
    x: np.ndarray, labels: np.ndarray, train: np.ndarray, *, max_rows: int = METRIC_ROWS
) -> dict[str, Any]:
    """Return a row's cells for features that are there already.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Finite features.
    labels, train : ndarray, shape (n,)
        Class codes, and which rows the metrics and the probes' training use.
    max_rows : int
        Rows the metrics rest on at most.
    """
    return _label_free(x[train], max_rows=max_rows) | _probed(x, labels, train)


def measure(
    net: nn.Module, sets: Sequence[StudySet], *, device: str = "cpu"
) -> list[dict[str, Any]]:
    """Return one row of cells a data set.

    Metrics rest on the training rows (a seeded 1,000 of them, the same for every network),
    accuracy on the test rows. A set whose features are not finite gives a row with ``failed``.
    """
    rows, seen = [], {}
    for data in sets:
        if data.pixels not in seen:
            x = extract(net, data.images, device=device)
            bad = int((~np.isfinite(x).all(1)).sum())
            seen[data.pixels] = (x, bad, {} if bad else _label_free(x[data.train]))
        x, bad, cells = seen[data.pixels]
        row: dict[str, Any] = {"dataset": data.name, "n": len(x), "failed": ""}
        if bad:
            row["failed"] = f"{bad} of {len(x)} pictures have features that are not finite"
        else:
            row |= cells | _probed(x, data.labels, data.train)
        rows.append(row)
    return rows


def study_model(
    spec: ModelSpec,
    images: np.ndarray,
    labels: np.ndarray,
    sets: Sequence[StudySet],
    *,
    device: str = "cpu",
) -> dict[str, Any]:
    """Train and measure one network.

    Returns
    -------
    dict
        ``spec``, what the network is (params, macs, features, last loss), ``rows`` (one a
        data set) and what it cost (CPU seconds of training and measuring, peak memory).
    """
    start = time.process_time()
    net, loss = train(spec, images, labels, device=device)
    trained = time.process_time()
    rows = measure(net, sets, device=device)
    return {
        "spec": spec.as_dict(),
        "name": spec.name,
        "family": spec.family,
        "n_params": sum(p.numel() for p in net.parameters()),
        "macs": count_macs(net),
        "d": int(net.num_features),  # type: ignore[arg-type]
        "last_loss": loss if np.isfinite(loss) else None,
        "rows": rows,
        "cpu_train_s": round(trained - start, 2),
        "cpu_measure_s": round(time.process_time() - trained, 2),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
