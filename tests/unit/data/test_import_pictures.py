"""Folders and archives of pictures: names, links, broken files, modes, classes by folder."""

from __future__ import annotations

import io
import os
import struct
import unicodedata
import zlib

import numpy as np
import pytest
from PIL import Image

from core.data.importers import ImportLimits, open_source
from core.errors import BadInput, Cancelled, NotFound

STRANGE = ["100%.png", "a#b.png", "what?.png", "with space.png", "[x].png", "a&b.png",
           "\"quoted\" 'name'.png", "-leading.png", "trailing. .png", "~home.png", "$(rm -rf).png",
           "a;b|c.png", "名前.png", "ä" * 120 + ".png"]  # fmt: skip


@pytest.mark.parametrize("form", ["folder", "zip"])
def test_strange_names_are_taken_as_they_are(kit, form):
    """Bank 1: `%`, `#`, `?`, space, `[x]`, `&`, quotes, leading `-`, trailing dot, long names."""
    files = {f"cats/{name}": kit.picture(i) for i, name in enumerate(STRANGE)}
    files["cats/" + "b" * 251 + ".png"] = kit.picture(90)
    files["dogs/x.png"] = kit.picture(91)
    data = kit.take(kit.folder(files) if form == "folder" else kit.zip(files))
    assert kit.reasons(data) == {}
    assert set(data.items["file"]) == set(files)
    by_file = dict(zip(data.items["file"], data.items["id"], strict=True))
    for name, content in files.items():
        assert data.image_bytes(by_file[name]) == content


def test_composed_and_decomposed_twins_stay_two_files_of_one_class(kit):
    """Bank 1: NFC and NFD twins are two files; their folders are one class, and it is said."""
    nfc, nfd = (unicodedata.normalize(form, "café") for form in ("NFC", "NFD"))
    files = {f"{nfc}/1.png": kit.picture(1), f"{nfd}/2.png": kit.picture(2),
             "tee/3.png": kit.picture(3)}  # fmt: skip
    data = kit.take(kit.zip(files))
    assert data.n == 3
    assert set(data.items["label"]) == {nfc, "tee"}
    assert kit.repairs(data) == {
        f"{nfd}/2.png": "label: written in the composed form of Unicode (NFC)"
    }


def test_a_table_finds_a_file_whose_name_is_spelled_in_the_other_form(kit):
    """Bank 1: metadata written on one system finds files that came from another."""
    nfd = unicodedata.normalize("NFD", "café.png")
    table = f"file_name,label\n{unicodedata.normalize('NFC', nfd)},a\nb.png,b\n".encode()
    data = kit.take(kit.zip({nfd: kit.picture(1), "b.png": kit.picture(2), "metadata.csv": table}))
    assert list(data.items["label"]) == ["a", "b"]


def test_bytes_that_are_no_utf8_in_a_name(kit):
    """Bank 1: a name of any bytes is read, and written as text that can be stored."""
    folder = kit.folder({"a/ok.png": kit.picture(1), "b/ok.png": kit.picture(3)})
    with open(os.fsencode(folder) + b"/a/\xff.png", "wb") as handle:
        handle.write(kit.picture(2))
    data = kit.take(folder)
    assert set(data.items["file"]) == {"a/ok.png", "a/\\xff.png", "b/ok.png"}


def test_the_given_folder_may_itself_be_hidden_or_named_data(kit, monkeypatch):
    """Bank 2: `~`, a hidden folder above, a path with /data: only what is inside counts."""
    home = kit.tmp / ".d" / "data"
    (home / "in" / "a").mkdir(parents=True)
    (home / "in" / "a" / "1.png").write_bytes(kit.picture(1))
    monkeypatch.setenv("HOME", str(home))
    with open_source("~/in") as source:
        assert source.count() == 1


def test_hidden_files_and_folders_are_named_and_left_out(kit):
    """Bank 2: a hidden folder is not looked into, and the report says so."""
    folder = kit.folder({"a/1.png": kit.picture(1), ".d/secret.png": kit.picture(2),
                         "a/.hidden.png": kit.picture(3)})  # fmt: skip
    reasons = kit.reasons(kit.take(folder))
    assert reasons == {".d/": "a hidden folder", "a/.hidden.png": "a hidden file"}


def test_links_inside_outside_and_in_a_loop(kit):
    """Bank 2: a link to a file inside is read; outside, dangling, loops and folders are not."""
    folder = kit.folder({"a/1.png": kit.picture(1), "b/2.png": kit.picture(2)})
    kit.file("secret.png", kit.picture(3))
    (folder / "a" / "inside.png").symlink_to(folder / "b" / "2.png")
    (folder / "a" / "outside.png").symlink_to(kit.tmp / "secret.png")
    (folder / "a" / "gone.png").symlink_to(kit.tmp / "nothing.png")
    (folder / "a" / "loop.png").symlink_to(folder / "a" / "loop.png")
    (folder / "up").symlink_to(folder)
    data = kit.take(folder)
    assert set(data.items["file"]) == {"a/1.png", "a/inside.png", "b/2.png"}
    reasons = kit.reasons(data)
    assert reasons["a/outside.png"] == "a link that leads out of the folder"
    assert "cannot be read" in reasons["a/gone.png"]
    assert "a/loop.png" in reasons
    assert reasons["up/"] == "a link to a folder: links to folders are not followed"


def test_a_pipe_is_not_waited_for(kit):
    """Bank 2: what is no plain file is not opened."""
    folder = kit.folder({"a/1.png": kit.picture(1)})
    os.mkfifo(folder / "a" / "pipe.png")
    assert kit.reasons(kit.take(folder)) == {"a/pipe.png": "not a plain file"}


def animated(kit) -> bytes:
    frames = [Image.new("RGB", (8, 8), (i * 90, 0, 0)) for i in range(3)]
    return kit.encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])


def zero_png() -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 0, 0, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def test_broken_pictures_are_named_and_move_no_other_row(kit):
    """Bank 3: empty, cut short, renamed text, half a TIFF, 0 x 0, 1 x 1, animated GIF."""
    jpeg = kit.picture(5, (64, 48), "JPEG")
    tiff = kit.picture(6, (64, 48), "TIFF", compression="tiff_deflate")
    files = {
        "01_good.png": kit.picture(1), "02_empty.jpg": b"", "03_cut.jpg": jpeg[: len(jpeg) // 2],
        "04_text.jpg": b"this is no picture\n" * 9, "05_half.tif": tiff[: len(tiff) // 2],
        "06_zero.png": zero_png(), "07_pixel.png": kit.encoded(Image.new("RGB", (1, 1))),
        "08_moving.gif": animated(kit), "09_good.png": kit.picture(9),
    }  # fmt: skip
    data = kit.take(kit.folder(files))
    assert dict(zip(data.items["file"], data.items["id"], strict=True)) == {
        "01_good.png": 0, "09_good.png": 8}  # fmt: skip
    assert data.image_bytes(8) == files["09_good.png"]
    reasons = kit.reasons(data)
    assert set(reasons) == set(files) - {"01_good.png", "09_good.png"}
    assert reasons["02_empty.jpg"] == "the file is empty"
    assert reasons["04_text.jpg"] == "it is no picture by its content"
    assert "1 x 1 pixels" in reasons["07_pixel.png"]
    assert reasons["08_moving.gif"] == "3 frames: a single picture was expected"


def test_the_first_frame_is_taken_on_request_and_said(kit):
    """Bank 3: an animation is never taken for a picture without a word."""
    from dataclasses import replace

    folder = kit.folder({"a.gif": animated(kit), "b.png": kit.picture(1)})
    data = kit.take(folder, change=lambda plan: replace(plan, first_frame=True))
    assert data.n == 2
    assert kit.repairs(data)["a.gif"] == "only the first of several frames is read"


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.9, 0.99])
def test_a_jpeg_cut_anywhere_is_found(kit, cut):
    """Bank 3: the whole file is decoded, a reduced decode must not hide a missing end."""
    jpeg = kit.picture(5, (200, 160), "JPEG")
    folder = kit.folder({"a.png": kit.picture(1), "cut.jpg": jpeg[: int(len(jpeg) * cut)]})
    assert set(kit.reasons(kit.take(folder))) == {"cut.jpg"}


def grey16(top: int) -> Image.Image:
    return Image.fromarray(np.linspace(0, top, 64).reshape(8, 8).astype(np.uint16))


def test_every_mode_is_read_and_what_changes_is_said(kit):
    """Bank 4: 1, L, LA, P with transparency, RGBA, CMYK, YCbCr, I;16, I, F."""
    steps = np.arange(64).reshape(8, 8)
    palette = Image.new("P", (8, 8), 1)
    palette.putpalette([0, 0, 0, 250, 10, 10])
    files = {
        "1.png": kit.encoded(Image.new("1", (8, 8), 1)),
        "L.png": kit.encoded(Image.new("L", (8, 8), 200)),
        "LA.png": kit.encoded(Image.new("LA", (8, 8), (0, 0))),
        "P.png": kit.encoded(palette, transparency=1),
        "RGBA.png": kit.encoded(Image.new("RGBA", (8, 8), (255, 0, 0, 0))),
        "CMYK.jpg": kit.encoded(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "JPEG"),
        "YCbCr.tif": kit.encoded(Image.new("YCbCr", (8, 8), (128, 128, 128)), "TIFF"),
        "I16.png": kit.encoded(grey16(65535)),
        "I.tif": kit.encoded(Image.fromarray(steps.astype(np.int32) * 9000), "TIFF"),
        "F.tif": kit.encoded(Image.fromarray(steps.astype(np.float32) / 63), "TIFF"),
    }  # fmt: skip
    data = kit.take(kit.folder(files))
    assert data.n == len(files), kit.reasons(data)
    items = dict(zip(data.items["file"], data.items["id"], strict=True))
    pixels = {name: np.asarray(data.image(i)).astype(int) for name, i in items.items()}
    assert pixels["LA.png"].min() == pixels["P.png"].min() == pixels["RGBA.png"].min() == 255
    assert pixels["CMYK.jpg"][0, 0, 0] > 200 > 90 > pixels["CMYK.jpg"][0, 0, 1]
    for name in ("I16.png", "I.tif", "F.tif"):
        grey = pixels[name][..., 0].ravel()
        assert len(np.unique(grey)) > 50, name
        assert (np.diff(grey) >= 0).all(), name
        assert grey[0] == 0, name
        assert grey[-1] == 255, name
    repairs = kit.repairs(data)
    assert repairs["CMYK.jpg"] == "converted from CMYK to RGB"
    assert repairs["I16.png"] == "more than 8 bits a channel, scaled to 8"
    assert repairs["RGBA.png"] == "transparent parts are laid on white"
    assert {"1.png", "L.png"}.isdisjoint(repairs)


def test_a_dark_16_bit_picture_stays_dark(kit):
    """Bank 4: 16 bits keep their contrast from picture to picture, even below 256 of 65535."""
    dark, bright = kit.encoded(grey16(200)), kit.encoded(grey16(65535))
    data = kit.take(kit.folder({"a.png": dark, "b.png": bright}))
    assert np.asarray(data.image(0)).max() <= 1
    assert np.asarray(data.image(1)).max() == 255


def test_exif_rotation_is_applied_and_said(kit):
    """Bank 4: a picture turned by its EXIF tag is upright for the encoder."""
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = kit.encoded(Image.new("RGB", (8, 4), (9, 9, 9)), "JPEG", exif=exif)
    data = kit.take(kit.folder({"a.jpg": turned, "b.jpg": kit.picture(1, form="JPEG")}))
    assert data.image(0).size == (4, 8)
    assert kit.repairs(data) == {"a.jpg": "turned upright as its EXIF tag says"}


def test_a_decompression_bomb_is_refused_by_its_size(kit):
    """Bank 4: more pixels than the limit are refused before a single one is decoded."""
    bomb = kit.encoded(Image.new("1", (3000, 3000)))
    assert len(bomb) < 5_000
    folder = kit.folder({"a.png": kit.picture(1), "bomb.png": bomb})
    data = kit.take(folder, limits=ImportLimits(pixels=1_000_000))
    assert kit.reasons(data) == {"bomb.png": "3,000 x 3,000 pixels, at most 1,000,000 are read"}


def test_a_header_that_lies_about_its_size_costs_nothing(kit):
    """Bank 4: a small file that claims 60,000 x 60,000 pixels is refused."""
    data = bytearray(kit.picture(1))
    data[16:24] = struct.pack(">II", 60_000, 60_000)
    data[29:33] = struct.pack(">I", zlib.crc32(bytes(data[12:29])))
    taken = kit.take(kit.folder({"a.png": kit.picture(2), "lie.png": bytes(data)}))
    assert "3600000000 pixels" in kit.reasons(taken)["lie.png"]


def test_one_class_folder_gives_no_class(kit):
    """Bank 7: one folder for all tells nothing, no class is invented."""
    data = kit.take(kit.folder({"pets/1.png": kit.picture(1), "pets/2.png": kit.picture(2)}))
    assert set(data.items["label"]) == {""}


def test_no_class_folder_gives_no_class(kit):
    """Bank 7: pictures side by side have no class; the caption is the file's name."""
    data = kit.take(kit.folder({"black_cat.png": kit.picture(1), "old-dog.png": kit.picture(2)}))
    assert set(data.items["label"]) == {""}
    assert list(data.items["caption"]) == ["black cat", "old dog"]


def test_files_beside_class_folders_have_no_class_and_it_is_said(kit):
    """Bank 7: files and folders mixed: the class is the folder's, else none."""
    data = kit.take(kit.folder({"cats/1.png": kit.picture(1), "dogs/2.png": kit.picture(2),
                                "loose.png": kit.picture(3)}))  # fmt: skip
    assert dict(zip(data.items["file"], data.items["label"], strict=True)) == {
        "cats/1.png": "cats", "dogs/2.png": "dogs", "loose.png": ""}  # fmt: skip
    assert kit.report(data).notes == ("1 pictures lie in no class folder and get no class.",)


def test_an_empty_class_folder_is_no_class(kit):
    """Bank 7: the empty folder is named, and no class is made of it."""
    folder = kit.folder({"cats/1.png": kit.picture(1), "dogs/2.png": kit.picture(2)})
    (folder / "birds").mkdir()
    data = kit.take(folder)
    assert set(data.items["label"]) == {"cats", "dogs"}
    assert kit.reasons(data) == {"birds/": "the folder is empty: no class is made of it"}
    assert kit.report(data).n_left_out == 0


@pytest.mark.parametrize(
    ("names", "label", "domain", "split"),
    [
        (["real/cat/1", "real/dog/2", "sketch/cat/3", "sketch/dog/4"], "cat", "real", ""),
        (["train/cat/1", "train/dog/2", "test/cat/3", "test/dog/4"], "cat", "", "train"),
        (["set/cat/1", "set/dog/2"], "cat", "", ""),
        (["set/train/cat/1", "set/test/dog/2"], "cat", "", "train"),
    ],
)
def test_levels_of_folders_become_class_domain_and_split(kit, names, label, domain, split):
    """Bank 7: what a level of folders is follows from its names, and can be corrected."""
    data = kit.take(kit.zip({f"{n}.png": kit.picture(i) for i, n in enumerate(names)}))
    row = data.items[data.items["file"] == f"{names[0]}.png"].iloc[0]
    assert (row["label"], row["domain"], row["split"]) == (label, domain, split)


@pytest.mark.parametrize("where", ["inside", "beside", "in its folder"])
def test_a_metadata_table_inside_or_beside_a_zip(kit, where):
    """Bank 7: metadata.csv in the archive, beside it, or in the pictures' own folder."""
    table = b"file_name,species,text\n1.png,cat,a grey cat\n2.png,dog,a dog\n"
    base = "pics/" if where == "in its folder" else ""
    files = {f"{base}1.png": kit.picture(1), f"{base}2.png": kit.picture(2)}
    if where == "beside":
        inbox = kit.folder({"metadata.csv": table}, "inbox")
        kit.zip(files, "inbox/pets.zip")
        data = kit.take(inbox)
    else:
        data = kit.take(kit.zip({**files, f"{base}metadata.csv": table}))
    assert list(data.items["label"]) == ["cat", "dog"]
    assert list(data.items["caption"]) == ["a grey cat", "a dog"]


def test_pictures_that_no_row_names_and_rows_without_a_picture(kit):
    """Bank 7 and 8: both sides of a table that does not fit are named."""
    table = b"file_name,label\n1.png,cat\nmissing.png,dog\n2.png,dog\n"
    files = {f"{i}.png": kit.picture(i) for i in (1, 2, 3)}
    data = kit.take(kit.folder({**files, "metadata.csv": table}))
    assert list(data.items["id"]) == [0, 2]
    assert kit.reasons(data) == {
        "row 2": "there is no file 'missing.png' beside the table", "3.png": "no row names it"
    }  # fmt: skip


def test_the_same_file_name_in_two_folders_stays_two_items(kit):
    """Bank 8: duplicate file names in different folders are told apart by their path."""
    data = kit.take(kit.folder({"a/1.png": kit.picture(1), "b/1.png": kit.picture(2)}))
    assert data.image_bytes(0) != data.image_bytes(1)
    table = b"file_name,label\na/1.png,x\nb/1.png,y\n"
    given = {"a/1.png": kit.picture(1), "b/1.png": kit.picture(2), "metadata.csv": table}
    data = kit.take(kit.folder(given, "second"))
    assert [data.image_bytes(i) for i in (0, 1)] == [kit.picture(1), kit.picture(2)]


def test_nothing_to_import_says_what_is_needed(kit):
    with pytest.raises(NotFound, match="no file or folder"):
        open_source(kit.tmp / "absent")
    with pytest.raises(BadInput, match="it is empty"):
        open_source(kit.folder({}, "bare"))
    with pytest.raises(BadInput, match="1 files were left out; the first: notes"):
        open_source(kit.folder({"notes.md": b"hello"}, "talk"))
    with pytest.raises(BadInput, match="one picture"):
        open_source(kit.file("one.png", kit.picture(1)))


def test_all_broken_leaves_no_dataset(kit):
    with pytest.raises(BadInput, match="No row of given can be used: 1 were left out"):
        kit.take(kit.folder({"a.png": b"no"}))
    assert kit.space.dataset_names() == []


def test_cancel_leaves_no_dataset(kit):
    from core.data.importers import import_dataset, preview

    def stop(fraction, message):
        if fraction > 0:
            raise Cancelled("Stopped.")

    folder = kit.folder({f"{i}.png": kit.picture(i) for i in range(5)})
    with open_source(folder) as source, pytest.raises(Cancelled):
        import_dataset(kit.space, source, preview(source).plan, progress=stop)
    assert kit.space.dataset_names() == []
    assert not list((kit.space.root / "blobs").rglob(".tmp-*"))


def test_pictures_are_never_all_in_memory(kit, monkeypatch):
    """Each picture is handed to the store before the next one is read."""
    from core.data.importers import import_dataset, preview, trees

    events = []
    folder = kit.folder({f"{i}.png": kit.picture(i) for i in range(6)})
    original = trees.FolderTree.open
    monkeypatch.setattr(
        trees.FolderTree, "open", lambda self, name: events.append("read") or original(self, name)
    )
    with open_source(folder) as source:
        plan = preview(source).plan
        events.clear()
        put = kit.space.blobs.put_many

        def watched(blobs, **how):
            def through():
                for blob in blobs:
                    events.append("kept")
                    yield blob

            return put(through(), **how)

        monkeypatch.setattr(kit.space.blobs, "put_many", watched)
        import_dataset(kit.space, source, plan)
    assert events == ["read", "kept"] * 6


def test_polyglots_keep_only_what_they_are_as_pictures(kit):
    """A JPEG with a page or an archive behind it is a JPEG: nothing else of it is ever used."""
    jpeg = kit.picture(1, form="JPEG") + b"<script>alert(1)</script>"
    data = kit.take(kit.folder({"a.jpg": jpeg, "b.html.png": b"<html>", "c.png": kit.picture(2)}))
    assert set(kit.reasons(data)) == {"b.html.png"}
    thumb = kit.space.thumb_path(data.items["sha256"].iloc[0]).read_bytes()
    assert b"script" not in thumb
    with Image.open(io.BytesIO(thumb)) as image:
        assert image.format == "WEBP"


@pytest.mark.parametrize("data", [b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", b"<svg/>"])
def test_formats_that_run_programs_are_not_opened(kit, data):
    """PostScript would start an interpreter: it is no picture here."""
    taken = kit.take(kit.folder({"a.png": kit.picture(1), "x.png": data}))
    assert kit.reasons(taken) == {"x.png": "it is no picture by its content"}
