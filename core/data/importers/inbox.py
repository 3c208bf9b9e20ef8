"""Where uploads arrive: a folder a visit, with a name nobody can guess, within the limits.

The page that made an inbox hands its name to the browser; whoever does not know the name
cannot write there. Files go to the disk as they come; nothing is held in memory.
"""

from __future__ import annotations

import os
import re
import secrets
import struct
from pathlib import Path
from typing import BinaryIO

from core.data.importers.limits import ImportLimits
from core.data.importers.limits import size as in_words
from core.data.importers.trees import shown, unsafe
from core.errors import BadInput, NotFound
from core.types import LeftOut
from core.workspace.files import TEMP_PREFIX, remove_tree, storing

_ID = re.compile(r"[0-9a-f]{32}")
# A name longer than this is no file on any usual system.
_LONGEST_NAME, _LONGEST_PATH = 255, 2048
_NAME_HEAD, _SIZE_HEAD = struct.Struct(">H"), struct.Struct(">Q")


class Inbox:
    """One folder for the files of one upload.

    Parameters
    ----------
    root : Path
        Root of the workspace.
    name : str
        From :meth:`new`.
    limits : ImportLimits
        Bytes and files that are accepted.

    Raises
    ------
    NotFound
        No such inbox: it was never made, imported already, or discarded.
    """

    def __init__(self, root: Path, name: str, limits: ImportLimits) -> None:
        if not _ID.fullmatch(name) or not (root / "inbox" / name).is_dir():
            raise NotFound("There is no such upload.", "Open the page again and choose the files.")
        self.name = name
        self.folder = root / "inbox" / name
        self._limits = limits

    @classmethod
    def new(cls, root: Path, limits: ImportLimits) -> Inbox:
        """Make an empty inbox."""
        name = secrets.token_hex(16)
        with storing(root / "inbox" / name):
            (root / "inbox" / name).mkdir(parents=True)
        return cls(root, name, limits)

    def content(self) -> tuple[int, int]:
        """Return how many files and bytes have arrived."""
        sizes = [
            (Path(folder) / file).lstat().st_size
            for folder, _, files in os.walk(self.folder)
            for file in files
        ]
        return len(sizes), sum(sizes)

    def source(self) -> Path:
        """Return what to import: the one file, or the folder, that was uploaded."""
        names = sorted(os.listdir(self.folder)) if self.folder.is_dir() else []
        here = [self.folder / name for name in names if not name.startswith(TEMP_PREFIX)]
        if not here:
            raise NotFound("Nothing has been uploaded yet.", "Choose files or a folder.")
        return here[0] if len(here) == 1 else self.folder

    def discard(self) -> None:
        """Remove the inbox with all in it."""
        remove_tree(self.folder)

    def place(self, name: str) -> Path:
        """Return where a file of that relative name is written.

        Raises
        ------
        BadInput
            The name leads out, is too long, hidden as a temporary, or taken.
        """
        plain = name.replace("\\", "/")
        parts = [part for part in plain.split("/") if part not in {"", "."}]
        if unsafe(name) or not parts:
            raise BadInput(f"The name {name[:100]!r} leads out of the upload.", "Rename the file.")
        long = any(len(part.encode("utf-8", "replace")) > _LONGEST_NAME for part in parts)
        if long or len(plain) > _LONGEST_PATH:
            raise BadInput(f"The name {name[:60]!r}... is too long.", "Use at most 255 bytes.")
        if any(part.startswith(TEMP_PREFIX) for part in parts):
            raise BadInput(f"The name {name[:100]!r} is not accepted.", "Rename the file.")
        path = self.folder.joinpath(*parts)
        if path.exists():
            raise BadInput(f"{shown(name)[:200]} has been uploaded already.", "Rename one of them.")
        return path


class Receiver:
    """Writes a stream of files into an inbox as its blocks come.

    The stream is one file after another: 2 bytes with the length of the name, the name in
    UTF-8, 8 bytes with the length of the file (both big-endian), and the file. A file whose
    name cannot be used is passed over and named in ``refused``; the rest goes on.

    Parameters
    ----------
    inbox : Inbox
        Where the files are written.
    """

    def __init__(self, inbox: Inbox, limits: ImportLimits) -> None:
        self.files = 0
        self.bytes = 0
        self.refused: list[LeftOut] = []
        self._inbox, self._limits = inbox, limits
        self._before = inbox.content()
        self._head = bytearray()
        self._left = 0
        self._out: BinaryIO | None = None
        self._temp: Path | None = None
        self._path: Path | None = None

    def feed(self, block: bytes) -> None:
        """Take the next block.

        Raises
        ------
        BadInput
            No such stream, or more bytes or files than the limits.
        WorkspaceError
            The disk is full or read-only.
        """
        view = memoryview(block)
        while view:
            if self._left:
                part = view[: self._left]
                self._write(part)
                view = view[len(part) :]
            else:
                view = self._header(view)

    def begin(self, name: str, n_bytes: int) -> None:
        """Begin a file of that name and length.

        Raises
        ------
        BadInput
            It would go past the limits.
        """
        before_files, before_bytes = self._before
        room = self._limits.total_bytes - before_bytes - self.bytes
        if n_bytes > room:
            raise BadInput(
                f"{shown(name)[:200]} has {in_words(n_bytes)}; {in_words(max(room, 0))} are left "
                "of what one upload may hold.",
                "Import it with the command line, or raise THEODOLITE_IMPORT_TOTAL_BYTES.",
            )
        if before_files + self.files >= self._limits.files:
            raise BadInput(
                f"More than {self._limits.files:,} files.", "Pack them into several archives."
            )
        self._left, self._path, self._temp = n_bytes, None, None
        try:
            self._path = self._inbox.place(name)
        except BadInput as err:
            self.refused.append(LeftOut(shown(name)[:200], err.message))
        else:
            self._open()
        if not n_bytes:
            self._end()

    def close(self) -> None:
        """End the stream; a file that has not arrived whole is removed.

        Raises
        ------
        BadInput
            The stream ended in the middle of a file.
        """
        cut = bool(self._left or self._head)
        if self._out is not None:
            self._out.close()
            self._out = None
        if self._temp is not None:
            self._temp.unlink(missing_ok=True)
        if cut:
            raise BadInput("The upload ended in the middle of a file.", "Send it again.")

    def _header(self, view: memoryview) -> memoryview:
        need = _NAME_HEAD.size
        if len(self._head) >= need:
            need += _NAME_HEAD.unpack_from(self._head)[0] + _SIZE_HEAD.size
        missing = need - len(self._head)
        self._head += view[:missing]
        view = view[missing:]
        if len(self._head) == need and need > _NAME_HEAD.size:
            name = bytes(self._head[_NAME_HEAD.size : -_SIZE_HEAD.size])
            n_bytes = _SIZE_HEAD.unpack_from(self._head, need - _SIZE_HEAD.size)[0]
            self._head.clear()
            self.begin(name.decode("utf-8", "replace"), n_bytes)
        return view

    def _open(self) -> None:
        assert self._path is not None
        self._temp = self._inbox.folder / f"{TEMP_PREFIX}{secrets.token_hex(8)}"
        with storing(self._path):
            self._out = self._temp.open("xb")

    def _write(self, part: memoryview) -> None:
        if self._out is not None and self._path is not None:
            with storing(self._path):
                self._out.write(part)
        self._left -= len(part)
        self.bytes += len(part)
        if not self._left:
            self._end()

    def _end(self) -> None:
        if self._out is None or self._path is None or self._temp is None:
            return
        self._out.close()
        self._out = None
        with storing(self._path):
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                os.replace(self._temp, self._path)
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                self._temp.unlink(missing_ok=True)
                why = "its name is both a file and a folder here"
                self.refused.append(LeftOut(shown(self._path.name), why))
                return
        self.files += 1
