"""Comparing two computations: equal is 0, every kind of change is seen, times are not compared."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from core.data.deviation import feature_deviation, result_deviation
from core.results import Result
from core.types import Features, LeftOut


@pytest.fixture
def result():
    table = pd.DataFrame(
        {"name": ["a", "b", "c", "d"], "score": [1.0, 2.0, 4.0, np.nan], "seconds": [1.0] * 4}
    )
    summary = {
        "headline": "Add a: 0.50 of 1,200.",
        "n": 10,
        "best": "a",
        "list": [0.1, 0.2],
        "words": ["p", "q"],
        "flag": True,
        "none": None,
        "gap": 1e-12,
        "deep": {"value": 3.0, "rows": [{"x": 1.0}]},
    }
    arrays = {"map": np.arange(6.0).reshape(3, 2), "ids": np.arange(10)}
    return Result("quality", {}, summary, {"scores": table}, arrays, (LeftOut("x", "y.", 2),))


def changed(result, **summary):
    return replace(result, summary={**result.summary, **summary})


def table_with(result, column, row, value):
    table = result.tables["scores"].copy()
    table.loc[row, column] = value
    return replace(result, tables={"scores": table})


def test_the_same_is_zero(result):
    assert result_deviation(result, result) == (0.0, "")


@pytest.mark.parametrize(
    ("summary", "expected", "where"),
    [
        ({"n": 11}, 1 / 11, "summary/n"),
        ({"list": [0.1, 0.3]}, 0.1 / 0.3, "summary/list"),
        ({"deep": {"value": 3.3, "rows": [{"x": 1.0}]}}, 0.3 / 3.3, "summary/deep/value"),
        ({"deep": {"value": 3.0, "rows": [{"x": 2.0}]}}, 0.5, "summary/deep/rows/0/x"),
        ({"headline": "Add a: 0.55 of 1,200."}, 0.05 / 0.55, "summary/headline"),
        ({"headline": "Leave out a: 0.50 of 1,200."}, math.inf, "summary/headline"),
        ({"best": "b"}, math.inf, "summary/best"),
        ({"words": ["p", "z"]}, 0.5, "summary/words"),
        ({"flag": False}, math.inf, "summary/flag"),
        ({"none": 1.0}, math.inf, "summary/none"),
        ({"more": 1}, math.inf, "summary"),
        ({"list": [0.1]}, math.inf, "summary/list"),
    ],
)
def test_a_changed_summary_is_seen(result, summary, expected, where):
    deviation, found = result_deviation(result, changed(result, **summary))
    assert deviation == pytest.approx(expected)
    assert found == where


@pytest.mark.parametrize(
    ("column", "row", "value", "expected"),
    [
        ("score", 1, 2.2, 0.2 / 4),
        ("score", 1, np.nan, math.inf),
        ("score", 3, 1.0, math.inf),
        ("name", 0, "z", 0.25),
        ("seconds", 0, 99.0, 0.0),
    ],
)
def test_a_changed_cell_is_seen(result, column, row, value, expected):
    deviation, _ = result_deviation(result, table_with(result, column, row, value))
    assert deviation == pytest.approx(expected)


def test_changed_arrays_shapes_and_reports_are_seen(result):
    arrays = {**result.arrays, "map": result.arrays["map"] + 0.05}
    assert result_deviation(result, replace(result, arrays=arrays)) == (
        pytest.approx(0.05 / 5.05),
        "arrays/map",
    )
    ids = {**result.arrays, "ids": np.r_[np.arange(9), 0]}
    assert result_deviation(result, replace(result, arrays=ids))[0] == pytest.approx(0.1)
    fewer = {"map": result.arrays["map"]}
    assert result_deviation(result, replace(result, arrays=fewer)) == (math.inf, "arrays")
    short = replace(result, tables={"scores": result.tables["scores"].head(2)})
    n = len(result.tables["scores"])
    assert result_deviation(result, short) == (pytest.approx(1 - 2 / n), "tables/scores rows")
    none = replace(result, left_out=())
    assert result_deviation(result, none) == (math.inf, "left_out")


def test_numbers_below_the_floor_count_as_zero(result):
    deviation, _ = result_deviation(result, changed(result, gap=9e-12))
    assert deviation < 1e-4


def features(array, ids=(0, 1), layer="out"):
    return Features(np.array(ids), {layer: np.asarray(array, np.float32)}, "d", "m", layer)


def test_features_are_compared_layer_by_layer():
    one = features([[1.0, 2.0], [3.0, 4.0]])
    assert feature_deviation(one, one) == 0.0
    other = features([[1.0, 2.0], [3.0, 4.4]])
    assert feature_deviation(one, other) == pytest.approx(0.4 / 4.4, rel=1e-6)
    assert feature_deviation(one, features([[1.0, 2.0], [3.0, 4.0]], ids=(0, 2))) == math.inf
    assert feature_deviation(one, features([[1.0, 2.0], [3.0, 4.0]], layer="x")) == math.inf
    assert feature_deviation(one, features([[1.0], [3.0]])) == math.inf
