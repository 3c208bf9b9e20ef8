"""Two representations of the same samples: how alike they are, and where they differ."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "linear_cka": "core.compare.cka",
    "mutual_knn": "core.compare.neighbours",
    "procrustes_distance": "core.compare.procrustes",
    "procrustes_similarity": "core.compare.procrustes",
    "rbf_cka": "core.compare.cka",
    "rsa": "core.compare.dissimilarity",
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
