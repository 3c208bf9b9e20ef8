"""Rows for stitching: which items, which split, which labels, in one order for all encoders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from core.errors import BadInput
from core.stitching.spaces import across_domains, split_space
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
    test_ids_of : tuple of ndarray of int64, each (n_test,)
        The test items as each space sees them; ``test_ids`` unless spaces are domains.
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
    test_ids_of: tuple[np.ndarray, ...] = ()


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
    features = [workspace.features.get(dataset, split_space(m)[0]) for m in models]
    if across_domains(models):
        kept, ids_of, left = _by_concept(table, models, [f.ids for f in features], label, dataset)
    else:
        kept, left = _by_item(table, [f.ids for f in features], label, dataset)
        ids_of = [kept["id"].to_numpy(np.int64)] * len(models)
    if kept.empty:
        raise BadInput(
            f"No item of {dataset!r} has a {label} and features under every encoder.",
            "Choose another label, or extract the features.",
        )
    groups = _groups(kept)
    is_test, note = _split(kept, groups, seed)
    y = kept[label].astype(str).to_numpy()
    unseen = is_test & ~np.isin(y, y[~is_test])
    left.append(LeftOut(f"{dataset} test items", "class not seen in training", int(unseen.sum())))
    test = is_test & ~unseen
    if (~is_test).sum() < 20 or test.sum() < 5 or len(set(y[~is_test])) < 2:
        raise BadInput(
            f"Stitching on {dataset!r} has {(~is_test).sum()} training and {test.sum()} test "
            f"items of {len(set(y[~is_test]))} classes.",
            "It needs at least 20 and 5 items and two classes: check split and label.",
        )
    pairs = list(zip(features, ids_of, strict=True))
    return Rows(
        [np.asarray(f.layer()[f.rows_of(ids[~is_test])], dtype=np.float64) for f, ids in pairs],
        [np.asarray(f.layer()[f.rows_of(ids[test])], dtype=np.float64) for f, ids in pairs],
        ids_of[0][~is_test], ids_of[0][test], y[~is_test], y[test], groups[test], note,
        tuple(line for line in left if line.count), tuple(ids[test] for ids in ids_of),
    )  # fmt: skip


def _by_item(
    table: pd.DataFrame, known: list[np.ndarray], label: str, dataset: str
) -> tuple[pd.DataFrame, list[LeftOut]]:
    """Return the labelled items every encoder has features of, by id."""
    has_row = np.ones(len(table), dtype=bool)
    for ids in known:
        has_row &= table["id"].isin(ids).to_numpy()
    has_label = (table[label].astype(str).str.len() > 0).to_numpy()
    left = [
        LeftOut(f"{dataset} items", "no features under one of the encoders", int((~has_row).sum())),
        LeftOut(f"{dataset} items", f"no {label}", int((has_row & ~has_label).sum())),
    ]
    return table[has_row & has_label].sort_values("id"), left


def _by_concept(
    table: pd.DataFrame, spaces: list[str], known: list[np.ndarray], label: str, dataset: str
) -> tuple[pd.DataFrame, list[np.ndarray], list[LeftOut]]:
    """Return one row a concept, and the ids of its item in the domain of each space."""
    for column in ("concept", "domain"):
        if column not in table.columns:
            raise BadInput(
                f"{dataset!r} has no column {column!r}, by which domains are paired.",
                "Choose whole encoders, without a domain.",
            )
    one = []
    for space, ids in zip(spaces, known, strict=True):
        domain = split_space(space)[1]
        rows = table[(table["domain"] == domain) & table["id"].isin(ids)]
        if rows.empty:
            raise BadInput(
                f"{dataset!r} has no features of {split_space(space)[0]} in domain {domain!r}.",
                f"Its domains: {', '.join(sorted(map(str, table['domain'].unique())))}.",
            )
        rows = rows[rows["concept"].astype(str).str.len() > 0]
        one.append(rows.sort_values("id").drop_duplicates("concept").set_index("concept"))
    shared = one[0].index
    for rows in one[1:]:
        shared = shared.intersection(rows.index, sort=False)
    first = one[0].loc[shared].reset_index()
    has_label = (first[label].astype(str).str.len() > 0).to_numpy()
    most = max(len(rows) for rows in one)
    left = [
        LeftOut(f"{dataset} concepts", "not in every domain chosen", most - len(shared)),
        LeftOut(f"{dataset} concepts", f"no {label}", int((~has_label).sum())),
    ]
    kept = first[has_label]
    ids_of = [rows.loc[kept["concept"], "id"].to_numpy(np.int64) for rows in one]
    return kept, ids_of, left


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
