"""Files that are whole or absent: temp file in the same folder, fsync, rename."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from core.errors import WorkspaceError

TEMP_PREFIX = ".tmp-"

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


def storage_error(err: OSError, path: Path, doing: str) -> WorkspaceError:
    """Say what an ``OSError`` in the workspace means and what to do about it."""
    reason = err.strerror or str(err)
    if err.errno in _FULL:
        return WorkspaceError(
            f"The disk is full: {doing} {path} failed ({reason}). Nothing half-written was kept.",
            "Free some space, or run `theodolite gc`, then try again.",
        )
    if err.errno in _FORBIDDEN:
        return WorkspaceError(
            f"The workspace cannot be written: {doing} {path} failed ({reason}).",
            "Give this user write permission, or set THEODOLITE_HOME to another folder.",
        )
    if err.errno in {errno.ENOTDIR, errno.EEXIST}:
        return WorkspaceError(
            f"{doing} {path} failed: a file lies where a folder is needed ({reason}).",
            "Name a folder, for instance with THEODOLITE_HOME or --workspace.",
        )
    return WorkspaceError(
        f"{doing} {path} failed: {reason}.",
        "Check the disk and run `theodolite doctor`.",
    )


@contextmanager
def storing(path: Path, doing: str = "Writing") -> Iterator[None]:
    """Turn an ``OSError`` inside the block into a :class:`WorkspaceError` about ``path``."""
    try:
        yield
    except OSError as err:
        raise storage_error(err, path, doing) from err


def temp_beside(path: Path) -> Path:
    """Return an unused temporary name in the folder of ``path``."""
    return path.with_name(f"{TEMP_PREFIX}{uuid.uuid4().hex}{path.suffix}")


def sync_path(path: Path) -> None:
    """Flush a file, or a folder so that a rename in it survives a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a temporary file that becomes ``path`` when the block ends without an error.

    Parameters
    ----------
    path : Path
        The final name; its folder is made.
    durable : bool
        Flush to the disk before the rename. Off for what can be made again (thumbnails).

    Raises
    ------
    WorkspaceError
        The disk is full, read-only or failing; ``path`` is as it was before.
    """
    temp = temp_beside(path)
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temp.open("wb") as handle:
                yield handle
                handle.flush()
                if durable:
                    os.fsync(handle.fileno())
            os.replace(temp, path)
        finally:
            with suppress(OSError):
                temp.unlink(missing_ok=True)
        if durable:
            sync_path(path.parent)


def write_bytes(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write ``data`` so that ``path`` is either whole or untouched."""
    with replacing(path, durable=durable) as handle:
        handle.write(data)


def remove_tree(path: Path) -> None:
    """Remove a file or a folder with all in it; absent is fine."""
    with storing(path, "Removing"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder."""
    if path.is_dir():
        return sum(p.stat().st_size for p in path.rglob("*") if p.is_file())
    return path.stat().st_size
