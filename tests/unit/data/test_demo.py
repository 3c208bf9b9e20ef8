"""Laying the demo ready: once, quickly, whole or not at all, and never over the user's data."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from core.data import demo
from core.errors import Cancelled, NotFound
from core.results import Result
from core.workspace import open_workspace


@pytest.fixture
def shipped(tmp_path, space):
    """A small demo: one data set of three texts, its features and one result."""
    folder = tmp_path / "shipped"
    (folder / "names").mkdir(parents=True)
    items = pd.DataFrame({"id": range(3), "caption": list("abc"), "label": ["x", "y", "x"]})
    write_dataset(folder, items)
    maker = open_workspace(tmp_path / "maker")
    data = demo.put_dataset(maker, folder / "names")
    recipe = {"dataset_digest": data.digest, "model": "demo/none"}
    writer = maker.features.writer(
        recipe, dataset="names", model="demo/none", default_layer="out", n=3
    )
    writer.write_shard(0, np.arange(3), {"out": np.eye(3, dtype=np.float32)})
    features = writer.finish()
    maker.features.export(features.key, folder / "features")
    result = maker.results.put(
        Result("quality", {"dataset": "names"}, {"headline": "One.", "n": 3}),
        {"dataset": data.digest},
    )
    shutil.copytree(maker.results.path(result.key), folder / "results" / "quality-names")
    return folder


def write_dataset(folder, items):
    items.to_parquet(folder / "names" / "items.parquet", index=False)
    meta = {"source": "s", "licence": "l", "note": "n", "left_out": []}
    about = {"name": "names", "title": "Names", "kind": "text", "meta": meta}
    (folder / "names" / "dataset.json").write_text(json.dumps(about))


def test_everything_is_laid_ready_then_kept(space, shipped):
    first = demo.prepare(space, folder=shipped)
    assert sorted(first["done"]) == [
        "dataset/names", "features/names--demo--none", "result/quality-names",
    ]  # fmt: skip
    assert space.dataset("names").meta["licence"] == "l"
    assert np.array_equal(space.features.get("names", "demo/none").layer(), np.eye(3))
    assert space.results.latest("quality").headline == "One."
    again = demo.prepare(space, folder=shipped)
    assert again["done"] == []
    assert sorted(again["kept"]) == sorted(first["done"])


def test_the_real_demo_is_ready_in_seconds(space):
    assert not demo.is_prepared(space)
    start = time.perf_counter()
    report = demo.prepare(space)
    seconds = time.perf_counter() - start
    assert report["left_out"] == []
    assert demo.is_prepared(space)
    assert {"emoji", "names", "clipart"} <= set(space.dataset_names())
    # Four seconds on two idle cores; the rest is for machines that do other things as well.
    assert seconds < 30
    start = time.perf_counter()
    assert demo.prepare(space)["done"] == []
    assert time.perf_counter() - start < 10
    assert space.dataset("emoji").image(7).size == (192, 192)


def test_progress_rises_to_one(space, shipped):
    told = []
    demo.prepare(space, folder=shipped, progress=lambda f, m: told.append(f))
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_cancelled_work_goes_on_where_it_was(space, shipped):
    def stop(fraction, message):
        if message.startswith("features"):
            raise Cancelled("stop")

    with pytest.raises(Cancelled):
        demo.prepare(space, folder=shipped, progress=stop)
    assert space.dataset_names() == ["names"]
    report = demo.prepare(space, folder=shipped)
    assert report["kept"] == ["dataset/names", "result/quality-names"]
    assert report["done"] == ["features/names--demo--none"]


def _prepare(root):
    # A real process of its own: a spawned one would run the test worker's main module again.
    code = (
        "import sys; from core.data.demo import prepare; from core.workspace import open_workspace;"
        "prepare(open_workspace(sys.argv[1]))"
    )
    return subprocess.Popen([sys.executable, "-c", code, str(root)])


def test_killed_halfway_it_is_completed_by_the_next_one(tmp_path):
    root = tmp_path / "killed"
    process = _prepare(root)
    deadline = time.monotonic() + 60
    while not (root / "blobs").is_dir() and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL
    space = open_workspace(root)
    demo.prepare(space)
    assert demo.is_prepared(space)
    data = space.dataset("emoji")
    assert len(data.image_bytes(0)) > 100
    assert [f for f in space.doctor() if "blob" in str(f)] == []


def test_two_processes_at_once_both_end_with_the_whole_demo(tmp_path):
    root = tmp_path / "shared"
    processes = [_prepare(root) for _ in range(2)]
    assert [process.wait(120) for process in processes] == [0, 0]
    space = open_workspace(root)
    assert demo.is_prepared(space)
    assert sorted(space.dataset_names()) == ["clipart", "emoji", "names"]


def test_a_dataset_of_the_users_own_is_not_replaced(space, shipped):
    mine = pd.DataFrame({"id": [5], "caption": ["mine"]})
    space.add_dataset("names", "Mine", "text", mine)
    report = demo.prepare(space, folder=shipped)
    assert space.dataset("names").title == "Mine"
    assert [line["what"] for line in report["left_out"]] == ["dataset/names"]
    assert "your own" in report["left_out"][0]["reason"]


def test_what_the_user_removed_stays_removed(space, shipped):
    demo.prepare(space, folder=shipped)
    space.remove_dataset("names")
    demo.prepare(space, folder=shipped)
    assert space.dataset_names() == []


def test_an_upgrade_replaces_the_dataset_and_clears_what_is_no_longer_shipped(space, shipped):
    demo.prepare(space, folder=shipped)
    old = space.dataset("names").digest
    space.notes.put("own", "pin", 1)
    write_dataset(shipped, pd.DataFrame({"id": range(4), "caption": list("abcd")}))
    shutil.rmtree(shipped / "results")
    report = demo.prepare(space, folder=shipped)
    assert report["done"] == ["dataset/names"]
    assert space.dataset("names").digest != old
    assert space.dataset("names").n == 4
    assert space.results.list(all_versions=True) == []
    assert space.notes.get("own", "pin") == 1


def test_a_part_that_does_not_fit_leaves_the_rest_in_place(space, shipped):
    path = shipped / "features" / "names--demo--none.json"
    about = json.loads(path.read_text())
    path.write_text(json.dumps({**about, "digest": "0" * 64}))
    report = demo.prepare(space, folder=shipped)
    assert [line["what"] for line in report["left_out"]] == ["features/names--demo--none"]
    assert "result/quality-names" in report["done"]


def test_a_damaged_picture_is_named(space, tmp_path):
    folder = tmp_path / "damaged"
    shutil.copytree(demo.demo_dir() / "emoji", folder / "emoji")
    items = pd.read_parquet(folder / "emoji" / "items.parquet")
    items.loc[0, "sha256"] = "0" * 64
    items.to_parquet(folder / "emoji" / "items.parquet", index=False)
    report = demo.prepare(space, folder=folder)
    assert "1 pictures" in report["left_out"][0]["reason"]
    assert space.dataset_names() == []


def test_without_a_demo_it_says_so(space, tmp_path):
    with pytest.raises(NotFound, match="no demo"):
        demo.prepare(space, folder=tmp_path / "nowhere")
