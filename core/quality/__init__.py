"""Which model suits my data: label-free metrics, probes, and honest correlations.

Names are loaded when they are asked for: the registry and the published accuracies open
without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "Metric": "base",
    "MetricSpec": "base",
    "metric_specs": "base",
    "label_free_metrics": "label_free",
    "with_bands": "label_free",
    "rankme": "metrics.rankme",
    "ne_sum": "metrics.ne_sum",
    "alpha_req": "metrics.alpha_req",
    "condition_number": "metrics.condition_number",
    "self_cluster": "metrics.self_cluster",
    "diffusion_spectral_entropy": "metrics.diffusion_spectral_entropy",
    "twonn": "metrics.twonn",
    "participation_ratio": "metrics.participation_ratio",
    "stable_rank": "metrics.stable_rank",
    "coherence": "metrics.stable_rank",
    "normalized_std": "metrics.normalized_std",
    "levina_bickel": "metrics.levina_bickel",
    "uniformity": "metrics.uniformity",
    "mst_dimension": "metrics.mst_dimension",
    "cluster_learnability": "metrics.cluster_learnability",
    "clid": "metrics.cluster_learnability",
    "lidar": "metrics.lidar",
    "linear_probe": "probes",
    "knn_probe": "probes",
    "ridge_sweep": "probes",
    "study_correlations": "study",
    "simpson_check": "study",
    "model_registry": "registry",
    "published_accuracy": "registry",
    "published_panel": "published",
    "score_record": "record",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'core.quality' has no attribute {name!r}")
    return getattr(import_module(f"core.quality.{_HOME[name]}"), name)
