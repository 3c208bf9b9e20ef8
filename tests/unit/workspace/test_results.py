"""Results: found by what they were computed from, and never wrong."""

from __future__ import annotations

import errno
import json
import os
import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from core.errors import BadInput, NotFound, WorkspaceError
from core.results import CODE_VERSION, Result
from core.types import LeftOut
from core.workspace import open_workspace

PARAMS = {"dataset": "d", "k": 3, "models": ["a", "b"], "eps": 0.5, "seed": None}


def result(**changes):
    made = Result(
        kind="transfer",
        params=PARAMS,
        summary={"headline": "A is best.", "n": np.int64(7), "hole": float("nan"), "t": (1, 2)},
        tables={"ranking": pd.DataFrame({"name": ["a", "b"], "score": [0.1, np.nan]})},
        arrays={
            "m": np.eye(3),
            "ids": np.arange(4),
            "f": np.float32([1]),
            "i": np.int32([2]),
            "ok": np.array([True]),
        },
        left_out=(LeftOut("x", "Broken.", 2),),
        seconds=1.5,
        versions={"numpy": "2"},
    )
    return replace(made, **changes)


def test_round_trip(space):
    stored = space.results.put(result(), {"dataset": "abc"})
    assert stored.key == space.results.key("transfer", PARAMS, {"dataset": "abc"})
    found = open_workspace(space.root).results.get(stored.key)
    assert found.params == PARAMS
    assert found.headline == "A is best."
    assert found.summary["n"] == 7
    assert np.isnan(found.summary["hole"])
    assert found.summary["t"] == [1, 2]
    assert list(found.arrays) == ["m", "ids", "f", "i", "ok"]
    for name, array in result().arrays.items():
        assert found.arrays[name].dtype == array.dtype
        assert np.array_equal(found.arrays[name], array)
    pd.testing.assert_frame_equal(found.tables["ranking"], result().tables["ranking"])
    assert found.left_out == result().left_out
    assert (found.seconds, found.versions, found.key) == (1.5, {"numpy": "2"}, stored.key)
    assert found.created == stored.created != ""


def test_without_tables_and_arrays(space):
    key = space.results.put(result(tables={}, arrays={})).key
    assert space.results.get(key).arrays == {}


def test_found_by_parameters_and_inputs(space):
    key = space.results.put(result(), {"dataset": "abc"}).key
    same = {**PARAMS, "k": 3.0}
    assert space.results.find("transfer", same, {"dataset": "abc"}).key == key
    assert space.results.find("transfer", same).key == key
    assert space.results.find("transfer", same, {"dataset": "other"}) is None
    assert space.results.find("transfer", {**PARAMS, "k": 4}) is None
    assert space.results.find("quality", PARAMS) is None


def test_latest_matches_parameters(space):
    first = space.results.put(result()).key
    second = space.results.put(result(params={**PARAMS, "k": 4})).key
    assert space.results.latest("transfer").key == second
    assert space.results.latest("transfer", k=3).key == first
    assert space.results.latest("transfer", models=("a", "b"), k=4.0).key == second
    assert space.results.latest("transfer", k=5) is None
    assert space.results.latest("transfer", nope=5) is None
    assert [info.key for info in space.results.list()] == [second, first]
    assert [info.key for info in space.results.list("quality")] == []
    info = space.results.list("transfer")[0]
    assert (info.kind, info.headline, info.seconds) == ("transfer", "A is best.", 1.5)
    assert info.params["k"] == 4


def test_older_code_and_changed_items_do_not_count(space, monkeypatch):
    def dataset(word):
        table = pd.DataFrame({"id": [1], "caption": [word]})
        return space.add_dataset("d", "D", "text", table, replace=True).digest

    key = space.results.put(result(), {"dataset": dataset("one")}).key
    assert space.results.latest("transfer").key == key
    dataset("two")
    assert space.results.latest("transfer") is None
    assert space.results.find("transfer", PARAMS) is None
    dataset("one")
    assert space.results.find("transfer", PARAMS).key == key
    monkeypatch.setitem(CODE_VERSION, "transfer", 99)
    assert space.results.latest("transfer") is None
    assert space.results.list() == []
    assert [info.key for info in space.results.list(all_versions=True)] == [key]


def test_putting_again_replaces(space):
    first = space.results.put(result())
    second = space.results.put(result(summary={"headline": "B is best.", "n": 7}))
    assert first.key == second.key
    assert space.results.get(first.key).headline == "B is best."
    assert len(list((space.root / "results").iterdir())) == 1


@pytest.mark.parametrize("name", ["result.json", "tables/ranking.parquet", "arrays.safetensors"])
def test_damaged_or_missing_file_is_never_read(space, name):
    key = space.results.put(result()).key
    path = space.results.path(key) / name
    data = path.read_bytes()
    path.write_bytes(data[:-3] + b"xyz")
    with pytest.raises(WorkspaceError, match="damaged") as caught:
        space.results.get(key)
    assert "doctor" in caught.value.hint
    path.unlink()
    with pytest.raises(WorkspaceError, match="missing"):
        space.results.get(key)
    assert space.results.put(result()).key == key
    assert space.results.get(key).headline == "A is best."


def test_full_disk_leaves_the_old_result(space, monkeypatch):
    key = space.results.put(result()).key

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(WorkspaceError, match="disk is full"):
            space.results.put(result(summary={"headline": "B", "n": 1}))
    assert space.results.get(key).headline == "A is best."
    assert len(list((space.root / "results").iterdir())) == 1


def test_failure_after_the_swap_puts_the_old_folder_back(space, monkeypatch):
    key = space.results.put(result()).key

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("core.workspace.results.sync_path", full)
        with pytest.raises(WorkspaceError, match="disk is full"):
            space.results.put(result(summary={"headline": "B", "n": 1}))
    assert space.results.get(key).headline == "A is best."


def test_reader_beside_a_writer_sees_one_or_the_other(space):
    key = space.results.put(result()).key
    stop = threading.Event()

    def write():
        for number in range(15):
            space.results.put(result(summary={"headline": f"{number}", "n": 1}))
        stop.set()

    thread = threading.Thread(target=write)
    thread.start()
    while not stop.is_set():
        assert space.results.get(key).arrays["m"].shape == (3, 3)
    thread.join()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"params": {"x": object()}}, "not plain JSON"),
        ({"params": {"x": float("inf")}}, "not plain JSON"),
        ({"summary": {"headline": "x", "o": object()}}, "cannot be stored"),
        ({"arrays": {"c": np.array([1j])}}, "complex128"),
        ({"arrays": {"s": np.array(["x"])}}, "not stored"),
        ({"tables": {"../x": pd.DataFrame({"a": [1]})}}, "cannot be a file name"),
        ({"tables": {"t": pd.DataFrame({"a": [1, "x", object()]})}}, "Table 't'"),
    ],
)
def test_what_is_not_stored(space, changes, says):
    with pytest.raises(BadInput, match=says):
        space.results.put(result(**changes))
    assert space.results.list() == []


def test_unknown_key(space):
    for call in (space.results.get, space.results.remove):
        with pytest.raises(NotFound):
            call("0" * 64)


def test_removal(space):
    key = space.results.put(result()).key
    space.results.remove(key)
    assert space.results.list() == []
    assert not space.results.path(key).exists()


def test_export(space, tmp_path):
    key = space.results.put(result()).key
    files = space.results.export(key, tmp_path / "csv")
    assert [f.name for f in files] == ["ranking.csv", "summary.json"]
    assert pd.read_csv(files[0])["name"].tolist() == ["a", "b"]
    assert json.loads(files[1].read_text())["params"] == PARAMS
    files = space.results.export(key, tmp_path / "pq", format="parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(files[0]), result().tables["ranking"])
    with pytest.raises(BadInput, match="format='xls'"):
        space.results.export(key, tmp_path, format="xls")


def test_import(space, tmp_path, monkeypatch):
    stored = space.results.put(result(), {"dataset": "abc"})
    folder = space.results.path(stored.key)
    (folder / "stray.txt").write_text("not ours")
    other = open_workspace(tmp_path / "other")
    for _ in range(2):
        assert other.results.import_dir(folder).key == stored.key
    found = other.results.find("transfer", PARAMS, {"dataset": "abc"})
    assert found.headline == "A is best."
    assert not (other.results.path(stored.key) / "stray.txt").exists()
    assert other.doctor() == []
    with pytest.raises(NotFound, match=r"no result\.json"):
        other.results.import_dir(tmp_path)
    monkeypatch.setitem(CODE_VERSION, "transfer", 99)
    with pytest.raises(BadInput, match="another version"):
        other.results.import_dir(folder)
