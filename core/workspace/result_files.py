"""The files of one result: ``result.json``, ``tables/*.parquet``, ``arrays.safetensors``."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.digest import bytes_digest, canonical
from core.errors import BadInput, WorkspaceError
from core.types import LeftOut
from core.workspace.files import storing, sync_path, write_bytes
from core.workspace.tensors import damaged, dtype_name, open_tensors, write_tensors

if TYPE_CHECKING:
    import pandas as pd

    from core.results import Result

FILE = "result.json"
ARRAYS = "arrays.safetensors"
_TABLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def save_result(folder: Path, result: Result, inputs: Mapping[str, str], version: int) -> str:
    """Write a result into a new folder and return the digest of its ``result.json``.

    Raises
    ------
    BadInput
        Something in it has a type that is not stored.
    WorkspaceError
        The disk is full or read-only.
    """
    files = {f"tables/{n}.parquet": _table_bytes(n, t) for n, t in result.tables.items()}
    if result.arrays:
        files[ARRAYS] = _array_bytes(result.arrays)
    about = {
        "kind": result.kind,
        "key": result.key,
        "params": result.params,
        "inputs": dict(inputs),
        "code_version": version,
        "summary": result.summary,
        "left_out": [line.as_dict() for line in result.left_out],
        "seconds": result.seconds,
        "created": result.created,
        "versions": result.versions,
        "tables": list(result.tables),
        "arrays": list(result.arrays),
        "files": {name: bytes_digest(data) for name, data in files.items()},
    }
    try:
        # NaN is kept: a metric that is undefined at the given input says so.
        text = json.dumps(_plain(about), indent=1).encode()
    except TypeError as err:
        raise BadInput(
            f"The result of {result.kind!r} cannot be stored ({err}).", "Use plain JSON types."
        ) from err
    with storing(folder):
        (folder / "tables").mkdir(parents=True)
    for name, data in files.items():
        write_bytes(folder / name, data)
    write_bytes(folder / FILE, text)
    return bytes_digest(text)


def load_result(folder: Path, digest: str) -> Result:
    """Read a result whose ``result.json`` has the given digest.

    Raises
    ------
    WorkspaceError
        A file is missing or does not match its digest; nothing of it is returned.
    """
    import pandas as pd
    import pyarrow as pa

    from core.results import Result

    text = _read(folder / FILE, digest)
    about = json.loads(text)
    tables = {}
    for name in about["tables"]:
        path = folder / "tables" / f"{name}.parquet"
        data = _read(path, about["files"][f"tables/{name}.parquet"])
        try:
            tables[name] = pd.read_parquet(io.BytesIO(data))
        except pa.ArrowException as err:
            raise damaged(path, str(err)) from err
    arrays: dict[str, np.ndarray] = {}
    if about["arrays"]:
        mapped = open_tensors(folder / ARRAYS, about["files"][ARRAYS])
        arrays = {name: mapped[name] for name in about["arrays"]}
    return Result(
        kind=about["kind"],
        params=about["params"],
        summary=about["summary"],
        tables=tables,
        arrays=arrays,
        left_out=tuple(LeftOut(**line) for line in about["left_out"]),
        key=about["key"],
        seconds=about["seconds"],
        created=about["created"],
        versions=about["versions"],
    )


def copy_verified(source: Path, target: Path) -> None:
    """Copy the files that ``result.json`` names, and nothing else that lies there."""
    about = json.loads((source / FILE).read_text("utf-8"))
    with storing(target):
        (target / "tables").mkdir(parents=True)
        for name in (*about["files"], FILE):
            shutil.copyfile(source / name, target / name)
        sync_path(target)


def _read(path: Path, digest: str) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as err:
        raise _missing_or_damaged(path) from err
    if bytes_digest(data) != digest:
        raise _missing_or_damaged(path)
    return data


def _missing_or_damaged(path: Path) -> WorkspaceError:
    if not path.is_file():
        return WorkspaceError(
            f"The stored result file {path} is missing.",
            "Run `theodolite doctor --fix` to drop it, then run the analysis again.",
        )
    return damaged(path, "its bytes do not match the recorded digest")


def _table_bytes(name: str, table: pd.DataFrame) -> bytes:
    import pyarrow as pa

    if not _TABLE.fullmatch(name):
        raise BadInput(f"table name {name!r} cannot be a file name.", "Use letters, digits, _.")
    out = io.BytesIO()
    try:
        table.to_parquet(out, compression="zstd")
    except (pa.ArrowException, ValueError, TypeError) as err:
        raise BadInput(
            f"Table {name!r} cannot be stored ({err}).", "Use columns of one plain type each."
        ) from err
    return out.getvalue()


def _array_bytes(arrays: Mapping[str, np.ndarray]) -> bytes:
    plain = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in plain.items():
        if dtype_name(array.dtype) is None:
            raise BadInput(
                f"Array {name!r} has dtype {array.dtype}, which is not stored.",
                "Use float64, float32, int64, int32 or bool.",
            )
    out = io.BytesIO()
    write_tensors(out, plain)
    return out.getvalue()


def _plain(value: Any) -> Any:
    """Turn numpy scalars, arrays and tuples into plain JSON types; keep the order of keys."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, set | frozenset):
        return canonical(value)
    return value
