"""A source of rows: a tree of pictures, or tables with the files beside them.

Whatever a stranger brings becomes the same thing here: named columns, rows one after another,
and a tree in which the pictures they name are looked up.
"""

from __future__ import annotations

import abc
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from core.data.importers.cells import is_missing, picture_bytes
from core.data.importers.limits import ImportLimits
from core.data.importers.lookup import Lookup
from core.data.importers.rows import Reader, Row, split_of
from core.data.importers.trees import PICTURES, Tree, read, shown, suffix
from core.types import LeftOut

FILE, NAME, TABLE = "file", "file name", "table"


class Source(abc.ABC):
    """Named columns and their rows.

    Attributes
    ----------
    title, form : str
        The source's own name, and what it is: "folder of pictures", "table", ...
    columns : list of str
        Columns of every row.
    facts : dict of str to str
        How it is read: encoding, separator, tables used.
    notes : list of str
        What is worth knowing before the import.
    left_out : list of LeftOut
        Files that are not even looked at.
    preset : dict of str to (role, why)
        Columns whose role is known from how the source is built.
    classes : dict of str to list of str
        Names of the classes of columns that hold class numbers.
    tree : Tree or None
        Where the pictures lie.
    exact : bool
        Cells are names of the tree as they stand; nothing has to be looked up.
    """

    form = "table"
    exact = False

    def __init__(self, title: str, limits: ImportLimits, tree: Tree | None = None) -> None:
        self.title = title
        self.limits = limits
        self.columns: list[str] = []
        self.facts: dict[str, str] = {}
        self.notes: list[str] = []
        self.left_out: list[LeftOut] = []
        self.preset: dict[str, tuple[str, str]] = {}
        self.classes: dict[str, list[str]] = {}
        self.tree = tree
        self.scratch: list[Path] = []
        # Pictures that some row should name; those that none does are reported.
        self.pictures: set[str] = set()

    @cached_property
    def lookup(self) -> Lookup | None:
        """Where the files that cells name are found."""
        return Lookup(self.tree) if self.tree is not None else None

    @abc.abstractmethod
    def rows(self) -> Iterator[tuple[Row, str] | LeftOut]:
        """Give every row with the folder its paths are relative to, or why it is left out."""

    @abc.abstractmethod
    def count(self) -> int | None:
        """Return the number of rows, None when only reading them tells."""

    @abc.abstractmethod
    def where(self, row: Row) -> str:
        """Return what a row is called in a report."""

    def close(self) -> None:
        """Close files and remove what was unpacked."""
        if self.tree is not None:
            self.tree.close()
        for folder in self.scratch:
            shutil.rmtree(folder, ignore_errors=True)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PictureSource(Source):
    """Pictures in folders: the columns are the file, its folders and its name."""

    exact = True

    def __init__(self, tree: Tree, limits: ImportLimits, form: str) -> None:
        super().__init__(tree.title, limits, tree)
        self.form = form
        self._pictures: list[str] = []
        others: list[str] = []
        for name in tree.names:
            (self._pictures if suffix(name) in PICTURES else others).append(name)
        self.left_out = [*tree.left_out]
        for name in others:
            why = f"not a picture by its name ({suffix(name) or 'no ending'})"
            self.left_out.append(LeftOut(shown(name), why))
        self.left_out += [
            LeftOut(f"{shown(folder)}/", "the folder is empty: no class is made of it", 0)
            for folder in tree.empty_folders
        ]
        self._levels = [PurePosixPath(name).parts[:-1] for name in self._pictures]
        self._depth = max((len(level) for level in self._levels), default=0)
        self.columns = [FILE, *(f"folder {i + 1}" for i in range(self._depth)), NAME]
        self._preset()

    def rows(self) -> Iterator[tuple[Row, str] | LeftOut]:
        """Give one row a picture, in the order of the names."""
        for at, (name, folders) in enumerate(zip(self._pictures, self._levels, strict=True), 1):
            missing = self._depth - len(folders)
            yield Row(at, [name, *folders, *[""] * missing, title_of(name)]), ""

    def count(self) -> int | None:
        """Return the number of pictures."""
        return len(self._pictures)

    def where(self, row: Row) -> str:
        """Return the file's name."""
        return shown(row.cells[0])

    def _preset(self) -> None:
        self.preset = {FILE: ("image", "the files themselves"),
                       NAME: ("caption", "made from the file's name")}  # fmt: skip
        levels = [[lv[i] if len(lv) > i else "" for lv in self._levels] for i in range(self._depth)]
        guessed = folder_roles(levels)
        for i, (role, why) in enumerate(guessed):
            self.preset[f"folder {i + 1}"] = (role, why)
        label = next((i for i, (role, _) in enumerate(guessed) if role == "label"), None)
        if label is not None:
            bare = sum(not name for name in levels[label])
            if bare:
                self.notes.append(f"{bare:,} pictures lie in no class folder and get no class.")
        elif self._pictures:
            self.notes.append("No class is made of the folders; choose one below if there is one.")


def title_of(name: str) -> str:
    """Return a file's name as words.

    Examples
    --------
    >>> title_of("cats/black_cat-2.png")
    'black cat 2'
    """
    return re.sub(r"[_\-\s]+", " ", PurePosixPath(shown(name)).stem).strip()


def folder_roles(levels: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """Guess what each level of folders is; a level with one name tells nothing.

    Examples
    --------
    >>> [role for role, _ in folder_roles([["cats", "dogs"]])]
    ['label']
    >>> [role for role, _ in folder_roles([["real", "real", "sketch"], ["ox", "ant", "ox"]])]
    ['domain', 'label']
    """
    roles = [("ignore", "one folder for all: no class is invented") for _ in levels]
    free = []
    for i, names in enumerate(levels):
        distinct = {name for name in names if name}
        if distinct and all(split_of(name) == name.lower() for name in distinct):
            roles[i] = ("split", f"its folders are named {', '.join(sorted(distinct)[:3])}")
        elif len(distinct) > 1:
            free.append(i)
    if not free:
        return roles
    label = free[0]
    if len(free) > 1 and _crossed(levels[free[0]], levels[free[1]]):
        roles[free[0]] = ("domain", "the same folders come again below each of its folders")
        label = free[1]
    roles[label] = ("label", f"{len(set(levels[label]) - {''}):,} folders")
    for i in free:
        if i not in {label, free[0]}:
            roles[i] = ("keep", "a further level of folders")
    return roles


def _crossed(outer: Sequence[str], inner: Sequence[str]) -> bool:
    # Domains hold the same classes: most inner names occur below several outer ones.
    below: dict[str, set[str]] = {}
    for one, two in zip(outer, inner, strict=True):
        if two:
            below.setdefault(two, set()).add(one)
    several = sum(len(found) > 1 for found in below.values())
    return bool(below) and several >= len(below) / 2


class TableSource(Source):
    """One or several tables of the same columns, and the files they name.

    Parameters
    ----------
    readers : list of (Reader, str)
        Each table with the folder its paths are relative to.
    tree : Tree, optional
        Where the pictures lie.
    """

    def __init__(
        self,
        title: str,
        readers: list[tuple[Reader, str]],
        limits: ImportLimits,
        tree: Tree | None = None,
        form: str = "table",
    ) -> None:
        super().__init__(title, limits, tree)
        self.form = form
        first = readers[0][0]
        self._readers = [pair for pair in readers if pair[0].columns == first.columns]
        for reader, _ in readers:
            if reader.columns != first.columns:
                why = f"its columns differ from those of {first.name}"
                self.left_out.append(LeftOut(reader.name, why))
        self.columns = [*first.columns]
        self.classes = dict(first.classes)
        self.facts = dict(first.facts)
        self._splits = [split_of(r.name) or split_of(base) for r, base in self._readers]
        self._many = len(self._readers) > 1
        if self._many:
            self.facts["tables"] = f"{len(self._readers)}: {first.name} and others"
            self.columns.append(TABLE)
            if all(self._splits):
                self.preset[TABLE] = ("split", "by the names of the tables")

    def rows(self) -> Iterator[tuple[Row, str] | LeftOut]:
        """Give the rows of all tables; their numbers go on from table to table."""
        offset = 0
        for (reader, base), split in zip(self._readers, self._splits, strict=True):
            last = 0
            for row in reader.rows():
                if isinstance(row, LeftOut):
                    yield row
                    continue
                last = row.at
                extra = [split or reader.name] if self._many else []
                yield Row(offset + row.at, [*row.cells, *extra]), base
            offset += last

    def count(self) -> int | None:
        """Return the number of rows of all tables."""
        counts = [reader.count() for reader, _ in self._readers]
        return None if None in counts else sum(n for n in counts if n is not None)

    def where(self, row: Row) -> str:
        """Return the row's number."""
        return f"row {row.at:,}"

    def base(self) -> str:
        """Return the folder of the first table."""
        return self._readers[0][1]


def file_column(
    rows: list[tuple[list[Any], str]], columns: list[str], lookup: Lookup
) -> int | None:
    """Return the column whose cells name files of the tree in most rows, None when none does."""
    hits: Counter[int] = Counter()
    for cells, base in rows:
        for at, cell in enumerate(cells[: len(columns)]):
            if isinstance(cell, str) and not is_missing(cell) and lookup.has(cell, base):
                hits[at] += 1
    if not hits:
        return None
    at, n = hits.most_common(1)[0]
    return at if n > len(rows) / 2 else None


def picture_of(source: Source, cell: Any, base: str, limits: ImportLimits) -> tuple[bytes, str]:
    """Return the bytes of the picture a cell of a source means, and its file's name.

    Raises
    ------
    BadInput
        As :func:`core.data.importers.cells.picture_bytes`.
    """
    if source.exact and source.tree is not None:
        return read(source.tree, str(cell), limits.file_bytes), str(cell)
    return picture_bytes(cell, limits, source.tree, source.lookup, base)
