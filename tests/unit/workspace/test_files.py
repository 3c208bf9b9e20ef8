"""Files are whole or absent, also when the disk is full half-way."""

from __future__ import annotations

import errno
import os

import pytest

from core.errors import WorkspaceError
from core.workspace.files import remove_tree, replacing, size_of, storing, write_bytes


def full(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_write_replaces(tmp_path):
    path = tmp_path / "deep" / "f"
    write_bytes(path, b"one")
    write_bytes(path, b"two")
    assert path.read_bytes() == b"two"
    assert [p.name for p in path.parent.iterdir()] == ["f"]


@pytest.mark.parametrize("what", ["fsync", "replace"])
def test_full_disk_leaves_the_old_file(tmp_path, monkeypatch, what):
    path = tmp_path / "f"
    write_bytes(path, b"old")
    monkeypatch.setattr(os, what, full)
    with pytest.raises(WorkspaceError, match="disk is full") as caught:
        write_bytes(path, b"new")
    assert "gc" in caught.value.hint
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_error_in_the_block_leaves_nothing(tmp_path):
    def half():
        with replacing(tmp_path / "f") as handle:
            handle.write(b"half")
            raise KeyError("stop")

    with pytest.raises(KeyError):
        half()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (errno.ENOSPC, "disk is full"),
        (errno.EDQUOT, "disk is full"),
        (errno.EROFS, "cannot be written"),
        (errno.EPERM, "cannot be written"),
        (errno.ENOTDIR, "a file lies where a folder is needed"),
        (errno.EIO, "failed"),
    ],
)
def test_os_errors_say_what_and_what_to_do(tmp_path, code, says):
    with pytest.raises(WorkspaceError, match=says) as caught, storing(tmp_path):
        raise OSError(code, os.strerror(code))
    assert str(tmp_path) in caught.value.message
    assert caught.value.hint


def test_sizes_and_removal(tmp_path):
    write_bytes(tmp_path / "d" / "a", b"12345")
    write_bytes(tmp_path / "d" / "e" / "b", b"123")
    assert size_of(tmp_path / "d") == 8
    assert size_of(tmp_path / "d" / "a") == 5
    remove_tree(tmp_path / "d" / "a")
    remove_tree(tmp_path / "d")
    remove_tree(tmp_path / "d")
    assert list(tmp_path.iterdir()) == []
