"""Measure the map of many points in a real Chromium with software WebGL.

``python -m tests.browser.large_map --points 1000000 [--home FOLDER]`` builds a workspace of
drawn pictures (kept when ``--home`` is named), opens its two linked maps and prints, as JSON,
the bytes a map takes, the time to its first paint and the time from the end of a lasso to the
pictures of what it holds.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Playwright, Response, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from driver import ARGS, Server, find_chromium, settle, start_server, stop_server  # noqa: E402

# WebGL by the processor alone: what a machine without a graphics card has.
SOFTWARE_GL = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
CANVAS = ".st-key-explore_map_{side}_large canvas.ink"
MAP = ".st-key-explore_map_{side}_large .map"

# Runs in the page: the time from the next pointer-up to new pictures, and to their loading.
_WATCH = """() => {
  const label = () => document.querySelector('.th-grid[aria-label^="Selected"]')?.ariaLabel;
  const before = label();
  window.lassoed = new Promise((done) => {
    addEventListener("pointerup", () => {
      const begun = performance.now();
      const look = () => {
        const now = label();
        if (!now || now === before) return;
        watch.disconnect();
        const grid = performance.now() - begun;
        const first = [...document.querySelectorAll('.th-grid[aria-label^="Selected"] img')];
        Promise.all(first.slice(0, 12).map((i) => i.decode().catch(() => 0))).then(() =>
          done({ grid, pictures: performance.now() - begun, label: now }));
      };
      const watch = new MutationObserver(look);
      watch.observe(document.body, { subtree: true, childList: true, attributes: true });
    }, { once: true, capture: true });
  });
}"""


def start_software_gl(play: Playwright) -> Browser:
    """Start Chromium with WebGL drawn by the processor."""
    args = [arg for arg in ARGS if arg != "--disable-gpu"]
    return play.chromium.launch(executable_path=find_chromium(), args=[*args, *SOFTWARE_GL])


def circle(page: Page, side: str, radius: float, *, at: tuple[float, float] = (0.5, 0.5)) -> None:
    """Draw a round lasso on a large map and leave the button pressed at its end.

    ``radius`` and ``at`` are shares of the map's height and of its two sides.
    """
    canvas = page.locator(CANVAS.format(side=side))
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] * at[0], box["y"] + box["height"] * at[1]
    reach = box["height"] * radius
    for step in range(33):
        angle = 2 * math.pi * step / 32
        page.mouse.move(x + reach * math.cos(angle), y + reach * math.sin(angle))
        if step == 0:
            page.mouse.down()


def lasso(page: Page, side: str, radius: float, **kwargs: Any) -> dict[str, Any]:
    """Draw a round lasso and return the milliseconds to its grid and to its first pictures."""
    circle(page, side, radius, **kwargs)
    page.evaluate(_WATCH)
    page.mouse.up()
    return dict(page.evaluate("() => window.lassoed"))


def open_maps(page: Page, server: Server, *, second: bool) -> dict[str, Any]:
    """Open the large maps and return bytes and the milliseconds to the first paint of each."""
    got: dict[str, int] = {}

    def count(response: Response) -> None:
        for part in ("/block/", "/vendor/"):
            if part in response.url:
                size = int(response.headers.get("content-length", "0"))
                got[part.strip("/")] = got.get(part.strip("/"), 0) + size

    def message(data: str | bytes) -> None:
        got["messages"] = got.get("messages", 0) + len(data)

    page.on("response", count)
    page.on("websocket", lambda socket: socket.on("framereceived", message))
    begun = time.time()
    both = "&explore_reference=narrow" if second else ""
    page.goto(f"{server.url}/explore?dataset=many&explore_model=wide{both}")
    sides = ["a", "b"] if second else ["a"]
    for side in sides:
        page.wait_for_selector(f"{MAP.format(side=side)}[data-drawn]", timeout=180_000)
    painted = [
        1_000
        * (float(page.locator(MAP.format(side=s)).get_attribute("data-at") or 0) / 1e3 - begun)
        for s in sides
    ]
    settle(page)
    return {"bytes": got, "first_paint_ms": [round(ms) for ms in painted]}


def measure(home: Path, *, laps: int = 6) -> dict[str, Any]:
    """Open, draw lassos, and return what it took: a first visit warms the server up."""
    out: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        process, server = start_server(home, Path(folder) / "log", THEODOLITE_DEMO="0")
        try:
            chromium = start_software_gl(play)
            for visit in ("cold", "warm", "two maps"):
                page = chromium.new_context(viewport={"width": 1440, "height": 900}).new_page()
                page.set_default_timeout(120_000)
                out[visit] = open_maps(page, server, second=visit == "two maps")
                times = [lasso(page, "a", 0.12 + 0.04 * lap) for lap in range(laps)]
                for what in ("grid", "pictures"):
                    values = [lap[what] for lap in times]
                    out[visit][f"lasso_to_{what}_ms"] = {
                        "median": round(statistics.median(values)),
                        "all": [round(v) for v in values],
                    }
                out[visit]["selected"] = [lap["label"] for lap in times]
                page.context.close()
            chromium.close()
        finally:
            stop_server(process)
    return out


def main() -> None:
    """Build the workspace if need be, measure, print."""
    from tests.benchmarks.many_points import build

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--home", type=Path, help="a workspace to make or to use again")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = args.home or Path(folder) / "home"
        if not (home / "catalogue.sqlite").exists():
            build(home, args.points)
        print(json.dumps({"points": args.points, **measure(home)}, indent=1))


if __name__ == "__main__":
    main()
