"""What every table gives: named columns and numbered rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from core.data.importers.limits import ImportLimits
from core.errors import BadInput
from core.types import LeftOut

_SPLITS = {"train", "training", "val", "valid", "validation", "dev", "test", "testing", "eval"}


@dataclass(frozen=True)
class Row:
    """One row: its number in the table from 1, and its cells in the order of the columns."""

    at: int
    cells: list[Any]


class Reader(Protocol):
    """A table that is read row by row."""

    name: str
    columns: list[str]
    facts: dict[str, str]
    # Column to the names of its classes, where the file carries them.
    classes: dict[str, list[str]]

    def rows(self) -> Iterator[Row | LeftOut]:
        """Give the rows."""

    def count(self) -> int | None:
        """Return how many rows there are, None where only reading them tells."""


def split_of(name: str) -> str:
    """Return the split a file or folder is named for, or "".

    Examples
    --------
    >>> split_of("train-00000-of-00002.parquet"), split_of("Validation"), split_of("cats")
    ('train', 'validation', '')
    """
    word = Path(name).name.lower().split(".")[0].split("-")[0].split("_")[0]
    return word if word in _SPLITS else ""


def check_columns(columns: list[str], name: str, limits: ImportLimits) -> list[str]:
    """Return the columns' names as text, each different, none empty.

    Raises
    ------
    BadInput
        None, or more than the limit.
    """
    if not columns:
        raise BadInput(f"{name} has no columns.", "Give a table with a header and rows.")
    if len(columns) > limits.columns:
        raise BadInput(
            f"{name} has {len(columns):,} columns; at most {limits.columns:,} are read.",
            "Leave some out, or raise THEODOLITE_IMPORT_COLUMNS.",
        )
    seen: set[str] = set()
    clean = []
    for at, given in enumerate(columns, 1):
        text = str(given).encode("utf-8", "replace").decode().replace("\0", "").strip()[:100]
        plain = text or f"column {at}"
        unique, twin = plain, 2
        while unique in seen:
            unique, twin = f"{plain} ({twin})", twin + 1
        seen.add(unique)
        clean.append(unique)
    return clean
