"""A map as bytes, bits and regions; the columns that colour it; the vendored library."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core.compare import columns
from core.compare.lasso import Extent, outline_text
from core.compare.map_points import MapPoints, ids_in_region, map_points
from core.errors import BadInput
from core.figures.paint import LEVELS, paint
from core.figures.style import OKABE_ITO, ROLE
from core.paths import assets_dir
from core.results import Result
from core.workspace import open_workspace


def points(n: int = 500, seed: int = 0) -> MapPoints:
    rng = np.random.default_rng(seed)
    ids = rng.permutation(3 * n)[:n]
    xy = rng.normal(size=(n, 2))
    table = pd.DataFrame({"id": ids, "x": xy[:, 0], "y": xy[:, 1]})
    return map_points(Result("explore", {"dataset": "d"}, {}, {"map": table}, key="k"))


def test_the_block_is_four_bytes_a_point_and_gives_the_places_back() -> None:
    found = points()
    assert len(found.block) == 4 * len(found)
    grid = np.frombuffer(found.block, dtype="<u2").reshape(2, -1).T
    np.testing.assert_allclose(found.extent.back(grid), found.xy, atol=found.extent.side / 60_000)


def test_a_million_points_with_colours_and_a_selection_stay_below_twelve_megabytes() -> None:
    n = 1_000_000
    xy = np.random.default_rng(0).random((n, 2), dtype=np.float32)
    found = MapPoints("m", "d", np.arange(n), xy, Extent.of(xy))
    colours = paint(pd.Series(np.arange(n) % 7).map(lambda k: f"c{k}"))
    total = len(found.block) + colours.codes.nbytes + len(found.lit(np.arange(n // 2)))
    assert total == 5_125_000


def test_lit_bits_are_the_ids_asked_for() -> None:
    found = points()
    wanted = np.concatenate([found.ids[[3, 77, 499]], [10_000_000, -5]])
    bits = np.unpackbits(np.frombuffer(found.lit(wanted), np.uint8), bitorder="little")
    assert sorted(np.flatnonzero(bits[: len(found)])) == [3, 77, 499]
    assert not found.rows_of(np.zeros(0)).any()
    assert points(0).lit(wanted) == b""


def test_ids_in_a_region_follow_the_rows() -> None:
    found = points()
    low, high = np.quantile(found.xy, [0.3, 0.7], axis=0)
    box = np.array([low, [high[0], low[1]], high, [low[0], high[1]]])
    text = outline_text(box, found.extent)
    within = ((found.xy > low) & (found.xy < high)).all(axis=1)
    step = found.extent.side / 65_535
    sure = (np.abs(found.xy[:, None] - np.array([low, high])) > step).all(axis=(1, 2))
    got = np.isin(found.ids, found.ids_in(text))
    np.testing.assert_array_equal(got[sure], within[sure])
    again = ids_in_region(found, text)
    assert ids_in_region(found, text) is again
    assert not again.flags.writeable


def test_a_result_without_a_map_is_refused() -> None:
    with pytest.raises(BadInput, match="no map"):
        map_points(Result("explore", {"method": "changed", "dataset": "d"}, {}))


def test_categories_have_the_colours_of_the_small_maps() -> None:
    values = pd.Series(["b", "a", "", "c", "a", None])
    found = paint(values)
    assert found.names == ("a", "b", "c", "none")
    assert found.codes.tolist() == [1, 0, 3, 2, 0, 3]
    assert found.palette == OKABE_ITO[:4]
    assert found.missing == 2


def test_a_second_round_of_colours_is_darker_and_the_rest_is_grey() -> None:
    many = pd.Series([f"c{k:02d}" for k in range(30) for _ in range(31 - k)])
    found = paint(many)
    assert len(set(found.palette)) == len(found.palette) == 16
    assert found.codes.max() < len(found.palette)


def test_numbers_have_a_ramp_and_missing_ones_are_grey() -> None:
    values = pd.Series([*np.linspace(-2, 5, 40), np.nan, np.inf])
    found = paint(values)
    assert (found.low, found.high, found.missing) == (-2.0, 5.0, 2)
    assert found.codes[0] == 0
    assert found.codes[39] == LEVELS - 1
    assert (found.codes[40:] == LEVELS).all()
    assert found.palette[LEVELS] == ROLE["null"]
    assert (np.diff(found.codes[:40].astype(int)) > 0).all()
    few = paint(pd.Series([True, False, True]))
    assert few.names == ("False", "True")


def test_changed_items_and_clusters_are_columns(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "id": [5, 3],
            "overlap": [0.1, 0.9],
            "displacement": [1.2, 0.1],
            "verdict": ["moved", "kept"],
        }
    )
    made = columns.change_columns(Result("explore", {}, {}, {"changed": table}))
    items = pd.DataFrame({"id": [3, 4, 5], "label": ["x", "y", "z"]})
    joined = columns.with_columns(items, made)
    assert joined[columns.VERDICT].tolist()[::2] == ["kept", "moved"]
    assert pd.isna(joined[columns.OVERLAP][1])
    assert list(items.columns) == ["id", "label"]
    assert columns.with_columns(items, {}) is items

    workspace = open_workspace(tmp_path)
    assert columns.cluster_column(workspace, "d", "a", "b") is None
    for target, first in (("a", 7), ("c", 9)):
        members = pd.DataFrame(
            {
                "direction": [0, 0, 1, 1, 1],
                "rank": [1, 2, 1, 2, 1],
                "id": [first, 1, 2, 1, 8],
                "score": 0.5,
                "pole": [1, 1, 1, 1, -1],
            }
        )
        result = Result(
            "contrast",
            {"dataset": "d", "target": target, "reference": "b"},
            {"headline": "", "n": 5},
            {"members": members},
        )
        workspace.results.put(result)
    found = columns.cluster_column(workspace, "d", "a", "b")
    assert found is not None
    assert found.to_dict() == {7: "cluster 1", 1: "cluster 1", 2: "cluster 2"}
    newest = columns.cluster_column(workspace, "d", "x")
    assert newest is not None
    assert 9 in newest.index


def test_the_vendored_library_is_what_its_source_says() -> None:
    folder = assets_dir() / "vendor" / "regl-scatterplot"
    about = json.loads((folder / "source.json").read_text("utf-8"))
    code = (folder / about["file"]).read_bytes()
    assert hashlib.sha256(code).hexdigest() == about["sha256"]
    assert len(code) == about["bytes"]
    licences = (folder / about["licences"]).read_text("utf-8")
    for name in [about["package"], *about["bundled"], "kdbush"]:
        assert f"==== {name} " in licences
    build = Path(__file__).resolve().parents[3] / "assets" / "build" / "regl-scatterplot"
    lock = json.loads((build / "package-lock.json").read_text("utf-8"))["packages"]
    assert lock["node_modules/regl-scatterplot"]["version"] == about["version"]
    assert all("integrity" in entry for name, entry in lock.items() if name)
