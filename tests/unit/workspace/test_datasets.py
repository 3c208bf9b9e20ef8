"""Datasets: checked when added, the same digest everywhere, never a wrong picture."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import core
from core.errors import BadInput, NotFound, WorkspaceError
from core.types import LeftOut

HOME = Path(core.__file__).parents[1]


def png(grey):
    out = io.BytesIO()
    Image.new("RGB", (8, 8), (grey, grey, grey)).save(out, "PNG")
    return out.getvalue()


@pytest.fixture
def shas(space):
    return space.blobs.put_many([png(i) for i in range(4)])


@pytest.fixture
def items(shas):
    return pd.DataFrame(
        {
            "id": [30, 10, 20, 0],
            "sha256": shas,
            "label": ["a", "b", None, "ü"],
            "size": [1, 2, 3, 4],
            "score": [0.5, np.nan, 1.0, 2.0],
            "good": [True, False, True, True],
        }
    )


def test_round_trip(space, items):
    meta = {"source": "here", "licence": "CC0"}
    left = [LeftOut("x.png", "It is broken.", 2)]
    data = space.add_dataset("set-1", "Set one", "image", items, meta, left)
    assert (data.name, data.title, data.kind, data.n, len(data)) == (
        "set-1",
        "Set one",
        "image",
        4,
        4,
    )
    assert data.meta["source"] == "here"
    assert data.meta["left_out"] == [{"what": "x.png", "reason": "It is broken.", "count": 2}]
    again = space.dataset("set-1")
    assert list(again.items.columns)[:6] == ["id", "sha256", "label", "domain", "split", "caption"]
    assert again.items["id"].dtype == np.int64
    assert again.ids.tolist() == [30, 10, 20, 0]
    assert again.items["label"].tolist() == ["a", "b", "", "ü"]
    assert again.items["domain"].tolist() == [""] * 4
    assert again.items["size"].tolist() == [1, 2, 3, 4]
    assert again.items["good"].tolist() == [True, False, True, True]
    assert np.isnan(again.items["score"][1])
    assert again.row(10)["label"] == "b"
    assert again.image(20).getpixel((0, 0)) == (2, 2, 2)
    assert again.subset([0, 30])["id"].tolist() == [0, 30]
    assert again.texts("label") == ["a", "b", "", "ü"]
    assert again.texts() == [""] * 4
    assert space.dataset_names() == ["set-1"]


def test_digest_is_of_the_content_only(space, items):
    first = space.add_dataset("a", "A", "image", items)
    second = space.add_dataset("b", "B", "image", items[list(items.columns)[::-1]])
    assert first.digest == second.digest
    changed = items.assign(label=["a", "b", "c", "d"])
    assert space.add_dataset("c", "C", "image", changed).digest != first.digest
    reordered = items.iloc[::-1]
    assert space.add_dataset("d", "D", "image", reordered).digest != first.digest


def test_digest_is_pinned(space):
    # The demo's shipped features and results carry this kind of digest: it must not drift.
    table = pd.DataFrame({"id": [1, 2], "caption": ["eins", "zwei"], "w": [0.5, 1.0]})
    digest = space.add_dataset("t", "T", "text", table).digest
    assert digest == "096fa3d0d52d2f98208ada4a34ae58001d13a61881302b82d80c5e2989c3c89b"


def test_same_name(space, items):
    first = space.add_dataset("a", "A", "image", items)
    assert space.add_dataset("a", "A again", "image", items).title == "A again"
    other = items.assign(label="z")
    with pytest.raises(BadInput, match="another dataset named 'a'"):
        space.add_dataset("a", "A", "image", other)
    assert space.dataset("a").digest == first.digest
    assert space.add_dataset("a", "A", "image", other, replace=True).digest != first.digest
    assert space.dataset("a").texts("label") == ["z"] * 4


@pytest.mark.parametrize("name", ["", "A", "a b", "../x", "-a", "ü", "a/b", "a" * 101, ".hid"])
def test_names_that_are_refused(space, name):
    with pytest.raises(BadInput, match="cannot name a dataset"):
        space.add_dataset(name, "T", "text", pd.DataFrame({"id": [1]}))


@pytest.mark.parametrize(
    ("table", "kind", "says"),
    [
        (pd.DataFrame({"id": []}), "text", "no items"),
        (pd.DataFrame({"caption": ["a"]}), "text", "no column 'id'"),
        (pd.DataFrame({"id": [1, 1, 2]}), "text", "some ids twice: 1"),
        (pd.DataFrame({"id": [1.5, 2.0]}), "text", "not whole numbers"),
        (pd.DataFrame({"id": [1.0, np.nan]}), "text", "not whole numbers"),
        (pd.DataFrame({"id": ["a", "b"]}), "text", "not whole numbers"),
        (pd.DataFrame({"id": [True, False]}), "text", "not whole numbers"),
        (pd.DataFrame({"id": [1]}), "sound", "not a kind"),
        (pd.DataFrame({"id": [7], "sha256": [""]}), "image", "Item 7 has no sha256"),
        (pd.DataFrame({"id": [7], "sha256": ["0" * 64]}), "image", "that of item 7"),
        (pd.DataFrame({"id": [7], "sha256": ["../x"]}), "image", "not a SHA-256"),
        (pd.DataFrame({"id": [1], "x": [[1, 2]]}), "text", "'x' holds list"),
    ],
)
def test_items_that_are_refused(space, table, kind, says):
    with pytest.raises(BadInput, match=says):
        space.add_dataset("a", "A", kind, table)
    assert space.dataset_names() == []


def test_unknown_dataset_names_the_known(space, items):
    with pytest.raises(NotFound, match="theodolite demo"):
        space.dataset("x")
    space.add_dataset("a", "A", "image", items)
    with pytest.raises(NotFound, match="Datasets: a"):
        space.dataset("x")


def test_unknown_item_and_column(space, items):
    data = space.add_dataset("a", "A", "image", items)
    with pytest.raises(NotFound, match="id=5"):
        data.image(5)
    with pytest.raises(BadInput, match="2 ids are not items of dataset 'a': 5, 6"):
        data.subset([0, 5, 6])
    with pytest.raises(NotFound, match="column='nope'"):
        data.texts("nope")


def test_missing_damaged_and_broken_pictures_are_named(space, items, shas):
    broken = space.blobs.put(b"not a picture")
    data = space.add_dataset("a", "A", "image", items.assign(sha256=[*shas[:3], broken]))
    space.blobs.path(shas[0]).unlink()
    space.blobs.path(shas[1]).write_bytes(png(99))
    with pytest.raises(BadInput, match=f"item 30 .*no file .*{shas[0]}"):
        data.image(30)
    with pytest.raises(BadInput, match=f"item 10 .*{shas[1]} is damaged"):
        data.image(10)
    with pytest.raises(BadInput, match=f"item 0 .*{broken}"):
        data.image(0)
    text = space.add_dataset("t", "T", "text", pd.DataFrame({"id": [1], "caption": ["x"]}))
    with pytest.raises(BadInput, match="has no picture"):
        text.image(1)


def test_damaged_items(space, items):
    data = space.add_dataset("a", "A", "image", items)
    data.items_path.write_bytes(b"PAR1 but not really")
    with pytest.raises(WorkspaceError, match="cannot be read"):
        _ = space.dataset("a").items
    # Adding the same dataset again mends it.
    assert space.add_dataset("a", "A", "image", items).ids.tolist() == [30, 10, 20, 0]


def test_removal(space, items):
    space.add_dataset("a", "A", "image", items)
    space.remove_dataset("a")
    assert space.dataset_names() == []
    with pytest.raises(NotFound):
        space.remove_dataset("a")


_ADD = """
import sys
import pandas as pd
from core.errors import BadInput
from core.workspace import open_workspace
space = open_workspace(sys.argv[1])
table = pd.DataFrame({"id": range(50), "caption": [sys.argv[2]] * 50})
try:
    space.add_dataset("same", "Same", "text", table)
    print("added")
except BadInput:
    print("refused")
"""


def test_two_processes_add_one_name_and_one_wins(space):
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _ADD, str(space.root), who],
            stdout=subprocess.PIPE,
            text=True,
            cwd=HOME,
        )
        for who in ("x", "y")
    ]
    said = {
        who: child.communicate(timeout=60)[0].strip()
        for who, child in zip("xy", running, strict=True)
    }
    assert sorted(said.values()) == ["added", "refused"]
    winner = next(who for who, what in said.items() if what == "added")
    assert space.dataset("same").texts() == [winner] * 50
