"""Where uploads arrive: a folder a visit, with a name nobody can guess, within the limits.

The page that made an inbox hands its name to the browser; whoever does not know the name
cannot write there. Files go to the disk as they come; nothing is held in memory.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

from core.data.importers.limits import ImportLimits
from core.data.importers.limits import size as in_words
from core.data.importers.trees import shown, unsafe
from core.errors import BadInput, NotFound
from core.workspace.files import TEMP_PREFIX, remove_tree, storing

_ID = re.compile(r"[0-9a-f]{32}")
# A name longer than this is no file on any usual system.
_LONGEST_NAME, _LONGEST_PATH = 255, 2048


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

    def files(self) -> int:
        """Return how many files have arrived."""
        return sum(len(files) for _, _, files in os.walk(self.folder))

    def size(self) -> int:
        """Return how many bytes have arrived."""
        return sum(
            (Path(folder) / file).lstat().st_size
            for folder, _, files in os.walk(self.folder)
            for file in files
        )

    def source(self) -> Path:
        """Return what to import: the one file, or the folder, that was uploaded."""
        here = [path for path in self.folder.iterdir() if not path.name.startswith(TEMP_PREFIX)]
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

    async def write(self, name: str, blocks: AsyncIterator[bytes], room: int) -> int:
        """Write one file as it comes and return its bytes; nothing half-written is kept.

        Parameters
        ----------
        room : int
            Bytes that may still come in.

        Raises
        ------
        BadInput
            A name that cannot be used, or more bytes than the limits.
        WorkspaceError
            The disk is full or read-only.
        """
        path = self.place(name)
        temp = path.with_name(f"{TEMP_PREFIX}{secrets.token_hex(8)}")
        n_bytes = 0
        with storing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with temp.open("xb") as out:
                    async for block in blocks:
                        n_bytes += len(block)
                        if n_bytes > room:
                            raise BadInput(
                                f"{shown(name)[:200]} is larger than the {in_words(room)} left.",
                                "Import it with the command line, or raise the limit.",
                            )
                        out.write(block)
                os.replace(temp, path)
            finally:
                temp.unlink(missing_ok=True)
        return n_bytes
