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
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserType, Page, Response, sync_playwright

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


def start_software_gl(kind: BrowserType) -> Browser:
    """Start Chromium with WebGL drawn by the processor."""
    args = [arg for arg in ARGS if arg != "--disable-gpu"]
    return kind.launch(executable_path=find_chromium(), args=[*args, *SOFTWARE_GL])


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


class Traffic:
    """Bytes that a page received: blocks of maps, Streamlit's messages."""

    def __init__(self, page: Page) -> None:
        self.blocks = 0
        self.messages = 0
        page.on("response", self._answer)
        page.on("websocket", lambda socket: socket.on("framereceived", self._message))

    def _answer(self, response: Response) -> None:
        if "/block/" in response.url:
            self.blocks += int(response.headers["content-length"])

    def _message(self, data: str | bytes) -> None:
        self.messages += len(data)


def painted(page: Page, side: str, since: float) -> dict[str, int]:
    """Wait for a large map; return the milliseconds since then, and its component's own."""
    page.wait_for_selector(f"{MAP.format(side=side)}[data-drawn]", timeout=180_000)
    box = page.locator(MAP.format(side=side))
    begun, at = (float(box.get_attribute(name) or "nan") for name in ("data-begun", "data-at"))
    return {"first_paint_ms": round(at - 1e3 * since), "component_ms": round(at - begun)}


def visit_once(page: Page, server: Server, laps: int, second: bool) -> dict[str, Any]:
    """Open the app, go to its maps, draw lassos; return bytes and milliseconds."""
    out: dict[str, Any] = {}
    traffic = Traffic(page)
    begun = time.time()
    page.goto(f"{server.url}/jobs")
    settle(page)
    out["app_boot_ms"] = round(1e3 * (time.time() - begun))
    traffic.blocks = traffic.messages = 0
    begun = time.time()
    if second:
        page.goto(f"{server.url}/explore?explore_model=wide&explore_reference=narrow")
    else:
        page.get_by_role("link", name="Explore").click()
    out["map_a"] = painted(page, "a", begun)
    if second:
        out["map_b"] = painted(page, "b", begun)
    settle(page)
    out["block_bytes"], out["message_bytes"] = traffic.blocks, traffic.messages
    times = [lasso(page, "a", 0.12 + 0.04 * lap) for lap in range(laps)]
    for what in ("grid", "pictures"):
        values = [round(lap[what]) for lap in times]
        out[f"lasso_to_{what}_ms"] = {"median": statistics.median(values), "all": values}
    out["selected"] = [lap["label"] for lap in times]
    out["bytes_a_lasso"] = round(
        (traffic.blocks + traffic.messages - out["block_bytes"] - out["message_bytes"]) / laps
    )
    return out


def measure(home: Path, *, laps: int = 6) -> dict[str, Any]:
    """Visit cold, warm and with two maps; the first visit also warms the server up."""
    out: dict[str, Any] = {"load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        process, server = start_server(home, Path(folder) / "log", THEODOLITE_DEMO="0")
        try:
            chromium = start_software_gl(play.chromium)
            for name, second in (("cold", False), ("warm", False), ("two maps", True)):
                page = chromium.new_context(viewport={"width": 1440, "height": 900}).new_page()
                page.set_default_timeout(120_000)
                out[name] = visit_once(page, server, laps, second)
                page.context.close()
            chromium.close()
        finally:
            stop_server(process)
    return {**out, "load_at_end": os.getloadavg()[0]}


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
