"""RADAR (arXiv 2605.23028): which source data will help a target, from frozen features.

Names are looked up on first use: importing this package does not import torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.linalg.divergence import SymKL, symmetric_kl
    from core.radar.score import radar_score, rank_blends
    from core.radar.triplets import triplet_descriptors
    from core.radar.types import BlendRanking, Descriptors, Domain, RadarConfig, RadarResult

_HOME = {
    "BlendRanking": "core.radar.types",
    "Descriptors": "core.radar.types",
    "Domain": "core.radar.types",
    "RadarConfig": "core.radar.types",
    "RadarResult": "core.radar.types",
    "SymKL": "core.linalg.divergence",
    "radar_score": "core.radar.score",
    "rank_blends": "core.radar.score",
    "symmetric_kl": "core.linalg.divergence",
    "triplet_descriptors": "core.radar.triplets",
}

__all__ = [
    "BlendRanking",
    "Descriptors",
    "Domain",
    "RadarConfig",
    "RadarResult",
    "SymKL",
    "radar_score",
    "rank_blends",
    "symmetric_kl",
    "triplet_descriptors",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
