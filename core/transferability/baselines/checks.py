"""Checks every measure shares: rows that are finite, one label a row, classes as 0..C-1."""

from __future__ import annotations

import numpy as np

from core.errors import BadInput


def as_rows(x: np.ndarray, name: str = "x") -> np.ndarray:
    """Return ``x`` as an array (n, d).

    Raises
    ------
    BadInput
        Not two axes, no row or column, or values that are not finite.
    """
    rows = np.asarray(x)
    if rows.ndim != 2 or 0 in rows.shape:
        raise BadInput(f"{name} has shape {rows.shape}, expected (n, d) with n, d >= 1.")
    bad = int(rows.size - np.count_nonzero(np.isfinite(rows)))
    if bad:
        raise BadInput(f"{name} holds {bad} values that are not finite.", "Leave those rows out.")
    return rows


def as_codes(y: np.ndarray, n: int, name: str = "y") -> tuple[np.ndarray, int]:
    """Return labels of any type as codes (n,) in 0..C-1, and C.

    Raises
    ------
    BadInput
        Another length than ``n``.
    """
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise BadInput(f"{name} has shape {labels.shape}, expected ({n},): one label a row.")
    names, codes = np.unique(labels, return_inverse=True)
    return codes, len(names)
