"""The Quality page: published models without a job, filters, pins, and the state before it ran."""

from __future__ import annotations

from pathlib import Path

from page_kit import Open


def by_key(group, key):
    return next(element for element in group if element.key == key)


def test_the_published_models_need_no_result(open_page: Open, small_home: Path) -> None:
    at = open_page("quality", small_home)
    assert not at.exception
    assert "260 models: published accuracies, not computed here" in [h.value for h in at.header]
    assert len(at.get("plotly_chart")) == 2
    assert any("134 of 260 models" in c.value for c in at.caption)


def test_an_address_pins_a_model(open_page: Open, small_home: Path) -> None:
    at = open_page("quality", small_home, quality_pin="timm/convnext_large.fb_in22k_ft_in1k")
    assert not at.exception
    assert any("timm/convnext_large.fb_in22k_ft_in1k" in m.value for m in at.markdown)
    assert any(c.value.startswith("Published: ImageNet-1k") for c in at.caption)


def test_zero_shot_shows_the_whole_registry(open_page: Open, small_home: Path) -> None:
    at = open_page("quality", small_home, quality_protocol="zero_shot", quality_facets="true")
    assert not at.exception
    assert any("46 of 554 models" in c.value for c in at.caption)
