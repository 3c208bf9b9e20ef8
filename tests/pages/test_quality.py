"""The Quality page: published models without a job, filters, pins, and the state before it ran."""

from __future__ import annotations

from pathlib import Path

from page_kit import Open, assert_sound, html_of

PINNED = "timm/convnext_large.fb_in22k_ft_in1k"


def by_key(group, key):
    return next(element for element in group if element.key == key)


def test_the_published_models_need_no_result(open_page: Open, small_home: Path) -> None:
    at = open_page("quality", small_home, quality_across="published")
    assert not at.exception
    assert "260 models: published accuracies, not computed here" in [h.value for h in at.header]
    assert len(at.get("plotly_chart")) == 2
    assert any("134 of 260 models" in c.value for c in at.caption)


def test_an_address_pins_a_model(open_page: Open, small_home: Path) -> None:
    at = open_page("quality", small_home, quality_across="published", quality_pin=PINNED)
    assert not at.exception
    assert any(PINNED in m.value for m in at.markdown)
    assert any(c.value.startswith("Published: ImageNet-1k") for c in at.caption)


def test_zero_shot_shows_the_whole_registry(open_page: Open, small_home: Path) -> None:
    at = open_page(
        "quality",
        small_home,
        quality_across="published",
        quality_protocol="zero_shot",
        quality_facets="true",
    )
    assert not at.exception
    assert any("46 of 554 models" in c.value for c in at.caption)


def test_the_measured_population_opens_with_a_verdict_on_each_metric(
    open_page: Open, small_home: Path
) -> None:
    at = open_page("quality", small_home)
    assert_sound(at)
    assert any("small models trained for this study" in h.value for h in at.header)
    assert "Which metric to trust" in [h.value for h in at.subheader]
    assert any("held" in str(frame.value.iloc[:, -1].tolist()) for frame in at.table)
    assert len(at.get("plotly_chart")) >= 9
    assert any(c.value.startswith("Simpson check") for c in at.caption)


def test_a_filter_leaves_only_its_class_and_recomputes(open_page: Open, small_home: Path) -> None:
    at = open_page("quality", small_home, quality_study_kinds="ViT", quality_study_facets="true")
    assert_sound(at)
    chosen = by_key(at.multiselect, "quality_study_kinds").value
    assert chosen == ["ViT"]
    strata = by_key(at.selectbox, "quality_study_stratum").options
    assert "ResNet" not in strata
    assert "ViT" in strata


def test_no_class_left_says_what_to_do(open_page: Open, small_home: Path) -> None:
    at = open_page("quality", small_home)
    by_key(at.multiselect, "quality_study_kinds").set_value([]).run()
    assert not at.exception
    assert "No model passes" in html_of(at)


def test_a_metric_is_set_against_the_others(open_page: Open, small_home: Path) -> None:
    at = open_page("quality", small_home, quality_study_rivals="true")
    assert_sound(at)
    table = next(f.value for f in at.dataframe if "NESum is ahead by" in f.value)
    assert len(table) == 6
    assert table["NESum is ahead by"].str.contains(r"^[+-]\d\.\d\d \[").all()


def test_a_pinned_model_shows_its_recipe(open_page: Open, small_home: Path) -> None:
    at = open_page("quality", small_home, quality_study_pin="zoo/004-convnext-simclr")
    assert_sound(at)
    assert by_key(at.selectbox, "quality_study_pin").value == "zoo/004-convnext-simclr"


def test_the_sensitivity_curves_have_three_views(open_page: Open, small_home: Path) -> None:
    for view in ("width", "elasticity"):
        at = open_page("quality", small_home, quality_curve_view=view, quality_curve="ne_sum")
        assert_sound(at)
        assert any("above alpha 1" in c.value for c in at.caption)


def test_models_to_try_are_named_with_intervals(open_page: Open, small_home: Path) -> None:
    at = open_page("quality", small_home, quality_study_stratum="ConvNeXt")
    assert_sound(at)
    assert any("best of each recipe family" in c.value for c in at.caption)
    across = open_page("quality", small_home)
    assert any("across classes nothing is ranked" in c.value for c in across.caption)


def test_without_own_features_the_merge_says_what_is_needed(
    open_page: Open, small_home: Path
) -> None:
    at = open_page("quality", small_home)
    words = [c.value for c in at.caption]
    assert any("Models page" in w or "Measured with the study's rows" in w for w in words)
