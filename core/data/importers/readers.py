"""Tables, row by row: CSV, JSON lines, Parquet, Arrow, Feather, saved data sets, data frames.

A reader names its columns and gives its rows one after another, so that memory does not grow
with the table. A row that cannot be read is given as a :class:`LeftOut` and the rest goes on.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from core.data.importers.limits import ImportLimits, size
from core.data.importers.sniff import SEPARATORS, TextForm, text_form
from core.errors import BadInput
from core.types import LeftOut

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

# Few rows at a time: one cell may hold a picture of many megabytes.
_BATCH = 64
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


class _Columnar:
    """What Parquet and Arrow share: a schema with class names, and batches of rows."""

    def __init__(self, name: str, schema: pa.Schema, n: int | None, limits: ImportLimits) -> None:
        self.name = name
        self.facts: dict[str, str] = {}
        self.columns = check_columns(list(schema.names), name, limits)
        self.classes = class_names(schema, self.columns)
        self._n, self._limits = n, limits
        if n is not None and n > limits.rows:
            raise BadInput(
                f"{name} has {n:,} rows; at most {limits.rows:,} are read.",
                "Cut it, or raise THEODOLITE_IMPORT_ROWS.",
            )

    def count(self) -> int | None:
        """Return the number of rows the file states, None when it is broken."""
        import pyarrow as pa

        if self._n is None:
            # Batches of a mapped file are counted without being read.
            with suppress(pa.ArrowException, OSError, ValueError, OverflowError):
                self._n = sum(batch.num_rows for batch in self._batches())
        return self._n

    def rows(self) -> Iterator[Row | LeftOut]:
        """Give the rows, a few at a time."""
        import pyarrow as pa

        at = 0
        try:
            for batch in self._batches():
                # A made-up file may point outside of its own buffers: reading such a cell
                # would end the process.
                batch.validate(full=True)
                for start in range(0, batch.num_rows, _BATCH):
                    part = batch.slice(start, _BATCH)
                    columns = [_values(column) for column in part.columns]
                    for cells in zip(*columns, strict=True):
                        at += 1
                        yield Row(at, list(cells))
        except (pa.ArrowException, OSError, ValueError, OverflowError) as err:
            yield LeftOut(f"{self.name} after row {at:,}", f"cannot be read: {str(err)[:200]}")

    def _batches(self) -> Iterator[pa.RecordBatch]:
        raise AssertionError("each format reads its own batches")


def _values(column: pa.Array) -> list[Any]:
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        # A text column whose bytes are no UTF-8: kept apart until the row is cleaned.
        import pyarrow as pa

        raw = column.cast(pa.large_binary()).to_pylist()
        return [None if v is None else v.decode("utf-8", "surrogateescape") for v in raw]


class ParquetReader(_Columnar):
    """A Parquet file."""

    def __init__(self, path: Path, name: str, limits: ImportLimits) -> None:
        import pyarrow as pa
        from pyarrow import parquet as pq

        try:
            self._file = pq.ParquetFile(path, pre_buffer=False)
            schema = self._file.schema_arrow
            meta = self._file.metadata
            n_bytes = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
        except (pa.ArrowException, OSError, ValueError, OverflowError) as err:
            raise _broken(name, "Parquet", err) from err
        if n_bytes > limits.total_bytes or n_bytes < 0:
            raise BadInput(f"{name} unpacks to {size(n_bytes)}.", "Cut it into parts.")
        super().__init__(name, schema, meta.num_rows, limits)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        yield from self._file.iter_batches(batch_size=_BATCH)


class ArrowReader(_Columnar):
    """An Arrow file, stream or Feather 2 file."""

    def __init__(
        self, path: Path, name: str, limits: ImportLimits, *, stream: bool = False
    ) -> None:
        import pyarrow as pa

        self._path, self._stream = path, stream
        try:
            with self._open() as source:
                schema, n = source.schema, None
                if not stream:
                    n = sum(source.get_batch(i).num_rows for i in range(source.num_record_batches))
        except (pa.ArrowException, OSError, ValueError, OverflowError) as err:
            raise _broken(name, "Arrow", err) from err
        super().__init__(name, schema, n, limits)

    def _open(self) -> Any:
        import pyarrow as pa

        source = pa.memory_map(str(self._path))
        return pa.ipc.open_stream(source) if self._stream else pa.ipc.open_file(source)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        with self._open() as source:
            if self._stream:
                yield from source
            else:
                yield from (source.get_batch(i) for i in range(source.num_record_batches))


def _broken(name: str, form: str, err: Exception) -> BadInput:
    return BadInput(
        f"{name} cannot be read as {form} ({str(err)[:200]}).", "Save it again and try once more."
    )


def class_names(schema: pa.Schema, columns: list[str]) -> dict[str, list[str]]:
    """Return the class names that the ``datasets`` library keeps in a schema, by column."""
    raw = (schema.metadata or {}).get(b"huggingface")
    if not raw:
        return {}
    try:
        features = json.loads(raw)["info"]["features"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return names_in(features, columns)


def names_in(features: Any, columns: list[str]) -> dict[str, list[str]]:
    """Return the class names among the features of a saved data set, by column."""
    found: dict[str, list[str]] = {}
    for column in columns:
        feature = features.get(column) if isinstance(features, dict) else None
        names = feature.get("names") if isinstance(feature, dict) else None
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            found[column] = names
    return found


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
