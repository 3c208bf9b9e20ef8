"""Reading features other tools wrote: .npy, .npz, .safetensors, Parquet and HDF5.

Nothing is unpickled. A file is opened, its arrays are named with shape and dtype, and rows are
read block by block, so that memory does not follow the file's size.
"""

from __future__ import annotations

import lzma
import struct
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from core.data.feature_readers import (
    MAX_ARRAYS,
    Array,
    read_hdf5,
    read_npy,
    read_npz,
    read_parquet,
    read_safetensors,
)
from core.errors import BadInput, NotFound, UserError

#: Names under which files carry the items' identity, first found wins. ``index`` is not among
#: them: pandas writes its row numbers under that name, and they say nothing of the items.
ID_NAMES = ("ids", "id", "item_id", "file_names", "file_name", "filename", "filenames", "path",
            "image_paths", "names")  # fmt: skip
SUFFIXES = (".npy", ".npz", ".safetensors", ".parquet", ".h5", ".hdf5")
#: A three-dimensional array with more layers than this holds tokens or pixels.
MAX_LAYERS = 200
_READERS = {".npy": read_npy, ".npz": read_npz, ".safetensors": read_safetensors,
            ".parquet": read_parquet, ".h5": read_hdf5, ".hdf5": read_hdf5}  # fmt: skip
# numpy parses the header of a .npy as Python source: a damaged one fails in the tokenizer.
# A damaged entry of an archive may claim any packing, LZMA among them.
_DAMAGED = (
    ValueError, TypeError, OSError, EOFError, RuntimeError, OverflowError, MemoryError, LookupError,
    SyntaxError, tokenize.TokenError, struct.error,
    zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
_UNSAFE = (".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib")


class Rows:
    """Rows of one layer: a matrix, or one slice of a three-dimensional array.

    Parameters
    ----------
    array : Array, shape (n, d) or three-dimensional
        What is read.
    path : Path
        The file, for messages.
    axis, at : int
        Of a three-dimensional array: the axis of the layers, and which layer. Of the two axes
        left, the first holds the items.

    Attributes
    ----------
    shape : (int, int)
        Rows and columns.
    dtype : dtype
        Of the rows that are read.
    stored : str
        How the file stores them.
    """

    def __init__(self, array: Array, path: Path, axis: int | None = None, at: int = 0) -> None:
        whole = [int(length) for length in array.shape]
        if axis is not None:
            del whole[axis]
        self.shape = (whole[0], whole[1])
        self.dtype = np.dtype(array.dtype)
        self.stored = str(getattr(array, "stored", self.dtype))
        self._array, self._path, self._axis, self._at = array, path, axis, at

    def __getitem__(self, rows: slice) -> np.ndarray:
        place: Any = rows
        if self._axis is not None:
            place = [rows, slice(None)]
            place.insert(self._axis, self._at)
            place = tuple(place)
        with _in_words(self._path):
            return np.asarray(self._array[place])


class Column:
    """One value a row, read as a whole: ids, labels, domains.

    Attributes
    ----------
    shape : (int,)
        Number of rows.
    dtype : dtype
        Numbers, true/false, or texts and bytes (object).
    """

    def __init__(self, array: Array, path: Path) -> None:
        self.shape = (int(array.shape[0]),)
        self.dtype = np.dtype(array.dtype)
        self._array, self._path = array, path

    def __getitem__(self, rows: slice) -> np.ndarray:
        with _in_words(self._path):
            values = np.asarray(self._array[:])
            if values.shape != self.shape:
                raise ValueError(f"{len(values):,} values, {self.shape[0]:,} were declared")
            return values[rows]


@dataclass(frozen=True)
class FeatureFile:
    """An opened file of features.

    Attributes
    ----------
    layers : mapping of str to Rows, shapes (n, d_l)
        Every two-dimensional array of numbers, in the file's order, and every layer of a
        three-dimensional one.
    ids : ndarray of int64 or str, shape (n,), optional
        The items' identity, when the file carries one.
    id_name : str
        Under which name it was found.
    skipped : dict of str to str
        Arrays that are not features, and why.
    columns : dict of str to Column, shapes (n,)
        One value a row: labels, names, numbers; the ids among them.
    layered : dict of str to str
        Three-dimensional arrays, and which axis was taken for what.
    """

    layers: Mapping[str, Rows]
    ids: np.ndarray | None = None
    id_name: str = ""
    skipped: dict[str, str] = field(default_factory=dict)
    columns: dict[str, Column] = field(default_factory=dict)
    layered: dict[str, str] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(next(iter(self.layers.values())).shape[0])


@contextmanager
def open_features(
    path: Path,
    *,
    ids: str = "",
    layer_axis: int | None = None,
    items: int = 0,
    scratch: Path | None = None,
) -> Iterator[FeatureFile]:
    """Open a file of features; arrays are valid inside the ``with`` block.

    Parameters
    ----------
    path : Path
        The file.
    ids : str
        The array or column that holds the ids; by default the first of :data:`ID_NAMES`, and
        "none" for no ids.
    layer_axis : {0, 1, 2}, optional
        The axis of a three-dimensional array that counts layers: 1 for (n, L, d). By default
        1, or 0 when the first axis cannot be the items and the second can.
    items : int
        How many items there should be, for that choice (0: unknown).
    scratch : Path, optional
        Folder for what is unpacked; by default the system's.

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
    if kind not in _READERS:
        hint = "A .pt or .pkl file can run code when it is read." if kind in _UNSAFE else ""
        raise BadInput(
            f"{path.name}: features are read from {', '.join(SUFFIXES)}. {hint}".strip(),
            "Save the array with numpy.save or safetensors.",
        )
    if layer_axis not in (None, 0, 1, 2):
        raise BadInput(f"layer_axis={layer_axis} is no axis.", "Give 0, 1 or 2.")
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(dir=scratch, prefix=".tmp-features-"))
        )
        with _in_words(path, f" as {kind}"):
            arrays = _READERS[kind](path, stack, folder)
            file = _sorted(path, arrays, ids, layer_axis, items)
        yield file


@contextmanager
def _in_words(path: Path, how: str = "") -> Iterator[None]:
    """Turn what a damaged file raises into words that name the file and no folder."""
    try:
        yield
    except UserError:
        raise
    except _DAMAGED as err:
        text = str(err).splitlines()[0] if str(err) else type(err).__name__
        if "pickle" in text.lower():
            text = "it holds Python objects, which are never loaded."
        for place in (str(path.resolve()), str(path)):
            text = text.replace(place, path.name)
        raise BadInput(f"{path.name} cannot be read{how}: {text[:160]}", "Write it again.") from err


def _sorted(
    path: Path, arrays: Mapping[str, Array], ids: str, layer_axis: int | None, items: int
) -> FeatureFile:
    """Tell features from ids and from what is neither."""
    if len(arrays) > MAX_ARRAYS:
        raise BadInput(
            f"{path.name} holds {len(arrays):,} arrays; at most {MAX_ARRAYS:,} are read.",
            "Save the rows of all items as one array, (n, d).",
        )
    flat = {
        name: Column(array, path)
        for name, array in arrays.items()
        if len(array.shape) == 1 and _kind(array) in "iufbSUO"
    }
    id_name = _id_name(path, flat, ids)
    found = _as_ids(path, id_name, flat[id_name]) if id_name else None
    count = items if found is None else len(found)
    layers: dict[str, Rows] = {}
    skipped: dict[str, str] = {}
    layered: dict[str, str] = {}
    for name, array in arrays.items():
        shape = tuple(int(length) for length in array.shape)
        what = f"shape {shape}, {np.dtype(array.dtype)}"
        if name in flat:
            continue
        if _kind(array) == "b":
            skipped[name] = f"{what}: true and false are not features; save them as numbers"
        elif _kind(array) not in "fiu" or 0 in shape or len(shape) not in (2, 3):
            skipped[name] = f"{what}: not rows of numbers"
        elif len(shape) == 2:
            layers[name] = Rows(array, path)
        else:
            axis = _layer_axis(shape, layer_axis, count)
            skipped |= _add_layers(name, array, path, axis, layers, layered)
    n = _one_count(path, layers, skipped, flat)
    if found is not None and len(found) != n:
        raise BadInput(
            f"{path.name}: {len(found):,} ids in {id_name!r} for {n:,} rows.",
            "Write one id a row.",
        )
    for name, array in flat.items():
        if array.shape[0] != n:
            skipped[name] = f"shape {tuple(array.shape)}, {np.dtype(array.dtype)}: not a row each"
    columns = {name: array for name, array in flat.items() if name not in skipped}
    return FeatureFile(layers, found, id_name, skipped, columns, layered)


def _kind(array: Array | Column) -> str:
    return np.dtype(array.dtype).kind


def _id_name(path: Path, flat: Mapping[str, Column], ids: str) -> str:
    """Return the name of the array that holds the ids, "" when there is none."""
    if ids and ids in flat:
        return ids
    if ids == "none":
        return ""
    if ids:
        names = ", ".join(flat) or "none"
        raise BadInput(
            f"ids={ids!r} is not a column of {path.name} with one value a row.",
            f"Such columns: {names}.",
        )
    named = [n for n in flat if _leaf(n) in ID_NAMES and _kind(flat[n]) in "iufSUO"]
    return min(named, key=lambda n: ID_NAMES.index(_leaf(n)), default="")


def _leaf(name: str) -> str:
    return name.rsplit("/", 1)[-1].lower()


def _layer_axis(shape: tuple[int, ...], given: int | None, count: int) -> int:
    if given is not None:
        return given
    return 0 if count and shape[0] != count and shape[1] == count else 1


def _add_layers(
    name: str,
    array: Array,
    path: Path,
    axis: int,
    layers: dict[str, Rows],
    layered: dict[str, str],
) -> dict[str, str]:
    """Add the layers of a three-dimensional array; return why it is none."""
    shape = tuple(int(length) for length in array.shape)
    n_layers = shape[axis]
    if n_layers > MAX_LAYERS:
        return {
            name: f"shape {shape}: {n_layers:,} layers on axis {axis}, at most {MAX_LAYERS}; "
            "pool tokens before, or name the axis of the layers"
        }
    digits = len(str(n_layers - 1))
    for at in range(n_layers):
        layers[f"{name}.{at:0{digits}d}"] = Rows(array, path, axis, at)
    letters = ["n", "d"]
    letters.insert(axis, "L")
    sizes = " x ".join(f"{length:,}" for length in shape)
    layered[name] = f"{sizes} read as ({', '.join(letters)}): {n_layers} layers on axis {axis}"
    return {}


def _one_count(
    path: Path, layers: Mapping[str, Rows], skipped: Mapping[str, str], flat: Mapping[str, Column]
) -> int:
    if not layers:
        others = {n: f"shape {tuple(a.shape)}: one value a row" for n, a in flat.items()}
        what = "; ".join(f"{k}: {v}" for k, v in {**skipped, **others}.items()) or "it is empty"
        raise BadInput(
            f"{path.name} holds no features: {what}.",
            "One row an item, (n, d), or (n, layers, d) is expected.",
        )
    counts = {name: rows.shape[0] for name, rows in layers.items()}
    if len(set(counts.values())) > 1:
        raise BadInput(
            f"{path.name}: layers have different row counts: "
            + ", ".join(f"{k} {v:,}" for k, v in counts.items()) + ".",
            "Give every layer one row an item.",
        )  # fmt: skip
    return next(iter(counts.values()))


def _as_ids(path: Path, name: str, array: Column) -> np.ndarray:
    """Return ids as int64, or as texts; numbers beyond int64 as the texts of their digits."""
    values = np.asarray(array[:])
    if values.dtype.kind == "f":
        bad = np.flatnonzero(~(np.abs(values) < 2**53) | (values != np.floor(values)))
        if len(bad):
            raise BadInput(
                f"{path.name}: {name!r}, row {bad[0]} holds {float(values[bad[0]])}, which is no "
                f"id ({len(bad):,} such rows).",
                "Write whole numbers or texts, one a row.",
            )
        return values.astype(np.int64)
    if values.dtype.kind == "u" and len(values) and int(values.max()) > np.iinfo(np.int64).max:
        return values.astype(str)
    if values.dtype.kind in "iu":
        return values.astype(np.int64)
    strange = [i for i, v in enumerate(values) if not isinstance(v, str | bytes)]
    if strange:
        first = values[strange[0]]
        what = "no value" if first is None else type(first).__name__
        raise BadInput(
            f"{path.name}: {name!r}, row {strange[0]} holds {what} ({len(strange):,} such rows).",
            "Write text or integers, one a row.",
        )
    return np.array([v.decode("utf-8") if isinstance(v, bytes) else str(v) for v in values])
