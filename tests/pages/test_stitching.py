"""The Stitching page: its evidence on the demo, spaces by domain, the study, the kit."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_kit import Open, assert_sound, html_of

from core.workspace import open_workspace

QUICK = {
    "methods": ["cosine-random", "wip-random", "wip-param", "ridge"],
    "sweep_methods": ["cosine-random", "wip-param"], "n_anchors": 8, "n_support": 30,
    "n_parallel": 40, "steps": 5, "seeds": 2, "sweep_seeds": 1, "sweep_steps": 3, "head": "ridge",
    "anchor_counts": [4, 8], "support_sizes": [20, 40], "shrinkages": ["lw", "0.8"],
    "domains": ["en", "de"], "label": "domain",
}  # fmt: skip


@pytest.fixture(scope="module")
def studied(small_home: Path) -> Path:
    """The small workspace with a small study."""
    from core import analyses

    analyses.run("stitching-study", open_workspace(small_home), **QUICK)
    return small_home


def test_the_demo_shows_cells_anchors_and_the_kit(open_page: Open, demo_home: Path) -> None:
    at = open_page("stitching", demo_home)
    assert_sound(at)
    said = " ".join(c.value for c in at.caption)
    assert "Anchors cover the failing items" in said
    assert "concepts resampled" in said
    assert "Without it swapped heads change by" in said
    assert "The kit holds the head" in said
    assert at.get("download_button")
    assert [b for b in at.button if b.key == "stitching_contrast"]
    assert "Badge: cosine with the closest learned anchor" in said


def test_spaces_by_domain_are_offered_and_named(open_page: Open, small_home: Path) -> None:
    at = open_page("stitching", small_home, dataset="names", stitching_across="true")
    assert_sound(at)
    assert "6 spaces" in html_of(at)


def test_without_a_study_the_page_says_how_to_make_one(open_page: Open, tmp_path: Path) -> None:
    import synthetic

    synthetic.build(tmp_path)
    at = open_page("stitching", tmp_path, stitching_tab="study")
    assert_sound(at)
    assert "theodolite stitch study" in html_of(at)


def test_the_study_is_shown_at_once(open_page: Open, studied: Path) -> None:
    at = open_page("stitching", studied, stitching_tab="study")
    assert_sound(at)
    assert "th-verdict" in html_of(at)
    assert len(at.get("plotly_chart")) == 6
    # Across languages the label would be the language itself: left out, with the reason.
    assert any("Left out" in e.label for e in at.expander)
    assert not [b for b in at.button if b.key and b.key.startswith("stitching_run")]
