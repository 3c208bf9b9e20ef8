"""Contrast: certified groups, the pictures behind them, swap, verdicts that stay, export."""

from __future__ import annotations

import shutil
from pathlib import Path

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


def test_what_holds_the_set_and_how_far_it_comes_back_are_shown(
    open_page: Open, contrast_home: Path
) -> None:
    page = html_of(open_page("contrast", contrast_home))
    assert "comes back" in page
    assert "neighbours inside" in page


def test_every_view_opens_and_says_what_to_do(open_page: Open, contrast_home: Path) -> None:
    for view, words in (
        ("Every pair", "Not computed yet"),
        ("Alignment", "Not computed yet"),
        ("Open an export", "Choose a file that Clusters as JSON gave"),
    ):
        at = open_page("contrast", contrast_home, contrast_view=view)
        assert_sound(at)
        assert words in html_of(at), view


def test_the_study_opens_a_pair(open_page: Open, contrast_home: Path) -> None:
    space = open_workspace(contrast_home)
    found = analyses.run(
        "contrast-study", space, datasets=["emoji"], modalities=["image"],
        models=["demo/vit-s14", "demo/squeezenet1.1"], n_directions=2, group_sizes=[3.0],
    )  # fmt: skip
    try:
        at = open_page("contrast", contrast_home, contrast_view="Every pair")
        assert_sound(at)
        page = html_of(at)
        assert found.headline.split(";")[0] in page
        assert "SqueezeNet 1.1 over" in " ".join(h.value for h in at.subheader)
        at.button(key="contrast_study_open").click().run()
        assert_sound(at)
        assert at.selectbox(key="contrast_target").value == "demo/squeezenet1.1"
        assert "widest certified gap" in html_of(at)
    finally:
        space.results.remove(found.key)


def test_alignment_is_shown_with_its_spread(open_page: Open, contrast_home: Path) -> None:
    space = open_workspace(contrast_home)
    contrast = analyses.find("contrast", space, modality="image")
    assert contrast is not None
    for direction in ("1", "2"):  # what was kept by hand is what is aligned
        space.notes.put(f"contrast/{contrast.key}", direction, {"verdict": "keep"})
    found = analyses.run("alignment", space, directions=[1, 2], steps=300)
    at = open_page("contrast", contrast_home, contrast_view="Alignment")
    assert_sound(at)
    page = html_of(at)
    assert found.headline.split(";")[0] in page
    said = " ".join(caption.value for caption in at.caption)
    assert "not the paper" in said
    assert "2 clusters you kept" in said


def test_a_link_with_one_encoder_twice(open_page: Open, contrast_home: Path) -> None:
    at = open_page("contrast", contrast_home, contrast_target="SqueezeNet 1.1")
    # The same on both sides is refused in words, not with a traceback.
    assert not at.exception
    assert any("Choose two different encoders" in w.value for w in at.warning)
