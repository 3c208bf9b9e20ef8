"""Parquet, Arrow and Feather: checked before they are read, a few rows at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.data.importers.limits import ImportLimits, size
from core.data.importers.rows import Row, check_columns
from core.errors import BadInput
from core.types import LeftOut

if TYPE_CHECKING:
    import pyarrow as pa

# Few rows at a time: one cell may hold a picture of many megabytes.
_BATCH = 64


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
