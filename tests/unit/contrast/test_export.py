"""Clusters leave as CSV, JSON and a page, and the JSON opens again as the same clusters."""

from __future__ import annotations

import io
import json
import re

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from core.contrast.export import (
    clusters_csv,
    clusters_json,
    gallery_html,
    reopen,
)
from core.errors import BadInput
from core.results import Result
from core.workspace import open_workspace

HOSTILE = '<script>alert(1)</script>" onerror="x'


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    space = open_workspace(tmp_path_factory.mktemp("export"))
    shas = []
    for i in range(12):
        buffer = io.BytesIO()
        Image.new("RGB", (160, 120), (20 * i, 9, 9)).save(buffer, "PNG")
        shas.append(space.blobs.put(buffer.getvalue()))
    items = pd.DataFrame(
        {
            "id": range(100, 112),
            "sha256": shas,
            "label": ["a"] * 12,
            "domain": ["d"] * 12,
            "caption": [HOSTILE, "=1+1", *(f"picture {i}" for i in range(10))],
        }
    )
    dataset = space.add_dataset("tiny", "Tiny <b>", "image", items)
    directions = pd.DataFrame(
        {
            "direction": [0, 1, 2],
            "title": ["round <things>", "square", None],
            "is_group": pd.array([True, False, None], dtype="object"),
            "named": pd.array([True, False, None], dtype="object"),
            "n_members": [3.0, 2.0, np.nan],
            "k_a": [0.5, 0.2, np.nan],
            "k_b": [0.1, 0.1, np.nan],
            "quotient": [2.0, 1.1, np.nan],
            "rel_gap": [1e-9, 1e-8, np.nan],
            "status": ["active", "active", "infeasible"],
        }
    )
    members = pd.DataFrame(
        {
            "direction": [0, 0, 0, 1, 1, 1],
            "rank": [1, 2, 3, 1, 2, 1],
            "id": [100, 101, 102, 103, 104, 105],
            "score": [0.7, 0.6, 0.2, 0.9, 0.3, -0.5],
            "pole": [1, 1, 1, 1, 1, -1],
        }
    )
    tables = {"directions": directions, "members": members}
    summary = {"headline": "2 groups", "n": 12, "epsilon": 2.0}
    result = Result("contrast", {"dataset": "tiny", "target": "x/a"}, summary, tables, key="k" * 64)
    return dataset, result


NOTES = {"0": {"verdict": "keep", "tag": "round", "note": "<i>mine</i>"}}


def test_the_json_opens_as_the_same_clusters(case):
    dataset, result = case
    again, notes, captions = reopen(clusters_json(dataset, result, NOTES))
    pd.testing.assert_frame_equal(again.tables["members"], result.tables["members"])
    assert again.params == result.params
    assert again.key == result.key
    assert again.headline == "2 groups"
    assert notes["0"] == NOTES["0"]
    assert captions[100] == HOSTILE
    old, new = (r.tables["directions"] for r in (result, again))
    assert new["title"].tolist() == ["round <things>", "square", "mixed"]
    assert np.allclose(new["k_a"].astype(float), old["k_a"], equal_nan=True)
    assert new["is_group"].tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(format="other"), "no export of clusters"),
        (lambda d: d.update(version=9), "version"),
        (lambda d: d.update(directions=[]), "holds no direction"),
        (lambda d: d.update(directions="x"), "list of objects"),
        (lambda d: d["directions"][0].update(direction="1"), "whole number"),
        (lambda d: d["directions"][0]["members"][0].update(score="high"), "must be a number"),
        (lambda d: d["directions"][0]["members"][0].update(id=True), "whole number"),
        (lambda d: d["directions"][0].update(members=[1]), "list of objects"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(case, change, words):
    parsed = json.loads(clusters_json(*case, NOTES))
    change(parsed)
    with pytest.raises(BadInput, match=words):
        reopen(json.dumps(parsed).encode())


@pytest.mark.parametrize("data", [b"\xff\xfe", b"{", b"[1]", b"null", b"[" * 100_000])
def test_no_json_and_other_json_are_refused(data):
    with pytest.raises(BadInput):
        reopen(data)


def test_the_table_holds_verdict_tag_and_no_formula(case):
    frame = pd.read_csv(io.BytesIO(clusters_csv(*case, NOTES)))
    assert len(frame) == 6
    first = frame[frame["direction"] == 0]
    assert set(first["tag"]) == {"round"}
    assert set(first["verdict"]) == {"keep"}
    assert "'=1+1" in set(frame["caption"])


def test_the_gallery_stands_alone_and_escapes(case):
    text = gallery_html(*case, NOTES).decode()
    assert "<script" not in text
    assert "<b>" not in text
    assert "<i>mine" not in text
    assert "&lt;i&gt;mine" in text
    assert "default-src 'none'" in text
    sources = re.findall(r'src="([^"]*)"', text)
    assert len(sources) == 5  # three and two members; the other pole is not in it
    assert all(s.startswith("data:image/webp;base64,") for s in sources)
    assert not re.search(r'(?:href|src|url)\s*[=(]\s*"?https?:', text)
    assert "infeasible" not in text


def test_pictures_are_shared_among_clusters_and_the_rest_is_named(case, monkeypatch):
    from core.contrast import export

    monkeypatch.setattr(export, "MOST_PICTURES", 4)
    text = gallery_html(*case, {}).decode()
    assert text.count("data:image") == 4
    assert "And 1 more: picture 0" in text
