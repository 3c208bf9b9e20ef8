"""Explore: a lasso becomes a selection of ids, lights the other map and shows its pictures."""

from __future__ import annotations

import json
from pathlib import Path

from page_kit import Open, assert_sound, html_of
from streamlit.testing.v1 import AppTest


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
