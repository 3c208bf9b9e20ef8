"""Explore: a lasso becomes a selection of ids, lights the other map and shows its pictures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from page_kit import Open, assert_sound, html_of
from streamlit.testing.v1 import AppTest

from core.compare.lasso import outline_text
from pages._shell import explore_view, map_selection, maps_view
from pages._shell.blocks import BLOCKS
from pages._shell.map_routes import stored_map


def lasso(at: AppTest, key: str, ids: list[int]) -> AppTest:
    """Preset a chart's selection, as a lasso in the browser would leave it."""
    at.session_state[key] = {
        "selection": {
            "point_indices": list(range(len(ids))),
            "points": [{"customdata": i, "point_index": k} for k, i in enumerate(ids)],
            "box": [],
            "lasso": [{}],
        }
    }
    return at.run()


def specs(at: AppTest) -> list[dict]:
    return [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]


def test_a_lasso_shows_the_pictures(open_page: Open, small_home: Path) -> None:
    at = lasso(open_page("explore", small_home), "explore_map_a", [3, 10, 40])
    assert_sound(at)
    assert at.session_state["explore_selection"] == [3, 10, 40]
    assert any("3 items selected" in text.value for text in at.markdown)
    assert html_of(at).count('loading="lazy"') == 3


def test_a_lasso_lights_the_other_map(open_page: Open, small_home: Path) -> None:
    at = open_page("explore", small_home, explore_reference="EfficientNet-Lite0")
    at = lasso(at, "explore_map_a", [0, 1, 2])
    a, b = specs(at)[:2]
    lit = [len(t["selectedpoints"]["bdata"]) if isinstance(t.get("selectedpoints"), dict)
           else len(t.get("selectedpoints") or []) for t in b["data"]]  # fmt: skip
    assert sum(bool(n) for n in lit) >= 1
    # The map the lasso was drawn on keeps its own selection: it is not drawn anew.
    assert all(t.get("selectedpoints") is None for t in a["data"])


def test_clear_forgets_the_selection(open_page: Open, small_home: Path) -> None:
    at = open_page("explore", small_home, run=False)
    at.session_state["explore_selection"] = [1, 2]
    at = at.run()
    at.button(key="explore_clear").click().run()
    assert at.session_state["explore_selection"] == []
    assert "Nothing selected" in html_of(at)


def test_ids_of_another_dataset_are_not_shown(open_page: Open, small_home: Path) -> None:
    at = open_page("explore", small_home, run=False)
    at.session_state["explore_selection"] = [10_000]
    assert "Nothing selected" in html_of(at.run())


def test_umap_offers_a_job_and_shows_pca_meanwhile(open_page: Open, small_home: Path) -> None:
    at = open_page("explore", small_home, explore_map="UMAP")
    assert_sound(at)
    assert "Not computed yet" in html_of(at)
    assert len(at.get("plotly_chart")) == 1


def test_text_items_are_cards(open_page: Open, small_home: Path) -> None:
    at = open_page("explore", small_home, dataset="Names")
    assert_sound(at)
    assert "th-text" in html_of(at)
    assert "<img" not in html_of(at)


def test_every_column_can_colour_the_map(open_page: Open, small_home: Path) -> None:
    at = open_page("explore", small_home)
    picker = at.selectbox(key="explore_colour")
    for name in picker.options:
        at.selectbox(key="explore_colour").select(name.replace(" ", "_")).run()
        assert_sound(at)


def test_what_moved_is_a_table_with_verdicts_and_pictures(
    open_page: Open, small_home: Path
) -> None:
    at = open_page("explore", small_home, explore_reference="EfficientNet-Lite0")
    assert_sound(at)
    assert "moved: " in html_of(at) or "kept: " in html_of(at) or "cannot tell: " in html_of(at)
    rows = next(t.value for t in at.dataframe if "q place" in t.value.columns)
    assert rows["shared"].is_monotonic_increasing
    assert rows["picture"].str.startswith("/thumb/").all()
    at.session_state["explore_changed_rows"] = {"selection": {"rows": [0], "columns": []}}
    at = at.run()
    assert_sound(at)
    assert "Nearest under A" in html_of(at)
    assert "Nearest under B" in html_of(at)


def test_colours_of_change_are_offered_with_two_encoders(open_page: Open, small_home: Path) -> None:
    alone = open_page("explore", small_home).selectbox(key="explore_colour").options
    assert not any("from A to B" in name for name in alone)
    at = open_page("explore", small_home, explore_reference="EfficientNet-Lite0")
    picker = at.selectbox(key="explore_colour")
    for name in ("displacement from A to B", "kept or moved from A to B"):
        assert name in picker.options
        at.selectbox(key="explore_colour").select(name).run()
        assert_sound(at)


def test_a_link_with_ids_selects_them(open_page: Open, small_home: Path) -> None:
    at = open_page("explore", small_home, explore_region="ids~3.10.40")
    assert_sound(at)
    assert at.session_state["explore_selection"] == [3, 10, 40]
    assert any("3 items selected" in text.value for text in at.markdown)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("ids~3.x", "cannot be read"),
        ("a~pca~!!", "cannot be read"),
        ("b~pca~AAAAAP__AAAAAP__", "not shown now"),
        ("nonsense", "not shown now"),
    ],
)
def test_a_broken_link_says_so(open_page: Open, small_home: Path, text: str, word: str) -> None:
    at = open_page("explore", small_home, explore_region=text)
    assert_sound(at)
    assert any(word in caption.value for caption in at.caption)
    assert "Nothing selected" in html_of(at)


def test_tsne_is_offered_as_a_job(open_page: Open, small_home: Path) -> None:
    at = open_page("explore", small_home, explore_map="t-SNE")
    assert_sound(at)
    assert any("t-SNE" in button.label for button in at.button)


def test_a_map_too_large_to_draw_at_once_is_offered_once(
    open_page: Open, small_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explore_view, "_INSTANT", 10)
    at = open_page("explore", small_home, explore_seed="3", explore_metric="euclidean")
    assert_sound(at)
    assert [b.label for b in at.button].count("Draw the map") == 1
    assert len(at.get("plotly_chart")) == 0


@pytest.fixture(scope="module")
def large_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hundred points that the page is told are too many for plotly."""
    from tests.benchmarks.many_points import build

    home = tmp_path_factory.mktemp("large")
    build(home, 200)
    return home


def test_a_large_map_is_drawn_by_the_browser(
    open_page: Open, large_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explore_view, "MOST_PLOTLY", 50)
    monkeypatch.setattr(maps_view, "MOST_PLOTLY", 50)
    at = open_page("explore", large_home, explore_model="wide", explore_reference="narrow")
    assert_sound(at)
    parts = [json.loads(one.proto.json) for one in at.get("bidi_component") if one.proto.json]
    maps = [part for part in parts if "points" in part]
    assert len(maps) == 2
    assert maps[0]["lit"] == ""
    digest = maps[0]["points"].rsplit("/", 1)[1]
    assert len(BLOCKS.get(digest) or b"") == 4 * 200
    assert len(BLOCKS.get(maps[0]["colours"].rsplit("/", 1)[1]) or b"") == 200
    assert 'aria-label="Colours: label"' in html_of(at)

    points = stored_map(str(large_home), maps[0]["item"].split("map=")[1])
    everything = np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) * points.extent.side
    corner = np.array([points.extent.x, points.extent.y])
    text = outline_text(everything * [0.5, 1.0] + corner, points.extent)
    monkeypatch.setattr(map_selection, "LIST", 20)
    expected = len(points.ids_in(text))
    assert 20 < expected < 200
    linked = open_page(
        "explore",
        large_home,
        explore_model="wide",
        explore_reference="narrow",
        explore_region=f"a~pca~{text}",
    )
    assert_sound(linked)
    # Too many for a list: the region stands for them, and both maps are lit.
    assert linked.session_state["explore_selection"] == []
    assert any(f"{expected} items selected" in m.value for m in linked.markdown)
    lit = [json.loads(one.proto.json) for one in linked.get("bidi_component") if one.proto.json]
    bits = [BLOCKS.get(part["lit"].rsplit("/", 1)[1]) for part in lit if "points" in part]
    assert [int(np.unpackbits(np.frombuffer(b or b"", np.uint8)).sum()) for b in bits] == [
        expected,
        expected,
    ]
    linked.button(key="explore_clear").click().run()
    assert "Nothing selected" in html_of(linked)
