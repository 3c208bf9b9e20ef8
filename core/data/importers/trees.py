"""A folder or a zip archive as one tree of plain files, with what must not be touched left out.

Neither links nor names that lead outside are ever followed, and no archive is unpacked by
its own word: each entry is read through a counter.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol

from core.data.importers.limits import ImportLimits, size
from core.errors import BadInput, NotFound
from core.types import LeftOut

PICTURES = {".png", ".jpg", ".jpeg", ".jfif", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".avif",
            ".ppm", ".pgm", ".pnm", ".mpo"}  # fmt: skip
TABLES = {".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet", ".arrow", ".feather"}
ARCHIVES = {".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".zst"}
_CHUNK = 1 << 20
# Files that systems leave in every folder; nobody misses them.
_CLUTTER = {"thumbs.db", "desktop.ini", "__macosx"}
_DRIVE = re.compile(r"^[A-Za-z]:")
# A torn or made-up archive raises any of these.
BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, struct.error,
              OSError, RuntimeError, ValueError, OverflowError)  # fmt: skip


def suffix(name: str) -> str:
    """Return the ending of a file name in lower case, with its dot."""
    return PurePosixPath(name).suffix.lower()


def shown(name: str) -> str:
    r"""Return a file name as text: bytes that are no UTF-8 are written as ``\xNN``.

    Examples
    --------
    >>> shown("a\udcff.jpg")
    'a\\xff.jpg'
    """
    try:
        return os.fsencode(name).decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        return name.encode("utf-8", "backslashreplace").decode()


class Tree(Protocol):
    """Plain files by their relative name with forward slashes."""

    title: str
    left_out: list[LeftOut]
    empty_folders: list[str]

    @property
    def names(self) -> list[str]:
        """Names of the files, sorted."""

    def size(self, name: str) -> int:
        """Return the bytes of a file."""

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading; not more than its size is ever read."""

    def close(self) -> None:
        """Let go of the tree."""


def read(tree: Tree, name: str, most: int) -> bytes:
    """Return the bytes of a file.

    Raises
    ------
    BadInput
        Empty, larger than ``most``, or not readable; the reason is the message.
    """
    try:
        n_bytes = tree.size(name)
        if n_bytes == 0:
            raise BadInput("the file is empty")
        if n_bytes > most:
            raise BadInput(f"{size(n_bytes)}, at most {size(most)} are read")
        with tree.open(name) as handle:
            data = handle.read(most + 1)
    except BROKEN_ZIP as err:
        if isinstance(err, BadInput):
            raise
        raise BadInput(f"cannot be read: {_reason(err)}") from err
    if len(data) > most:
        raise BadInput(f"more than {size(most)}")
    return data


def _reason(err: BaseException) -> str:
    if isinstance(err, OSError) and err.strerror:
        return err.strerror
    if isinstance(err, RuntimeError) and "password" in str(err):
        return "it is encrypted"
    return str(err) or type(err).__name__


class FolderTree:
    """The plain files below a folder; links are followed only to files inside it.

    Raises
    ------
    NotFound
        No such folder.
    BadInput
        It is no folder, or holds more files than the limit.
    """

    def __init__(self, root: Path, limits: ImportLimits) -> None:
        if not root.exists():
            raise NotFound(f"There is no folder {root}.", "Check the path.")
        if not root.is_dir():
            raise BadInput(f"{root} is a file, a folder was expected.", "Give its folder.")
        self.root = root.resolve()
        self.title = self.root.name or str(self.root)
        self.left_out: list[LeftOut] = []
        self.empty_folders: list[str] = []
        self._limits = limits
        self._plain: frozenset[str] = frozenset()

    @cached_property
    def names(self) -> list[str]:
        """Names of the files, sorted."""
        found: list[str] = []
        for name in self._walk():
            found.append(name)
            if len(found) > self._limits.files:
                raise BadInput(
                    f"{self.title} holds more than {self._limits.files:,} files.",
                    "Import a part of it, or raise THEODOLITE_IMPORT_FILES.",
                )
        self._plain = frozenset(found)
        return sorted(found)

    def path(self, name: str) -> Path:
        """Return where a file lies.

        Raises
        ------
        BadInput
            The name or a link leads out of the folder.
        """
        path = self.root / name
        # Folders behind links were never entered: only a file that is itself a link can lead
        # out, and following every path part by part costs more than reading a small picture.
        if path.is_file() and not path.is_symlink() and name in self._plain:
            return path
        try:
            inside = path.resolve(strict=True)
        except (OSError, RuntimeError, ValueError) as err:
            raise BadInput(f"cannot be read: {_reason(err)}") from err
        if not inside.is_relative_to(self.root):
            raise BadInput("a link that leads out of the folder")
        if not inside.is_file():
            raise BadInput("not a plain file")
        return inside

    def size(self, name: str) -> int:
        """Return the bytes of a file."""
        return self.path(name).stat().st_size

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading."""
        return self.path(name).open("rb")

    def close(self) -> None:
        """Nothing is held."""

    def _walk(self) -> Iterator[str]:
        for folder, folders, files in os.walk(self.root, followlinks=False, onerror=self._unread):
            here = Path(folder).relative_to(self.root)
            for sub in sorted(folders):
                self._skip_folder(here / sub)
            folders[:] = [
                f for f in folders if not _hidden(f) and not (Path(folder) / f).is_symlink()
            ]
            if not folders and not files and here.parts:
                self.empty_folders.append(here.as_posix())
            for file in files:
                name = (here / file).as_posix()
                problem = self._unfit(name)
                if problem:
                    self.left_out.append(LeftOut(shown(name), problem))
                else:
                    yield name

    def _skip_folder(self, folder: Path) -> None:
        if (self.root / folder).is_symlink():
            why = "a link to a folder: links to folders are not followed"
            self.left_out.append(LeftOut(shown(folder.as_posix()) + "/", why))
        elif _hidden(folder.name) and folder.name.lower() not in _CLUTTER:
            self.left_out.append(LeftOut(shown(folder.as_posix()) + "/", "a hidden folder"))

    def _unfit(self, name: str) -> str:
        if _hidden(PurePosixPath(name).name):
            return "a hidden file"
        if not (self.root / name).is_symlink():
            # A device or a pipe would be read for ever.
            return "" if (self.root / name).is_file() else "not a plain file"
        try:
            self.path(name)
        except BadInput as err:
            return err.message
        return ""

    def _unread(self, err: OSError) -> None:
        self.left_out.append(LeftOut(shown(str(err.filename)), f"cannot be read: {err.strerror}"))


class ZipTree:
    """The plain files of a zip archive.

    Raises
    ------
    BadInput
        No zip archive, or more entries or unpacked bytes than the limits.
    """

    def __init__(self, path: Path, limits: ImportLimits) -> None:
        self.title = path.name
        self.left_out: list[LeftOut] = []
        self.empty_folders: list[str] = []
        self._limits = limits
        try:
            _check_directory(path, limits)
            self._zip = zipfile.ZipFile(path)
        except BROKEN_ZIP as err:
            if isinstance(err, BadInput):
                raise
            raise BadInput(
                f"{path.name} cannot be read as a zip archive ({_reason(err)}).",
                "Pack it again; tar, 7z and rar are not read.",
            ) from err
        self._entries: dict[str, zipfile.ZipInfo] = {}
        try:
            self._list()
        except BadInput:
            self.close()
            raise

    @property
    def names(self) -> list[str]:
        """Names of the files, sorted."""
        return sorted(self._entries)

    def size(self, name: str) -> int:
        """Return the bytes of a file, as the archive states them."""
        return self._entry(name).file_size

    def open(self, name: str) -> BinaryIO:
        """Open an entry; not more than its stated size is read, and its checksum is checked."""
        return self._zip.open(self._entry(name))  # type: ignore[return-value]

    def close(self) -> None:
        """Close the archive."""
        self._zip.close()

    def _entry(self, name: str) -> zipfile.ZipInfo:
        if name not in self._entries:
            raise BadInput("no such file in the archive")
        return self._entries[name]

    def _list(self) -> None:
        total = 0
        folders: set[str] = set()
        for entry in self._zip.infolist():
            name = entry.filename
            if entry.is_dir():
                folders.add(name.rstrip("/"))
                continue
            problem = self._unfit(entry)
            if problem:
                if problem != "clutter":
                    self.left_out.append(LeftOut(shown(entry.orig_filename), problem))
                continue
            total += entry.file_size
            if total > self._limits.total_bytes:
                raise BadInput(
                    f"{self.title} unpacks to more than {size(self._limits.total_bytes)}.",
                    "Import a part of it, or raise THEODOLITE_IMPORT_TOTAL_BYTES.",
                )
            self._entries[name] = entry
        full = {parent.as_posix() for n in self._entries for parent in PurePosixPath(n).parents}
        self.empty_folders = sorted(f for f in folders - full if not unsafe(f) and f)

    def _unfit(self, entry: zipfile.ZipInfo) -> str:
        name = entry.filename
        mode = entry.external_attr >> 16
        parts = PurePosixPath(name).parts
        if unsafe(entry.orig_filename) or unsafe(name):
            return "a name that leads out of the archive"
        if any(part.lower() in _CLUTTER for part in parts):
            return "clutter"
        if any(_hidden(part) for part in parts):
            return "a hidden file"
        if mode and stat.S_IFMT(mode) not in {0, stat.S_IFREG}:
            return "a link or a device, not a plain file"
        if entry.flag_bits & 0x1:
            return "it is encrypted"
        if name in self._entries:
            return "a second entry of that name; the first is taken"
        if entry.file_size > max(1_000_000, self._limits.ratio * entry.compress_size):
            return (
                f"it unpacks {size(entry.compress_size)} to {size(entry.file_size)}, more than "
                f"{self._limits.ratio} to 1"
            )
        return ""


def unsafe(name: str) -> bool:
    r"""Say whether a relative name would lead out of its folder, on any system.

    Examples
    --------
    >>> [unsafe(n) for n in ("a/b.png", "../b.png", "/etc/x", "C:\\x", "a\\..\\x", "")]
    [False, True, True, True, True, True]
    """
    plain = name.replace("\\", "/")
    parts = plain.split("/")
    return (
        not plain.strip("/")
        or plain.startswith("/")
        or bool(_DRIVE.match(plain))
        or ".." in parts
        or "\0" in plain
    )


def _hidden(name: str) -> bool:
    return name.startswith(".") or name.lower() in _CLUTTER


def _check_directory(path: Path, limits: ImportLimits) -> None:
    # The list of entries is read whole by the standard library: refuse a huge one before.
    with path.open("rb") as handle:
        handle.seek(0, os.SEEK_END)
        end = handle.tell()
        handle.seek(max(0, end - 66_000))
        tail = handle.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) < at + 22:
        return
    count, n_bytes = struct.unpack("<HI", tail[at + 10 : at + 16])
    wide = tail.rfind(b"PK\x06\x06", 0, at)
    if wide >= 0 and len(tail) >= wide + 48:
        count, n_bytes = struct.unpack("<QQ", tail[wide + 32 : wide + 48])
    # 46 bytes is the shortest entry, 400 a generous one.
    if count > limits.files or n_bytes > 400 * limits.files:
        raise BadInput(
            f"{path.name} lists {count:,} entries; at most {limits.files:,} are read.",
            "Import a part of it, or raise THEODOLITE_IMPORT_FILES.",
        )
