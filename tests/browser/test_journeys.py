"""What a person does, from a deep link on a fresh server to the pictures behind a number."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from driver import Server, settle, start_server, stop_server, visit
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.browser

QUESTIONS = {
    "": "What do your models see?",
    "datasets": "What is in here?",
    "add": "What do you bring?",
    "models": "Which encoders can I use?",
    "transfer": "Will these sources help?",
    "quality": "Which model suits my data?",
    "contrast": "What does A see that B misses?",
    "stitching": "Can I swap the encoder and keep the head?",
    "explore": "Where is everything?",
    "jobs": "What is running?",
}
# A guard against a page that never comes; the test prints how long it took (about 12 s on two
# quiet cores).
FIRST_RESULT_S = 120.0


def plot(page: Page, key: str) -> str:
    """Return the selector of a chart, and wait for it to be drawn."""
    selector = f".st-key-{key} .js-plotly-plot"
    page.locator(selector).first.scroll_into_view_if_needed()
    page.wait_for_selector(f"{selector} .main-svg")
    return selector


def points(page: Page, selector: str) -> list[list[float]]:
    """Return the window coordinates of every drawn marker of a chart, at most 2,000."""
    return page.evaluate(
        """(selector) => {
          const gd = document.querySelector(selector), full = gd._fullLayout, out = [];
          const box = gd.getBoundingClientRect();
          for (const trace of gd._fullData) {
            if (!(trace.mode || '').includes('markers') || trace.visible !== true) continue;
            const xa = full[trace.xaxis.replace('x', 'xaxis')];
            const ya = full[trace.yaxis.replace('y', 'yaxis')];
            for (let i = 0; i < trace.x.length && out.length < 2000; i++) {
              if (trace.x[i] === null || trace.y[i] === null) continue;
              const px = xa.d2p(trace.x[i]), py = ya.d2p(trace.y[i]);
              if (px < 4 || py < 4 || px > xa._length - 4 || py > ya._length - 4) continue;
              out.push([box.x + xa._offset + px, box.y + ya._offset + py]);
            }
          }
          return out;
        }""",
        selector,
    )


def wait_loaded_pictures(page: Page, scope: str, least: int) -> None:
    """Wait until that many pictures in view have really arrived."""
    page.wait_for_function(
        """([scope, least]) => [...document.querySelectorAll(scope + ' img')]
             .filter(i => i.complete && i.naturalWidth > 0).length >= least""",
        arg=[scope, least],
    )


def test_a_cold_deep_link_goes_through_the_shell(page: Page, tmp_path: Path) -> None:
    """The first request of a fresh server is a deep link: the shell's table, not Streamlit's."""
    process, server = start_server(tmp_path / "home", tmp_path / "log")
    try:
        page.goto(f"{server.url}/transfer")
        expect(page.locator("h1")).to_have_text(QUESTIONS["transfer"], timeout=60_000)
        expect(page.locator(".th-verdict")).to_be_visible(timeout=1000 * FIRST_RESULT_S)
        print(f"first result {time.monotonic() - server.started:.1f} s after the server's start")
        settle(page)
        links = page.locator('[data-testid="stSidebarNav"] a')
        expect(links).to_have_count(len(QUESTIONS))
        assert links.first.inner_text().strip().endswith("Home")
    finally:
        page.goto("about:blank")
        stop_server(process)


@pytest.mark.parametrize("path", list(QUESTIONS))
def test_every_page_opens(page: Page, server: Server, path: str) -> None:
    visit(page, server, path)
    expect(page.locator("h1")).to_have_text(QUESTIONS[path])
    assert page.locator("h1").count() == 1


def test_home_has_four_findings_and_links(page: Page, server: Server) -> None:
    visit(page, server, "")
    expect(page.locator(".th-finding")).to_have_count(4)
    expect(page.locator(".js-plotly-plot")).to_have_count(4)
    page.get_by_role("link", name="Open Quality").click()
    expect(page.locator("h1")).to_have_text(QUESTIONS["quality"])


def test_transfer_ranking_and_another_layer(page: Page, server: Server) -> None:
    visit(page, server, "transfer")
    expect(page.locator(".th-verdict")).to_be_visible()
    plot(page, "transfer_blends")
    layer = page.locator(".st-key-transfer_layer")
    layer.scroll_into_view_if_needed()
    chosen = layer.get_by_role("combobox")
    before = chosen.input_value()
    chosen.click()
    options = page.locator('[role="option"]')
    options.first.wait_for()
    other = next(o for o in options.all() if o.inner_text().strip() != before)
    other.click()
    settle(page)
    expect(chosen).not_to_have_value(before)
    page.wait_for_url(re.compile("transfer_layer="))


def test_quality_shows_260_models_and_names_one(page: Page, server: Server) -> None:
    visit(page, server, "quality?quality_across=published")
    selector = plot(page, "quality_published")
    places = points(page, selector)
    assert len(places) >= 250
    for x, y in places[::17]:
        page.mouse.move(x - 40, y - 40)
        page.mouse.move(x, y, steps=4)
        page.wait_for_timeout(250)
        if page.locator(f"{selector} .hoverlayer .hovertext").count():
            break
    expect(page.locator(f"{selector} .hoverlayer .hovertext").first).to_be_visible()


def test_contrast_opens_a_cluster_with_pictures_and_a_gap(page: Page, server: Server) -> None:
    visit(page, server, "contrast")
    main = page.locator('[data-testid="stMainBlockContainer"]')
    expect(main.get_by_text(re.compile("gap", re.IGNORECASE)).first).to_be_visible()
    page.locator('[class*="st-key-contrast_open_"] button').nth(1).click()
    settle(page)
    captions = page.locator("figure.th-cell figcaption")
    assert captions.count() >= 4
    assert all(text.strip() for text in captions.all_inner_texts()[:4])
    captions.first.scroll_into_view_if_needed()
    wait_loaded_pictures(page, ".th-grid", 4)


def test_stitching_shows_its_matrices(page: Page, server: Server) -> None:
    visit(page, server, "stitching")
    charts = page.locator('[class*="st-key-stitching_matrix"] .js-plotly-plot')
    charts.first.scroll_into_view_if_needed()
    expect(charts.nth(1)).to_be_visible()
    kinds = charts.evaluate_all("all => all.map(gd => gd._fullData.map(t => t.type))")
    assert all("heatmap" in found for found in kinds)


def test_explore_lasso_shows_the_pictures(page: Page, server: Server) -> None:
    visit(page, server, "explore")
    selector = plot(page, "explore_map_a")
    box = page.locator(f"{selector} .nsewdrag").first.bounding_box()
    assert box is not None
    left, top = box["x"] + 0.25 * box["width"], box["y"] + 0.25 * box["height"]
    right, bottom = box["x"] + 0.75 * box["width"], box["y"] + 0.75 * box["height"]
    page.mouse.move(left, top)
    page.mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom), (left, top)):
        page.mouse.move(x, y, steps=8)
    page.mouse.up()
    chosen = page.get_by_text(re.compile(r"[\d,]+ items? selected"))
    expect(chosen).to_be_visible()
    wait_loaded_pictures(page, ".th-grid", 8)
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_text("Nothing selected")).to_be_visible()


def test_a_link_rebuilds_the_view(page: Page, server: Server, browser: Browser) -> None:
    visit(page, server, "explore")
    page.locator('.st-key-explore_colour [data-baseweb="select"], '
                 '.st-key-explore_colour [role="combobox"]').first.click()  # fmt: skip
    page.get_by_role("option", name="domain").click()
    page.wait_for_url(re.compile("explore_colour=domain"))
    other = browser.new_page()
    other.goto(page.url)
    settle(other)
    names = other.evaluate(
        "() => document.querySelector('.st-key-explore_map_a .js-plotly-plot')"
        "._fullData.map(t => t.name)"
    )
    other.close()
    assert "noto" in names


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", list(QUESTIONS))
def test_a_phone_scrolls_down_and_not_sideways(
    browser: Browser, server: Server, path: str, scheme: str
) -> None:
    context = browser.new_context(
        viewport={"width": 390, "height": 844},
        color_scheme=scheme,  # type: ignore[arg-type]
    )
    page = context.new_page()
    page.set_default_timeout(60_000)
    visit(page, server, path)
    wide = page.evaluate(
        "() => { const m = document.querySelector('[data-testid=\"stMain\"]');"
        " return m.scrollWidth - m.clientWidth; }"
    )
    context.close()
    assert wide <= 1


def test_an_empty_workspace_says_what_to_do(browser: Browser, tmp_path: Path) -> None:
    process, server = start_server(tmp_path / "home", tmp_path / "log", THEODOLITE_DEMO="0")
    try:
        page = browser.new_page()
        page.set_default_timeout(60_000)
        for path, question in QUESTIONS.items():
            visit(page, server, path)
            expect(page.locator("h1")).to_have_text(question)
        page.close()
    finally:
        stop_server(process)
