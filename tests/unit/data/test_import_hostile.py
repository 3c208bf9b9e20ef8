"""What must never happen: files outside read or written, memory filled, formulas run."""

from __future__ import annotations

import csv
import io
import json
import stat
import struct
import tempfile
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from core.cli import main
from core.data.export import csv_text
from core.data.importers import ImportLimits, clean_name, open_source, opened, run_import
from core.data.importers.inbox import Inbox, Receiver
from core.data.importers.work import allowed_path
from core.errors import BadInput, NotFound, WorkspaceError

UNSAFE = ["../evil.png", "a/../../evil.png", "/etc/evil.png", "C:\\evil.png", "..\\evil.png",
          "//server/share/evil.png"]  # fmt: skip


def test_zip_slip_and_absolute_names_are_left_out(kit):
    """Bank 39: names with `..`, absolute, with a drive or a share are named and not read."""
    files = {"a/1.png": kit.picture(1), "b/2.png": kit.picture(2)}
    data = kit.take(kit.zip({**files, **{name: kit.picture(9) for name in UNSAFE}}))
    assert set(data.items["file"]) == set(files)
    reasons = kit.reasons(data)
    assert len(reasons) == len(UNSAFE)
    assert set(reasons.values()) == {"a name that leads out of the archive"}
    assert not list(kit.tmp.parent.rglob("evil.png"))


def test_a_link_in_an_archive_is_left_out(kit):
    """Bank 39: an entry that is a symbolic link is not followed and not read as a picture."""
    path = kit.zip({"a.png": kit.picture(1)})
    link = zipfile.ZipInfo("link.png")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    assert kit.reasons(kit.take(path)) == {"link.png": "a link or a device, not a plain file"}


def test_a_bomb_is_left_out_by_its_ratio(kit):
    """Bank 39: an entry that unpacks a thousandfold is not unpacked."""
    path = kit.zip({"a.png": kit.picture(1), "bomb.png": b"\0" * 30_000_000})
    assert path.stat().st_size < 60_000
    (reason,) = kit.reasons(kit.take(path)).values()
    assert "unpacks 29" in reason
    assert "to 30 MB, more than 200 to 1" in reason


def test_an_archive_of_too_much_is_refused_before_unpacking(kit, monkeypatch):
    """Bank 39: 10 GB in small packages are refused by the sum of what the entries state."""
    noise = kit.picture(1, (200, 200))
    path = kit.zip({f"{i}.png": noise for i in range(20)})
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *a, **k: pytest.fail("it was unpacked"))
    with pytest.raises(BadInput, match="unpacks to more than 1 MB"):
        open_source(path, limits=ImportLimits(total_bytes=1_000_000))


def lie_about_size(path: Path, name: str, size: int) -> None:
    """Rewrite the stated size of an entry, in the list and before the entry."""
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        at = archive.getinfo(name).header_offset
    data[at + 22 : at + 26] = struct.pack("<I", size)
    entry = data.index(name.encode(), data.index(b"PK\x01\x02")) - 46
    data[entry + 24 : entry + 28] = struct.pack("<I", size)
    path.write_bytes(bytes(data))


def test_an_entry_that_lies_about_its_size_is_not_read_further(kit):
    """Bank 39: stated 100 bytes, holds 50 MB: reading stops at what was stated."""
    path = kit.zip({"a.png": kit.picture(1), "lie.png": b"\0" * 50_000_000})
    lie_about_size(path, "lie.png", 100)
    reasons = kit.reasons(kit.take(path))
    assert reasons["lie.png"].startswith(("cannot be read", "it is no picture"))


def test_nested_archives_are_not_opened(kit):
    """Bank 39: a zip in a zip is named and left alone."""
    inner = kit.zip({"x.png": kit.picture(9)}, "inner.zip").read_bytes()
    data = kit.take(kit.zip({"a.png": kit.picture(1), "inner.zip": inner}))
    assert kit.reasons(data) == {"inner.zip": "not a picture by its name (.zip)"}


def test_an_archive_of_too_many_entries_is_refused_before_it_is_listed(kit, monkeypatch):
    """Bank 39: 200,000 entries: the list itself would fill the memory."""
    path = kit.zip({f"{i}.png": b"" for i in range(40)})
    monkeypatch.setattr(zipfile, "ZipFile", lambda *a: pytest.fail("its list was read"))
    with pytest.raises(BadInput, match="lists 40 entries; at most 30"):
        open_source(path, limits=ImportLimits(files=30))


def test_a_folder_of_too_many_files_is_refused(kit):
    """Bank 39: the same for a folder."""
    folder = kit.folder({f"{i}.png": b"x" for i in range(4)})
    with pytest.raises(BadInput, match="more than 3 files"):
        open_source(folder, limits=ImportLimits(files=3))


def test_a_list_that_lies_about_its_entries_is_refused(kit):
    """Bank 39: an end record that claims 60,000 entries of a list that has one."""
    path = kit.zip({"a.png": kit.picture(1)})
    data = bytearray(path.read_bytes())
    at = data.rindex(b"PK\x05\x06")
    data[at + 8 : at + 16] = struct.pack("<HHI", 60_000, 60_000, 2**32 - 2)
    path.write_bytes(bytes(data))
    with pytest.raises(BadInput, match=r"lists 60,000 entries|cannot be read as a zip"):
        open_source(path, limits=ImportLimits(files=1000))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_the_first_of_two_entries_of_one_name_counts(kit):
    """Bank 39: duplicate entries: which one is read is fixed, and the other is named."""
    path = kit.zip({"a.png": kit.picture(1)})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("a.png", kit.picture(2))
    data = kit.take(path)
    assert data.image_bytes(0) == kit.picture(1)
    assert kit.reasons(data) == {"a.png": "a second entry of that name; the first is taken"}


@pytest.mark.parametrize("keep", [0.3, 0.7, 0.95])
def test_a_torn_archive_is_refused(kit, keep):
    path = kit.zip({f"{i}.png": kit.picture(i, (40, 40)) for i in range(5)})
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])
    with pytest.raises(BadInput, match="cannot be read as a zip archive"):
        open_source(path)


def test_a_damaged_entry_is_named_and_the_rest_is_taken(kit):
    files = {f"{i}.png": kit.picture(i, (40, 40)) for i in range(3)}
    path = kit.zip(files)
    data = bytearray(path.read_bytes())
    at = data.index(b"1.png") + 200
    data[at : at + 40] = bytes(40)
    path.write_bytes(bytes(data))
    taken = kit.take(path)
    assert list(taken.items["file"]) == ["0.png", "2.png"]
    assert kit.reasons(taken)["1.png"].startswith("cannot be read")


def test_what_is_unpacked_for_reading_is_removed(kit, monkeypatch):
    """Tables of an archive are unpacked into a folder that is gone afterwards."""
    scratch = kit.folder({}, "scratch")
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    table = b"file_name,label\na.png,x\n"
    kit.take(kit.zip({"a.png": kit.picture(1), "metadata.csv": table}))
    assert list(scratch.iterdir()) == []
    with pytest.raises(BadInput):
        open_source(kit.zip({"notes.md": b"x"}, "n.zip"))
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    "given", ["../secret.png", "/etc/passwd", "..\\secret.png", "a/../../s.png"]
)
def test_a_table_cannot_name_files_elsewhere(kit, given):
    """Bank 40: paths of a table stay below its own folder."""
    kit.file("secret.png", kit.picture(9))
    rows = [{"image": "1.png"}, {"image": given}, {"image": "2.png"}]
    folder = kit.folder({"1.png": kit.picture(1), "2.png": kit.picture(2),
                         "t.jsonl": "\n".join(map(json.dumps, rows)).encode()})  # fmt: skip
    data = kit.take(folder / "t.jsonl")
    assert list(data.items["id"]) == [0, 2]
    assert "leads out of the source" in kit.reasons(data)["row 2"]


def test_a_link_beside_a_table_does_not_lead_out(kit):
    """Bank 40: nor does a link that a table names."""
    kit.file("secret.png", kit.picture(9))
    folder = kit.folder({"1.png": kit.picture(1), "t.csv": b"image\n1.png\nlink.png\n"})
    (folder / "link.png").symlink_to(kit.tmp / "secret.png")
    assert "there is no file" in kit.reasons(kit.take(folder / "t.csv"))["row 2"]


@pytest.mark.parametrize("name", ["../../x.png", "/etc/x", "\\\\host\\share\\x", "a/../../../x",
                                  "C:/x", "", "\0", "x" * 256, ".tmp-x"])  # fmt: skip
def test_an_uploads_name_stays_in_its_inbox(kit, name):
    """Bank 40: an upload named `../../x` and its kin are refused, the rest goes on."""
    inbox = Inbox.new(kit.space.root, ImportLimits())
    receiver = Receiver(inbox, ImportLimits())
    receiver.feed(bundle({name: b"evil", "good.png": kit.picture(1)}))
    receiver.close()
    assert receiver.files == 1
    assert len(receiver.refused) == 1
    assert [p.name for p in inbox.folder.rglob("*")] == ["good.png"]
    assert not list(kit.tmp.parent.glob("**/x"))


def bundle(files: dict[str, bytes]) -> bytes:
    """Write files as the uploader sends them."""
    out = b""
    for name, data in files.items():
        raw = name.encode()
        out += struct.pack(">H", len(raw)) + raw + struct.pack(">Q", len(data)) + data
    return out


@pytest.mark.parametrize("block", [1, 7, 100_000])
def test_an_upload_is_the_same_however_it_is_cut_into_blocks(kit, block):
    files = {"a/1.png": kit.picture(1), "a/empty.txt": b"", "b/2.png": kit.picture(2)}
    stream = bundle(files)
    inbox = Inbox.new(kit.space.root, ImportLimits())
    receiver = Receiver(inbox, ImportLimits())
    for at in range(0, len(stream), block):
        receiver.feed(stream[at : at + block])
    receiver.close()
    assert {n: (inbox.folder / n).read_bytes() for n in files} == files
    assert (receiver.files, receiver.bytes) == (3, sum(map(len, files.values())))


def test_an_upload_cut_short_keeps_whole_files_only(kit):
    inbox = Inbox.new(kit.space.root, ImportLimits())
    receiver = Receiver(inbox, ImportLimits())
    receiver.feed(bundle({"a.png": b"whole", "b.png": b"cut off"})[:-3])
    with pytest.raises(BadInput, match="ended in the middle"):
        receiver.close()
    assert [p.name for p in inbox.folder.iterdir()] == ["a.png"]


def test_limits_of_an_upload(kit):
    inbox = Inbox.new(kit.space.root, ImportLimits())
    receiver = Receiver(inbox, ImportLimits(total_bytes=10))
    with pytest.raises(BadInput, match="has 11 bytes; 10 bytes are left"):
        receiver.begin("a.png", 11)
    receiver = Receiver(inbox, ImportLimits(files=1))
    receiver.feed(bundle({"a.png": b"x"}))
    with pytest.raises(BadInput, match="More than 1 files"):
        receiver.begin("b.png", 1)
    again = Receiver(inbox, ImportLimits())
    again.feed(bundle({"a.png": b"y", "a.png/b.png": b"z"}))
    again.close()
    reasons = [line.reason for line in again.refused]
    assert "uploaded already" in reasons[0]
    assert len(reasons) == 2
    assert (inbox.folder / "a.png").read_bytes() == b"x"


def test_an_inbox_is_found_by_its_name_only(kit):
    (kit.space.root / "inbox" / "mine").mkdir(parents=True)
    for name in ("mine", "..", "0" * 32, "../datasets"):
        with pytest.raises(NotFound, match="no such upload"):
            Inbox(kit.space.root, name, ImportLimits())


def test_an_inbox_goes_when_it_has_become_a_dataset(kit):
    inbox = Inbox.new(kit.space.root, ImportLimits())
    kit.zip({"a.png": kit.picture(1)}, f"space/inbox/{inbox.name}/pets.zip")
    with opened(str(inbox.source())) as source:
        from core.data.importers import preview

        plan = preview(source).plan
    data = run_import(kit.space, source={"path": str(inbox.source())}, plan=plan.as_dict())
    assert data.name == "pets"
    assert not inbox.folder.exists()
    with pytest.raises(NotFound):
        inbox.source()


def test_a_forgotten_inbox_is_collected(kit):
    inbox = Inbox.new(kit.space.root, ImportLimits())
    assert inbox.folder not in [g.path for g in kit.space.gc(dry_run=True)]
    assert inbox.folder in [g.path for g in kit.space.gc(min_age_s=-1)]
    assert not inbox.folder.exists()


def test_server_paths_lie_in_the_allowed_folders(kit, monkeypatch):
    """Bank 40: only folders an administrator named, links followed before they are compared."""
    monkeypatch.delenv("THEODOLITE_IMPORT_DIRS", raising=False)
    with pytest.raises(BadInput, match="No folder of this server"):
        allowed_path("/etc")
    allowed = kit.folder({"pets/1.png": kit.picture(1)}, "allowed")
    kit.folder({"x.png": kit.picture(2)}, "other")
    (allowed / "out").symlink_to(kit.tmp / "other")
    monkeypatch.setenv("THEODOLITE_IMPORT_DIRS", str(allowed))
    assert allowed_path("pets") == (allowed / "pets").resolve()
    for given in ("../other", "/etc/passwd", "out", str(kit.tmp / "allowed2")):
        with pytest.raises(BadInput, match="lies outside"):
            allowed_path(given)
    with pytest.raises(NotFound):
        allowed_path("absent")


FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "＝1+1"]


def test_no_export_holds_a_formula(kit, capsys):
    """Bank 41: cells that begin with = + - @ leave with an apostrophe, numbers as they are."""
    rows = [{"text": f"{text} x", "label": "x", "n": -i, "=col": text}
            for i, text in enumerate(FORMULAS)]  # fmt: skip
    data = kit.take(kit.file("t.jsonl", "\n".join(map(json.dumps, rows)).encode()))
    assert main(["export", data.name, "--out", str(kit.tmp), "--workspace",
                 str(kit.space.root), "--json"]) == 0  # fmt: skip
    items, outcome = (Path(p) for p in json.loads(capsys.readouterr().out))
    with items.open(newline="", encoding="utf-8") as text:
        rows = list(csv.reader(text))
    back = pd.DataFrame(rows[1:], columns=rows[0])
    assert list(back["caption"]) == [f"'{text} x" for text in FORMULAS]
    assert list(back["'=col"]) == [f"'{text}" for text in FORMULAS]
    assert list(back["n"]) == [str(-i) for i in range(len(FORMULAS))]
    assert outcome.name == "outcome.csv"
    assert csv_text(pd.DataFrame({"a": ["-0.5", "+1e3", "a-b"]})) == (
        "a\r\n-0.5\r\n+1e3\r\na-b\r\n"
    )


def test_the_report_of_a_formula_named_file_is_no_formula(kit, capsys):
    """Bank 41: nor is a line of the outcome report."""
    data = kit.take(kit.folder({"a.png": kit.picture(1), "=1+1.png": b"no picture"}))
    out = kit.tmp / "report.csv"
    assert main(["report", data.name, "--out", str(out), "--workspace", str(kit.space.root)]) == 0
    assert "'=1+1.png" in out.read_text()
    assert "left out: =1+1.png" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["x; rm -rf ~", "$(touch x)", "`id`", "-rf", "../x", "a\nb", "A"])
def test_names_that_a_shell_or_a_path_would_read_are_refused(kit, name):
    """Bank 41: a dataset's name holds nothing that a shell or a path could take otherwise."""
    from dataclasses import replace

    path = kit.file("t.csv", b"text\na b\n")
    with pytest.raises(BadInput, match="cannot name a dataset"):
        kit.take(path, change=lambda plan: replace(plan, name=name))
    assert clean_name(name, []).replace("-", "").replace(".", "").isalnum()


def test_two_processes_import_into_one_workspace(kit):
    """Bank 41: the catalogue takes several writers at once."""
    import subprocess
    import sys

    from core.paths import app_root

    running = []
    for i in range(2):
        path = kit.file(f"set{i}.csv", b"text,label\n" + b"a b,x\n" * 50)
        command = [sys.executable, "-m", "core", "import", str(path), "--workspace",
                   str(kit.space.root), "--json"]  # fmt: skip
        running.append(subprocess.Popen(command, cwd=app_root(), stdout=subprocess.PIPE))
    assert [process.wait(60) for process in running] == [0, 0]
    assert set(kit.space.dataset_names()) == {"set0", "set1"}


def test_a_report_that_was_changed_is_not_shown(kit):
    data = kit.take(kit.folder({"a.png": kit.picture(1), "b.png": b"no"}))
    (path,) = (kit.space.root / "datasets").glob("*.report.json")
    path.write_text(path.read_text().replace("b.png", "c.png"))
    with pytest.raises(WorkspaceError, match="is damaged"):
        kit.report(data)
    path.unlink()
    with pytest.raises(WorkspaceError, match="cannot be read"):
        kit.report(data)


def test_a_report_stays_as_long_as_its_dataset(kit):
    data = kit.take(kit.folder({"a.png": kit.picture(1), "b.png": b"no"}))
    kit.space.gc(min_age_s=-1)
    assert kit.report(data).n_left_out == 1
    kit.space.remove_dataset(data.name)
    kit.space.gc(min_age_s=-1)
    assert not list((kit.space.root / "datasets").iterdir())


def test_thousands_of_broken_files_do_not_swell_the_catalogue(kit):
    """The catalogue, which every page reads, holds 200 lines; the report holds all of them."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("ok.png", kit.picture(1))
        for i in range(1000):
            archive.writestr(f"{i:04d}.png", b"no picture")
    data = kit.take(kit.file("many.zip", buffer.getvalue()))
    assert len(data.meta["left_out"]) == 201
    assert sum(line["count"] for line in data.meta["left_out"]) == 1000
    assert len(kit.report(data).left_out) == 1000


def arrow_that_points_outside(kit) -> Path:
    """Return an Arrow file whose text column points far behind its own bytes."""
    import pyarrow as pa

    table = pa.table({"text": ["some words"] * 50})
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    body = bytearray(out.getvalue())
    offsets = struct.pack("<3i", 10, 20, 30)
    at = body.index(offsets)
    body[at : at + 12] = struct.pack("<3i", 2**31 - 9, -(2**30), 2**30)
    return kit.file("t.arrow", bytes(body))


def test_a_table_that_points_outside_of_itself_is_refused(kit):
    """Bank 39: reading such cells unchecked ends the process; they are checked first."""
    with pytest.raises(BadInput, match=r"no rows that can be read.*cannot be read"):
        kit.preview(arrow_that_points_outside(kit))


def test_the_preview_runs_in_a_process_of_its_own(kit):
    from core.data.importers.apart import preview_apart

    path = kit.folder({"a/1.png": kit.picture(1), "b/2.png": kit.picture(2), "c.png": b"no"})
    assert preview_apart({"path": str(path)}) == kit.preview(path)
    with pytest.raises(NotFound, match="no file or folder"):
        preview_apart({"path": str(kit.tmp / "absent")})
    with pytest.raises(BadInput, match="cannot be read as a zip"):
        preview_apart({"path": str(kit.file("x.zip", b"PK torn"))})


def test_a_crash_of_the_reader_is_an_answer_and_no_crash_of_the_server(monkeypatch):
    import subprocess

    from core.data.importers import apart

    def crashed(command, **how):
        return subprocess.CompletedProcess(command, -11, b"", b"")

    def slow(command, **how):
        raise subprocess.TimeoutExpired(command, 1)

    monkeypatch.setattr(apart.subprocess, "run", crashed)
    with pytest.raises(BadInput, match="ended the program that reads it"):
        apart.preview_apart({"path": "x"})
    monkeypatch.setattr(apart.subprocess, "run", slow)
    with pytest.raises(BadInput, match="took more than"):
        apart.preview_apart({"path": "x"})


def test_a_decoder_that_raises_its_own_kind_is_a_broken_picture(kit):
    """AVIF raises RuntimeError where others raise OSError."""
    from PIL import Image

    body = bytearray(kit.encoded(Image.new("RGB", (20, 15), (9, 99, 9)), "AVIF"))
    cut = bytes(body[: len(body) - 30]) + bytes(30)
    data = kit.take(kit.folder({"a.png": kit.picture(1), "b.avif": cut[:-20], "c.avif": cut}))
    assert list(data.items["id"]) == [0]


def test_bytes_of_no_known_language_are_read_somehow(kit):
    """Whatever is found for a table of odd bytes has a name that can be read with."""
    for seed in range(20):
        body = bytes((seed * 37 + i * 91) % 96 + 160 for i in range(60))
        kit.take(kit.file(f"t{seed}.csv", b"text;label\n" + body + b";x\nplain words;y\n"))
