"""Filter to ViT, pin a model, read its spectrum, merge an uploaded feature matrix, export."""

from __future__ import annotations

import io
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from driver import Server, choose, settle, start_server, stop_server, visit
from playwright.sync_api import Page, expect

from core.data.demo import demo_dir

pytestmark = pytest.mark.browser

NAME = "my-encoder"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A workspace of its own: what is imported here must not change the other journeys."""
    folder = tmp_path_factory.mktemp("quality")
    home = folder / "home"
    given = os.environ.get("THEODOLITE_BROWSER_HOME")
    if given:
        shutil.copytree(given, home)
    process, found = start_server(home, folder / "server.log")
    yield found
    stop_server(process)


def matrix(folder: Path) -> Path:
    """A user's own features of every emoji: tiny pictures, projected."""
    items = pd.read_parquet(demo_dir() / "emoji" / "items.parquet")
    rng = np.random.default_rng(0)
    codes = np.unique(items["label"].to_numpy(dtype=str), return_inverse=True)[1]
    x = rng.standard_normal((7, 24))[codes] + 1.5 * rng.standard_normal((len(items), 24))
    path = folder / f"{NAME}.npz"
    np.savez(path, features=x.astype(np.float32), ids=items["id"].to_numpy())
    return path


def axis_title(page: Page, key: str) -> str:
    """The title of a chart's horizontal axis, once it is drawn."""
    chart = page.locator(f".st-key-{key} .js-plotly-plot").first
    chart.scroll_into_view_if_needed()
    page.wait_for_selector(f".st-key-{key} .js-plotly-plot .main-svg")
    return str(chart.evaluate("gd => gd._fullLayout.xaxis.title.text"))


def upload_features(page: Page, server: Server, path: Path) -> None:
    """Bring a matrix in on the Models page and wait until it is a model."""
    visit(page, server, "models")
    files = page.locator("input.in-files").first
    files.wait_for(state="attached")
    files.set_input_files(str(path))
    belongs = page.locator("[class*=st-key-features_dataset]")
    belongs.wait_for()
    if "moji" not in belongs.get_by_role("combobox").input_value():
        belongs.get_by_role("combobox").click()
        page.get_by_role("option", name=re.compile("[Ee]moji")).first.click()
        settle(page)
    page.get_by_role("button", name="Import the features").click()
    expect(page.get_by_text(f"imported/{NAME} is ready on emoji")).to_be_visible(timeout=90_000)


def test_a_matrix_is_merged_into_the_study_and_exported(
    page: Page, server: Server, tmp_path: Path
) -> None:
    upload_features(page, server, matrix(tmp_path))
    visit(page, server, "quality?quality_study_kinds=ViT")
    scatter = page.locator(".st-key-quality_study .js-plotly-plot").first
    scatter.scroll_into_view_if_needed()
    page.wait_for_selector(".st-key-quality_study .js-plotly-plot .main-svg")
    models = scatter.evaluate("gd => gd._fullData[0].customdata.map(row => row[0])")
    assert models
    assert all("-vit-" in name for name in models)
    # Pin one by its name; its spectrum is drawn below.
    choose(page, "quality_study_pin", models[-1].removeprefix("zoo/"))
    assert "eigenvalue" in axis_title(page, "quality_study_spectrum")
    drawn = page.locator(".st-key-quality_study_spectrum .js-plotly-plot").first
    assert drawn.evaluate("gd => gd._fullData[0].y.length") > 8
    # Merge the uploaded matrix.
    choose(page, "quality_merge", f"imported/{NAME}")
    page.get_by_role("button", name="Measure 1 encoder as the study does").click()
    expect(page.get_by_text("Yours among the models shown", exact=False)).to_be_visible(
        timeout=120_000
    )
    stars = page.locator(".st-key-quality_study .js-plotly-plot").first.evaluate(
        "gd => gd._fullData.filter(t => t.marker && t.marker.symbol === 'star')"
        ".map(t => t.customdata[0][0])"
    )
    assert stars == [f"imported/{NAME}"]
    # Export what is on screen.
    page.get_by_text("The models as a table").last.click()
    button = page.locator(".st-key-quality_study_rho_csv button")
    button.scroll_into_view_if_needed()
    with page.expect_download() as waiting:
        button.click()
    table = pd.read_csv(io.StringIO(Path(waiting.value.path()).read_text()))
    assert set(table["architectures"]) == {"ViT"}
    assert {"rho", "lo", "hi", "q", "n", "n_clusters", "seed", "n_boot"} <= set(table.columns)
