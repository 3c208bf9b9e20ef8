"""Blobs and thumbnails: bytes under their own SHA-256, written once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from core.data.images import thumbnail_bytes
from core.digest import bytes_digest
from core.errors import BadInput, NotFound, WorkspaceError
from core.workspace.files import storing, sync_path, temp_beside, write_bytes

_FEW = 10
_SHA = re.compile(r"[0-9a-f]{64}")


def check_sha(sha: str) -> str:
    """Return ``sha`` when it is a lower-case SHA-256 in hex.

    Raises
    ------
    BadInput
        Anything else: it may come from a URL and would become a path.
    """
    if not _SHA.fullmatch(sha):
        raise BadInput(f"sha={sha[:80]!r} is not a SHA-256.", "Give 64 lower-case hex digits.")
    return sha


class BlobStore:
    """Bytes by digest, in ``blobs/ab/abcd...``.

    Parameters
    ----------
    root : Path
        Root of the workspace.
    """

    def __init__(self, root: Path) -> None:
        self.folder = root / "blobs"

    def path(self, sha: str) -> Path:
        """Return where the blob lies, or would lie."""
        return self.folder / check_sha(sha)[:2] / sha

    def has(self, sha: str) -> bool:
        """Say whether the blob is here."""
        return self.path(sha).is_file()

    def put(self, data: bytes) -> str:
        """Store ``data`` and return its SHA-256.

        Raises
        ------
        WorkspaceError
            The disk is full or read-only; nothing is kept.
        """
        return self.put_many([data])[0]

    def put_many(self, blobs: Iterable[bytes], *, chunk: int = 4096) -> list[str]:
        """Store many blobs and return their digests; the disk is flushed once a chunk.

        Flushing file by file takes minutes for some thousand pictures; flushing them
        together takes seconds, and a blob still gets its name only after it was flushed.

        Raises
        ------
        WorkspaceError
            The disk is full or read-only; whole blobs stored before stay.
        """
        shas: list[str] = []
        waiting: dict[str, Path] = {}
        try:
            for data in blobs:
                sha = bytes_digest(data)
                shas.append(sha)
                if sha not in waiting and not self._touch(sha):
                    waiting[sha] = self._write_temp(sha, data)
                if len(waiting) >= chunk:
                    self._settle(waiting)
            self._settle(waiting)
        finally:
            for temp in waiting.values():
                with suppress(OSError):
                    temp.unlink(missing_ok=True)
        return shas

    def get(self, sha: str) -> bytes:
        """Return the bytes of a blob, checked against their digest.

        Raises
        ------
        NotFound
            No such blob.
        WorkspaceError
            Its bytes have changed on the disk.
        """
        path = self.path(sha)
        try:
            data = path.read_bytes()
        except FileNotFoundError as err:
            raise NotFound(f"There is no file {path}.", "Import the dataset again.") from err
        except OSError as err:
            raise WorkspaceError(
                f"{path} cannot be read ({err.strerror}).", "Check the disk."
            ) from err
        if bytes_digest(data) != sha:
            raise WorkspaceError(
                f"{path} is damaged: its bytes do not match its name.",
                "Run `theodolite doctor`, then import the dataset again.",
            )
        return data

    def all(self) -> Iterator[tuple[str, Path]]:
        """Give digest and path of every blob."""
        for path in sorted(self.folder.glob("??/*")):
            if _SHA.fullmatch(path.name):
                yield path.name, path

    def _touch(self, sha: str) -> bool:
        # A fresh time keeps the collector from taking a blob that is about to be used again.
        path = self.path(sha)
        if not path.is_file():
            return False
        with suppress(OSError):
            os.utime(path)
        return True

    def _write_temp(self, sha: str, data: bytes) -> Path:
        temp = temp_beside(self.path(sha))
        with storing(temp):
            temp.parent.mkdir(parents=True, exist_ok=True)
            try:
                temp.write_bytes(data)
            except OSError:
                with suppress(OSError):
                    temp.unlink(missing_ok=True)
                raise
        return temp

    def _settle(self, waiting: dict[str, Path]) -> None:
        with storing(self.folder):
            _flush(list(waiting.values()))
            for sha, temp in waiting.items():
                os.replace(temp, self.path(sha))
            _flush(list({temp.parent for temp in waiting.values()}))
        waiting.clear()


def _flush(paths: list[Path]) -> None:
    # One flush of the whole system costs about as much as ten of single files: 3,400
    # pictures took 31 s file by file.
    if len(paths) > _FEW and hasattr(os, "sync"):
        os.sync()
        return
    for path in paths:
        sync_path(path)


class ThumbStore:
    """WebP thumbnails of at most 160 pixels, by the digest of their picture."""

    def __init__(self, root: Path, blobs: BlobStore) -> None:
        self.folder = root / "thumbs"
        self.blobs = blobs

    def path(self, sha: str) -> Path:
        """Return the thumbnail of a picture, made when it is not there yet.

        Raises
        ------
        NotFound
            No such picture.
        BadInput
            The picture cannot be read; nothing is stored for it.
        """
        path = self.folder / check_sha(sha)[:2] / f"{sha}.webp"
        try:
            if path.stat().st_size:
                return path
        except FileNotFoundError:
            pass
        return self.make(sha, self.blobs.get(sha))

    def make(self, sha: str, data: bytes) -> Path:
        """Make and store the thumbnail of ``data``, whose digest is ``sha``."""
        path = self.folder / check_sha(sha)[:2] / f"{sha}.webp"
        write_bytes(path, thumbnail_bytes(data, f"The picture {sha}"), durable=False)
        return path
