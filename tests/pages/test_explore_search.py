"""Explore's search: nearest items on the page are the nearest rows; every way of asking answers."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from page_kit import Open, assert_sound, html_of

from core.compare import query
from core.workspace import open_workspace


def tiles(body: str, label: str) -> list[str]:
    grid = re.search(rf'aria-label="{re.escape(label)}: .*?</div>', body, re.S)
    assert grid, body[-2000:]
    return re.findall(r"<figcaption>(.*?)<", grid.group())


def test_the_nearest_are_shown_nearest_first(open_page: Open, small_home: Path) -> None:
    at = open_page("explore", small_home, explore_view="Search", explore_item="30")
    assert_sound(at)
    assert at.title[0].value == "What is like this?"
    features = open_workspace(small_home).features.get("emoji", "demo/vit-s14")
    x = np.asarray(features.layer(), dtype=np.float64)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    order = [i for i in np.argsort(-(x @ x[30])) if i != 30][:24]
    captions = open_workspace(small_home).dataset("emoji").items.set_index("id")["caption"]
    shown = tiles(html_of(at), "Nearest under A: ViT-S/14, block03")
    expected = [captions[i].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
                for i in order]  # fmt: skip
    assert shown == expected
    assert any("72 items searched, by cosine · exact" in c.value for c in at.caption)


def test_two_encoders_side_by_side(open_page: Open, small_home: Path) -> None:
    at = open_page(
        "explore", small_home, explore_view="Search", explore_reference="EfficientNet-Lite0"
    )
    assert_sound(at)
    body = html_of(at)
    told = re.search(r"(\d+) of the 24 nearest items are the same under the two", body)
    assert told
    a = set(tiles(body, "Nearest under A: ViT-S/14, block03"))
    b = set(tiles(body, "Nearest under B: EfficientNet-Lite0, pool"))
    assert len(a & b) == int(told.group(1))
    assert body.count("th-cell th-mark") == 2 * len(a & b)


def test_across_the_layers(open_page: Open, small_home: Path) -> None:
    at = open_page("explore", small_home, explore_view="Search", explore_across="true")
    assert_sound(at)
    body = html_of(at)
    for layer in ("block00", "block01", "block02", "block03"):
        assert len(tiles(body, f"Nearest under A: ViT-S/14, {layer}")) == 24
    assert "under all 4 layers" in body


def test_a_caption_finds_an_item(open_page: Open, small_home: Path) -> None:
    at = open_page("explore", small_home, explore_view="Search", explore_find="shape 7 ")
    assert_sound(at)
    assert len(at.selectbox(key="explore_item").options) == 3
    at = open_page("explore", small_home, explore_view="Search", explore_find="(no such")
    assert_sound(at)
    assert "No caption holds these words" in html_of(at)


def test_words_need_an_encoder_that_reads_them(open_page: Open, small_home: Path) -> None:
    at = open_page("explore", small_home, explore_view="Search", explore_ask="Words")
    assert_sound(at)
    assert "Neither encoder reads words" in html_of(at)


def test_words_find_the_pictures_they_point_at(
    open_page: Open, small_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = open_workspace(small_home).features.get("emoji", "demo/vit-s14")
    monkeypatch.setattr(query, "text_tower", lambda model, workspace=None: f"{model}/text")
    monkeypatch.setattr(query, "words", lambda ws, f, text: np.asarray(features.layer()[12]))
    at = open_page(
        "explore", small_home, explore_view="Search", explore_ask="Words", explore_words="a shape"
    )
    assert_sound(at)
    assert tiles(html_of(at), "Nearest under A: ViT-S/14, block03")[0].startswith("shape 4 ")


def test_texts_are_searched_too(open_page: Open, small_home: Path) -> None:
    at = open_page("explore", small_home, dataset="Names", explore_view="Search")
    assert_sound(at)
    assert "th-text" in html_of(at)
