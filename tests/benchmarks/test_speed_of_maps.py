"""Floors on ratios for the large map: a lasso against matplotlib's, its bytes against plotly's.

Times in a browser are printed by ``python -m tests.browser.large_map --points 1000000``.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from matplotlib.path import Path as Outline

from core.compare.lasso import inside
from core.compare.map_points import map_points
from core.figures.explore import map_figure
from core.figures.paint import paint
from core.results import Result


def best(work: Callable[[], object], laps: int = 3) -> float:
    seconds = []
    for _ in range(laps):
        begun = time.process_time()
        work()
        seconds.append(time.process_time() - begun)
    return min(seconds)


@pytest.mark.slow
def test_a_lasso_agrees_with_matplotlib_and_is_faster() -> None:
    xy = np.random.default_rng(0).normal(size=(200_000, 2))
    angle = np.linspace(0, 2 * np.pi, 120, endpoint=False)
    outline = np.column_stack([np.cos(angle), 0.8 * np.sin(angle)])
    peer = Outline(outline)
    np.testing.assert_array_equal(inside(xy, outline), peer.contains_points(xy))
    ratio = best(lambda: peer.contains_points(xy)) / best(lambda: inside(xy, outline))
    assert ratio >= 1.6, ratio


@pytest.mark.slow
def test_a_map_takes_a_fraction_of_plotlys_bytes() -> None:
    n = 60_000
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"id": np.arange(n), "x": rng.normal(size=n), "y": rng.normal(size=n)})
    items = pd.DataFrame({"id": np.arange(n), "label": np.arange(n) % 7, "caption": "x"})
    items["label"] = items["label"].map(lambda k: f"clump {k}")
    result = Result("explore", {"method": "pca", "dataset": "d"}, {}, {"map": table}, key="k")
    plotly = len(map_figure(result, items).to_json().encode())
    ours = len(map_points(result).block) + paint(items["label"]).codes.nbytes
    assert ours == 5 * n
    assert plotly / ours >= 2.5, plotly / ours
