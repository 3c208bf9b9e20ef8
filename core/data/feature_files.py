"""Reading features other tools wrote: .npy, .npz, .safetensors, Parquet and HDF5.

Nothing is unpickled. A file is opened, its arrays are named with shape and dtype, and rows are
read block by block, so that memory does not follow the file's size.
"""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from core.errors import BadInput, NotFound

#: Names under which files carry the items' identity, first found wins.
ID_NAMES = ("ids", "id", "item_id", "file_names", "file_name", "filename", "filenames", "path",
            "image_paths", "names", "index")  # fmt: skip
SUFFIXES = (".npy", ".npz", ".safetensors", ".parquet", ".h5", ".hdf5")
#: An archive that grows more than this when unpacked is refused before it is.
MAX_RATIO = 200
MAX_BYTES = 64 * 2**30


class Rows(Protocol):
    """An array that is read by slices of rows."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    @property
    def dtype(self) -> Any:
        """Kind of number."""

    def __getitem__(self, at: slice) -> np.ndarray: ...


@dataclass(frozen=True)
class FeatureFile:
    """An opened file of features.

    Attributes
    ----------
    layers : mapping of str to Rows, shapes (n, d_l)
        Every two-dimensional array of numbers, in the file's order.
    ids : ndarray of int64 or str, shape (n,), optional
        The items' identity, when the file carries one.
    id_name : str
        Under which name it was found.
    skipped : dict of str to str
        Arrays that are not features, and why.
    """

    layers: Mapping[str, Rows]
    ids: np.ndarray | None = None
    id_name: str = ""
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(next(iter(self.layers.values())).shape[0])


@contextmanager
def open_features(path: Path) -> Iterator[FeatureFile]:
    """Open a file of features; arrays are valid inside the ``with`` block.

    Raises
    ------
    NotFound
        There is no such file.
    BadInput
        The format is unknown, the file is damaged, holds Python objects, or no features.
    """
    if not path.is_file():
        raise NotFound(f"There is no file {path.name}.", "Check the path.")
    kind = path.suffix.lower()
    openers = {".npy": _npy, ".npz": _npz, ".safetensors": _safetensors, ".parquet": _parquet,
               ".h5": _hdf5, ".hdf5": _hdf5}  # fmt: skip
    if kind not in openers:
        hint = "A .pt or .pkl file can run code when it is read." if kind in _UNSAFE else ""
        raise BadInput(
            f"{path.name}: features are read from {', '.join(SUFFIXES)}. {hint}".strip(),
            "Save the array with numpy.save or safetensors.",
        )
    with ExitStack() as stack:
        try:
            arrays = openers[kind](path, stack)
        except BadInput:
            raise
        except _DAMAGED as err:
            raise BadInput(
                f"{path.name} cannot be read as {kind}: {_short(err)}", "Write it again."
            ) from err
        try:
            yield _sorted(path, arrays)
        except (OSError, RuntimeError, OverflowError, MemoryError) as err:
            # Rows are read inside the block, and a damaged file fails only there.
            raise BadInput(f"{path.name} cannot be read: {_short(err)}", "Write it again.") from err


# numpy parses the header of a .npy as Python source: a damaged one fails in the tokenizer.
_DAMAGED = (
    ValueError, TypeError, OSError, EOFError, RuntimeError, OverflowError, MemoryError, KeyError,
    SyntaxError, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
_UNSAFE = (".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib")


def _short(err: BaseException) -> str:
    text = str(err).splitlines()[0] if str(err) else type(err).__name__
    if "pickle" in text.lower() or "object" in text.lower():
        return "it holds Python objects, which are never loaded."
    return text[:160]


def _sorted(path: Path, arrays: Mapping[str, Any]) -> FeatureFile:
    """Tell features from ids and from what is neither."""
    layers: dict[str, Rows] = {}
    skipped: dict[str, str] = {}
    found: tuple[str, np.ndarray] | None = None
    for name, array in arrays.items():
        shape, kind = tuple(array.shape), np.dtype(array.dtype).kind
        leaf = name.rsplit("/", 1)[-1].lower()
        if len(shape) == 1 and leaf in ID_NAMES and kind in "iuSUO":
            if found is None or ID_NAMES.index(leaf) < ID_NAMES.index(found[0].rsplit("/")[-1]):
                found = (name, _as_ids(path, name, array))
        elif len(shape) == 2 and kind in "fiub" and shape[1]:
            layers[name] = array
        else:
            skipped[name] = f"shape {shape}, {np.dtype(array.dtype)}: not rows of numbers"
    if not layers:
        what = "; ".join(f"{k}: {v}" for k, v in skipped.items()) or "it is empty"
        raise BadInput(
            f"{path.name} holds no features: {what}.", "One row an item, (n, d), is expected."
        )
    counts = {name: rows.shape[0] for name, rows in layers.items()}
    if len(set(counts.values())) > 1:
        raise BadInput(
            f"{path.name}: layers have different row counts: "
            + ", ".join(f"{k} {v:,}" for k, v in counts.items()) + ".",
            "Give every layer one row an item.",
        )  # fmt: skip
    if found is not None and len(found[1]) != next(iter(counts.values())):
        raise BadInput(
            f"{path.name}: {len(found[1]):,} ids in {found[0]!r} for "
            f"{next(iter(counts.values())):,} rows.",
            "Write one id a row.",
        )
    name, ids = found or ("", None)
    return FeatureFile(layers, ids, name, skipped)


def _as_ids(path: Path, name: str, array: Any) -> np.ndarray:
    values = np.asarray(array[:])
    if values.dtype.kind in "iu":
        return values.astype(np.int64)
    if values.dtype.kind == "O" and not all(isinstance(v, str | bytes) for v in values):
        raise BadInput(f"{path.name}: {name!r} holds Python objects.", "Write text or integers.")
    return np.array([v.decode("utf-8") if isinstance(v, bytes) else str(v) for v in values])


def _npy(path: Path, stack: ExitStack) -> dict[str, Any]:
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    return {"features": array}


def _npz(path: Path, stack: ExitStack) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
        packed = max(1, path.stat().st_size)
        if unpacked > MAX_BYTES or (unpacked > 2**26 and unpacked / packed > MAX_RATIO):
            raise BadInput(
                f"{path.name} would unpack to {unpacked / 2**20:,.0f} MiB from "
                f"{packed / 2**20:,.1f}.",
                "Save it as .npy or .safetensors.",
            )
    pack = stack.enter_context(np.load(path, allow_pickle=False))
    return {name: pack[name] for name in pack.files}


def _safetensors(path: Path, stack: ExitStack) -> dict[str, Any]:
    from core.errors import WorkspaceError
    from core.workspace.tensors import open_tensors

    try:
        return dict(open_tensors(path))
    except WorkspaceError as err:
        raise ValueError(err.message) from err


class _ListColumn:
    """A Parquet column of equally long number lists, read by row groups."""

    def __init__(self, file: Any, name: str, width: int) -> None:
        self._file, self._name = file, name
        self.shape = (file.metadata.num_rows, width)
        self.dtype = np.dtype(np.float32)
        self._starts = np.cumsum(
            [0, *(file.metadata.row_group(i).num_rows for i in range(file.num_row_groups))]
        )
        self._kept: tuple[int, np.ndarray] = (-1, np.empty((0, width)))

    def __getitem__(self, at: slice) -> np.ndarray:
        start, stop, _ = at.indices(self.shape[0])
        parts = []
        while start < stop:
            group = int(np.searchsorted(self._starts, start, side="right") - 1)
            rows = self._group(group)
            first = start - self._starts[group]
            taken = rows[first : first + stop - start]
            parts.append(taken)
            start += len(taken)
        return np.concatenate(parts) if parts else np.empty((0, self.shape[1]), self.dtype)

    def _group(self, group: int) -> np.ndarray:
        if self._kept[0] != group:
            column = self._file.read_row_group(group, columns=[self._name]).column(0)
            self._kept = (group, _flat(column, self._name, self.shape[1], self._starts[group]))
        return self._kept[1]


def _flat(column: Any, name: str, width: int, offset: int) -> np.ndarray:
    """Return a list column as a matrix; a missing or ragged row is named."""
    import pyarrow as pa

    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    lengths = np.array(array.value_lengths().fill_null(-1), dtype=np.int64)
    bad = np.flatnonzero(lengths != width)
    if len(bad):
        row, length = int(bad[0]) + int(offset), int(lengths[bad[0]])
        what = "is missing" if length < 0 else f"has {length} numbers"
        raise BadInput(
            f"Column {name!r}, row {row} {what}; the first row has {width} "
            f"({len(bad)} such rows in this group).",
            "Give every row as many numbers.",
        )
    values = np.asarray(array.flatten().to_numpy(zero_copy_only=False))
    if values.dtype.kind not in "fiu":
        raise BadInput(f"Column {name!r} holds {values.dtype}.", "Lists of numbers are expected.")
    return values.reshape(-1, width)


def _parquet(path: Path, stack: ExitStack) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except pa.ArrowException as err:
        raise ValueError(str(err)) from err
    stack.callback(file.close)
    found: dict[str, Any] = {}
    for column in file.schema_arrow:
        if pa.types.is_list(column.type) or pa.types.is_large_list(column.type) or (
            pa.types.is_fixed_size_list(column.type)
        ):  # fmt: skip
            if file.metadata.num_rows == 0:
                continue
            first = file.read_row_group(0, columns=[column.name]).column(0)[0].as_py()
            if not first:
                raise BadInput(f"Column {column.name!r}, row 0 is empty.", "Give it its numbers.")
            found[column.name] = _ListColumn(file, column.name, len(first))
        elif column.name.lower() in ID_NAMES:
            values = file.read(columns=[column.name]).column(0)
            if values.null_count:
                raise BadInput(
                    f"Column {column.name!r} lacks {values.null_count} ids.", "Fill them in."
                )
            found[column.name] = np.asarray(values.to_numpy(zero_copy_only=False))
    if not found:
        numeric = [c.name for c in file.schema_arrow if pa.types.is_floating(c.type)]
        if numeric:
            table = file.read(columns=numeric).to_pandas()
            found["features"] = table.to_numpy()
    return found


def _hdf5(path: Path, stack: ExitStack) -> dict[str, Any]:
    try:
        import h5py
    except ImportError as err:
        raise BadInput(
            f"{path.name}: reading HDF5 needs the package h5py.", "pip install h5py"
        ) from err
    file = stack.enter_context(h5py.File(path, "r"))
    found: dict[str, Any] = {}

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
