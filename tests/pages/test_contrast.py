"""Contrast: certified groups, the pictures behind them, swap, verdicts that stay, export."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from page_kit import Open, assert_sound, html_of

import core.analyses as analyses
from core.workspace import open_workspace


@pytest.fixture(scope="module")
def contrast_home(small_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small workspace with the answer of the default pair, both ways."""
    home = tmp_path_factory.mktemp("contrast") / "home"
    shutil.copytree(small_home, home)
    space = open_workspace(home)
    pair = ["demo/vit-s14", "demo/squeezenet1.1"]
    for target, reference in (pair, pair[::-1]):
        analyses.run("contrast", space, target=target, reference=reference)
    return home


def stored(home: Path):
    return analyses.find("contrast", open_workspace(home))


def test_shows_pictures_captions_and_the_certified_gap(
    open_page: Open, contrast_home: Path
) -> None:
    at = open_page("contrast", contrast_home)
    assert_sound(at)
    page = html_of(at)
    result = stored(contrast_home)
    first = result.tables["directions"].iloc[0]
    assert "widest certified gap" in page
    assert f"{first['rel_gap']:.0e}" in page
    assert page.count('loading="lazy"') >= 8
    assert "&lt;b&gt;" in page
    assert "<b>noto" not in page
    assert len(at.get("plotly_chart")) >= 5


def test_without_a_result_it_offers_to_run(open_page: Open, small_home: Path) -> None:
    at = open_page("contrast", small_home)
    assert_sound(at)
    assert "Not computed yet" in html_of(at)
    assert "Find the groups" in [button.label for button in at.button]


def test_open_another_group(open_page: Open, contrast_home: Path) -> None:
    at = open_page("contrast", contrast_home)
    at.button(key="contrast_open_2").click().run()
    assert_sound(at)
    assert at.selectbox(key="contrast_direction").value == 2
    assert any(h.value.startswith("3. ") for h in at.subheader)


def test_swap_turns_the_question_round(open_page: Open, contrast_home: Path) -> None:
    at = open_page("contrast", contrast_home)
    before = html_of(at)
    at.button(key="contrast_swap").click().run()
    assert_sound(at)
    assert at.selectbox(key="contrast_target").value == "demo/squeezenet1.1"
    assert at.selectbox(key="contrast_reference").value == "demo/vit-s14"
    assert html_of(at) != before


def test_the_same_model_twice_is_said_plainly(open_page: Open, contrast_home: Path) -> None:
    at = open_page("contrast", contrast_home)
    at.selectbox(key="contrast_reference").set_value("demo/vit-s14").run()
    assert not at.exception
    assert any("Choose two different encoders" in w.value for w in at.warning)


def test_verdict_and_note_stay(open_page: Open, contrast_home: Path) -> None:
    at = open_page("contrast", contrast_home)
    at.text_input(key="contrast_note_0").set_value("round things").run()
    assert_sound(at)
    again = open_page("contrast", contrast_home)
    assert again.text_input(key="contrast_note_0").value == "round things"


def test_export_holds_members_settings_and_verdicts(contrast_home: Path) -> None:
    from pages._shell.contrast_view import export_csv, export_json

    space, result = open_workspace(contrast_home), stored(contrast_home)
    notes = {"0": {"verdict": "keep", "note": "mine"}}
    dataset = space.dataset("emoji")
    frame = pd.read_csv(io.BytesIO(export_csv(dataset, result, notes)))
    assert len(frame) == len(result.tables["members"])
    assert set(frame[frame["direction"] == 0]["verdict"]) == {"keep"}
    parsed = json.loads(export_json(dataset, result, notes))
    assert parsed["params"] == result.params
    assert parsed["directions"][0]["yours"]["note"] == "mine"
    assert {"id", "score", "caption"} <= set(parsed["directions"][0]["members"][0])


def test_a_link_with_one_encoder_twice(open_page: Open, contrast_home: Path) -> None:
    at = open_page("contrast", contrast_home, contrast_target="SqueezeNet 1.1")
    # The same on both sides is refused in words, not with a traceback.
    assert not at.exception
    assert any("Choose two different encoders" in w.value for w in at.warning)
