"""The catalogue: migrations, refusals, and errors that say what to do."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import core
from core.errors import WorkspaceError
from core.workspace import catalogue as catalogue_module
from core.workspace import default_root, open_workspace
from core.workspace.catalogue import Catalogue, now
from core.workspace.migrations import APPLICATION_ID, MIGRATIONS

HOME = Path(core.__file__).parents[1]


def test_new_catalogue_is_migrated_and_in_wal_mode(tmp_path):
    found = Catalogue(tmp_path / "c.sqlite")
    assert found.version() == len(MIGRATIONS)
    with found.read() as db:
        assert db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID


def test_older_catalogue_is_migrated_and_keeps_its_rows(tmp_path):
    path = tmp_path / "c.sqlite"
    db = sqlite3.connect(path)
    for statement in MIGRATIONS[0]:
        db.execute(statement)
    db.execute("INSERT INTO features VALUES ('k','d','','m','l','[]',1,'{}','{}','x',8,'2026')")
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute("PRAGMA user_version = 1")
    db.commit()
    db.close()
    with Catalogue(path).read() as db:
        row = db.execute("SELECT key, mtime_ns FROM features").fetchone()
    assert tuple(row) == ("k", 0)


def test_newer_workspace_is_refused_and_not_touched(tmp_path):
    open_workspace(tmp_path).close()
    path = tmp_path / "catalogue.sqlite"
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(WorkspaceError, match="version 99") as caught:
        open_workspace(tmp_path)
    assert str(len(MIGRATIONS)) in caught.value.message
    assert "Upgrade" in caught.value.hint
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone()[0] == 99
    db.close()


def test_foreign_database_is_refused(tmp_path):
    db = sqlite3.connect(tmp_path / "catalogue.sqlite")
    db.execute("CREATE TABLE mine (x)")
    db.close()
    with pytest.raises(WorkspaceError, match="another program"):
        open_workspace(tmp_path)


def test_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "catalogue.sqlite").write_bytes(b"not a database, only some text" * 40)
    with pytest.raises(WorkspaceError, match="not a readable catalogue"):
        open_workspace(tmp_path)


def test_root_that_is_a_file(tmp_path):
    (tmp_path / "f").write_text("x")
    for root in (tmp_path / "f", tmp_path / "f" / "below"):
        with pytest.raises(WorkspaceError, match="a file lies where a folder is needed"):
            open_workspace(root)


def test_root_that_cannot_be_made():
    with pytest.raises(WorkspaceError):
        open_workspace("/proc/theodolite")


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_read_only_folder(tmp_path, monkeypatch, code):
    def refuse(*args):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(WorkspaceError, match="cannot be written") as caught:
        open_workspace(tmp_path)
    assert "THEODOLITE_HOME" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("SQLITE_FULL", "database or disk is full", "disk is full"),
        ("SQLITE_READONLY", "attempt to write a readonly database", "read-only"),
        ("SQLITE_BUSY", "database is locked", "locked"),
        ("SQLITE_CANTOPEN", "unable to open database file", "cannot be opened"),
        ("SQLITE_CORRUPT", "database disk image is malformed", "not a readable catalogue"),
        ("SQLITE_IOERR", "disk I/O error", "could not be used"),
    ],
)
def test_sqlite_errors_say_what_to_do(tmp_path, name, text, says):
    err = sqlite3.OperationalError(text)
    err.sqlite_errorname = name
    found = catalogue_module.sqlite_error(err, tmp_path)
    assert says in found.message
    assert found.hint


def test_full_database_leaves_nothing_half_written(space):
    def fill():
        with space.catalogue.write() as db:
            pages = db.execute("PRAGMA page_count").fetchone()[0]
            db.execute(f"PRAGMA max_page_count = {pages}")
            for i in range(1000):
                row = ("s", str(i), "x" * 1000, now())
                db.execute("INSERT INTO notes VALUES (?, ?, ?, ?)", row)

    with pytest.raises(WorkspaceError, match="disk is full"):
        fill()
    assert space.notes.all("s") == {}
    space.notes.put("s", "a", 1)
    assert space.notes.all("s") == {"a": 1}


def test_locked_for_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr(catalogue_module, "BUSY_SECONDS", 0.05)
    space = open_workspace(tmp_path)
    with space.catalogue.write(), pytest.raises(WorkspaceError, match="locked"):
        space.notes.put("s", "k", 1)


def test_failed_write_is_rolled_back(space):
    def failing():
        with space.catalogue.write() as db:
            db.execute("INSERT INTO notes VALUES ('s', 'k', '1', 'now')")
            raise KeyError("stop")

    with pytest.raises(KeyError):
        failing()
    assert space.notes.get("s", "k") is None


def test_programming_errors_are_not_dressed_up(space):
    with pytest.raises(sqlite3.IntegrityError), space.catalogue.write() as db:
        db.execute("INSERT INTO notes VALUES ('s', 'k', NULL, 'now')")


def test_threads_write_at_once(space):
    def work(who):
        for i in range(20):
            space.notes.put("t", f"{who}-{i}", i)

    threads = [threading.Thread(target=work, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(space.notes.all("t")) == 80


_CREATE = """
import sys
from core.workspace import open_workspace
space = open_workspace(sys.argv[1])
for i in range(25):
    space.notes.put("p", f"{sys.argv[2]}-{i}", i)
    space.blobs.put(f"blob {i}".encode())
"""


def test_processes_create_and_write_one_workspace_at_once(tmp_path):
    running = [
        subprocess.Popen([sys.executable, "-c", _CREATE, str(tmp_path / "w"), str(who)], cwd=HOME)
        for who in range(3)
    ]
    assert [child.wait(60) for child in running] == [0, 0, 0]
    space = open_workspace(tmp_path / "w")
    assert len(space.notes.all("p")) == 75
    assert len(list(space.blobs.all())) == 25
    assert space.doctor() == []


def test_default_root(monkeypatch, tmp_path):
    monkeypatch.setenv("THEODOLITE_HOME", str(tmp_path / "x"))
    assert default_root() == tmp_path / "x"
    monkeypatch.delenv("THEODOLITE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_root() == tmp_path / ".theodolite"
    assert open_workspace().root == tmp_path / ".theodolite"


def test_import_is_light():
    code = (
        "import sys, core.workspace, core.jobs, core.worker;"
        "print([m for m in ('torch', 'streamlit', 'plotly', 'pandas', 'pyarrow') "
        "if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=HOME
    )
    assert out.stdout.strip() == "[]"
