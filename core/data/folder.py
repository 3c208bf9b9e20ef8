"""Import a folder of pictures: one sub-folder a class, captions from the file names.

A broken picture is left out and named in the outcome report; it never becomes a black one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from core.data.images import open_rgb
from core.errors import BadInput, NotFound
from core.types import LeftOut

if TYPE_CHECKING:
    from core.data.dataset import Dataset
    from core.workspace import Workspace

SUFFIXES = {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff"}
_MAX_BYTES = 64 * 2**20


def import_folder(
    workspace: Workspace,
    folder: Path,
    *,
    name: str | None = None,
    progress: Callable[[float, str], None] | None = None,
) -> Dataset:
    """Import the pictures under ``folder`` as a dataset.

    Parameters
    ----------
    workspace : Workspace
        Where the dataset is kept.
    folder : Path
        The first level of sub-folders gives the labels; pictures that lie in ``folder``
        itself have none. Links are not followed out of the folder.
    name : str, optional
        Name of the dataset; made from the folder's name when not given.
    progress : callable, optional
        Called with a fraction and a message; may raise ``Cancelled``.

    Raises
    ------
    NotFound
        The folder does not exist.
    BadInput
        It is no folder, or no file in it is a picture that can be read.
    """
    folder = Path(folder)
    if not folder.exists():
        raise NotFound(f"There is no folder {folder}.", "Check the path.")
    if not folder.is_dir():
        raise BadInput(f"{folder} is a file, a folder was expected.", "Give the folder it lies in.")
    paths = sorted(_files(folder), key=lambda path: path.relative_to(folder).as_posix())
    taken: list[Path] = []
    left_out: list[LeftOut] = []

    def pictures() -> Iterator[bytes]:
        for index, path in enumerate(paths):
            if progress:
                progress(index / len(paths), f"{index:,} of {len(paths):,} files")
            data = _picture(path, folder)
            if isinstance(data, LeftOut):
                left_out.append(data)
            else:
                taken.append(path.relative_to(folder))
                yield data

    # One flush for many pictures: thirty times faster than one a file.
    shas = workspace.blobs.put_many(pictures())
    rows = [_row(i, sha, path) for i, (sha, path) in enumerate(zip(shas, taken, strict=True))]
    if not rows:
        seen = f"{len(left_out)} files were left out" if left_out else "it is empty"
        raise BadInput(f"No picture in {folder} could be read: {seen}.", "It needs PNG or JPEG.")
    dataset = workspace.add_dataset(
        name or _clean(folder.resolve().name),
        folder.resolve().name,
        "image",
        pd.DataFrame(rows),
        meta={"source": f"folder {folder.resolve().name}"},
        left_out=left_out,
    )
    if progress:
        progress(1.0, f"{dataset.n:,} pictures")
    return dataset


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not hidden and (path.is_file() or path.is_symlink()):
            yield path


def _picture(path: Path, folder: Path) -> bytes | LeftOut:
    """Return the bytes of a picture that can be read, or why it is left out."""
    shown = path.relative_to(folder).as_posix()
    problem = _unfit(path, folder)
    if problem:
        return LeftOut(shown, problem)
    data = path.read_bytes()
    try:
        open_rgb(data, shown)
    except BadInput as err:
        return LeftOut(shown, err.message)
    return data


def _unfit(path: Path, folder: Path) -> str:
    """Return why a file is not even opened, or an empty text."""
    if path.suffix.lower() not in SUFFIXES:
        return f"not a picture by its name ({path.suffix or 'no suffix'})"
    try:
        inside = path.resolve(strict=True).is_relative_to(folder.resolve())
        size = path.stat().st_size
    except OSError as err:
        return f"cannot be read: {err.strerror}"
    if not inside:
        return "a link that leads out of the folder"
    if size == 0:
        return "the file is empty"
    if size > _MAX_BYTES:
        return f"larger than {_MAX_BYTES // 2**20} MiB"
    return ""


def _row(item: int, sha: str, path: Path) -> dict[str, object]:
    label = path.parts[0] if len(path.parts) > 1 else ""
    caption = re.sub(r"[_\-\s]+", " ", path.stem).strip()
    return {"id": item, "sha256": sha, "label": label, "caption": caption, "file": path.as_posix()}


def _clean(name: str) -> str:
    cleaned = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")
    if not cleaned:
        raise BadInput(f"The folder's name {name!r} cannot name a dataset.", "Give one: --name.")
    return cleaned[:100]
