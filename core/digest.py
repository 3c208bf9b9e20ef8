"""Content keys: the same recipe has the same key on every machine."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np


def canonical(value: Any) -> Any:
    """Turn ``value`` into plain JSON types, so that equal recipes give equal text."""
    if isinstance(value, dict):
        return {str(k): canonical(value[k]) for k in sorted(value, key=str)}
    if isinstance(value, list | tuple):
        return [canonical(v) for v in value]
    if isinstance(value, set | frozenset):
        return sorted(canonical(v) for v in value)
    if isinstance(value, np.generic):
        return canonical(value.item())
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"A recipe holds plain values only, got {type(value).__name__}.")


def recipe_key(recipe: dict[str, Any]) -> str:
    """Return the SHA-256 (hex) of a recipe in canonical JSON.

    Examples
    --------
    >>> recipe_key({"b": 1, "a": 2.0}) == recipe_key({"a": 2, "b": 1})
    True
    """
    text = json.dumps(canonical(recipe), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def bytes_digest(data: bytes) -> str:
    """Return the SHA-256 (hex) of ``data``."""
    return hashlib.sha256(data).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 (hex) of a file, read in blocks."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def array_digest(array: np.ndarray) -> str:
    """Return the SHA-256 (hex) of an array's dtype, shape and bytes."""
    head = f"{array.dtype.str}{array.shape}".encode()
    return hashlib.sha256(head + np.ascontiguousarray(array).tobytes()).hexdigest()
