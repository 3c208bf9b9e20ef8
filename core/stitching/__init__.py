"""Swap the encoder and keep the head: relative representations, PARAM anchors, WIP.

Names are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "relative": "core.stitching.representation",
    "Spectrum": "core.linalg.whitening",
    "Whitening": "core.linalg.whitening",
    "spectrum": "core.linalg.whitening",
    "whitening_stats": "core.linalg.whitening",
    "random_anchors": "core.stitching.anchors",
    "fps_anchors": "core.stitching.anchors",
    "kmeans_anchors": "core.stitching.anchors",
    "mixture_anchors": "core.stitching.anchors",
    "effective_support": "core.stitching.anchors",
    "ParamAnchors": "core.stitching.param",
    "ParamOptions": "core.stitching.param",
    "learn_anchors": "core.stitching.param",
    "ShrinkageChoice": "core.stitching.auto",
    "choose_shrinkage": "core.stitching.auto",
    "Head": "core.stitching.heads",
    "fit_head": "core.stitching.heads",
    "METHODS": "core.stitching.methods",
    "StitchOptions": "core.stitching.setting",
    "prepare": "core.stitching.setting",
    "StitchResult": "core.stitching.matrix",
    "run_method": "core.stitching.matrix",
    "stitch_matrix": "core.stitching.matrix",
    "Translator": "core.stitching.translate",
    "fit_translator": "core.stitching.translate",
    "compare_methods": "core.stitching.comparison",
    "method_intervals": "core.stitching.comparison",
    "Kit": "core.stitching.kit",
    "build_kit": "core.stitching.kit",
    "load_kit": "core.stitching.kit_files",
    "save_kit": "core.stitching.kit_files",
    "match_ranks": "core.stitching.ranking",
    "retrieval": "core.stitching.ranking",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
