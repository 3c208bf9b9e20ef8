"""The Datasets page: the counts, the mosaic, the search, one item, and where it comes from."""

from __future__ import annotations

from pathlib import Path

from page_kit import Open, assert_sound, html_of


def captions(at):
    return [element.value for element in at.caption]


def test_counts_mosaic_licence_and_what_was_left_out(open_page: Open, small_home: Path) -> None:
    at = open_page("datasets", small_home)
    assert_sound(at)
    text = html_of(at)
    assert "72 items of 3 classes in 3 domains, all with a caption." in text
    assert text.count('<th scope="row">') == 3
    assert text.count('<th scope="col">') == 3
    assert any("drawn by the tests" in block.value for block in at.markdown)
    assert any("CC0" in block.value for block in at.markdown)
    assert any(box.label == "Left out: 2 items" for box in at.expander)


def test_captions_are_escaped(open_page: Open, small_home: Path) -> None:
    text = html_of(open_page("datasets", small_home))
    assert "shape 1 &amp; &lt;b&gt;" in text
    assert "<b>" not in text


def test_search_narrows_and_the_address_carries_it(open_page: Open, small_home: Path) -> None:
    at = open_page("datasets", small_home, datasets_search="shape 23 noto")
    assert_sound(at)
    assert "1 item of 72" in captions(at)
    at.text_input(key="datasets_search").set_value("").run()
    at.selectbox(key="datasets_domain").set_value("twemoji").run()
    assert "24 items of 72" in captions(at)


def test_nothing_found_says_what_to_do(open_page: Open, small_home: Path) -> None:
    at = open_page("datasets", small_home, datasets_search="no such thing")
    assert_sound(at)
    assert "No item matches" in html_of(at)


def test_one_item_with_its_siblings(open_page: Open, small_home: Path) -> None:
    at = open_page("datasets", small_home)
    at.selectbox(key="datasets_item").set_value(7).run()
    assert_sound(at)
    values = at.dataframe[-1].value if len(at.dataframe) else None
    assert values is not None
    assert "The same concept in the other domains" in captions(at)
    assert html_of(at).count('aria-label="The same concept: 2 items"') == 1


def test_the_table_view_asks_for_a_row(open_page: Open, small_home: Path) -> None:
    at = open_page("datasets", small_home, datasets_view="Table")
    assert_sound(at)
    assert "Select a row to see the item." in captions(at)


def test_texts_are_cards_and_have_no_pictures(open_page: Open, small_home: Path) -> None:
    at = open_page("datasets", small_home, dataset="Names")
    assert_sound(at)
    assert "<img" not in html_of(at)
    assert "th-text" in html_of(at)


def test_the_shipped_sets_open(open_page: Open, demo_home: Path) -> None:
    for name, words in (
        ("emoji", "1,920 items of 7 classes in 6 domains, all with a caption."),
        ("names", "2,560 items of 7 classes in 8 domains, all with a caption."),
        ("clipart", "1,500 items of 17 classes in 2 domains, all with a caption."),
    ):
        at = open_page("datasets", demo_home, dataset=name)
        assert_sound(at)
        assert words in html_of(at)


def test_a_name_in_another_language_finds_the_picture(open_page: Open, demo_home: Path) -> None:
    at = open_page("datasets", demo_home, dataset="emoji", datasets_search="Wassermelone")
    assert_sound(at)
    assert "6 items of 1,920" in captions(at)
