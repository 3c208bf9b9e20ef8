"""Contrastive clusters: what one representation holds together and another does not."""

from __future__ import annotations

from typing import Any

_HOMES = {
    "koda": "koda",
    "koda_dense": "koda",
    "koda_features": "koda",
    "koda_kernels": "koda",
    "spec": "spec",
    "spec_dense": "spec",
    "spec_features": "spec",
    "KodaResult": "types",
    "SpecResult": "types",
    "Cluster": "types",
    "extract_clusters": "clusters",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    # Lazily, so that the module `koda` and the function `koda` can share a name and that
    # reading a stored result does not wait for torch.
    if name in _HOMES:
        import importlib

        value = getattr(importlib.import_module(f"core.contrast.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'core.contrast' has no attribute {name!r}")
