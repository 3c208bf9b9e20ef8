"""Rows as they are stored, block by block: which of them can be used, and why not the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from core.data.feature_files import Rows
from core.data.feature_match import NAMED
from core.types import LeftOut

# Why a row is not taken; the first two always, the last two unless they are asked for.
_REASONS = ("NaN or infinite", "a value beyond float32 (3.4e38)", "all zero",
            "all values the same")  # fmt: skip
_FLAT = (2, 3)
#: Rows of a permuted file that are read in one run, at most.
RUN = 64 * 4096


class Tally:
    """Rows that are not taken: the first few by name, all of them by count.

    Parameters
    ----------
    keep_flat : bool
        Take rows that are all zero or all one value; they are named all the same.

    Attributes
    ----------
    left : int
        Rows left out so far.
    """

    def __init__(self, keep_flat: bool = False) -> None:
        self.keep_flat = keep_flat
        self.left = 0
        self._named: list[LeftOut] = []
        self._counts: Counter[tuple[str, int]] = Counter()

    def add(self, layer: str, code: int, ids: np.ndarray, rows: np.ndarray) -> bool:
        """Count rows of one reason; say whether they are to be left out."""
        kept = self.keep_flat and code in _FLAT
        before = self._counts[layer, code]
        self._counts[layer, code] += len(ids)
        words = f"layer {layer}: {_REASONS[code]}{', kept as asked' if kept else ''}"
        for i in range(min(len(ids), NAMED - before)):
            self._named.append(
                LeftOut(f"item {ids[i]}", f"row {rows[i]}, {words}", 0 if kept else 1)
            )
        return not kept

    def lines(self) -> list[LeftOut]:
        """Return the lines of the report."""
        more = [
            LeftOut(f"further rows, layer {layer}", _REASONS[code], n - NAMED)
            for (layer, code), n in self._counts.items()
            if n > NAMED and not (self.keep_flat and code in _FLAT)
        ]
        return [*self._named, *more]


def read_rows(
    layers: Mapping[str, Rows], ids: np.ndarray, rows: np.ndarray, tally: Tally
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the layers of some rows in float32, and which of the rows can be used.

    Parameters
    ----------
    layers : mapping of str to Rows
        The opened file's layers.
    ids, rows : ndarray of int64, shape (m,)
        The items, and their rows in the file.
    tally : Tally
        Counts what is left out.

    Returns
    -------
    arrays : dict of str to ndarray of float32, shape (m, d_l)
        All rows, the bad ones among them.
    good : ndarray of bool, shape (m,)
        Rows that every layer can use.
    """
    arrays: dict[str, np.ndarray] = {}
    good = np.ones(len(ids), dtype=bool)
    for name, array in layers.items():
        given = block(array, rows)
        with np.errstate(over="ignore"):
            arrays[name] = given.astype(np.float32)
        codes = _codes(given, arrays[name])
        for code in range(len(_REASONS)):
            # A row that another layer has ruled out is named once.
            hit = good & (codes == code)
            if hit.any() and tally.add(name, code, ids[hit], rows[hit]):
                good &= ~hit
                tally.left += int(hit.sum())
    return arrays, good


def _codes(given: np.ndarray, single: np.ndarray) -> np.ndarray:
    """Return for each row the index of the first of ``_REASONS`` that holds, -1 for none."""
    finite = np.isfinite(given).all(axis=1) if given.dtype.kind == "f" else np.True_
    tests = (
        ~finite & np.ones(len(given), dtype=bool),
        ~np.isfinite(single).all(axis=1),
        ~single.any(axis=1),
        (single == single[:, :1]).all(axis=1) & (single.shape[1] > 1),
    )
    return np.select(tests, range(len(tests)), default=-1)


def block(array: Rows, at: np.ndarray) -> np.ndarray:
    """Return the rows ``at`` as they are stored; the file is read in runs, never at random."""
    low, high = int(at.min()), int(at.max()) + 1
    if high - low <= 4 * len(at):
        return array[low:high][at - low]
    order = np.argsort(at, kind="stable")
    taken = np.empty((len(at), array.shape[1]), dtype=np.dtype(array.dtype))
    for start in range(0, len(at), 64):
        some = order[start : start + 64]
        first, last = int(at[some[0]]), int(at[some[-1]]) + 1
        if last - first <= RUN:
            taken[some] = array[first:last][at[some] - first]
        else:
            for i in some:
                taken[i] = array[int(at[i]) : int(at[i]) + 1][0]
    return taken
