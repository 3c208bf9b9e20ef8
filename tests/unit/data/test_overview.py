"""Counting a dataset and finding items in it."""

from __future__ import annotations

import pandas as pd
import pytest

from core.data.overview import examples, find_items, overview, siblings
from core.types import LeftOut


@pytest.fixture
def items():
    return pd.DataFrame(
        {
            "id": [10, 11, 12, 13, 14],
            "caption": ["A red car", "red rose", "", "blue car", "über 12 trees"],
            "label": ["vehicle", "plant", "plant", "vehicle", ""],
            "domain": ["photo", "sketch", "photo", "sketch", "photo"],
            "split": ["train", "train", "test", "test", ""],
            "concept": ["car", "rose", "rose", "car", ""],
        }
    )


@pytest.fixture
def dataset(space, items):
    lines = [LeftOut("a.png", "Broken.", 2)]
    return space.add_dataset("few", "Few", "text", items, left_out=lines)


def test_counts(dataset):
    found = overview(dataset)
    assert found.n == 5
    assert found.classes.to_dict() == {"plant": 2, "vehicle": 2, "none": 1}
    assert found.domains.to_dict() == {"photo": 3, "sketch": 2}
    assert found.splits.to_dict() == {"train": 2, "test": 2, "none": 1}
    assert (found.captioned, found.distinct_captions) == (4, 4)
    assert found.cells.loc["plant"].to_dict() == {"photo": 1, "sketch": 1}
    assert found.cells.to_numpy().sum() == 5
    assert found.n_left_out == 2
    assert found.headline == "5 items of 2 classes in 2 domains, 4 with a caption."


def test_a_bare_dataset_says_so(space):
    bare = pd.DataFrame({"id": [1, 2], "caption": ["x", "x"]})
    found = overview(space.add_dataset("bare", "Bare", "text", bare))
    assert found.headline == "2 items, all with a caption."
    assert found.distinct_captions == 1
    assert found.left_out == ()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"text": "car"}, [10, 13]),
        ({"text": "CAR Red"}, [10]),
        ({"text": "ÜBER"}, [14]),
        ({"text": "12"}, [12, 14]),
        ({"text": "zebra"}, []),
        ({"text": "("}, []),
        ({"label": "plant"}, [11, 12]),
        ({"label": "none"}, [14]),
        ({"domain": "photo", "split": "test"}, [12]),
        ({"text": "red", "domain": "sketch"}, [11]),
        ({}, [10, 11, 12, 13, 14]),
    ],
)
def test_finding_items(items, query, expected):
    assert find_items(items, **query)["id"].tolist() == expected


def test_examples_are_spread_and_few(items):
    assert examples(items, "vehicle", "photo", 4) == [10]
    assert examples(items, "vehicle", "nowhere", 4) == []
    many = pd.concat([items.assign(id=items["id"] + 10 * k) for k in range(5)], ignore_index=True)
    chosen = examples(many, "plant", "sketch", 3)
    assert chosen == [11, 31, 51]


def test_siblings_share_the_concept(items):
    assert siblings(items, 10) == [13]
    assert siblings(items, 14) == []
    assert siblings(items, 99) == []
    assert siblings(items.drop(columns="concept"), 10) == []
