"""Spaces by domain: paired by concept, named, refused where they cannot be paired."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from fakes import FakeDataset, FakeWorkspace

from core.errors import BadInput
from core.stitching import analysis
from core.stitching.rows import read_rows
from core.stitching.spaces import across_domains
from core.types import Features

SPACES = ["net/a|en", "net/a|de", "net/b|de"]


@pytest.fixture(scope="module")
def ws() -> FakeWorkspace:
    """Ninety concepts in two languages, each missing somewhere; ids in no order."""
    rng = np.random.default_rng(0)
    rows = [
        {"id": 2 * c + d, "concept": f"c{c}", "domain": ("en", "de")[d], "label": f"k{c % 3}",
         "split": "test" if c % 3 == 0 or c % 7 == 0 else "train", "caption": "", "sha256": ""}
        for c in range(90) for d in range(2) if not (c == 5 and d == 1)
    ]  # fmt: skip
    items = pd.DataFrame(rows)
    source = rng.normal(size=(90, 6)) + 3 * np.eye(6)[np.arange(90) % 3]
    at = items["id"].to_numpy() // 2
    store = {}
    for seed, model in enumerate(("net/a", "net/b")):
        x = source[at] @ rng.normal(size=(6, 9)) + 0.05 * rng.normal(size=(len(items), 9))
        order = np.random.default_rng(seed).permutation(len(items))
        store[model] = Features(
            items["id"].to_numpy()[order], {"pool": x[order].astype(np.float32)}, "names", model,
            "pool",
        )  # fmt: skip
    return FakeWorkspace(FakeDataset(items, "names", "text"), store)


def test_rows_are_the_same_concept_in_every_space(ws):
    rows = read_rows(ws, "names", SPACES, "label", 0)
    concept = ws.data.items.set_index("id")["concept"]
    domain = ws.data.items.set_index("id")["domain"]
    names = [concept.loc[ids].to_numpy() for ids in rows.test_ids_of]
    assert (names[0] == names[1]).all()
    assert (names[0] == names[2]).all()
    assert set(domain.loc[rows.test_ids_of[0]]) == {"en"}
    assert set(domain.loc[rows.test_ids_of[2]]) == {"de"}
    assert any("not in every domain" in line.reason and line.count == 1 for line in rows.left_out)
    f = ws.store["net/b"]
    np.testing.assert_allclose(
        rows.test[2][3], f.layer()[np.flatnonzero(f.ids == rows.test_ids_of[2][3])[0]]
    )


def test_the_analysis_stitches_across_languages(ws):
    params = analysis.resolve(ws, {
        "dataset": "names", "models": SPACES, "methods": ["wip-mixture", "ridge"],
        "n_anchors": 8, "n_support": 40, "n_parallel": 40, "seeds": 1, "shrink": 0.5,
    })  # fmt: skip
    got = analysis.compute(ws, params)
    assert got.summary["accuracy"] > 0.8
    assert got.summary["titles"]["net/b|de"] == "net/b, de"
    failing = got.tables["failures"].query("j == 'net/b|de'")
    domain = ws.data.items.set_index("id")["domain"]
    assert set(domain.loc[failing["id"]]) <= {"de"}


def test_what_cannot_be_paired_is_named(ws):
    assert not across_domains(["net/a", "net/b"])
    with pytest.raises(BadInput, match="'net/b' names no domain"):
        across_domains(["net/a|en", "net/b"])
    with pytest.raises(BadInput, match="domain 'xx'"):
        read_rows(ws, "names", ["net/a|en", "net/a|xx"], "label", 0)
    bare = FakeWorkspace(FakeDataset(ws.data.items.drop(columns="concept"), "names"), ws.store)
    with pytest.raises(BadInput, match="no column 'concept'"):
        read_rows(bare, "names", SPACES, "label", 0)
