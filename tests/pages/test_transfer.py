"""Transfer: the stored answer, another layer by a click, a pair by a click, its pictures."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from page_kit import Open, assert_sound, html_of
from streamlit.testing.v1 import AppTest

from core import analyses
from core.radar import study, study_pieces, study_reading
from core.results import Result
from core.workspace import open_workspace

PARAMS = {"dataset": "emoji", "model": "demo/vit-s14", "target": "noto"}


@pytest.fixture(scope="module")
def home(small_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small workspace with one transfer result."""
    copy = tmp_path_factory.mktemp("transfer") / "home"
    shutil.copytree(small_home, copy)
    analyses.run("transfer", open_workspace(copy), **PARAMS)
    return copy


@pytest.fixture
def opened(open_page: Open, home: Path) -> AppTest:
    return open_page("transfer", home, transfer_target="noto")


def click(at: AppTest, key: str, number: int) -> AppTest:
    """Leave a chart's selection as a click in the browser would, and run its callback's effect."""
    name = {"transfer_strip": "transfer_layer", "transfer_plane": "transfer_pair"}[key]
    at.session_state[name] = number
    return at.run()


def test_the_stored_answer_is_shown(opened: AppTest) -> None:
    assert_sound(opened)
    assert "th-verdict" in html_of(opened)
    assert len(opened.get("plotly_chart")) == 7
    assert html_of(opened).count('loading="lazy"') == 3


def test_another_layer_and_another_pair(opened: AppTest) -> None:
    at = click(opened, "transfer_strip", 2)
    assert at.selectbox(key="transfer_layer").value == 2
    at = click(at, "transfer_plane", 5)
    assert at.selectbox(key="transfer_pair").value == 5
    assert_sound(at)
    assert "Within pair" in html_of(at)


def test_every_reading_and_measure_can_be_drawn(opened: AppTest) -> None:
    for reading in ("excess", "joint", "per_layer"):
        opened.session_state["transfer_reading"] = reading
        assert_sound(opened.run())
    for measure in ("size", "distance_of_means", "distance_of_class_means"):
        opened.session_state["transfer_against"] = measure
        assert_sound(opened.run())


def test_another_target_offers_to_run(open_page: Open, home: Path) -> None:
    at = open_page("transfer", home, transfer_target="openmoji")
    assert_sound(at)
    assert "Not computed yet" in html_of(at)
    assert "Rank the sources" in [button.label for button in at.button]


def test_without_sources_it_asks_for_one(opened: AppTest) -> None:
    opened.multiselect(key="transfer_sources").set_value([]).run()
    assert_sound(opened)
    assert "Choose at least one source" in html_of(opened)


def test_models_of_one_layer_are_not_offered(opened: AppTest) -> None:
    assert opened.selectbox(key="transfer_model").options == ["ViT-S/14"]


def test_the_study_says_how_to_be_made(opened: AppTest) -> None:
    opened.session_state["transfer_view"] = "study"
    at = opened.run()
    assert_sound(at)
    assert "No study is stored here" in html_of(at)


def test_the_study_is_shown_by_encoder(open_page: Open, home: Path) -> None:
    space = open_workspace(home)
    found = space.results.put(planted_study(), {})
    try:
        at = open_page("transfer", home, transfer_target="noto", transfer_view="study")
        assert_sound(at)
        assert found.headline in html_of(at)
        assert len(at.get("plotly_chart")) == 2
        words = " ".join(block.value for block in at.markdown)
        assert "it flatters RADAR" in words
    finally:
        space.results.remove(found.key)


def planted_study() -> Result:
    """Three targets under one encoder, whose gains follow RADAR but for noise."""
    rng = np.random.default_rng(0)
    todo, done = [], []
    for target in ("noto", "openmoji", "twemoji"):
        gain = rng.normal(size=7)
        blends = pd.DataFrame({
            "blend": list("abcdefg"), "gain": gain, "n_members": [1, 1, 1, 2, 2, 2, 3],
            study_reading.MAIN: rng.normal(size=7) - gain, "size": rng.permutation(7),
            "logme": np.zeros(7),
        })  # fmt: skip
        measures = study_pieces.correlations(
            blends, {study_reading.MAIN: 1.0, "size": 0.0, "logme": 0.1}
        )
        todo.append({"dataset": "emoji", "model": "demo/vit-s14", "target": target})
        summary = {
            "headline": "", "n": 30, "n_test": 9, "baseline": 0.4, "gain_low": float(gain.min()),
            "gain_high": float(gain.max()), "layers": 13, "radar": True,
        }  # fmt: skip
        done.append(Result("transfer-study-piece", {}, summary, {"measures": measures}))
    return study.collect(study.DEFAULTS, todo, done, [])
