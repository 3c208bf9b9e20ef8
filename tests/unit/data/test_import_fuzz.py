"""Made-up and damaged files: never anything but an answer in words, never a changed row.

Over 2,000 cases in all. Each either imports with every row accounted for, or ends in a
``UserError``; any other exception fails the test.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import unicodedata
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.data.feature_files import open_features
from core.data.importers import import_dataset, open_source, preview
from core.errors import UserError
from core.workspace import open_workspace

SETTINGS = settings(
    deadline=None, database=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
#: Anything a person can type, and much they cannot: no surrogates, which no encoding holds.
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
COUNT = itertools.count()


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """One workspace for all cases: opening one takes longer than importing."""
    root = tmp_path_factory.mktemp("fuzz")
    return root, open_workspace(root / "space")


def imported(house, path):
    """Import a path under a name of its own; return items and report, or None if refused."""
    _, space = house
    name = f"case-{next(COUNT)}"
    try:
        with open_source(path) as source:
            plan = preview(source).plan
            data = import_dataset(space, source, replace(plan, name=name))
    except UserError as err:
        said(err)
        return None
    return data.items, space.datasets.report(name)


def said(err: UserError) -> None:
    """A refusal has words."""
    assert err.message.strip()


def damaged(data: bytes, cuts: list[tuple[float, int]], keep: float) -> bytes:
    """Change single bytes and cut the end off."""
    raw = bytearray(data)
    for place, value in cuts:
        if raw:
            raw[int(place * (len(raw) - 1))] = value
    return bytes(raw[: max(1, int(len(raw) * keep))])


VALUES = st.one_of(
    WORDS, st.none(), st.integers(), st.booleans(), st.floats(allow_nan=True),
    st.lists(st.integers(), max_size=2),
)  # fmt: skip
LINES = st.lists(
    st.dictionaries(st.sampled_from(["text", "label", "__proto__", "id", "a b"]), VALUES),
    min_size=1, max_size=8,
)  # fmt: skip
DAMAGE = st.tuples(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=12),
    st.sampled_from([1.0, 1.0, 0.97, 0.6, 0.2]),
)


@settings(SETTINGS, max_examples=350)
@given(rows=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=12))
def test_texts_come_out_as_they_went_in(house, rows):
    """What a CSV writer wrote is what the dataset holds, cell by cell."""
    root, _ = house
    out = io.StringIO()
    # Quoted throughout: a bare carriage return outside of quotes ends a line by right.
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(["text", "label"])
    writer.writerows(rows)
    path = root / "t.csv"
    path.write_bytes(out.getvalue().encode("utf-8"))
    found = imported(house, path)
    if found is None:
        return
    items, report = found
    assert report.taken == len(items)
    given_texts = [plain(text) for text, _ in rows]
    for text in items["caption"]:
        assert plain(text) in given_texts
    assert report.taken + report.n_left_out >= sum(bool(t.strip()) for t in given_texts)


def plain(text: str) -> str:
    """Return a text without what the import says that it changes: NUL, ends, line ends."""
    text = unicodedata.normalize("NFC", str(text)).replace("\x00", "").replace("\ufffd", "")
    return "".join(text.split())


@settings(SETTINGS, max_examples=350)
@given(data=st.binary(max_size=400), ending=st.sampled_from(["csv", "tsv", "jsonl", "json"]))
def test_any_bytes_named_a_table_are_an_answer(house, data, ending):
    root, _ = house
    path = root / f"b.{ending}"
    path.write_bytes(data)
    imported(house, path)


@settings(SETTINGS, max_examples=300)
@given(damage=DAMAGE, kind=st.sampled_from(["parquet", "feather", "arrow"]))
def test_damaged_columnar_tables_are_an_answer(house, damage, kind):
    root, _ = house
    frame = pd.DataFrame({"caption": ["a", "b", "c"], "label": ["x", "y", "x"], "n": [1, 2, 3]})
    whole = io.BytesIO()
    if kind == "parquet":
        frame.to_parquet(whole)
    else:
        frame.to_feather(whole, compression="uncompressed")
    path = root / f"d.{kind}"
    path.write_bytes(damaged(whole.getvalue(), *damage))
    imported(house, path)


@settings(SETTINGS, max_examples=300)
@given(damage=DAMAGE)
def test_damaged_archives_keep_what_is_whole(house, damage):
    from tests.unit.data.conftest import picture, write_zip

    root, _ = house
    files = {f"{c}/{i}.png": picture(i) for i in range(3) for c in "ab"}
    whole = write_zip(root / "w.zip", files).read_bytes()
    path = root / "z.zip"
    path.write_bytes(damaged(whole, *damage))
    found = imported(house, path)
    if found is not None:
        items, report = found
        assert len(items) == report.taken <= len(files)


@settings(SETTINGS, max_examples=300)
@given(damage=DAMAGE, form=st.sampled_from(["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"]))
def test_damaged_pictures_are_taken_or_named(house, damage, form):
    from tests.unit.data.conftest import picture

    root, _ = house
    folder = root / "pictures"
    folder.mkdir(exist_ok=True)
    (folder / "good.png").write_bytes(picture(1))
    (folder / "bad.img").unlink(missing_ok=True)
    bad = folder / f"bad.{form.lower()}"
    bad.write_bytes(damaged(picture(2, form=form), *damage))
    found = imported(house, folder)
    bad.unlink()
    assert found is not None
    items, report = found
    assert report.taken + report.n_left_out == 2
    assert "good.png" in set(items["file"])


@settings(SETTINGS, max_examples=250)
@given(rows=LINES)
def test_lines_of_json_of_any_shape_are_an_answer(house, rows):
    root, _ = house
    path = root / "j.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    found = imported(house, path)
    if found is not None:
        items, _ = found
        assert not items["caption"].isin(["null", "None", "nan", "NaN"]).any() or any(
            str(row.get("text")) in ("null", "None", "nan", "NaN") for row in rows
        )


@settings(SETTINGS, max_examples=300)
@given(damage=DAMAGE, kind=st.sampled_from(["npy", "npz", "safetensors", "parquet", "h5"]))
def test_damaged_feature_files_are_an_answer(house, damage, kind):
    from tests.unit.data.test_feature_import import write

    root, _ = house
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    whole = root / f"whole.{kind}"
    if kind == "npy":
        np.save(whole, x)
    else:
        whole.unlink(missing_ok=True)
        write(whole, kind, {"x": x, "ids": np.arange(6)})
    path = root / f"f.{kind}"
    path.write_bytes(damaged(whole.read_bytes(), *damage))
    try:
        with open_features(path) as file:
            for rows in [*file.layers.values(), *file.columns.values()]:
                np.asarray(rows[0:6])
    except UserError as err:
        said(err)
