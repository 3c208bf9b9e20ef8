"""Blobs and thumbnails."""

from __future__ import annotations

import errno
import hashlib
import io
import os

import pytest
from PIL import Image

from core.errors import BadInput, NotFound, WorkspaceError


def png(mode="RGB", size=(300, 200), colour=(10, 20, 30)):
    out = io.BytesIO()
    Image.new(mode, size, colour).save(out, "PNG")
    return out.getvalue()


def files(space):
    return [p for p in (space.root / "blobs").rglob("*") if p.is_file()]


def test_content_addressed_round_trip(space):
    sha = space.blobs.put(b"hello")
    assert sha == hashlib.sha256(b"hello").hexdigest()
    assert space.blobs.get(sha) == b"hello"
    assert space.blobs.put(b"hello") == sha
    assert len(files(space)) == 1
    assert space.blobs.has(sha)
    assert [s for s, _ in space.blobs.all()] == [sha]


@pytest.mark.parametrize("chunk", [3, 4096])
def test_many_in_chunks_in_order(space, chunk):
    data = [f"{i % 17}".encode() for i in range(40)]
    shas = space.blobs.put_many(data, chunk=chunk)
    assert [space.blobs.get(sha) for sha in shas] == data
    assert len(files(space)) == 17


@pytest.mark.parametrize("what", ["fsync", "replace"])
def test_full_disk_keeps_no_half_blob(space, monkeypatch, what):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, what, full)
    with pytest.raises(WorkspaceError, match="disk is full"):
        space.blobs.put(b"hello")
    assert files(space) == []


@pytest.mark.parametrize(
    "sha", ["", "../../etc/passwd", "A" * 64, "0" * 63, "0" * 65, "0" * 64 + "\n"]
)
def test_what_is_no_digest_never_becomes_a_path(space, sha):
    with pytest.raises(BadInput, match="not a SHA-256"):
        space.blobs.path(sha)
    with pytest.raises(BadInput, match="not a SHA-256"):
        space.thumb_path(sha)


def test_missing_blob(space):
    with pytest.raises(NotFound, match="There is no file"):
        space.blobs.get("0" * 64)
    with pytest.raises(NotFound):
        space.thumb_path("0" * 64)


def test_damaged_blob_is_never_returned(space):
    sha = space.blobs.put(b"hello")
    space.blobs.path(sha).write_bytes(b"jello")
    with pytest.raises(WorkspaceError, match="damaged"):
        space.blobs.get(sha)


def test_thumbnail_is_small_webp_made_once(space):
    sha = space.blobs.put(png(size=(640, 320)))
    path = space.thumb_path(sha)
    with Image.open(path) as thumb:
        assert thumb.format == "WEBP"
        assert thumb.size == (160, 80)
    before = path.stat().st_mtime_ns
    assert space.thumb_path(sha) == path
    assert path.stat().st_mtime_ns == before


def test_empty_thumbnail_left_by_a_power_cut_is_made_again(space):
    sha = space.blobs.put(png())
    path = space.thumb_path(sha)
    path.write_bytes(b"")
    assert space.thumb_path(sha).stat().st_size > 0


def test_transparent_picture_is_on_white(space):
    sha = space.blobs.put(png("RGBA", colour=(0, 0, 0, 0)))
    with Image.open(space.thumb_path(sha)) as thumb:
        assert min(thumb.convert("RGB").getpixel((5, 5))) > 250


@pytest.mark.parametrize("data", [b"", b"no picture", png()[:200], png()[:-60]])
def test_broken_picture_is_named_and_leaves_no_thumbnail(space, data):
    sha = space.blobs.put(data)
    with pytest.raises(BadInput, match=sha):
        space.thumb_path(sha)
    assert not list((space.root / "thumbs").rglob("*.webp"))
