"""Contrastive clusters: what one representation holds together and another does not."""

from __future__ import annotations

from typing import Any

_HOMES = {
    "koda": "methods",
    "koda_dense": "methods",
    "koda_features": "methods",
    "koda_kernels": "methods",
    "spec": "baseline",
    "spec_dense": "baseline",
    "spec_features": "baseline",
    "KodaResult": "types",
    "SpecResult": "types",
    "Cluster": "types",
    "extract_clusters": "clusters",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    # Lazily: a page that shows a stored result must not wait for torch.
    if name in _HOMES:
        import importlib

        value = getattr(importlib.import_module(f"core.contrast.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'core.contrast' has no attribute {name!r}")
