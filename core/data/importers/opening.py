"""Find out what a path holds: pictures, an archive, a table, a saved data set."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from core.data.importers.columnar import ArrowReader, names_in
from core.data.importers.limits import ImportLimits, size
from core.data.importers.lookup import Lookup
from core.data.importers.readers import FrameReader, open_reader
from core.data.importers.rows import Reader, Row
from core.data.importers.sources import PictureSource, Source, TableSource, file_column
from core.data.importers.trees import (
    ARCHIVES,
    BROKEN_ZIP,
    PICTURES,
    TABLES,
    FolderTree,
    Tree,
    ZipTree,
    shown,
    suffix,
)
from core.errors import BadInput, NotFound
from core.types import LeftOut

if TYPE_CHECKING:
    import pandas as pd

_META = ("metadata", "labels", "annotations", "captions", "index", "data", "items", "train",
         "test", "validation", "val")  # fmt: skip
# Texts that go with data and are none.
_TALK = {"readme.txt", "license.txt", "licence.txt", "attribution.txt", "requirements.txt",
         "dataset_info.json", "state.json", "dataset_dict.json"}  # fmt: skip


@dataclass(frozen=True)
class TextOptions:
    """What a person corrected about a table of text; None means: detect it."""

    encoding: str | None = None
    separator: str | None = None
    header: bool | None = None


_DRAWINGS = {".svg", ".svgz", ".eps", ".ps", ".pdf", ".html", ".htm", ".xml"}


def open_source(
    what: str | Path | pd.DataFrame,
    *,
    limits: ImportLimits | None = None,
    text: TextOptions | None = None,
    table: str | Path | None = None,
) -> Source:
    """Open a folder, a zip archive, a table, a saved data set or a data frame.

    Parameters
    ----------
    what : path or DataFrame
        What to import.
    limits : ImportLimits, optional
        By default those of the environment.
    text : TextOptions, optional
        Encoding, separator and header of a CSV file, where detection was wrong.
    table : path, optional
        A table that lies beside the folder or archive and names its files.

    Returns
    -------
    Source
        To be closed after use; it is a context manager.

    Raises
    ------
    NotFound
        There is nothing at that path.
    BadInput
        It holds nothing that can be imported, or more than the limits.
    """
    limits = limits or ImportLimits.from_environment()
    options = text or TextOptions()
    if not isinstance(what, str | Path):
        return TableSource("data frame", [(FrameReader(what, "data frame", limits), "")], limits)
    path = Path(what).expanduser()
    if not path.exists():
        raise NotFound(f"There is no file or folder {path}.", "Check the path.")
    if path.is_dir():
        return _folder(path, limits, options, _path(table))
    if _is_zip(path):
        return _tree(ZipTree(path, limits), limits, options, "zip", _path(table))
    if suffix(path.name) in ARCHIVES:
        raise BadInput(f"{path.name} is no zip archive.", "Pack it as zip; others are not read.")
    if suffix(path.name) in PICTURES:
        raise BadInput(f"{path.name} is one picture.", "Give the folder it lies in.")
    if suffix(path.name) in _DRAWINGS:
        # As text it would become a row of markup, which nobody means.
        raise BadInput(
            f"{path.name} is a drawing or a page in markup, which is not read.",
            "Render it to PNG, or save its table as CSV.",
        )
    reader = _reader(path, path.name, limits, options)
    beside = FolderTree(path.parent, limits) if _names_files(reader) else None
    return TableSource(path.name, [(reader, "")], limits, beside)


def _path(table: str | Path | None) -> Path | None:
    if table is None:
        return None
    path = Path(table).expanduser()
    if not path.is_file():
        raise NotFound(f"There is no table {path}.", "Check the path.")
    return path


def _is_zip(path: Path) -> bool:
    with path.open("rb") as handle:
        head = handle.read(4)
    return head.startswith(b"PK") or suffix(path.name) == ".zip"


def _reader(path: Path, name: str, limits: ImportLimits, options: TextOptions) -> Reader:
    return open_reader(
        path, limits, name=name, encoding=options.encoding, separator=options.separator,
        header=options.header,
    )  # fmt: skip


def _names_files(reader: Reader) -> bool:
    from core.data.importers.cells import form_of

    for row in islice(reader.rows(), 50):
        if isinstance(row, Row) and any(_path_in(cell, form_of) for cell in row.cells):
            return True
    return False


def _path_in(cell: Any, form_of: Any) -> bool:
    if isinstance(cell, dict):
        return not cell.get("bytes") and form_of(cell.get("path")) == "path"
    return bool(form_of(cell) == "path")


def _folder(path: Path, limits: ImportLimits, options: TextOptions, table: Path | None) -> Source:
    if table is None:
        saved = _saved(path, limits)
        if saved is not None:
            return saved
    tree = FolderTree(path, limits)
    names = tree.names
    archives = [name for name in names if suffix(name) == ".zip"]
    pictures = any(suffix(name) in PICTURES for name in names)
    if len(archives) == 1 and not pictures:
        # A zip, alone or with a table beside it: what an upload of one or two files gives.
        tables = [name for name in names if _is_table(name)]
        if table is None and tables:
            table = tree.path(tables[0])
        zipped = ZipTree(tree.path(archives[0]), limits)
        return _tree(zipped, limits, options, "zip", table)
    return _tree(tree, limits, options, "folder", table)


def _is_table(name: str) -> bool:
    return suffix(name) in TABLES and PurePosixPath(name).name.lower() not in _TALK


def _tree(
    tree: Tree, limits: ImportLimits, options: TextOptions, form: str, beside: Path | None
) -> Source:
    scratch = Path(tempfile.mkdtemp(prefix="theodolite-"))
    try:
        source = _from_tree(tree, limits, options, form, beside, scratch)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        tree.close()
        raise
    source.scratch.append(scratch)
    return source


def _from_tree(
    tree: Tree,
    limits: ImportLimits,
    options: TextOptions,
    form: str,
    beside: Path | None,
    scratch: Path,
) -> Source:
    pictures = [name for name in tree.names if suffix(name) in PICTURES]
    notes: list[str] = []
    if beside is not None:
        readers = [(_reader(beside, beside.name, limits, options), "")]
        return _with_files(tree, readers, limits, f"{form} with a table beside it", pictures)
    readers = _readers(tree, limits, options, scratch, notes)
    if readers and pictures:
        if _enough(readers, Lookup(tree), len(pictures), notes):
            return _with_files(tree, readers, limits, f"{form} with a table inside", pictures)
        readers = []
    if readers:
        title = tree.title if len(readers) > 1 else readers[0][0].name
        source: Source = TableSource(title, readers, limits, tree, "table")
        source.left_out += tree.left_out
    else:
        source = PictureSource(tree, limits, f"{form} of pictures")
        if not pictures:
            _refuse_nothing(tree, source.left_out, notes)
    source.notes += notes
    return source


def _refuse_nothing(tree: Tree, left_out: list[LeftOut], notes: list[str]) -> None:
    seen = f"{len(left_out):,} files were left out" if left_out else "it is empty"
    first = f"; the first: {left_out[0].what}: {left_out[0].reason}" if left_out else ""
    raise BadInput(
        f"No picture and no table in {tree.title}: {seen}{first}. {' '.join(notes)}".strip(),
        "It needs pictures (PNG, JPEG, WebP, ...) or a table (CSV, JSONL, Parquet, Arrow).",
    )


def _readers(
    tree: Tree, limits: ImportLimits, options: TextOptions, scratch: Path, notes: list[str]
) -> list[tuple[Reader, str]]:
    """Open the tables of a tree: those named like metadata, else all of the first kind."""
    names = [name for name in tree.names if _is_table(name)]
    named = [n for n in names if PurePosixPath(n).stem.lower().split("-")[0] in _META]
    found: list[tuple[Reader, str]] = []
    for name in named or names:
        if found and suffix(name) != suffix(found[0][0].name):
            continue
        try:
            path = _unpacked(tree, name, limits, scratch)
            parent = PurePosixPath(name).parent.as_posix()
            found.append((_reader(path, name, limits, options), "" if parent == "." else parent))
        except BadInput as err:
            notes.append(err.message)
    return found


def _unpacked(tree: Tree, name: str, limits: ImportLimits, scratch: Path) -> Path:
    if isinstance(tree, FolderTree):
        return tree.path(name)
    target = scratch / f"{len(list(scratch.iterdir()))}{suffix(name)}"
    left = limits.table_bytes
    try:
        with tree.open(name) as packed, target.open("wb") as out:
            while block := packed.read(1 << 20):
                left -= len(block)
                if left < 0:
                    raise BadInput(f"{shown(name)} has more than {size(limits.table_bytes)}.")
                out.write(block)
    except BROKEN_ZIP as err:
        if isinstance(err, BadInput):
            raise
        raise BadInput(f"{shown(name)} cannot be unpacked ({err}).") from err
    return target


def _enough(
    readers: list[tuple[Reader, str]], lookup: Lookup, n_pictures: int, notes: list[str]
) -> bool:
    """Say whether the tables name the pictures; a note says why they are not used."""
    reader, base = readers[0]
    sample = [(row.cells, base) for row in islice(reader.rows(), 100) if isinstance(row, Row)]
    at = file_column(sample, reader.columns, lookup)
    if at is None:
        notes.append(f"{reader.name} is not used: no column of it names these pictures.")
        return False
    counts = [r.count() for r, _ in readers]
    rows = sum(n for n in counts if n is not None)
    if None not in counts and rows < n_pictures / 2:
        notes.append(
            f"{reader.name} is not used: it has {rows:,} rows for {n_pictures:,} pictures. "
            "Import it with the pictures it names alone if that is what you want."
        )
        return False
    return True


def _with_files(
    tree: Tree,
    readers: list[tuple[Reader, str]],
    limits: ImportLimits,
    form: str,
    pictures: list[str],
) -> Source:
    source = TableSource(tree.title, readers, limits, tree, form)
    source.facts["table"] = readers[0][0].name
    sample = [
        (row[0].cells, row[1]) for row in islice(source.rows(), 100) if not isinstance(row, LeftOut)
    ]
    assert source.lookup is not None
    at = file_column(sample, source.columns, source.lookup)
    if at is not None:
        source.preset[source.columns[at]] = ("image", "its cells name the pictures")
        source.pictures = set(pictures)
    source.left_out += tree.left_out
    return source


def _saved(path: Path, limits: ImportLimits) -> Source | None:
    """Open a data set that the ``datasets`` library saved, None when it is none."""
    if (path / "dataset_dict.json").is_file():
        try:
            splits = json.loads((path / "dataset_dict.json").read_text("utf-8"))["splits"]
        except (ValueError, KeyError, TypeError, OSError) as err:
            raise BadInput(f"dataset_dict.json in {path} is broken ({err}).") from err
        folders = [(str(s), path / str(s)) for s in splits if "/" not in str(s) and s != ".."]
    elif (path / "dataset_info.json").is_file() and (path / "state.json").is_file():
        folders = [("", path)]
    else:
        return None
    readers: list[tuple[Reader, str]] = []
    for split, folder in folders:
        readers += _saved_split(folder, split, limits)
    if not readers:
        raise BadInput(f"{path} is a saved data set without data.", "Save it again.")
    return TableSource(path.name, readers, limits, form="saved data set")


def _saved_split(folder: Path, split: str, limits: ImportLimits) -> list[tuple[Reader, str]]:
    try:
        state = json.loads((folder / "state.json").read_text("utf-8"))
        features = json.loads((folder / "dataset_info.json").read_text("utf-8"))["features"]
        files = [str(entry["filename"]) for entry in state["_data_files"]]
    except (ValueError, KeyError, TypeError, OSError) as err:
        raise BadInput(
            f"The saved data set {folder} cannot be read ({err}).", "Save it again."
        ) from err
    if state.get("_indices_data_files"):
        raise BadInput(
            f"{folder} is a selection of rows by an index file.",
            "Call .flatten_indices() before .save_to_disk().",
        )
    found: list[tuple[Reader, str]] = []
    for file in files:
        data = (folder / file).resolve()
        if not data.is_relative_to(folder.resolve()) or not data.is_file():
            raise BadInput(f"{file} of the saved data set {folder} is missing.", "Save it again.")
        reader = ArrowReader(data, f"{split}-{file}" if split else file, limits, stream=True)
        reader.classes = names_in(features, reader.columns)
        found.append((reader, ""))
    return found
