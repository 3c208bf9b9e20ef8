"""From the matrix to a kit that predicts the same elsewhere: the whole way through Stitching."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from driver import Server, settle, visit
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

CELL = """(selector) => {
  const gd = document.querySelector(selector), full = gd._fullLayout;
  const box = gd.getBoundingClientRect();
  const x = full.xaxis.d2p(1), y = full.yaxis.d2p(0);
  return [box.x + full.xaxis._offset + x, box.y + full.yaxis._offset + y];
}"""


def test_from_the_matrix_to_a_kit_elsewhere(page: Page, server: Server, tmp_path: Path) -> None:
    visit(page, server, "stitching")
    # On a fresh server the demo is still being laid ready.
    expect(page.locator(".th-verdict")).to_be_visible(timeout=60_000)
    settle(page)

    # A click on a cell opens it.
    chart = ".st-key-stitching_matrix_wip-param .js-plotly-plot"
    page.locator(chart).scroll_into_view_if_needed()
    page.wait_for_selector(f"{chart} .main-svg")
    x, y = page.evaluate(CELL, chart)
    page.mouse.click(x, y)
    settle(page)
    opened = page.get_by_text(re.compile("Head of ViT-S/14 on features of EfficientNet-Lite0"))
    expect(opened.first).to_be_visible()

    # Its confusion, and the failing samples with the anchor closest to each.
    confusion = page.locator(".st-key-stitching_confusion .js-plotly-plot")
    confusion.scroll_into_view_if_needed()
    expect(confusion).to_be_visible()
    failing = page.locator('[aria-label^="Items that fail when stitched"] figure')
    assert failing.count() == 24
    assert "→" in failing.first.inner_text()
    assert re.fullmatch(r"-?0\.\d+", failing.first.locator(".th-badge").inner_text())
    expect(page.get_by_text("Anchors cover the failing items")).to_be_visible()

    # An anchor as a mosaic of its heaviest samples.
    mosaic = page.locator('[aria-label^="The heaviest samples of the anchor"] figure')
    mosaic.first.scroll_into_view_if_needed()
    assert mosaic.count() == 10

    # The kit, downloaded, classifies in a fresh process exactly as the page's own command does.
    button = page.locator(".st-key-stitching_kit_download button")
    button.scroll_into_view_if_needed()
    with page.expect_download() as waiting:
        button.click()
    kit = tmp_path / "kit.zip"
    waiting.value.save_as(kit)
    with zipfile.ZipFile(kit) as packed:
        packed.extractall(tmp_path / "kit")
        about = json.loads(packed.read("kit.json"))
    other = next(name for name in about["encoders"] if name != about["head_of"])
    done = subprocess.run(
        [sys.executable, "-m", "core", "stitch", "apply", str(kit), "--model", other,
         "--dataset", "emoji", "--json", "--workspace", str(server.home)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    said = json.loads(done.stdout)
    assert abs(said["accuracy"] - about["encoders"][other]["test_accuracy"]) < 1e-12

    from core.workspace import open_workspace

    features = open_workspace(server.home).features.get("emoji", other)
    np.save(tmp_path / "x.npy", np.asarray(features.layer()))
    fresh = subprocess.run(
        [sys.executable, "example.py", str(tmp_path / "x.npy"), other], cwd=tmp_path / "kit",
        capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert fresh.stdout.split("\n")[:-1] == said["labels"]

    # The study stands behind the first switch.
    page.get_by_role("radio", name="The study: does it hold?").or_(
        page.get_by_text("The study: does it hold?")
    ).first.click()
    settle(page)
    page.wait_for_url(re.compile("stitching_tab="))
    expect(page.locator(".th-verdict")).to_be_visible()
    expect(page.locator(".st-key-stitching_study_claims .js-plotly-plot")).to_be_visible()
