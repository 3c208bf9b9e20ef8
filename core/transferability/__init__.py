"""Measures of how well source data will serve a target, and what really happened."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.transferability.baselines.hscore import h_score
    from core.transferability.baselines.leep import leep
    from core.transferability.baselines.logme import logme
    from core.transferability.baselines.nce import nce
    from core.transferability.baselines.otdd import otdd
    from core.transferability.baselines.sotdd import s_otdd
    from core.transferability.baselines.transrate import transrate
    from core.transferability.gain import GainTable, probe_gain
    from core.transferability.measures import MEASURES, Measure, MeasureTable, measure_blends
    from core.transferability.simple import (
        blend_size,
        distance_of_class_means,
        distance_of_means,
    )

_HOME = {
    "MEASURES": "core.transferability.measures",
    "GainTable": "core.transferability.gain",
    "Measure": "core.transferability.measures",
    "MeasureTable": "core.transferability.measures",
    "blend_size": "core.transferability.simple",
    "distance_of_class_means": "core.transferability.simple",
    "distance_of_means": "core.transferability.simple",
    "h_score": "core.transferability.baselines.hscore",
    "leep": "core.transferability.baselines.leep",
    "logme": "core.transferability.baselines.logme",
    "measure_blends": "core.transferability.measures",
    "nce": "core.transferability.baselines.nce",
    "otdd": "core.transferability.baselines.otdd",
    "probe_gain": "core.transferability.gain",
    "s_otdd": "core.transferability.baselines.sotdd",
    "transrate": "core.transferability.baselines.transrate",
}

__all__ = [
    "MEASURES",
    "GainTable",
    "Measure",
    "MeasureTable",
    "blend_size",
    "distance_of_class_means",
    "distance_of_means",
    "h_score",
    "leep",
    "logme",
    "measure_blends",
    "nce",
    "otdd",
    "probe_gain",
    "s_otdd",
    "transrate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
