"""The catalogue: ``catalogue.sqlite`` in WAL mode, with numbered migrations.

SQLite and not DuckDB, because several processes write: DuckDB refuses a second process even
to read while one holds it. Each operation has a connection of its own, so threads and
forked children never share one.
"""

from __future__ import annotations

import sqlite3
import time
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from core.errors import WorkspaceError
from core.workspace.migrations import APPLICATION_ID, MIGRATIONS

BUSY_SECONDS = 30.0


def now() -> str:
    """Return the time now, ISO 8601 in UTC with microseconds, so that text order is time order."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def sqlite_error(err: sqlite3.Error, path: Path) -> WorkspaceError:
    """Say what a SQLite error means and what to do about it."""
    name = getattr(err, "sqlite_errorname", None) or ""
    text = str(err)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or "locked" in text:
        return WorkspaceError(
            f"The workspace is locked: another process has been writing {path} for more than "
            f"{BUSY_SECONDS:.0f} seconds.",
            "Wait until it has finished, or stop it, then try again.",
        )
    if name.startswith("SQLITE_FULL") or "full" in text:
        return WorkspaceError(
            f"The disk is full: {path} could not be written. Nothing half-written was kept.",
            "Free some space, or run `theodolite gc`, then try again.",
        )
    if name.startswith("SQLITE_READONLY") or "readonly" in text:
        return WorkspaceError(
            f"The workspace is read-only: {path} cannot be written.",
            "Give this user write permission, or set THEODOLITE_HOME to another folder.",
        )
    if name.startswith("SQLITE_CANTOPEN"):
        return WorkspaceError(
            f"{path} cannot be opened ({text}).",
            "Check the folder and its permissions, or set THEODOLITE_HOME to another folder.",
        )
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return WorkspaceError(
            f"{path} is not a readable catalogue ({text}).",
            "Restore it from a backup, or choose another folder with THEODOLITE_HOME.",
        )
    return WorkspaceError(
        f"{path} could not be used ({text}).", "Check the disk and run `theodolite doctor`."
    )


class Catalogue:
    """Connections to the catalogue of one workspace.

    Parameters
    ----------
    path : Path
        The database file; made and migrated when absent or older.

    Raises
    ------
    WorkspaceError
        Newer schema, not a catalogue, read-only, full or locked.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._explained():
            # A connection that stays open keeps SQLite from checkpointing and deleting the
            # log each time the last short-lived connection closes.
            self._keeper = self._connect()
            self._close = weakref.finalize(self, self._keeper.close)
            try:
                self._migrate()
            except BaseException:
                self._close()
                raise

    def close(self) -> None:
        """Close the connection that is kept open; the catalogue can still be used after."""
        self._close()

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Give a connection for reading."""
        with self._explained(), closing(self._connect()) as db:
            yield db

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Give a connection inside one short write transaction: all or nothing."""
        with self._explained(), closing(self._connect()) as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    def version(self) -> int:
        """Return the schema version of the file."""
        with self.read() as db:
            return int(db.execute("PRAGMA user_version").fetchone()[0])

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as err:
            # A broken constraint or statement is our bug, not the user's disk.
            if isinstance(err, sqlite3.IntegrityError | sqlite3.ProgrammingError):
                raise
            raise sqlite_error(err, self.path) from err

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        db.row_factory = sqlite3.Row
        db.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA foreign_keys = ON")
        return db

    def _migrate(self) -> None:
        db = self._keeper
        found = self._check_version(db)
        if db.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            self._use_wal(db)
        if found == len(MIGRATIONS):
            return
        db.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have migrated while this one waited for the lock.
            for number in range(self._check_version(db), len(MIGRATIONS)):
                for statement in MIGRATIONS[number]:
                    db.execute(statement)
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        except BaseException:
            db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")

    def _check_version(self, db: sqlite3.Connection) -> int:
        found = int(db.execute("PRAGMA user_version").fetchone()[0])
        owner = int(db.execute("PRAGMA application_id").fetchone()[0])
        tables = int(db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
        if owner not in {0, APPLICATION_ID} or (owner == 0 and tables):
            raise WorkspaceError(
                f"{self.path} belongs to another program.",
                "Choose another folder with THEODOLITE_HOME or --workspace.",
            )
        if found > len(MIGRATIONS):
            raise WorkspaceError(
                f"This workspace has schema version {found}, made by a newer Theodolite; this "
                f"one reads up to version {len(MIGRATIONS)}. Nothing was changed.",
                "Upgrade Theodolite, or open another folder with THEODOLITE_HOME.",
            )
        return found

    def _use_wal(self, db: sqlite3.Connection) -> None:
        # SQLite does not wait for the lock here by itself when two processes begin at once.
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                db.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as err:
                if "locked" not in str(err) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                return
