"""Joining rows to items by id: which column of the dataset the ids are, and what fits.

Every unique column of the dataset is tried, and the one that holds the ids is taken. Nothing is
joined by luck: a doubled id, an id of no item, an item without a row and ids that fit two
columns in different ways are refused with the rows named.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from core.errors import BadInput
from core.types import LeftOut

if TYPE_CHECKING:
    from core.data.dataset import Dataset

#: Rows named in a refusal or a report.
NAMED = 8
# Columns that describe items and never name them.
_NOT_IDS = {"label", "domain", "split", "caption"}


@dataclass(frozen=True)
class Match:
    """Which row of a file is which item.

    Attributes
    ----------
    column : str
        The dataset's column the ids were found in.
    keys : list of str
        The file's ids as text, a row each.
    place : ndarray of int64, shape (n,)
        The item's row in the dataset for each row of the file, -1 when it is none of them.
    lacking : ndarray of int64
        Rows of the dataset that no row of the file is.
    shifted : int
        1 or -1 when adding it to every id would make an item of each, else 0.
    """

    column: str
    keys: list[str]
    place: np.ndarray
    lacking: np.ndarray
    shifted: int = 0

    @property
    def unknown(self) -> np.ndarray:
        """Rows of the file that are no item, int64."""
        return np.flatnonzero(self.place < 0)

    @property
    def n_matched(self) -> int:
        """Rows that are an item."""
        return int((self.place >= 0).sum())

    @property
    def whole(self) -> bool:
        """Every row is an item and every item has its row."""
        return not len(self.unknown) and not len(self.lacking)


def match_ids(data: Dataset, ids: np.ndarray, *, source: str, column: str = "") -> Match:
    """Find the items that ids name.

    Parameters
    ----------
    data : Dataset
    ids : ndarray of int64 or str, shape (n,)
        As the file holds them.
    source : str
        Name of the file, for messages.
    column : str
        The dataset's column to look in; by default the one in which most are found. File
        names count by their last part when no whole path is found.

    Raises
    ------
    BadInput
        An id comes twice (rows are named), no such column, or ids that fit two columns in
        different ways.
    """
    keys = [_plain(str(v)) for v in ids]
    _refuse_doubled(keys, source)
    tables = _tables(data, column)
    places = {name: _place(table, keys) for name, table in tables.items()}
    counts = {name: int((place >= 0).sum()) for name, place in places.items()}
    best = max(counts, key=lambda name: counts[name])
    if not counts[best]:
        best, places[best] = _by_name(tables, keys) or (best, places[best])
    else:
        _refuse_ambiguous(source, keys, best, places, counts)
    place = places[best]
    lacking = np.setdiff1d(np.arange(data.n), place[place >= 0])
    shifted = 0
    if ids.dtype.kind in "iu" and (len(lacking) or (place < 0).any()):
        shifted = _shift(tables[best], ids, int((place >= 0).sum()))
    return Match(best, keys, place, lacking, shifted)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text.replace("\\", "/").strip())


def _refuse_doubled(keys: Sequence[str], source: str) -> None:
    first: dict[str, int] = {}
    twice: dict[str, list[int]] = {}
    for row, key in enumerate(keys):
        if key in first:
            twice.setdefault(key, [first[key]]).append(row)
        first.setdefault(key, row)
    if twice:
        key, rows = next(iter(twice.items()))
        raise BadInput(
            f"{source}: {len(twice):,} ids occur more than once, for instance {key!r} in rows "
            f"{', '.join(map(str, rows[:NAMED]))}.",
            "Give each item one row.",
        )


def _tables(data: Dataset, column: str) -> dict[str, dict[str, int]]:
    """Return value -> row of each column that names every item, the items' own id first."""
    items = data.items
    if column and column not in items.columns:
        raise BadInput(
            f"match={column!r} is not a column of {data.name!r}.",
            f"Columns: {', '.join(map(str, items.columns))}.",
        )
    names = [column] if column else ["id", *(c for c in items.columns if c != "id")]
    found = {}
    for name in map(str, names):
        values = items[name].to_numpy()
        if not column and (name in _NOT_IDS or values.dtype.kind not in "iuO"):
            continue
        table = {_plain(str(value)): row for row, value in enumerate(values)}
        if len(table) == data.n and "" not in table:
            found[name] = table
        elif column:
            raise BadInput(
                f"match={column!r}: {data.n:,} items of {data.name!r} have {len(table):,} "
                "different values there.",
                "Choose a column with a value of its own for each item.",
            )
    return found


def _place(table: dict[str, int], keys: Sequence[str]) -> np.ndarray:
    return np.array([table.get(key, -1) for key in keys], dtype=np.int64)


def _refuse_ambiguous(
    source: str,
    keys: Sequence[str],
    best: str,
    places: dict[str, np.ndarray],
    counts: dict[str, int],
) -> None:
    for name, place in places.items():
        differ = np.flatnonzero((place != places[best]) & (place >= 0) & (places[best] >= 0))
        if counts[name] == counts[best] and len(differ):
            raise BadInput(
                f"{source}: its ids are values of {best!r} and of {name!r}, for different items "
                f"({keys[int(differ[0])]!r} in row {differ[0]}, {len(differ):,} such rows).",
                "Say which column they are: match, or --match on the command line.",
            )


def _by_name(
    tables: dict[str, dict[str, int]], keys: Sequence[str]
) -> tuple[str, np.ndarray] | None:
    """Return the match by bare file names where they are unique on both sides."""
    bare = [key.rsplit("/", 1)[-1] for key in keys]
    if len(set(bare)) < len(bare):
        return None
    for name, table in tables.items():
        short = {key.rsplit("/", 1)[-1]: row for key, row in table.items()}
        place = _place(short, bare)
        if len(short) == len(table) and (place >= 0).any():
            return name, place
    return None


def _shift(table: dict[str, int], ids: np.ndarray, matched: int) -> int:
    # Ranges that overlap gain a row by a shift, too: it counts only where it explains them all.
    for step in (-1, 1):
        if matched < len(ids) and all(str(int(v) + step) in table for v in ids):
            return step
    return 0


def refuse_mismatch(data: Dataset, match: Match, *, source: str, partial: bool) -> None:
    """Refuse a match that is not whole, unless a part is asked for.

    Raises
    ------
    BadInput
        Ids of no item or items without a row, which are named; ids that look shifted by one,
        or none that fits, even where a part is asked for.
    """
    if match.whole:
        return
    unknown, lacking = match.unknown, match.lacking
    said = []
    if len(unknown):
        shown = ", ".join(f"{match.keys[int(i)]!r} in row {i}" for i in unknown[:NAMED])
        said.append(
            f"{len(unknown):,} of {len(match.keys):,} ids are not items of {data.name!r} ({shown}"
            f"{', ...' if len(unknown) > NAMED else ''})"
        )
    if len(lacking):
        names = data.ids
        shown = ", ".join(str(int(names[i])) for i in lacking[:NAMED])
        said.append(
            f"{len(lacking):,} of {data.n:,} items have no row ({shown}"
            f"{', ...' if len(lacking) > NAMED else ''})"
        )
    message = f"{source}: {'; '.join(said)}."
    if match.shifted:
        raise BadInput(
            f"{message} The ids look shifted by one: {match.shifted:+d} would match them all.",
            "Number them as the dataset does; rows of their neighbours are never taken.",
        )
    if not match.n_matched:
        raise BadInput(message, "Check that the file belongs to this dataset.")
    if not partial:
        raise BadInput(
            message,
            "Mend the ids, or ask for the rows that match: partial, or --partial on the command "
            "line.",
        )


def join(data: Dataset, match: Match) -> tuple[np.ndarray, list[LeftOut]]:
    """Return pairs (item row, file row), int64 (m, 2), in the items' order, and the report."""
    lines = [
        LeftOut(f"row {i}", f"id {match.keys[int(i)]!r} is not an item of {data.name}")
        for i in match.unknown[:NAMED]
    ]
    if len(match.unknown) > NAMED:
        more = len(match.unknown) - NAMED
        lines.append(LeftOut("further rows", "ids that are not items", more))
    known = np.flatnonzero(match.place >= 0)
    order = known[np.argsort(match.place[known], kind="stable")]
    names = data.ids
    lines += [
        LeftOut(f"item {names[i]}", "the file has no row for it") for i in match.lacking[:NAMED]
    ]
    if len(match.lacking) > NAMED:
        more = len(match.lacking) - NAMED
        lines.append(LeftOut("further items", "no row in the file", more))
    return np.c_[match.place[order], order], lines


def pairs_in_order(data: Dataset, n: int, *, source: str, said: bool) -> np.ndarray:
    """Return the pairs of a file without ids, whose rows are the items in their order.

    Raises
    ------
    BadInput
        The user did not say so, or the counts differ.
    """
    if not said:
        raise BadInput(
            f"{source} carries no ids, so its rows cannot be joined to {data.name!r}.",
            f"Add an array named 'ids', name the column that holds them, or say that its rows "
            f"are in the dataset's order ({data.n:,} items).",
        )
    if n != data.n:
        raise BadInput(
            f"{source} has {n:,} rows; {data.name!r} has {data.n:,} items.",
            "Rows without ids must be as many as the items. Write ids beside them.",
        )
    return np.c_[np.arange(n), np.arange(n)]
