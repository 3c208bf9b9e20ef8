"""Features: resumed work has the same bytes, half-written work is never read."""

from __future__ import annotations

import errno
import json
import os

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file

from core.digest import recipe_key
from core.errors import BadInput, NotFound, WorkspaceError
from core.types import LeftOut
from core.workspace import open_workspace

N, SIZE = 11, 4


def begin(space, *, n=N, size=SIZE, recipe=None, **more):
    options = {"dataset": "d", "model": "m/x", "default_layer": "b", **more}
    return space.features.writer(recipe or {"r": 1}, n=n, shard_size=size, **options)


def shard(index, n=N, size=SIZE):
    ids = np.arange(index * size, min(n, (index + 1) * size)) * 10
    rng = np.random.default_rng(index)
    return ids, {"a": rng.normal(size=(len(ids), 3)), "b": rng.normal(size=(len(ids), 5))}


def write_all(writer, order=None):
    for index in order or range(writer.n_shards):
        if index not in writer.done_shards():
            writer.write_shard(index, *shard(index))
    return writer


def expected():
    parts = [shard(i) for i in range(3)]
    ids = np.concatenate([p[0] for p in parts])
    layers = {k: np.concatenate([p[1][k] for p in parts]).astype(np.float32) for k in ("a", "b")}
    return ids, layers


def test_round_trip(space):
    made = write_all(begin(space, meta={"pooling": "cls"})).finish([LeftOut("7", "Broken.")])
    ids, layers = expected()
    assert made.key == recipe_key({"r": 1})
    assert made.layers == ("a", "b")
    assert made.default_layer == "b"
    assert np.array_equal(made.ids, ids)
    for name, array in layers.items():
        assert np.array_equal(made.layer(name), array)
    assert made.meta["pooling"] == "cls"
    assert made.meta["left_out"] == [{"what": "7", "reason": "Broken.", "count": 1}]
    assert np.array_equal(made.take([30, 0]).layer(), layers["b"][[3, 0]])
    again = open_workspace(space.root).features.get("d", "m/x")
    assert np.array_equal(again.layer("a"), layers["a"])
    assert again.meta == made.meta
    assert not space.features.parts(made.key).exists()


def test_reading_maps_the_file(space):
    array = write_all(begin(space)).finish().layer("a")
    base = array
    while not isinstance(base, np.memmap):
        base = base.base
    assert not array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 1


def test_reference_library_reads_the_file(space):
    made = write_all(begin(space)).finish()
    found = load_file(space.features.path(made.key))
    ids, layers = expected()
    assert set(found) == {"ids", "a", "b"}
    assert np.array_equal(found["ids"], ids)
    assert np.array_equal(found["b"], layers["b"])


def test_interrupted_work_has_the_same_bytes(tmp_path):
    straight, broken = open_workspace(tmp_path / "1"), open_workspace(tmp_path / "2")
    key = write_all(begin(straight)).finish().key
    begin(broken).write_shard(1, *shard(1))
    second = begin(broken)
    assert second.done_shards() == {1}
    write_all(second, order=[2, 0]).finish()
    assert straight.features.path(key).read_bytes() == broken.features.path(key).read_bytes()


def test_half_written_or_damaged_shard_does_not_count(space):
    writer = write_all(begin(space))
    folder = space.features.parts(writer.key)
    (folder / "shard-000000.json").unlink()
    data = (folder / "shard-000001.safetensors").read_bytes()
    (folder / "shard-000001.safetensors").write_bytes(data[:-1] + b"\0")
    (folder / "shard-000002.json").write_text("{")
    assert writer.done_shards() == set()
    with pytest.raises(WorkspaceError, match="3 of 3 shards"):
        writer.finish()
    assert np.array_equal(write_all(writer).finish().ids, expected()[0])


def test_complete_shard_is_kept(space):
    writer = begin(space)
    writer.write_shard(0, *shard(0))
    path = space.features.parts(writer.key) / "shard-000000.safetensors"
    before = path.stat().st_mtime_ns
    writer.write_shard(0, *shard(0))
    assert path.stat().st_mtime_ns == before


def test_shards_of_another_size_do_not_count(space):
    begin(space).write_shard(0, *shard(0))
    assert begin(space, size=6).done_shards() == set()


def test_left_out_items_stay_with_their_shard(space):
    writer = begin(space)
    for index in range(3):
        ids, layers = shard(index)
        if index == 1:
            writer.write_shard(1, [], {}, [LeftOut("40", "Broken.", 4)])
        else:
            writer.write_shard(index, ids, layers)
    made = begin(space).finish([LeftOut("40", "Broken.", 4), LeftOut("x", "Gone.")])
    assert len(made) == N - 4
    assert [line["what"] for line in made.meta["left_out"]] == ["40", "x"]


def test_nothing_left(space):
    writer = begin(space, n=1)
    writer.write_shard(0, [], {})
    with pytest.raises(BadInput, match="No item"):
        writer.finish()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_no_numbers_are_named(space, value):
    ids, layers = shard(0)
    layers["a"][2, 1] = value
    with pytest.raises(BadInput, match="Layer 'a' of item 20 holds NaN or infinite"):
        begin(space).write_shard(0, ids, layers)
    assert begin(space).done_shards() == set()


def test_overflow_in_half_precision_is_named(space):
    writer = begin(space, n=1, dtype="float16", recipe={"half": 1})
    with pytest.raises(BadInput, match="infinite"):
        writer.write_shard(0, [1], {"b": np.full((1, 2), 1e6)})
    writer.write_shard(0, [1], {"b": np.full((1, 2), 1.5)})
    assert writer.finish().layer().dtype == np.float16


@pytest.mark.parametrize(
    ("index", "ids", "layers", "says"),
    [
        (3, [1], {"b": np.ones((1, 2))}, "outside 0 to 2"),
        (0, [1, 2, 3, 4, 5], {"b": np.ones((5, 2))}, "shard_size is 4"),
        (0, [1, 1], {"b": np.ones((2, 2))}, "twice: 1"),
        (0, [1, 2], {"b": np.ones((3, 2))}, r"\(2, d\) was expected"),
        (0, [1, 2], {"b": np.ones(2)}, r"\(2, d\) was expected"),
        (0, [1, 2], {"b": np.ones((2, 0))}, r"\(2, d\) was expected"),
        (0, [1], {"a": np.ones((1, 2))}, "default_layer='b'"),
        (0, [1], {"b": np.ones((1, 2)), "ids": np.ones((1, 2))}, "none named 'ids'"),
    ],
)
def test_shards_that_are_refused(space, index, ids, layers, says):
    with pytest.raises(BadInput, match=says):
        begin(space).write_shard(index, ids, layers)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"n": 0}, "at least 1"),
        ({"size": 0}, "at least 1"),
        ({"dtype": "int8"}, "dtype='int8'"),
        ({"recipe": {"x": object()}}, "not plain"),
        ({"recipe": {"x": float("nan")}}, "not plain"),
    ],
)
def test_writers_that_are_refused(space, options, says):
    with pytest.raises(BadInput, match=says):
        begin(space, **options)


def test_widths_and_ids_must_agree_between_shards(space):
    writer = begin(space, n=2, size=1)
    writer.write_shard(0, [1], {"b": np.ones((1, 2))})
    writer.write_shard(1, [2], {"b": np.ones((1, 3))})
    with pytest.raises(BadInput, match="layers and widths"):
        writer.finish()
    writer.discard()
    writer.write_shard(0, [1], {"b": np.ones((1, 2))})
    writer.write_shard(1, [1], {"b": np.ones((1, 2))})
    with pytest.raises(BadInput, match="twice: 1"):
        writer.finish()
    assert space.features.find("d", "m/x") is None


def test_full_disk_leaves_shards_and_no_half_file(space, monkeypatch):
    writer = write_all(begin(space))

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(WorkspaceError, match="disk is full"):
            writer.finish()
        writer.discard()
        with pytest.raises(WorkspaceError, match="disk is full"):
            writer.write_shard(0, *shard(0))
    assert space.features.list() == []
    assert not list((space.root / "features").rglob("*.safetensors"))
    assert write_all(writer).finish().layers == ("a", "b")


def test_damaged_file_is_never_read(space):
    made = write_all(begin(space)).finish()
    path = space.features.path(made.key)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(WorkspaceError, match="damaged"):
        open_workspace(space.root).features.get("d", "m/x")
    assert begin(space).existing() is None
    path.write_bytes(bytes(data[:-1]))
    with pytest.raises(WorkspaceError, match="damaged"):
        space.features.get("d", "m/x")
    path.unlink()
    with pytest.raises(WorkspaceError, match="theodolite extract d m/x"):
        space.features.get("d", "m/x")
    assert write_all(begin(space)).finish().key == made.key


def test_touched_but_whole_file_is_read(space):
    made = write_all(begin(space)).finish()
    os.utime(space.features.path(made.key), ns=(1, 1))
    assert np.array_equal(space.features.get("d", "m/x").layer(), made.layer())
    existing = begin(space).existing()
    assert existing is not None
    assert existing.key == made.key


def test_newest_of_the_present_items_is_found(space):
    def dataset(word):
        table = pd.DataFrame({"id": [1], "caption": [word]})
        return space.add_dataset("d", "D", "text", table, replace=True).digest

    def features(digest, version, value):
        recipe = {"dataset_digest": digest, "code": version}
        writer = begin(space, n=1, recipe=recipe)
        writer.write_shard(0, [1], {"b": np.full((1, 2), value)})
        return writer.finish().key

    with pytest.raises(NotFound, match="theodolite extract d m/x"):
        space.features.get("d", "m/x")
    old = dataset("one")
    first = features(old, 1, 1.0)
    second = features(old, 2, 2.0)
    assert space.features.get("d", "m/x").key == second
    assert [entry["key"] for entry in space.features.list()] == [first, second]
    dataset("two")
    assert space.features.find("d", "m/x") is None
    dataset("one")
    assert space.features.get("d", "m/x").key == second
    space.features.remove(second)
    assert space.features.get("d", "m/x").key == first
    with pytest.raises(NotFound):
        space.features.remove(second)


def test_export_and_import(space, tmp_path):
    made = write_all(begin(space, meta={"m": 1})).finish()
    path = space.features.export(made.key, tmp_path / "out")
    assert path.name == "d--m--x.safetensors"
    other = open_workspace(tmp_path / "other")
    for _ in range(2):
        found = other.features.import_file(path)
        assert found.key == made.key
        assert found.meta == made.meta
        assert found.layers == made.layers
        assert np.array_equal(found.layer("b"), made.layer("b"))
    assert other.features.path(made.key).stat().st_ino == path.stat().st_ino
    third = open_workspace(tmp_path / "third")
    third.features.import_file(path, space.features.sidecar(made.key), link=False)
    assert third.features.path(made.key).stat().st_ino != path.stat().st_ino
    assert third.doctor() == []


def test_imports_that_are_refused(space, tmp_path):
    made = write_all(begin(space)).finish()
    path = space.features.export(made.key, tmp_path)
    other = open_workspace(tmp_path / "other")
    about = json.loads(path.with_suffix(".json").read_text())
    with pytest.raises(BadInput, match="lacks digest"):
        other.features.import_file(path, {k: v for k, v in about.items() if k != "digest"})
    with pytest.raises(BadInput, match="names the layers"):
        other.features.import_file(path, {**about, "layers": ["a"]})
    with pytest.raises(NotFound, match="no sidecar"):
        other.features.import_file(path, tmp_path / "nope.json")
    with pytest.raises(NotFound, match="no feature file"):
        other.features.import_file(tmp_path / "nope.safetensors", about)
    path.with_suffix(".json").write_text("{")
    with pytest.raises(BadInput, match="cannot be read"):
        other.features.import_file(path)
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(BadInput, match="does not match the digest"):
        other.features.import_file(path, about)
    with pytest.raises(NotFound):
        other.features.sidecar(made.key)
    assert other.features.list() == []
    assert other.features.by_key(made.key) is None


def test_two_writers_of_one_set(space):
    first, second = write_all(begin(space)), begin(space)
    made = first.finish()
    second.write_shard(0, *shard(0))
    assert second.finish().key == made.key
    assert len(space.features.list()) == 1
