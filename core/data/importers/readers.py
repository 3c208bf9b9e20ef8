"""Tables, row by row: CSV, JSON lines, Parquet, Arrow, Feather, saved data sets, data frames.

A reader names its columns and gives its rows one after another, so that memory does not grow
with the table. A row that cannot be read is given as a :class:`LeftOut` and the rest goes on.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.data.importers.columnar import ArrowReader, ParquetReader
from core.data.importers.limits import ImportLimits, size
from core.data.importers.rows import Reader, Row, check_columns
from core.data.importers.sniff import SEPARATORS, TextForm, text_form
from core.errors import BadInput
from core.types import LeftOut

if TYPE_CHECKING:
    import pandas as pd


def open_reader(
    path: Path,
    limits: ImportLimits,
    *,
    name: str = "",
    encoding: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
) -> Reader:
    """Open a table by what its file really holds.

    Raises
    ------
    BadInput
        Not a table that is read here, broken, too large, or without rows.
    """
    name = name or path.name
    n_bytes = path.stat().st_size
    if n_bytes == 0:
        raise BadInput(f"{name} is empty.", "Give a table with a header and rows.")
    if n_bytes > limits.table_bytes:
        raise BadInput(
            f"{name} has {size(n_bytes)}; at most {size(limits.table_bytes)} are read.",
            "Cut it, or raise THEODOLITE_IMPORT_TABLE_BYTES.",
        )
    with path.open("rb") as handle:
        head = handle.read(16)
    if head.startswith(b"PAR1"):
        return ParquetReader(path, name, limits)
    if head.startswith(b"ARROW1"):
        return ArrowReader(path, name, limits)
    if head.startswith(b"FEA1"):
        raise BadInput(f"{name} is Feather version 1.", "Save it as version 2, or as Parquet.")
    if head.startswith(b"\xff\xff\xff\xff") or path.suffix == ".arrow":
        return ArrowReader(path, name, limits, stream=True)
    if path.suffix.lower() in {".jsonl", ".ndjson"}:
        return JsonLines(path, name, limits, encoding)
    if path.suffix.lower() == ".json":
        return JsonArray(path, name, limits, encoding)
    if path.suffix.lower() in {".parquet", ".feather"}:
        raise BadInput(f"{name} is not a {path.suffix[1:]} file by its content.", "Save it again.")
    form = text_form(path, encoding=encoding, separator=separator, header=header)
    return CsvReader(path, name, limits, form)


class CsvReader:
    """Comma-, semicolon- or tab-separated text."""

    def __init__(self, path: Path, name: str, limits: ImportLimits, form: TextForm) -> None:
        self.name = name
        self.classes: dict[str, list[str]] = {}
        self._path, self._form, self._limits = path, form, limits
        self.facts = {
            "encoding": f"{form.encoding} ({form.why})",
            "separator": SEPARATORS.get(form.separator, form.separator),
            "header": "the first line names the columns" if form.header else "none",
        }
        first = next(iter(self._records()), None)
        if first is None:
            raise BadInput(f"{name} holds no rows.", "Give a table with a header and rows.")
        given = first[1] if form.header else [f"column {i + 1}" for i in range(len(first[1]))]
        self.columns = check_columns(given, name, limits)

    def rows(self) -> Iterator[Row | LeftOut]:
        """Give the rows; one with another number of fields is left out."""
        width = len(self.columns)
        skip = 1 if self._form.header else 0
        for at, (line, cells) in enumerate(self._records(), 1 - skip):
            if at < 1:
                continue
            if at > self._limits.rows:
                yield LeftOut(
                    f"{self.name} from row {at:,}", f"more than {self._limits.rows:,} rows"
                )
                return
            if len(cells) != width:
                yield LeftOut(
                    f"{self.name} row {at:,} (line {line:,})",
                    f"it has {len(cells)} fields, {width} were expected",
                )
                continue
            yield Row(at, cells)

    def count(self) -> int | None:
        """Return the number of rows, by reading them; None for a file of over 256 MB."""
        if self._path.stat().st_size > 256_000_000:
            return None
        return max(0, sum(1 for _ in self._records()) - (1 if self._form.header else 0))

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        # One cell may be as long as a caption or a picture in base64.
        csv.field_size_limit(min(2 * self._limits.file_bytes, sys.maxsize))
        # Bytes outside the encoding become lone surrogates; rows say what was repaired.
        with self._path.open(
            encoding=self._form.encoding, errors="surrogateescape", newline=""
        ) as text:
            reader = csv.reader(text, delimiter=self._form.separator)
            try:
                for cells in reader:
                    if cells and any(cells):
                        yield reader.line_num, cells
            except (csv.Error, UnicodeError) as err:
                raise BadInput(
                    f"{self.name} cannot be read at line {reader.line_num + 1:,} ({err}).",
                    "Check the quotes there, the separator and the encoding.",
                ) from err


class JsonLines:
    """One JSON object a line; the columns are those of the first hundred objects."""

    def __init__(self, path: Path, name: str, limits: ImportLimits, encoding: str | None) -> None:
        from core.data.importers.sniff import encoding_of

        self.name = name
        self.classes: dict[str, list[str]] = {}
        self._path, self._limits = path, limits
        self._encoding, why = (encoding, "as you chose") if encoding else encoding_of(path)
        self.facts = {"encoding": f"{self._encoding} ({why})"}
        names: dict[str, None] = {}
        for body in _take(self._objects(), 100):
            if isinstance(body, tuple):
                names.update(dict.fromkeys(body[1]))
        self._keys = list(names)
        if not self._keys:
            raise BadInput(f"{name} holds no JSON objects.", "Write one object a line.")
        self.columns = check_columns(self._keys, name, limits)

    def rows(self) -> Iterator[Row | LeftOut]:
        """Give the rows; a line that is no object is left out."""
        for body in self._objects():
            if isinstance(body, LeftOut):
                yield body
            elif body[0] > self._limits.rows:
                more = f"more than {self._limits.rows:,} rows"
                yield LeftOut(f"{self.name} from row {body[0]:,}", more)
                return
            else:
                yield Row(body[0], [body[1].get(key) for key in self._keys])

    def count(self) -> int | None:
        """Return the number of lines that are not blank."""
        if self._path.stat().st_size > 256_000_000:
            return None
        with self._path.open("rb") as handle:
            return sum(1 for line in handle if line.strip())

    def _objects(self) -> Iterator[tuple[int, dict[str, Any]] | LeftOut]:
        longest = 2 * self._limits.file_bytes
        with self._path.open(encoding=self._encoding, errors="surrogateescape") as text:
            at = 0
            while line := text.readline(longest):
                if not line.strip():
                    continue
                at += 1
                body = parse_object(line)
                if isinstance(body, str):
                    yield LeftOut(f"{self.name} row {at:,}", body)
                else:
                    yield at, body


def parse_object(line: str) -> dict[str, Any] | str:
    """Return the object a line holds, or why it holds none."""
    try:
        body = json.loads(line)
    except (ValueError, RecursionError) as err:
        return f"no valid JSON ({str(err)[:120]})"
    if not isinstance(body, dict):
        return f"a JSON {type(body).__name__}, an object was expected"
    return {str(key): value for key, value in body.items()}


class JsonArray:
    """One JSON array of objects, read whole."""

    _MOST = 256_000_000

    def __init__(self, path: Path, name: str, limits: ImportLimits, encoding: str | None) -> None:
        from core.data.importers.sniff import encoding_of

        self.name = name
        self.classes: dict[str, list[str]] = {}
        if path.stat().st_size > self._MOST:
            raise BadInput(f"{name} is one JSON array of over 256 MB.", "Write it as JSON lines.")
        found, why = (encoding, "as you chose") if encoding else encoding_of(path)
        self.facts = {"encoding": f"{found} ({why})"}
        try:
            body = json.loads(path.read_text(found, errors="surrogateescape"))
        except (ValueError, RecursionError, LookupError) as err:
            raise BadInput(
                f"{name} is no valid JSON ({str(err)[:120]}).", "Write one object a line (.jsonl)."
            ) from err
        if not isinstance(body, list) or not body or not isinstance(body[0], dict):
            raise BadInput(f"{name} is no array of objects.", "Write one object a line (.jsonl).")
        self._rows = body[: limits.rows]
        keys = {str(k): None for item in body[:100] if isinstance(item, dict) for k in item}
        self._keys = list(keys)
        self.columns = check_columns(self._keys, name, limits)

    def rows(self) -> Iterator[Row | LeftOut]:
        """Give the rows."""
        for at, body in enumerate(self._rows, 1):
            if isinstance(body, dict):
                yield Row(at, [body.get(key) for key in self._keys])
            else:
                yield LeftOut(f"{self.name} row {at:,}", "an object was expected")

    def count(self) -> int | None:
        """Return the number of elements."""
        return len(self._rows)


class FrameReader:
    """A data frame in memory; its cells may be pictures."""

    def __init__(self, frame: pd.DataFrame, name: str, limits: ImportLimits) -> None:
        self.name = name
        self.classes: dict[str, list[str]] = {}
        self.facts: dict[str, str] = {}
        self._frame = frame
        self.columns = check_columns([str(c) for c in frame.columns], name, limits)

    def rows(self) -> Iterator[Row | LeftOut]:
        """Give the rows."""
        for at, cells in enumerate(self._frame.itertuples(index=False, name=None), 1):
            yield Row(at, list(cells))

    def count(self) -> int | None:
        """Return the number of rows."""
        return len(self._frame)


def _take(items: Iterator[Any], most: int) -> Iterator[Any]:
    for _, item in zip(range(most), items, strict=False):
        yield item
