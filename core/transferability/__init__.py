"""Measures of how well source data will serve a target, and what really happened."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.transferability.gain import GainTable, probe_gain
    from core.transferability.simple import (
        blend_size,
        distance_of_class_means,
        distance_of_means,
    )

_HOME = {
    "GainTable": "core.transferability.gain",
    "blend_size": "core.transferability.simple",
    "distance_of_class_means": "core.transferability.simple",
    "distance_of_means": "core.transferability.simple",
    "probe_gain": "core.transferability.gain",
}

__all__ = [
    "GainTable",
    "blend_size",
    "distance_of_class_means",
    "distance_of_means",
    "probe_gain",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
