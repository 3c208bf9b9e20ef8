"""safetensors files: memory-mapped reading, and writing the same bytes each time.

The header is parsed here and each tensor is a view into one ``numpy.memmap``, so that one
layer of many is read without touching the others. Tensors are laid out in the order given,
each in one run of bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from core.errors import WorkspaceError

DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
#: What other tools store besides. numpy has no bfloat16: its bits are given as a named field.
BFLOAT16 = np.dtype([("bfloat16", "<u2")])
FOREIGN: dict[str, np.dtype[Any]] = {
    **DTYPES,
    "I8": np.dtype("i1"),
    "I16": np.dtype("<i2"),
    "U16": np.dtype("<u2"),
    "U32": np.dtype("<u4"),
    "U64": np.dtype("<u8"),
    "BF16": BFLOAT16,
}
# The length is read before anything is known of the file; a header is never this long.
_MAX_HEADER = 64 << 20


def dtype_name(dtype: np.dtype[Any]) -> str | None:
    """Return the safetensors name of ``dtype``, or None when the format has none."""
    return _NAMES.get(dtype.newbyteorder("<"))


def open_tensors(
    path: Path, digest: str = "", dtypes: Mapping[str, np.dtype[Any]] = DTYPES
) -> dict[str, np.ndarray]:
    """Return the tensors of a file as read-only memory-mapped arrays, in file order.

    Parameters
    ----------
    path : Path
        A safetensors file.
    digest : str
        SHA-256 (hex) the file must have; "" leaves it unchecked.
    dtypes : mapping of str to dtype
        The kinds of number that are read; :data:`FOREIGN` for files of other tools.

    Raises
    ------
    WorkspaceError
        The file is missing, cut short, not in the safetensors format or of another digest.
    """
    try:
        mapped = np.memmap(path, dtype=np.uint8, mode="r")
    except FileNotFoundError as err:
        raise WorkspaceError(
            f"{path} is missing.", "Run `theodolite doctor`, then make it again."
        ) from err
    except (OSError, ValueError) as err:
        raise damaged(path, str(err)) from err
    # The mapped bytes themselves are checked, so a file that is replaced meanwhile is no risk.
    if digest and hashlib.sha256(mapped.data).hexdigest() != digest:
        raise damaged(path, "its bytes do not match the recorded digest")
    try:
        entries, start = _header(mapped, dtypes)
    except (ValueError, KeyError, TypeError, AttributeError) as err:
        raise damaged(path, str(err)) from err
    arrays = {}
    for name, spec in entries.items():
        a, b = spec["data_offsets"]
        raw = np.asarray(mapped[start + a : start + b])
        arrays[name] = raw.view(dtypes[spec["dtype"]]).reshape(spec["shape"])
    return arrays


def damaged(path: Path, why: str) -> WorkspaceError:
    """Return the error for a stored file that cannot be trusted."""
    return WorkspaceError(
        f"{path} is damaged ({why}) and was not read.",
        "Run `theodolite doctor --fix` to drop it, then compute it again.",
    )


def _check_layout(
    entries: Mapping[str, Any], size: int, dtypes: Mapping[str, np.dtype[Any]]
) -> None:
    position = 0
    for name, spec in sorted(entries.items(), key=lambda e: e[1]["data_offsets"]):
        start, stop = spec["data_offsets"]
        if spec["dtype"] not in dtypes:
            raise ValueError(f"tensor {name} holds {spec['dtype']} numbers, which are not read")
        expected = dtypes[spec["dtype"]].itemsize * math.prod(spec["shape"])
        if start != position or stop - start != expected:
            raise ValueError(f"tensor {name} has a wrong extent")
        position = stop
    if position != size:
        raise ValueError(f"{size} bytes of data, {position} expected")


def _header(mapped: np.ndarray, dtypes: Mapping[str, np.dtype[Any]]) -> tuple[dict[str, Any], int]:
    """Return the tensors of the header by offset, and where the data begin."""
    length = int.from_bytes(mapped[:8].tobytes(), "little")
    if not 2 <= length <= _MAX_HEADER:
        raise ValueError(f"header length {length}")
    header = json.loads(mapped[8 : 8 + length].tobytes())
    entries = {name: spec for name, spec in header.items() if name != "__metadata__"}
    _check_layout(entries, len(mapped) - 8 - length, dtypes)
    return dict(sorted(entries.items(), key=lambda e: e[1]["data_offsets"])), 8 + length


def write_header(
    handle: BinaryIO, tensors: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]
) -> None:
    """Write the header of a file whose tensors follow in the given order."""
    header: dict[str, Any] = {}
    position = 0
    for name, (dtype, shape) in tensors.items():
        length = dtype.itemsize * math.prod(shape)
        header[name] = {
            "dtype": _NAMES[dtype.newbyteorder("<")],
            "shape": list(shape),
            "data_offsets": [position, position + length],
        }
        position += length
    text = json.dumps(header, separators=(",", ":")).encode()
    # Padded so that the data begin on a multiple of 8 and every view is aligned.
    text += b" " * (-len(text) % 8)
    handle.write(len(text).to_bytes(8, "little"))
    handle.write(text)


def write_tensors(handle: BinaryIO, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays, widest type first and then by name, as a safetensors file."""
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    write_header(handle, {n: (arrays[n].dtype, arrays[n].shape) for n in order})
    for name in order:
        write_rows(handle, [arrays[name]])


def write_rows(handle: BinaryIO, blocks: Iterable[np.ndarray]) -> None:
    """Append blocks of rows, little-endian, in C order."""
    for block in blocks:
        array = np.ascontiguousarray(block, dtype=block.dtype.newbyteorder("<"))
        handle.write(array.reshape(-1).view(np.uint8).data)
