"""From the verdict to a layer, a pair, its triangle and its pictures, and to the study."""

from __future__ import annotations

import re

import pytest
from driver import Server, settle, visit
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

POINT = """([selector, trace, index]) => {
  const gd = document.querySelector(selector), full = gd._fullLayout;
  const box = gd.getBoundingClientRect(), data = gd._fullData;
  const found = data.findIndex(t => t.name === trace);
  const t = gd.calcdata[found][index];
  return [box.x + full.xaxis._offset + full.xaxis.c2p(t.x),
          box.y + full.yaxis._offset + full.yaxis.c2p(t.y)];
}"""


def click_point(page: Page, key: str, trace: str, index: int) -> None:
    """Click a marker of a chart, by its trace's name and its number."""
    chart = f".st-key-{key} .js-plotly-plot"
    page.locator(chart).scroll_into_view_if_needed()
    page.wait_for_selector(f"{chart} .main-svg")
    x, y = page.evaluate(POINT, [chart, trace, index])
    page.mouse.click(x, y)
    settle(page)


def test_from_the_verdict_to_the_pictures(page: Page, server: Server) -> None:
    visit(page, server, "transfer")
    # On a fresh server the demo is still being laid ready.
    verdict = page.locator(".th-verdict")
    expect(verdict).to_be_visible(timeout=60_000)
    settle(page)
    assert re.search(r"Add |Leave out |Cannot tell", verdict.inner_text())
    assert "Null" in verdict.inner_text()

    # Densities of two sources, a ridge a layer step.
    theta = page.locator(".st-key-transfer_theta .js-plotly-plot")
    theta.scroll_into_view_if_needed()
    expect(theta).to_be_visible()
    assert page.locator(".st-key-transfer_theta .annotation").count() == 2

    # A click on the strip chooses the layer of every figure below.
    source = page.evaluate(
        "() => document.querySelector('.st-key-transfer_strip .js-plotly-plot')._fullData"
        ".find(t => t.mode === 'lines+markers').name"
    )
    click_point(page, "transfer_strip", source, 3)
    page.wait_for_url(re.compile("transfer_layer="))
    settle(page)
    plane = page.locator(".st-key-transfer_plane .js-plotly-plot")
    plane.scroll_into_view_if_needed()
    step = page.locator(".th-figtitle", has_text="Pairs at step 4→5")
    expect(step).to_be_visible()
    bound = page.evaluate(
        "() => document.querySelector('.st-key-transfer_plane .js-plotly-plot')._fullData"
        ".some(t => t.name === 'bound')"
    )
    assert bound

    # A click on the plane opens the triangle of that pair, with its three pictures.
    click_point(page, "transfer_plane", "within", 4)
    page.wait_for_url(re.compile("transfer_pair="))
    settle(page)
    title = page.locator(".th-figtitle", has_text="Within pair")
    expect(title).to_have_text(re.compile(r"theta \d\.\d+ rad, d \d+\.\d+"))
    settle(page)  # the rest of the page is drawn after its title
    expect(step).to_be_visible()
    trio = page.locator('[aria-label^="Anchor and its two partners"] figure')
    trio.first.scroll_into_view_if_needed()
    assert trio.count() == 3
    words = [cell.inner_text() for cell in trio.all()]
    assert "anchor" in words[0]
    assert "within partner" in words[1]
    assert "cross partner" in words[2]
    picture = trio.first.locator("img").element_handle()
    page.wait_for_function("img => img.complete && img.naturalWidth > 0", arg=picture)
    assert page.locator('[aria-label^="Anchor and its two partners"] .th-mark').count() == 2

    # At the end, what to do.
    last = page.get_by_role("heading", name="What to do")
    last.scroll_into_view_if_needed()
    expect(page.locator(".st-key-transfer_advice .js-plotly-plot")).to_be_visible()
    expect(page.get_by_text(re.compile(r"Confidence \d")).first).to_be_visible()


def test_the_study_stands_behind_the_switch(page: Page, server: Server) -> None:
    visit(page, server, "transfer")
    expect(page.locator(".th-verdict")).to_be_visible(timeout=60_000)
    settle(page)
    page.get_by_text("The study: can it be trusted?").first.click()
    settle(page)
    page.wait_for_url(re.compile("transfer_tab="))
    verdict = page.locator(".th-verdict", has_text="RADAR ranks the blends on")
    expect(verdict).to_be_visible(timeout=60_000)
    for name in ("configurations", "held_out", "pieces", "distance", "scatter"):
        chart = page.locator(f".st-key-transfer_study_{name} .js-plotly-plot")
        chart.scroll_into_view_if_needed()
        expect(chart).to_be_visible()
