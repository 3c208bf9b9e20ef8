"""Fifty hostile files through the server's own upload: each refused with a reason."""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import struct
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from driver import Server
from PIL import Image

from core.data.feature_import import import_features
from core.data.importers import ImportLimits, import_dataset, opened, preview
from core.data.importers.inbox import Inbox
from core.errors import UserError
from core.workspace import Workspace, open_workspace

pytestmark = pytest.mark.browser

#: How much the server may have grown when all is over, MiB: buffers, no uploads kept.
GROWTH = 120


def png(width: int = 8, height: int = 8) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), (9, 90, 200)).save(out, "PNG")
    return out.getvalue()


def zipped(**entries: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name.replace("__", "/"), data)
    return out.getvalue()


class _Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("trap-was-sprung",)


def lying_png(side: int) -> bytes:
    """A picture whose header promises ``side`` squared pixels and holds none."""
    raw = bytearray(png())
    raw[16:24] = struct.pack(">II", side, side)
    return bytes(raw)


def npz_bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", b"\0" * 90_000_000)
    return out.getvalue()


def npy(array: np.ndarray, **how: bool) -> bytes:
    out = io.BytesIO()
    np.save(out, array, **how)
    return out.getvalue()


def tensors(header: bytes, body: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header)) + header + body


FORMULA = b"text,label\n=HYPERLINK(1),x\n"
TABLES: dict[str, bytes] = {
    "empty.csv": b"",
    "header-only.csv": b"text,label\n",
    "nul.csv": b"\0" * 4000,
    "binary.csv": bytes(range(256)) * 40,
    "wide.csv": b",".join(b"c%d" % i for i in range(6000)) + b"\n" + b",".join([b"1"] * 6000),
    "endless-quote.csv": b'text\n"' + b"a" * 300_000,
    "secret-path.csv": b"image,label\n/etc/passwd,a\n../../../../etc/shadow,b\n",
    "address.csv": b"image\nhttp://169.254.169.254/latest/meta-data\nfile:///etc/passwd\n",
    "broken.json": b'{"a": [1, 2',
    "deep.json": b"[" * 20_000,
    "bomb.jsonl": b'{"a":' * 3000,
    "not.parquet": b"PAR1" + b"\xff" * 64 + b"PAR1",
    "lie.parquet": b"PAR1" + struct.pack("<I", 2**31 - 1) + b"PAR1",
    "not.arrow": b"ARROW1\0\0" + b"\xff" * 90,
    "not.feather": b"FEA1" + b"\xfe" * 30,
    "html.csv": b"<html><script>alert(1)</script></html>",
}
PICTURES: dict[str, bytes] = {
    "text.png": b"this is no picture",
    "cut.png": png()[:40],
    "huge.png": lying_png(60_000),
    "tiny.png": png(1, 1),
    "polyglot.png": b"GIF89a<script>alert(1)</script>",
    "svg.svg": b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>',
    "xxe.svg": b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><svg>&x;</svg>',
    "elf.jpg": b"\x7fELF" + b"\0" * 200,
    "ps.png": b"%!PS\n(run) system",
    "half.jpg": b"\xff\xd8\xff\xe0" + b"\0" * 10,
    "zero.bmp": b"",
    "exe.png": b"MZ" + b"\x90" * 300,
    "pdf.png": b"%PDF-1.7\n%\xe2\xe3",
}
ARCHIVES: dict[str, bytes] = {
    "slip.zip": zipped(**{"../../evil.png": png()}),
    "absolute.zip": zipped(**{"/tmp/evil.png": png()}),
    "bomb.zip": zipped(a=b"\0" * 60_000_000),
    "nested.zip": zipped(**{"inner.zip": zipped(x=b"1")}),
    "torn.zip": zipped(a=png())[:-30],
    "empty.zip": zipped(),
    "text.zip": b"PK\x03\x04 not an archive",
    "script.zip": zipped(**{"run.sh": b"#!/bin/sh\nrm -rf /\n"}),
    "names.zip": zipped(**{"a\nb\r.txt": b"x"}),
    "gz.zip": b"\x1f\x8b\x08" + b"\0" * 60,
    "tar.zip": b"ustar" + b"\0" * 600,
}
FEATURES: dict[str, bytes] = {
    "object.npy": npy(np.array([_Trap()], dtype=object), allow_pickle=True),
    "pickle.npy": pickle.dumps(_Trap()),
    "model.pt": pickle.dumps(_Trap()),
    "bomb.npz": npz_bomb(),
    "lie.safetensors": tensors(b'{"x":{"dtype":"F32","shape":[999999999,9],"data_offsets":[0,4]}}'),
    "long.safetensors": struct.pack("<Q", 2**60) + b"{}",
    "cube.npy": npy(np.zeros((2, 2, 2))),
    "nan.npy": npy(np.full((3, 2), np.nan)),
    "cut.npy": npy(np.zeros((50, 8)))[:-64],
    "not.h5": b"\x89HDF\r\n\x1a\n" + b"\xff" * 100,
}
NAMES = (
    "../../up.png",
    "/etc/cron.d/x",
    "..\\up.png",
    "C:\\x.png",
    "a" * 300 + ".png",
    "",
    "\0.png",
)


def post(server: Server, inbox: str, name: str, data: bytes) -> tuple[int, dict]:
    """Send one file as the page's uploader does with ``?name=``."""
    request = urllib.request.Request(
        f"{server.url}/upload/{inbox}?name={quote(name, safe='')}", data=data, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as err:
        text = err.read().decode("utf-8", "replace")
        return err.code, json.loads(text) if text.startswith("{") else {"error": text}


def alive(server: Server) -> None:
    with urllib.request.urlopen(f"{server.url}/ready", timeout=20) as answer:
        assert json.loads(answer.read())["ready"] is True


def resident(server: Server) -> float:
    """Return the resident memory of the server's process in MiB."""
    port = server.url.rpartition(":")[2]
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().split(b"\0")
            if b"streamlit" in b" ".join(line) and port.encode() in line:
                found = re.search(r"VmRSS:\s+(\d+)", (folder / "status").read_text())
                return int(found.group(1)) / 1024 if found else 0.0
        except OSError:
            continue
    raise AssertionError("The server's process was not found.")


@pytest.fixture(scope="module")
def space(server: Server) -> Workspace:
    return open_workspace(server.home)


def outcome(space: Workspace, path: Path, number: int) -> str:
    """Return why nothing of a file was taken; empty when something was."""
    name = f"hostile-{number}"
    try:
        with opened(str(path)) as source:
            from dataclasses import replace

            data = import_dataset(space, source, replace(preview(source).plan, name=name))
    except UserError as err:
        return err.message
    lines = space.datasets.report(name).left_out
    taken = data.n
    space.remove_dataset(name)
    return "" if taken else "; ".join(line.reason for line in lines)


def test_fifty_hostile_files_are_refused_and_the_server_lives(
    server: Server, space: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    limits = ImportLimits.from_environment()
    before = resident(server)
    files = {**TABLES, **PICTURES, **ARCHIVES}
    assert len(files) + len(FEATURES) >= 50
    refused: dict[str, str] = {}
    for number, (name, data) in enumerate({**files, **FEATURES}.items()):
        inbox = Inbox.new(space.root, limits)
        status, said = post(server, inbox.name, name, data)
        if status != 200 or said.get("refused"):
            refused[name] = str(said.get("error") or said["refused"])
        elif name in FEATURES:
            with pytest.raises(UserError) as caught:
                import_features(space, dataset="emoji", path=inbox.source(), name="bad",
                                in_order=True)  # fmt: skip
            refused[name] = caught.value.message
        else:
            refused[name] = outcome(space, inbox.source(), number)
        inbox.discard()
        if number % 10 == 0:
            alive(server)
    silent = [name for name, why in refused.items() if not why.strip()]
    assert not silent, f"taken, or refused without a word: {silent}"
    assert "Traceback" not in " ".join(refused.values())
    assert not (tmp_path / "trap-was-sprung").exists()
    assert not list(space.root.parent.rglob("evil.png"))
    alive(server)
    assert resident(server) - before < GROWTH


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_leads_out_is_refused(server: Server, space: Workspace, name: str) -> None:
    inbox = Inbox.new(space.root, ImportLimits.from_environment())
    status, said = post(server, inbox.name, name, png())
    assert status != 200 or said["refused"]
    assert inbox.content()[0] == 0
    inbox.discard()
    alive(server)


@pytest.mark.parametrize("inbox", ["0" * 32, "..", "%2e%2e", "a/b"])
def test_an_inbox_nobody_made_takes_nothing(server: Server, inbox: str) -> None:
    status, _ = post(server, inbox, "a.png", png())
    assert status in (400, 404, 405)
    alive(server)
