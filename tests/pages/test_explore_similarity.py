"""Explore's similarity: a job where there is no answer, else matrix, intervals and chance."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from page_kit import Open, assert_sound, html_of

from core import analyses
from core.workspace import open_workspace


@pytest.fixture(scope="module")
def compared(small_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small workspace with its encoders and the layers of one compared."""
    home = tmp_path_factory.mktemp("compared") / "home"
    shutil.copytree(small_home, home)
    ws = open_workspace(home)
    quick = {"dataset": "emoji"}
    analyses.run("similarity", ws, **quick)
    analyses.run("similarity", ws, **quick, method="layers", model="demo/vit-s14")
    return home


def test_without_an_answer_a_job_is_offered(open_page: Open, small_home: Path) -> None:
    at = open_page("explore", small_home, explore_view="Similarity", explore_measure="RSA")
    assert_sound(at)
    assert "Not computed yet" in html_of(at)
    assert any(b.label == "Compare the representations" for b in at.button)


def test_encoders_have_matrix_intervals_and_chance(open_page: Open, compared: Path) -> None:
    at = open_page("explore", compared, explore_view="Similarity")
    assert_sound(at)
    heat, dots = (json.loads(chart.proto.spec) for chart in at.get("plotly_chart"))
    assert heat["data"][0]["type"] == "heatmap"
    assert [t["name"] for t in dots["data"]] == [
        "chance, 95th percentile", "similarity, 95 % interval",
    ]  # fmt: skip
    body = html_of(at)
    assert "Most alike by linear CKA, debiased: " in body
    assert "demo/" not in body.split("th-verdict")[1].split("</p>")[0]
    assert "intervals over 24 concepts" in body


def test_layers_of_one_encoder(open_page: Open, compared: Path) -> None:
    at = open_page("explore", compared, explore_view="Similarity", explore_between="Layers")
    assert_sound(at)
    assert len(at.get("plotly_chart")) == 2
    assert "block03" in html_of(at)


def test_one_encoder_alone_says_what_to_do(open_page: Open, compared: Path) -> None:
    at = open_page("explore", compared, explore_view="Similarity", run=False)
    at.session_state["explore_encoders"] = ["demo/vit-s14"]
    at = at.run()
    assert_sound(at)
    assert "Choose two encoders or more" in html_of(at)
