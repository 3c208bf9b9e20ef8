"""Rows for stitching: which items, which split, which labels, in one order for all encoders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from core.errors import BadInput
from core.types import LeftOut

if TYPE_CHECKING:
    import pandas as pd

    from core.workspace import Workspace

TEST_SHARE = 1 / 3


@dataclass(frozen=True)
class Rows:
    """Aligned rows of several encoders.

    Attributes
    ----------
    train, test : list of ndarray, each (n_train, d_i) and (n_test, d_i)
    train_ids, test_ids : ndarray of int64
    y_train, y_test : ndarray of str
    groups_test : ndarray
        What a test item counts as one unit with (its concept, else itself).
    split_note : str
        Where the split comes from, in words.
    left_out : tuple of LeftOut
    """

    train: list[np.ndarray]
    test: list[np.ndarray]
    train_ids: np.ndarray
    test_ids: np.ndarray
    y_train: np.ndarray
    y_test: np.ndarray
    groups_test: np.ndarray
    split_note: str
    left_out: tuple[LeftOut, ...]


def read_rows(workspace: Workspace, dataset: str, models: list[str], label: str, seed: int) -> Rows:
    """Return the items every model has features of, split by item or concept.

    Raises
    ------
    BadInput
        No such column, fewer than two classes, or too few rows on one side of the split.
    NotFound
        Features are missing.
    """
    table = workspace.dataset(dataset).items
    if label not in table.columns:
        raise BadInput(
            f"label={label!r} is not a column of {dataset!r}.",
            f"Choose one of: {', '.join(c for c in table.columns if c not in ('id', 'sha256'))}.",
        )
    features = [workspace.features.get(dataset, model) for model in models]
    common = set(table["id"])
    for f in features:
        common &= set(int(i) for i in f.ids)
    has_row = table["id"].isin(common)
    has_label = table[label].astype(str).str.len() > 0
    kept = table[has_row & has_label].sort_values("id")
    left = [
        LeftOut(f"{dataset} items", "no features under one of the encoders", int((~has_row).sum())),
        LeftOut(f"{dataset} items", f"no {label}", int((has_row & ~has_label).sum())),
    ]
    groups = _groups(kept)
    is_test, note = _split(kept, groups, seed)
    ids, y = kept["id"].to_numpy(np.int64), kept[label].astype(str).to_numpy()
    unseen = is_test & ~np.isin(y, y[~is_test])
    left.append(LeftOut(f"{dataset} test items", "class not seen in training", int(unseen.sum())))
    test = is_test & ~unseen
    train_ids, test_ids = ids[~is_test], ids[test]
    if len(train_ids) < 20 or len(test_ids) < 5 or len(set(y[~is_test])) < 2:
        raise BadInput(
            f"Stitching on {dataset!r} has {len(train_ids)} training and {len(test_ids)} test "
            f"items of {len(set(y[~is_test]))} classes.",
            "It needs at least 20 and 5 items and two classes: check split and label.",
        )
    return Rows(
        [np.asarray(f.layer()[f.rows_of(train_ids)], dtype=np.float64) for f in features],
        [np.asarray(f.layer()[f.rows_of(test_ids)], dtype=np.float64) for f in features],
        train_ids, test_ids, y[~is_test], y[test], groups[test], note,
        tuple(line for line in left if line.count),
    )  # fmt: skip


def _groups(kept: pd.DataFrame) -> np.ndarray:
    """Return the unit of each item: its concept, so that a drawing's variants stay together."""
    if "concept" in kept.columns:
        concept = kept["concept"].astype(str)
        return np.where(concept.str.len() > 0, concept, kept["id"].astype(str))
    return kept["id"].astype(str).to_numpy()


def _split(kept: pd.DataFrame, groups: np.ndarray, seed: int) -> tuple[np.ndarray, str]:
    given = kept["split"].astype(str).to_numpy()
    if {"train", "test"} <= set(given):
        is_test = given == "test"
        shared = len(set(groups[is_test]) & set(groups[~is_test]))
        if shared:
            return is_test, f"the dataset's own split; {shared} concepts lie on both sides"
        return is_test, "the dataset's own split, no concept on both sides"
    units = np.unique(groups)
    rng = np.random.default_rng(np.random.SeedSequence([seed, 4]))
    chosen = rng.choice(units, max(1, round(TEST_SHARE * len(units))), replace=False)
    return np.isin(groups, chosen), "drawn here by concept, one third for the test"
