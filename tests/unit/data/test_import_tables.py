"""Tables: encodings, separators, headers, picture columns, captions, ids."""

from __future__ import annotations

import base64
import io
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import feather
from pyarrow import parquet as pq

from core.data.importers import ImportLimits, TextOptions, open_source
from core.errors import BadInput

ENCODED = {
    "utf-8-sig": "Grüße aus Köln an die Straße",
    "cp1252": "Grüße aus Köln, naïve façade, „Zitat“ – 5 €",
    "shift_jis": "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
    "gb18030": "我们的祖国是花园,花园里花朵真鲜艳,和暖的阳光照耀着我们",
    "utf-16": "Grüße aus Köln, 猫",
}


@pytest.mark.parametrize("encoding", ENCODED)
def test_encodings_are_detected_and_shown(kit, encoding):
    """Bank 6: UTF-8 with a mark, cp1252, Shift-JIS, GB18030: every character as it was."""
    text = ENCODED[encoding]
    table = "text\tlabel\n" + "".join(f"{text} {i}\tx\n" for i in range(6))
    path = kit.file("caps.csv", table.encode(encoding))
    shown = kit.preview(path).facts["encoding"]
    assert shown.split()[0].replace("_", "") in {encoding.replace("_", ""), "cp932", "gbk"}
    data = kit.take(path)
    assert list(data.items["caption"]) == [f"{text} {i}" for i in range(6)]


@pytest.mark.parametrize(
    ("mark", "word"), [(",", "comma"), (";", "semicolon"), ("\t", "tab"), ("|", "bar")]
)
def test_separators_are_detected_and_shown(kit, mark, word):
    """Bank 6: a decimal comma does not make a semicolon table a comma table."""
    rows = [["text", "label", "size"], ["a, b", "x", "1,5"], ["c", "y", "2,5"], ["d", "x", "3,5"]]
    if mark == ",":
        rows = [[cell.replace(",", ".") for cell in row] for row in rows]
    path = kit.file("t.csv", "\n".join(mark.join(row) for row in rows).encode())
    assert kit.preview(path).facts["separator"] == word
    assert list(kit.take(path).items["label"]) == ["x", "y", "x"]


def test_quoted_newlines_and_a_very_long_cell(kit):
    """Bank 6: a line break inside quotes is no new row; 100,000 characters are kept."""
    long = "x" * 99_999 + "!"
    path = kit.file("t.csv", f'text,label\n"one\ntwo",a\n"{long}",b\n'.encode())
    data = kit.take(path)
    assert list(data.items["caption"]) == ["one\ntwo", long]
    short = kit.take(path, limits=ImportLimits(caption_chars=1000))
    assert kit.reasons(short) == {
        "row 2": "its text has 100,000 characters, at most 1,000 are read"
    }


def test_one_column(kit):
    """Bank 6: a table of one column is a table of texts."""
    data = kit.take(kit.file("t.csv", b"text\nred car\nblue car\n"))
    assert list(data.items["caption"]) == ["red car", "blue car"]


def test_only_a_header_is_refused(kit):
    """Bank 6: a header without rows says so and names the columns."""
    with pytest.raises(BadInput, match=r"no rows that can be read.*Columns: text, label"):
        kit.preview(kit.file("t.csv", b"text,label\n"))


def test_no_header_is_seen_and_can_be_corrected(kit):
    """Bank 6: without a header the first line is a row like the others."""
    files = {f"{i}.png": kit.picture(i) for i in range(3)}
    folder = kit.folder({**files, "t.csv": b"0.png,cat\n1.png,cat\n2.png,dog\n"})
    preview = kit.preview(folder / "t.csv")
    assert preview.n == 3
    assert [c.name for c in preview.columns] == ["column 1", "column 2"]
    data = kit.take(folder / "t.csv", roles={"label": "column 2"})
    assert list(data.items["label"]) == ["cat", "cat", "dog"]
    named = kit.preview(folder / "t.csv", text=TextOptions(header=True))
    assert [c.name for c in named.columns] == ["0.png", "cat"]


def test_rows_of_another_length_are_named_with_their_line(kit):
    """Bank 6: a ragged row is left out, never shifted into its neighbours."""
    data = kit.take(kit.file("t.csv", b"text,label\na a,1\nb b\nc c,3,4\nd d,5\n"))
    assert list(data.items["label"]) == ["1", "5"]
    assert list(data.items["id"]) == [0, 3]
    assert kit.reasons(data) == {
        "t.csv row 2 (line 3)": "it has 1 fields, 2 were expected",
        "t.csv row 3 (line 4)": "it has 3 fields, 2 were expected",
    }


def test_the_word_null_stays_a_word(kit):
    """Bank 9: NA, null and None in a table of text are words, not missing values."""
    data = kit.take(kit.file("t.csv", b"text,label\nnull,NA\nNone,nan\n"))
    assert list(data.items["caption"]) == ["null", "None"]
    assert list(data.items["label"]) == ["NA", "nan"]


def frame_with(kit, form: str) -> tuple[pd.DataFrame, list[bytes]]:
    raw = [kit.picture(i) for i in range(3)]
    cells = {
        "bytes": raw,
        "dict": [{"bytes": data, "path": f"{i}.png"} for i, data in enumerate(raw)],
        "base64": [base64.b64encode(data).decode() for data in raw],
        "data URI": ["data:image/png;base64," + base64.b64encode(data).decode() for data in raw],
        "picture": [Image.open(io.BytesIO(data)) for data in raw],
        "path": [f"pics/{i}.png" for i in range(3)],
    }[form]
    return pd.DataFrame({"image": [*cells, None], "label": ["a", "b", "a", "c"]}), raw


@pytest.mark.parametrize("form", ["bytes", "dict", "base64", "data URI", "picture"])
def test_a_picture_column_in_memory(kit, form):
    """Bank 5: PIL, bytes, dict, base64 and data URI, with a null among them."""
    frame, raw = frame_with(kit, form)
    data = kit.take(frame)
    assert data.kind == "image"
    assert list(data.items["id"]) == [0, 1, 2]
    assert kit.reasons(data) == {"row 4": "no picture is named"}
    pixels = [np.asarray(Image.open(io.BytesIO(b))) for b in raw]
    assert all(np.array_equal(np.asarray(data.image(i)), pixels[i]) for i in range(3))


@pytest.mark.parametrize("form", ["bytes", "dict", "base64", "path"])
@pytest.mark.parametrize("kind", ["parquet", "arrow", "feather", "jsonl"])
def test_a_picture_column_in_a_file(kit, form, kind):
    """Bank 5: the same from Parquet, Arrow, Feather and JSON lines; paths beside the table."""
    frame, raw = frame_with(kit, form)
    folder = kit.folder({f"pics/{i}.png": data for i, data in enumerate(raw)})
    path = folder / f"t.{kind}"
    table = pa.Table.from_pandas(frame)
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "arrow":
        with pa.OSFile(str(path), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)
    elif kind == "feather":
        feather.write_feather(table, str(path))
    elif form in {"bytes", "dict"}:
        lines = [{"image": {"bytes": base64.b64encode(d).decode()}, "label": "a"} for d in raw]
        path.write_text("\n".join(map(json.dumps, [*lines, {"image": None, "label": "c"}])))
    else:
        path.write_text("\n".join(map(json.dumps, frame.to_dict("records"))))
    data = kit.take(path)
    assert [data.image_bytes(i) for i in data.ids] == raw
    assert kit.reasons(data) == {"row 4": "no picture is named"}


def test_mixed_picture_cells(kit):
    """Bank 5: bytes, a path, base64, a number and nothing in one column."""
    raw = [kit.picture(i) for i in range(3)]
    folder = kit.folder({"1.png": raw[1]})
    rows = [{"image": {"bytes": base64.b64encode(raw[0]).decode()}}, {"image": "1.png"},
            {"image": base64.b64encode(raw[2]).decode()}, {"image": 7}, {"image": ""},
            {"image": "gone.png"}]  # fmt: skip
    path = folder / "t.jsonl"
    path.write_text("\n".join(json.dumps({**row, "n": i}) for i, row in enumerate(rows)))
    data = kit.take(path)
    assert [data.image_bytes(i) for i in (0, 1, 2)] == raw
    assert kit.reasons(data) == {
        "row 4": "a int is no picture", "row 5": "no picture is named",
        "row 6": "there is no file 'gone.png' beside the table",
    }  # fmt: skip


def test_addresses_are_not_fetched_unless_allowed(kit, monkeypatch):
    """Bank 5 and 40: a column of web addresses is refused, and nothing is asked of the network."""
    import socket

    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: pytest.fail("the network was used"))
    table = b"url,label\nhttp://example.org/a.png,x\nhttps://example.org/b.png,y\n"
    path = kit.file("t.csv", table)
    assert kit.preview(path).plan.column("image") == "url"
    with pytest.raises(BadInput, match="web addresses are not fetched on this server"):
        kit.take(path)


def test_class_numbers_become_names(kit):
    """A data set written by the `datasets` library carries the names of its classes."""
    info = {"info": {"features": {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}}
    table = pa.table({"text": ["a a", "b b", "c c", "d d"], "label": [0, 1, -1, 9]})
    table = table.replace_schema_metadata({b"huggingface": json.dumps(info).encode()})
    path = kit.tmp / "t.parquet"
    pq.write_table(table, path)
    data = kit.take(path)
    assert list(data.items["label"]) == ["cat", "dog", ""]
    assert kit.reasons(data) == {"row 4": "its class is class number 9 of 2 classes"}


def saved(folder, table: pa.Table, names: list[str]) -> None:
    folder.mkdir(parents=True)
    with (
        pa.OSFile(str(folder / "data-00000-of-00001.arrow"), "wb") as out,
        pa.ipc.new_stream(out, table.schema) as writer,
    ):
        writer.write_table(table)
    (folder / "state.json").write_text(
        json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]})
    )
    features = {"label": {"names": names, "_type": "ClassLabel"}, "image": {"_type": "Image"}}
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))


def test_a_saved_data_set_with_splits(kit):
    """Hugging Face `save_to_disk`: pictures, class names and splits, without the library."""
    root = kit.tmp / "pets"
    for at, split in enumerate(("train", "test")):
        cells = [{"bytes": kit.picture(10 * at + i), "path": f"{i}.png"} for i in range(2)]
        saved(root / split, pa.table({"image": cells, "label": [0, 1]}), ["cat", "dog"])
    (root / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
    data = kit.take(root)
    assert list(data.items["split"]) == ["train", "train", "test", "test"]
    assert list(data.items["label"]) == ["cat", "dog", "cat", "dog"]
    assert data.image_bytes(3) == kit.picture(11)


def test_a_saved_data_set_cannot_name_files_elsewhere(kit):
    """Bank 39: the state of a saved set cannot point out of its folder."""
    root = kit.tmp / "pets"
    saved(root, pa.table({"image": [{"bytes": kit.picture(1), "path": ""}], "label": [0]}), ["a"])
    (root / "state.json").write_text(json.dumps({"_data_files": [{"filename": "../../x.arrow"}]}))
    with pytest.raises(BadInput, match="is missing"):
        open_source(root)


def test_by_name_without_the_library_says_what_to_install(kit, monkeypatch):
    import sys

    from core.data.importers import opened

    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(BadInput, match="pip install datasets"), opened("hf:mnist"):
        pass


def test_by_name_with_the_library(kit, monkeypatch):
    """The `datasets` package loads and saves; the same path as a saved set reads it."""
    import sys
    import types

    from core.data.importers import opened

    class Loaded:
        def save_to_disk(self, path):
            from pathlib import Path

            cells = [{"bytes": kit.picture(1), "path": ""}, {"bytes": kit.picture(2), "path": ""}]
            saved(Path(path), pa.table({"image": cells, "label": [0, 1]}), ["cat", "dog"])

    asked = []
    fake = types.ModuleType("datasets")
    fake.load_dataset = lambda name, split=None: asked.append((name, split)) or Loaded()
    monkeypatch.setitem(sys.modules, "datasets", fake)
    with opened("hf:someone/pets:train") as source:
        assert source.count() == 2
        kept = source.title
    assert asked == [("someone/pets", "train")]
    assert kept == "pets"


def test_several_tables_of_one_set_become_one(kit):
    """Shards named by their split, as data sets are shipped."""
    for name, n in (("train-00000-of-00002", 2), ("train-00001-of-00002", 1), ("test-0", 1)):
        table = pa.table({"text": [f"{name} {i}" for i in range(n)], "label": ["x"] * n})
        path = kit.folder({}, "shards") / f"{name}.parquet"
        pq.write_table(table, path)
    data = kit.take(kit.tmp / "shards")
    assert sorted(data.items["split"]) == ["test", "train", "train", "train"]
    assert list(data.items["id"]) == [0, 1, 2, 3]


def test_ids_that_come_twice_are_refused_with_their_rows(kit):
    """Bank 8: duplicate and missing ids are refused, and the rows are named."""
    path = kit.file("t.csv", b"id,text\n7,a a\n8,b b\n7,c c\n,d d\n")
    with pytest.raises(BadInput, match=r"'7' in rows 1 and 3; row 4 has none"):
        kit.take(path, roles={"id": "id"})
    assert kit.space.dataset_names() == []


def test_ids_are_the_rows_own_whatever_their_order(kit):
    """Bank 8: permuted ids stay with their rows; ids that are codes are kept beside."""
    data = kit.take(kit.file("t.csv", b"id,text\n30,c c\n10,a a\n20,b b\n"))
    assert list(data.items["id"]) == [30, 10, 20]
    assert data.row(10)["caption"] == "a a"
    coded = kit.take(kit.file("u.csv", b"id,text\n007,a a\n7,b b\n"))
    assert list(coded.items["id"]) == [0, 1]
    assert list(coded.items["source_id"]) == ["007", "7"]


CAPTIONS = {
    "emoji": "a 👩‍👩‍👧‍👦 family and 🏳️‍🌈",
    "rtl": "قطة سوداء صغيرة",
    "bidi": "the word שלום in the middle, 123 אבג",
    "marks": "e\u0301 a\u0308\u0323 Z\u0351\u036b\u0343",
    "joiner": "a\u200db\u200cc\ufeffd",
    "long": "ab " * 16_666 + "ab",
    "quotes": "\"she said 'no'\"",
}


def test_captions_of_every_script_come_back_unchanged(kit):
    """Bank 9: emoji, ZWJ, RTL, mixed bidi, combining marks, 50,000 characters."""
    lines = [json.dumps({"caption": text}) for text in CAPTIONS.values()]
    data = kit.take(kit.file("t.jsonl", "\n".join(lines).encode()))
    assert list(data.items["caption"]) == list(CAPTIONS.values())


def test_what_cannot_be_stored_is_replaced_and_said(kit):
    """Bank 9: a lone surrogate and a NUL byte become the replacement character."""
    raw = b'{"caption": "a\\ud800b"}\n{"caption": "c\\u0000d"}\n{"caption": "fine"}\n'
    data = kit.take(kit.file("t.jsonl", raw))
    assert list(data.items["caption"]) == ["a\ufffdb", "c\ufffdd", "fine"]
    assert set(kit.repairs(data)) == {"row 1", "row 2"}


def test_bytes_outside_the_encoding_are_replaced_and_said(kit):
    """Bank 9: a broken byte in a UTF-8 table costs one character, not the row."""
    path = kit.file("t.csv", b"text,label\ngood one,a\nbad \xff one,b\n")
    data = kit.take(path, text=TextOptions(encoding="utf-8"))
    assert list(data.items["caption"]) == ["good one", "bad \ufffd one"]
    assert list(kit.repairs(data)) == ["row 2"]


def test_a_missing_caption_is_empty_and_never_the_word_null(kit):
    """Bank 9: null, NaN and an absent key give an empty caption; the picture stays."""
    frame = pd.DataFrame({"image": [kit.picture(i) for i in range(4)],
                          "caption": ["a cat", None, float("nan"), ""]})  # fmt: skip
    data = kit.take(frame)
    assert list(data.items["caption"]) == ["a cat", "", "", ""]
    texts = kit.take(kit.file("t.jsonl", b'{"caption": "a a"}\n{"caption": null}\n{"x": 1}\n'))
    assert list(texts.items["caption"]) == ["a a"]
    assert kit.reasons(texts) == {"row 2": "its text is empty", "row 3": "its text is empty"}


def test_texts_too_long_for_an_encoder_are_kept_and_counted(kit):
    """Bank 10: more than 77 tokens raise nothing and lose nothing; the report counts them."""
    long = " ".join(f"word{i}" for i in range(200))
    data = kit.take(kit.file("t.csv", f"text\nshort one\n{long}\n{long} again\n".encode()))
    assert list(data.items["caption"]) == ["short one", long, f"{long} again"]
    (note,) = kit.report(data).notes
    assert note.startswith("2 texts are longer than 300 characters")


HOSTILE = ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[x](javascript:alert(1))",
           "$\\frac{a}{b}$ and $$x$$", "**bold** `code` ~~no~~", "{{7*7}} ${7*7} <%= 7 %>",
           "__proto__", "constructor", "=HYPERLINK(\"http://x\")"]  # fmt: skip


def test_hostile_texts_are_data(kit):
    """Bank 11: script, Markdown, LaTeX, prototype names in captions, classes, columns."""
    rows = [{"caption": text, "label": text, "domain": text, f"x {i}": text, "__proto__": text}
            for i, text in enumerate(HOSTILE)]  # fmt: skip
    data = kit.take(kit.file("t.jsonl", "\n".join(map(json.dumps, rows)).encode()))
    for column in ("caption", "label", "domain", "__proto__"):
        assert list(data.items[column]) == HOSTILE
    again = kit.space.dataset(data.name)
    assert list(again.items["caption"]) == HOSTILE


def test_a_column_cannot_stand_in_for_the_datasets_own(kit):
    """Bank 11: columns named sha256, id or label of a stranger's table are kept apart."""
    frame = pd.DataFrame({"image": [kit.picture(1)], "sha256": ["0" * 64], "ID": ["x"],
                          "constructor": ["y"]})  # fmt: skip
    data = kit.take(frame, roles={"id": None})
    assert data.image_bytes(0) == kit.picture(1)
    assert data.items["given_sha256"].iloc[0] == "0" * 64
    assert data.items["given_ID"].iloc[0] == "x"


def test_kept_columns_have_one_plain_type(kit):
    rows = [{"text": "a a", "n": 1, "x": 0.5, "mixed": 1, "ok": True},
            {"text": "b b", "n": 2, "x": None, "mixed": "two", "ok": False}]  # fmt: skip
    data = kit.take(kit.file("t.jsonl", "\n".join(map(json.dumps, rows)).encode()))
    assert data.items["n"].dtype == np.int64
    assert data.items["x"].dtype == np.float64
    assert list(data.items["mixed"]) == ["1", "two"]
    assert data.items["ok"].dtype == bool


def test_several_captions_of_one_picture(kit):
    """Five captions a picture: the first is taken, and it is said."""
    frame = pd.DataFrame({"image": [kit.picture(1)], "captions": [["a cat", "a grey cat"]]})
    path = kit.tmp / "t.parquet"
    frame.to_parquet(path)
    data = kit.take(path, roles={"caption": "captions"})
    assert list(data.items["caption"]) == ["a cat"]
    assert kit.repairs(data) == {"row 1": "caption: the first of 2 texts was taken"}


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"\x00\x01\x02\x03" * 500, "holds zero bytes"),
        ("a.parquet", b"PAR1 not really PAR1", "cannot be read as Parquet"),
        ("a.parquet", b"text,label\n", "is not a parquet file by its content"),
        ("a.arrow", b"ARROW1\0\0 broken", "cannot be read as Arrow"),
        ("a.feather", b"FEA1xxxxxxx", "Feather version 1"),
        ("a.jsonl", b"not json\n", "holds no JSON objects"),
        ("a.json", b'{"a": 1}', "no array of objects"),
        ("a.json", b"[" * 100_000, "no valid JSON"),
        ("a.tar", b"x" * 600, "no zip archive"),
    ],
)
def test_broken_tables_are_refused_in_words(kit, name, body, message):
    with pytest.raises(BadInput, match=message):
        open_source(kit.file(name, body))


def test_lines_that_are_no_objects_are_named(kit):
    body = b'{"text": "a a"}\nbroken\n[1, 2]\n' + b"[" * 50_000 + b'\n{"text": "b b"}\n'
    data = kit.take(kit.file("t.jsonl", body))
    assert list(data.items["caption"]) == ["a a", "b b"]
    assert [line.split()[-1] for line in kit.reasons(data)] == ["2", "3", "4"]


def test_limits_of_rows_and_columns(kit):
    path = kit.file("t.csv", b"text,label\n" + b"a b,x\n" * 9)
    data = kit.take(path, limits=ImportLimits(rows=5))
    assert data.n == 5
    assert kit.reasons(data) == {"t.csv from row 6": "more than 5 rows"}
    with pytest.raises(BadInput, match="2 columns; at most 1"):
        open_source(path, limits=ImportLimits(columns=1))
    with pytest.raises(BadInput, match="at most 10 bytes"):
        open_source(path, limits=ImportLimits(table_bytes=10))


def test_a_parquet_that_unpacks_to_too_much_is_refused(kit):
    """A bomb of one repeated text is refused by what the file itself states."""
    path = kit.tmp / "t.parquet"
    pq.write_table(pa.table({"text": ["x" * 1000] * 5000}), path, use_dictionary=False)
    assert path.stat().st_size < 500_000
    with pytest.raises(BadInput, match="unpacks to"):
        open_source(path, limits=ImportLimits(total_bytes=1_000_000))


def test_settings_of_the_environment_are_checked():
    assert (
        ImportLimits.from_environment({"THEODOLITE_IMPORT_FILE_BYTES": "1_000"}).file_bytes == 1000
    )
    with pytest.raises(BadInput, match="THEODOLITE_IMPORT_ROWS='many' is not a whole number"):
        ImportLimits.from_environment({"THEODOLITE_IMPORT_ROWS": "many"})
    assert any("megapixels" in line for line in ImportLimits().in_words())
