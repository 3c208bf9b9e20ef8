"""Two linked maps in a real browser: the demo's by plotly, many points by WebGL."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from driver import ARGS, Server, Watcher, find_chromium, settle, start_server, stop_server, visit
from playwright.sync_api import Browser, Page, expect

from tests.benchmarks.many_points import build
from tests.browser import large_map

pytestmark = pytest.mark.browser

PLENTY = 60_000
DEMO = "explore?explore_reference=EfficientNet-Lite0"
GREY = "#B0B0B0"


def chart(side: str) -> str:
    return f".st-key-explore_map_{side} .js-plotly-plot"


def chosen(page: Page) -> int:
    """Return how many items the page says are selected."""
    found = page.get_by_text(re.compile(r"^[\d,]+ items? selected$"))
    expect(found).to_be_visible()
    return int(found.inner_text().split()[0].replace(",", ""))


def lit(page: Page, side: str) -> int:
    """Return how many points of a plotly map are lit."""
    return int(
        page.evaluate(
            "s => document.querySelector(s)._fullData"
            ".reduce((n, t) => n + (t.selectedpoints ? t.selectedpoints.length : 0), 0)",
            chart(side),
        )
    )


def drag_round(page: Page, side: str) -> None:
    # For a moment a chart that is made anew lies beside the old one.
    expect(page.locator(chart(side))).to_have_count(1)
    page.locator(chart(side)).scroll_into_view_if_needed()
    box = page.locator(f"{chart(side)} .nsewdrag").first.bounding_box()
    assert box is not None
    x, y, w, h = box["x"], box["y"], box["width"], box["height"]
    corners = [(0.3, 0.3), (0.7, 0.25), (0.75, 0.7), (0.35, 0.75), (0.3, 0.3)]
    page.mouse.move(x + corners[0][0] * w, y + corners[0][1] * h)
    page.mouse.down()
    for at, up in corners[1:]:
        page.mouse.move(x + at * w, y + up * h, steps=6)
    page.mouse.up()


def test_colour_lasso_link_and_what_moved(page: Page, server: Server, browser: Browser) -> None:
    visit(page, server, DEMO)
    page.locator('.st-key-explore_colour [role="combobox"]').first.click()
    page.get_by_role("option", name="domain", exact=True).click()
    page.wait_for_url(re.compile("explore_colour=domain"))
    settle(page)

    drag_round(page, "a")
    n = chosen(page)
    assert n > 10
    page.wait_for_function(
        "s => document.querySelector(s)._fullData.some(t => t.selectedpoints?.length)",
        arg=chart("b"),
    )
    assert lit(page, "b") == n
    shades = page.evaluate(
        "s => document.querySelector(s)._fullData.map(t => t.unselected.marker.color)", chart("b")
    )
    assert set(shades) == {GREY}
    expect(page.locator('.th-grid[aria-label^="Selected"] img').first).to_be_visible()
    page.wait_for_url(re.compile("explore_region=a~pca~"))

    again = browser.new_page()
    again.goto(page.url)
    settle(again)
    # Plotly decides on pixels, the address on a grid of 65,536 steps: a point on the line.
    assert abs(chosen(again) - n) <= 2
    again.close()

    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_text("Nothing selected")).to_be_visible()
    table = page.locator(".st-key-explore_changed_rows")
    table.scroll_into_view_if_needed()
    box = table.locator("canvas").first.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 14, box["y"] + 36 + 22)
    expect(page.locator('.th-grid[aria-label^="Nearest under B"]').first).to_be_visible()
    assert chosen(page) == 1
    assert lit(page, "a") == lit(page, "b") == 1
    page.wait_for_url(re.compile("explore_region=ids~"))


def test_the_picture_under_the_pointer_is_shown(page: Page, server: Server) -> None:
    visit(page, server, "explore")
    page.wait_for_function(
        "s => document.querySelector(s)?.thLens && document.querySelector(s)._fullData",
        arg=chart("a"),
    )
    page.locator(chart("a")).scroll_into_view_if_needed()
    places = page.evaluate(
        """s => {
          const gd = document.querySelector(s), t = gd._fullData[0], r = gd.getBoundingClientRect();
          const { _size: size, xaxis, yaxis } = gd._fullLayout;
          const at = (i) => [r.x + size.l + xaxis.d2p(t.x[i]), r.y + size.t + yaxis.d2p(t.y[i])];
          return [0, 5, 10, 15, 20].map(at); }""",
        chart("a"),
    )
    lens = page.locator(".lens img")
    for x, y in places:
        page.mouse.move(x - 30, y - 30)
        page.mouse.move(x, y, steps=5)
        page.wait_for_timeout(400)
        if lens.is_visible():
            break
    expect(lens).to_be_visible()
    page.wait_for_function(
        "() => [...document.querySelectorAll('*')].some(e => e.shadowRoot?.querySelector("
        "'.lens img')?.naturalWidth > 0)"
    )


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on more points than plotly draws."""
    folder = tmp_path_factory.mktemp("many")
    build(folder / "home", PLENTY)
    process, found = start_server(folder / "home", folder / "log", THEODOLITE_DEMO="0")
    yield found
    stop_server(process)


@pytest.fixture
def large(browser: Browser, many: Server) -> Iterator[Page]:
    """A page in a Chromium whose WebGL is drawn by the processor."""
    chromium = large_map.start_software_gl(browser.browser_type)
    page = chromium.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.set_default_timeout(60_000)
    watcher = Watcher()
    page.on("console", watcher.console)
    page.on("pageerror", watcher.crash)
    yield page
    chromium.close()
    assert not watcher.errors, "The browser's console reports:\n" + "\n".join(watcher.errors)


def drawn(page: Page, side: str, name: str) -> int:
    return int(page.locator(large_map.MAP.format(side=side)).get_attribute(f"data-{name}") or 0)


def coloured_share(page: Page, side: str) -> float:
    """Return the share of the drawn pixels that have a colour; the others are grey."""
    return float(
        page.locator(f".st-key-explore_map_{side}_large canvas.points").evaluate(
            """c => { const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
              let all = 0, some = 0;
              for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 40) { all += 1;
                some += Math.max(d[i], d[i+1], d[i+2]) - Math.min(d[i], d[i+1], d[i+2]) > 40; }
              return some / all; }"""
        )
    )


def wait_lit(page: Page, side: str, n: int) -> None:
    page.wait_for_function(
        "([s, n]) => document.querySelectorAll('*').length && [...document.querySelectorAll(s)]"
        ".some(h => [h, ...h.querySelectorAll('*')].some(e => e.shadowRoot"
        "?.querySelector('.map')?.dataset.lit === String(n)))",
        arg=[f".st-key-explore_map_{side}_large", n],
    )


def test_many_points_are_drawn_lassoed_and_linked(large: Page, many: Server) -> None:
    page = large
    traffic = large_map.Traffic(page)
    page.goto(f"{many.url}/explore?explore_model=wide&explore_reference=narrow")
    for side in "ab":
        large_map.painted(page, side, 0.0)
        assert drawn(page, side, "drawn") == PLENTY
    settle(page)
    # Two maps, each four bytes a place and one a colour; a million points are five megabytes.
    assert traffic.blocks <= 2 * 5 * PLENTY
    assert traffic.messages < 2_000_000
    before = coloured_share(page, "b")
    assert before > 0.8

    traffic.blocks = traffic.messages = 0
    large_map.lasso(page, "a", 0.2)
    n = chosen(page)
    assert 500 < n < PLENTY
    wait_lit(page, "a", n)
    wait_lit(page, "b", n)
    # The outline goes up and the answer is a bit a point and a page of pictures.
    assert traffic.blocks <= PLENTY / 8 + 8
    assert traffic.messages < 400_000
    assert coloured_share(page, "b") < before - 0.2
    expect(page.locator('.th-grid[aria-label^="Selected"] img').first).to_be_visible()
    page.wait_for_url(re.compile("explore_region=a~pca~"))

    link = page.url
    page.get_by_role("button", name="Clear").click()
    wait_lit(page, "b", 0)
    page.goto(link)
    large_map.painted(page, "a", 0.0)
    assert chosen(page) == n


def test_a_box_a_click_and_the_pointer_on_many_points(large: Page, many: Server) -> None:
    page = large
    page.goto(f"{many.url}/explore?explore_model=wide")
    large_map.painted(page, "a", 0.0)
    settle(page)
    page.get_by_role("button", name="Box", exact=True).click()
    box = page.locator(large_map.CANVAS.format(side="a")).bounding_box()
    assert box is not None
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    half = box["height"] / 2
    page.mouse.move(middle[0] - half, middle[1] - half + 2)
    page.mouse.down()
    page.mouse.move(middle[0] + half, middle[1] + half - 2, steps=4)
    page.mouse.up()
    # The whole square of the map: every point lies in it.
    page.wait_for_function(f"() => document.body.innerText.includes('{PLENTY:,} items selected')")

    tip = page.locator(".map .tip")
    for step in range(40):
        x, y = middle[0] + (step % 8 - 4) * half / 6, middle[1] + (step // 8 - 2) * half / 4
        page.mouse.move(x, y)
        page.wait_for_timeout(250)
        if tip.is_visible():
            break
    expect(tip).to_be_visible()
    expect(tip.locator("span")).to_have_text(re.compile(r"clump \d+ · (drawn|printed) · id \d+"))
    page.mouse.down()
    page.mouse.up()
    page.wait_for_function("() => document.body.innerText.includes('1 item selected')")
    expect(page.locator('.th-grid[aria-label^="Nearest under A"]').first).to_be_visible()


def test_without_webgl_the_page_says_so_and_offers_a_sample(browser: Browser, many: Server) -> None:
    chromium = browser.browser_type.launch(
        executable_path=find_chromium(), args=[*ARGS, "--disable-3d-apis"]
    )
    page = chromium.new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{many.url}/explore?explore_model=wide")
    expect(page.get_by_text("This browser has no WebGL")).to_be_visible()
    page.get_by_role("radio", name="50,000").or_(
        page.get_by_role("button", name="50,000", exact=True)
    ).first.click()
    expect(page.get_by_text("This browser has no WebGL")).to_have_count(0)
    chromium.close()
