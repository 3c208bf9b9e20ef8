"""Points inside an outline: matplotlib's answer, invariances, and the text of a region."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.path import Path as Outline

from core.compare import lasso
from core.compare.lasso import Extent, inside, outline_text, read_outline, thinned
from core.errors import BadInput


def star(v: int = 11, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    angle = np.sort(rng.uniform(0, 2 * np.pi, v))
    radius = rng.uniform(0.2, 1.0, v)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("v", [3, 8, 60])
def test_it_agrees_with_matplotlib(seed: int, v: int) -> None:
    path = star(v, seed)
    xy = np.random.default_rng(seed + 100).uniform(-1.1, 1.1, size=(4_000, 2))
    expected = Outline(np.vstack([path, path[:1]]), closed=True).contains_points(xy)
    np.testing.assert_array_equal(inside(xy, path), expected)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=3, max_size=9))
def test_it_agrees_with_a_winding_loop_on_lattices(corners: list[tuple[int, int]]) -> None:
    """Vertices and points on one lattice, outlines that cross themselves: even-odd, no edges."""
    path = np.array(corners, dtype=float)
    at = np.linspace(-4.25, 4.25, 18)  # quarters: never on a vertex, rarely on an edge
    xy = np.array([(x, y + 0.013) for x in at for y in at])

    def plain(px: float, py: float) -> bool:
        odd = False
        for (x0, y0), (x1, y1) in zip(path, np.roll(path, -1, axis=0), strict=True):
            if (y0 > py) != (y1 > py):
                odd ^= bool(px < (x1 - x0) * (py - y0) / (y1 - y0) + x0)
        return odd

    np.testing.assert_array_equal(inside(xy, path), [plain(x, y) for x, y in xy])


def test_start_direction_and_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    path, xy = star(20, 3), np.random.default_rng(1).uniform(-1, 1, size=(3_000, 2))
    found = inside(xy, path)
    assert 0 < found.sum() < len(xy)
    np.testing.assert_array_equal(inside(xy, np.roll(path, 7, axis=0)), found)
    np.testing.assert_array_equal(inside(xy, path[::-1]), found)
    monkeypatch.setattr(lasso, "_CELLS", 500)
    np.testing.assert_array_equal(inside(xy, path), found)


def test_area_of_a_circle() -> None:
    angle = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    xy = np.random.default_rng(0).uniform(-1, 1, size=(200_000, 2))
    assert abs(4 * inside(xy, circle).mean() - np.pi) < 0.02


def test_degenerate_outlines_hold_nothing_or_are_refused() -> None:
    xy = np.random.default_rng(0).uniform(-1, 1, size=(50, 2))
    assert not inside(xy, np.zeros((5, 2))).any()
    assert not inside(xy, np.array([[-1, 0.5], [0, 0.5], [1, 0.5]])).any()
    assert inside(np.zeros((0, 2)), star()).shape == (0,)
    assert not inside(np.full((3, 2), np.nan), star()).any()
    for bad in (np.zeros((2, 2)), np.zeros((4, 3)), np.full((4, 2), np.nan)):
        with pytest.raises(BadInput):
            inside(xy, bad)


def test_the_extent_is_a_square_that_holds_every_point() -> None:
    xy = np.random.default_rng(0).normal(size=(500, 2)) * (3.0, 40.0) + 7.0
    extent = Extent.of(xy)
    grid = extent.grid(xy)
    assert grid.dtype == np.uint16
    assert grid.min() > 0
    assert grid.max() < lasso.STEPS
    np.testing.assert_allclose(extent.back(grid), xy, atol=0.51 * extent.side / lasso.STEPS)
    assert Extent.of(np.zeros((4, 2))).side == 1.0
    assert Extent.of(np.zeros((0, 2))) == Extent(0.0, 0.0, 1.0)


def test_a_region_comes_back_from_its_text() -> None:
    extent = Extent(-1.2, -1.2, 2.4)
    path = star(40, 5)
    text = outline_text(path, extent)
    assert len(text) <= 40 * 16 / 3 + 4
    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    back = read_outline(text, extent)
    np.testing.assert_allclose(back, path, atol=extent.side / lasso.STEPS)
    assert outline_text(back, extent) == text


def test_a_long_outline_is_thinned_and_hardly_changes() -> None:
    angle = np.linspace(0, 2 * np.pi, 2_000, endpoint=False)
    path = np.column_stack([np.cos(angle), 0.5 * np.sin(angle)])
    few = thinned(path)
    assert len(few) == lasso.MOST_VERTICES
    xy = np.random.default_rng(2).uniform(-1, 1, size=(20_000, 2))
    assert (inside(xy, few) != inside(xy, path)).mean() < 2e-3
    np.testing.assert_array_equal(thinned(star(9)), star(9))


@pytest.mark.parametrize(
    "text", ["", "AAAA", "AAAAAAAAAAAA", "äöü", "A" * 4_000, "AAAAAP__AAAAAP_"]
)
def test_a_text_that_is_no_region_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="region"):
        read_outline(text, Extent(0.0, 0.0, 1.0))
