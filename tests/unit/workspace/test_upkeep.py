"""Doctor and gc."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from core.results import Result


def picture(space, grey):
    out = io.BytesIO()
    Image.new("RGB", (8, 8), (grey,) * 3).save(out, "PNG")
    sha = space.blobs.put(out.getvalue())
    space.thumb_path(sha)
    return sha


@pytest.fixture
def full(space):
    """A workspace with one of each."""
    items = pd.DataFrame({"id": [1, 2], "sha256": [picture(space, 1), picture(space, 2)]})
    space.add_dataset("d", "D", "image", items)
    writer = space.features.writer({"r": 1}, dataset="d", model="m", default_layer="a", n=2)
    writer.write_shard(0, [1, 2], {"a": np.eye(2)})
    writer.finish()
    space.results.put(Result("quality", {"dataset": "d"}, {"headline": "h", "n": 2}))
    return space


def files(space):
    return {p for p in space.root.rglob("*") if p.is_file() and p.parent != space.root}


def test_nothing_amiss(full):
    assert full.doctor() == []
    before = files(full)
    assert full.gc(min_age_s=0) == []
    assert files(full) == before


def test_every_damage_is_found(full):
    data = full.dataset("d")
    first, second = data.items["sha256"]
    full.blobs.path(first).write_bytes(b"x")
    full.blobs.path(second).unlink()
    feature = full.features.path(full.features.list()[0]["key"])
    feature.write_bytes(feature.read_bytes()[:-1] + b"x")
    (full.results.path(full.results.list()[0].key) / "result.json").write_text("{}")
    text = "\n".join(map(str, full.doctor()))
    assert f"the picture {first} is damaged" in text
    assert f"the picture {second} is missing" in text
    assert "features of m on d: its bytes do not match" in text
    assert "theodolite extract d m" in text
    assert "quality result" in text
    fixed = full.doctor(fix=True)
    assert sum(finding.fixed for finding in fixed) == 2
    assert "Dropped." in "\n".join(map(str, fixed))
    assert len(full.doctor()) == 2
    assert full.features.list() == []


def test_damaged_items_are_found_and_stop_the_collector(full):
    table = full.dataset("d").items.assign(label="changed")
    table.to_parquet(full.dataset("d").items_path)
    assert "do not match their digest" in str(full.doctor()[0])


def test_gc_takes_what_nothing_refers_to(full):
    keep = files(full)
    loose = picture(full, 99)
    full.add_dataset("t", "T", "text", pd.DataFrame({"id": [1]}))
    full.remove_dataset("t")
    (full.root / "features" / "unknown.safetensors").write_bytes(b"x" * 10)
    (full.root / "features" / ".tmp-1.safetensors").write_bytes(b"x")
    (full.root / "results" / ("0" * 64)).mkdir()
    unfinished = full.features.writer({"u": 1}, dataset="d", model="m", default_layer="a", n=2)
    unfinished.write_shard(0, [1, 2], {"a": np.eye(2)})
    assert full.gc() == []
    found = full.gc(dry_run=True, min_age_s=0)
    assert len(found) == 7
    assert any(loose in str(item) for item in found)
    assert full.blobs.has(loose)
    assert len(full.gc(min_age_s=0)) == 7
    assert files(full) == keep
    assert full.doctor() == []
