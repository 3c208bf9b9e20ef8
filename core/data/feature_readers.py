"""The formats features come in: .npy, .npz, .safetensors, Parquet and HDF5.

Each reader names the arrays of a file and reads none of them. What lies packed (a member of an
.npz, a column of a Parquet file) is written to a temporary .npy block by block when it is first
read, and memory-mapped: memory does not follow the file's size. Nothing is unpickled.
"""

from __future__ import annotations

import math
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from core.errors import BadInput

#: An archive that grows more than this when unpacked is refused before it is.
MAX_RATIO = 200
MAX_BYTES = 64 * 2**30
MAX_ARRAYS = 4000
_BLOCK_ROWS = 1024
_BLOCK_BYTES = 1 << 22


class Array(Protocol):
    """Something of known shape and type that is read by slices."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""

    @property
    def dtype(self) -> Any:
        """Kind of number."""

    def __getitem__(self, at: Any) -> np.ndarray: ...


class Spilled:
    """An array that is written to a temporary .npy at its first read, then memory-mapped."""

    def __init__(
        self, shape: tuple[int, ...], dtype: Any, target: Path, fill: Callable[[Path], None]
    ) -> None:
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self._target, self._fill = target, fill
        self._array: np.ndarray | None = None

    def __getitem__(self, at: Any) -> np.ndarray:
        if self._array is None:
            need = math.prod(self.shape) * self.dtype.itemsize
            free = shutil.disk_usage(self._target.parent).free
            if need > free:
                raise BadInput(
                    f"Unpacking takes {need / 2**20:,.0f} MiB, and {free / 2**20:,.0f} are free.",
                    "Free some space, or save it as .npy.",
                )
            self._fill(self._target)
            self._array = np.load(self._target, mmap_mode="r", allow_pickle=False)
            if self._array.shape != self.shape:
                raise ValueError(f"shape {self._array.shape}, {self.shape} was declared")
        return np.asarray(self._array[at])


class BFloat16:
    """bfloat16 numbers, read as the float32 whose upper half they are."""

    stored = "bfloat16"

    def __init__(self, bits: np.ndarray) -> None:
        self.shape = bits.shape
        self.dtype = np.dtype(np.float32)
        self._bits = bits.view(np.uint16)

    def __getitem__(self, at: Any) -> np.ndarray:
        return np.asarray((self._bits[at].astype(np.uint32) << 16).view(np.float32))


def read_npy(path: Path, stack: ExitStack, scratch: Path) -> dict[str, Array]:
    """Map the one array of a .npy file."""
    with path.open("rb") as handle:
        shape, dtype = _npy_header(handle)
    if 0 in shape:
        raise BadInput(f"{path.name} has shape {shape}: it is empty.", "Save the rows.")
    if dtype.hasobject:
        raise ValueError("Python objects (pickle)")
    return {"features": np.load(path, mmap_mode="r", allow_pickle=False)}


def _npy_header(handle: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(handle)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(handle)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(handle)
    else:
        raise ValueError(f"version {version} of the format is not read")
    return shape, dtype


def read_npz(path: Path, stack: ExitStack, scratch: Path) -> dict[str, Array]:
    """Name the members of a .npz file; each is unpacked to the disk when it is read."""
    archive = stack.enter_context(zipfile.ZipFile(path))
    entries = [entry for entry in archive.infolist() if entry.filename.endswith(".npy")]
    unpacked = sum(entry.file_size for entry in archive.infolist())
    packed = max(1, path.stat().st_size)
    if unpacked > MAX_BYTES or (unpacked > 2**26 and unpacked / packed > MAX_RATIO):
        raise BadInput(
            f"{path.name} would unpack to {unpacked / 2**20:,.0f} MiB from {packed / 2**20:,.1f}.",
            "Save it as .npy or .safetensors.",
        )
    found: dict[str, Array] = {}
    for at, entry in enumerate(entries):
        name = entry.filename.removesuffix(".npy")
        if name in found:
            raise BadInput(f"{path.name} holds {name!r} twice.", "Write it again.")
        with archive.open(entry) as member:
            shape, dtype = _npy_header(member)
        if dtype.hasobject:
            raise ValueError("Python objects (pickle)")
        target = scratch / f"member-{at}.npy"
        found[name] = Spilled(shape, dtype, target, _unpacker(archive, entry))
    return found


def _unpacker(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Callable[[Path], None]:
    def fill(target: Path) -> None:
        # zipfile stops at the declared size and checks the sum at its end.
        with archive.open(entry) as member, target.open("wb") as out:
            shutil.copyfileobj(member, out, _BLOCK_BYTES)

    return fill


def read_safetensors(path: Path, stack: ExitStack, scratch: Path) -> dict[str, Array]:
    """Map the tensors of a safetensors file."""
    from core.errors import WorkspaceError
    from core.workspace.tensors import BFLOAT16, FOREIGN, open_tensors

    try:
        arrays = open_tensors(path, dtypes=FOREIGN)
    except WorkspaceError as err:
        raise ValueError(str(err.__cause__ or "it is damaged")) from err
    return {n: BFloat16(a) if a.dtype == BFLOAT16 else a for n, a in arrays.items()}


class _ParquetColumn:
    """A plain column of a Parquet file, read as a whole when it is asked for."""

    def __init__(self, file: Any, name: str, dtype: Any) -> None:
        self.shape = (file.metadata.num_rows,)
        self.dtype = np.dtype(dtype)
        self._file, self._name = file, name

    def __getitem__(self, at: Any) -> np.ndarray:
        with arrow_words():
            values = self._file.read(columns=[self._name]).column(0)
            return np.asarray(values.to_numpy(zero_copy_only=False)[at])


@contextmanager
def arrow_words() -> Iterator[None]:
    """Turn what Arrow raises into a ``ValueError``: some of its errors are of no other kind."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowException as err:
        raise ValueError(str(err)) from err


def read_parquet(path: Path, stack: ExitStack, scratch: Path) -> dict[str, Array]:
    """Name the columns of a Parquet file: lists of numbers, and plain columns beside them.

    Number columns without any list column are one matrix, named ``features``.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    found: dict[str, Array] = {}
    with arrow_words():
        # With a buffer pages are read as they are needed; without, a whole row group is.
        file = pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
        stack.callback(file.close)
        lists = [c for c in file.schema_arrow if _list_of_numbers(c.type)]
        for at, column in enumerate(lists):
            if file.metadata.num_rows:
                found[column.name] = _list_column(file, column, scratch / f"column-{at}.npy")
        loose = [c.name for c in file.schema_arrow if pa.types.is_floating(c.type)]
        if not lists and loose and file.metadata.num_rows:
            found["features"] = _loose_columns(file, loose, scratch / "columns.npy")
        for column in file.schema_arrow:
            dtype = _plain_type(column.type)
            if dtype is not None and (lists or column.name not in loose):
                found[column.name] = _ParquetColumn(file, column.name, dtype)
    return found


def _list_of_numbers(kind: Any) -> bool:
    import pyarrow as pa

    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not is_list and not pa.types.is_fixed_size_list(kind):
        return False
    return bool(pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type))


def _plain_type(kind: Any) -> str | None:
    """Return the numpy type a plain column is read as, None when it is not read."""
    import pyarrow as pa

    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_string(value) or pa.types.is_large_string(value):
        return "O"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return str(np.dtype(kind.to_pandas_dtype()))
    return "?" if pa.types.is_boolean(kind) else None


def _list_column(file: Any, column: Any, target: Path) -> Array:
    start = next(file.iter_batches(batch_size=1, columns=[column.name]), None)
    if start is None:
        raise ValueError("it holds fewer rows than it declares")
    first = start.column(0)[0].as_py()
    if not first:
        raise BadInput(f"Column {column.name!r}, row 0 is empty.", "Give it its numbers.")
    shape = (int(file.metadata.num_rows), len(first))
    dtype = np.dtype(column.type.value_type.to_pandas_dtype())

    def fill(path: Path) -> None:
        out = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
        for start, batch in _batches(file, [column.name]):
            out[start : start + len(batch)] = _flat(batch.column(0), column.name, shape[1], start)
        out.flush()

    return Spilled(shape, dtype, target, fill)


def _batches(file: Any, names: list[str]) -> Iterator[tuple[int, Any]]:
    """Give the first row's number and the batch; Arrow's pool is emptied at the end."""
    import pyarrow as pa

    start = 0
    with arrow_words():
        for batch in file.iter_batches(
            batch_size=_BLOCK_ROWS, columns=names, use_threads=False
        ):  # fmt: skip
            yield start, batch
            start += len(batch)
            pa.default_memory_pool().release_unused()
    if start != file.metadata.num_rows:
        raise ValueError(f"{start:,} rows, {file.metadata.num_rows:,} were declared")


def _flat(array: Any, name: str, width: int, offset: int) -> np.ndarray:
    """Return a list column as a matrix; a missing or ragged row is named."""
    lengths = np.array(array.value_lengths().fill_null(-1), dtype=np.int64)
    bad = np.flatnonzero(lengths != width)
    if len(bad):
        row, length = int(bad[0]) + offset, int(lengths[bad[0]])
        what = "is missing" if length < 0 else f"has {length} numbers"
        raise BadInput(
            f"Column {name!r}, row {row} {what}; the first row has {width} "
            f"({len(bad)} such rows among the {len(lengths):,} from row {offset}).",
            "Give every row as many numbers.",
        )
    # A missing number inside of a list becomes NaN, and its row is then left out and named.
    values = np.asarray(array.flatten().to_numpy(zero_copy_only=False))
    return values.reshape(-1, width)


def _loose_columns(file: Any, names: list[str], target: Path) -> Array:
    shape = (int(file.metadata.num_rows), len(names))

    def fill(path: Path) -> None:
        out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=shape)
        for start, batch in _batches(file, names):
            for at, name in enumerate(names):
                column = batch.column(batch.schema.get_field_index(name))
                values = column.to_numpy(zero_copy_only=False)
                out[start : start + len(batch), at] = values.astype(np.float64)
        out.flush()

    return Spilled(shape, np.float64, target, fill)


def read_hdf5(path: Path, stack: ExitStack, scratch: Path) -> dict[str, Array]:
    """Name the data sets of an HDF5 file, groups included."""
    try:
        import h5py
    except ImportError as err:
        raise BadInput(
            f"{path.name}: reading HDF5 needs the package h5py.", "pip install h5py"
        ) from err
    file = stack.enter_context(h5py.File(path, "r"))
    found: dict[str, Array] = {}

    def visit(name: str, node: Any) -> None:
        if isinstance(node, h5py.Dataset):
            # External storage would read other files of this machine.
            if node.external or node.is_virtual:
                raise BadInput(
                    f"{path.name}: {name!r} lies in another file.", "Store the array itself."
                )
            found[name] = node

    file.visititems(visit)
    return found
