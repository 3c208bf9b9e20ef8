"""Take every page, wide and narrow, light and dark; the README's pictures on request.

``python tests/browser/screenshots.py --out FOLDER [--readme] [--pages home,explore]``
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageDraw
from playwright.sync_api import Browser, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent))

from driver import ROOT, Server, settle, start_chromium, start_server, stop_server

PAGES = [
    "home",
    "datasets",
    "add",
    "models",
    "transfer",
    "quality",
    "contrast",
    "stitching",
    "explore",
    "jobs",
]
SIZES = {"wide": (1440, 900), "narrow": (390, 844)}
SHOTS = ROOT / "assets" / "screenshots"


def take(
    browser: Browser, server: Server, name: str, scheme: str, size: str, out: Path, *, full: bool
) -> Path:
    """Take one page and return the picture's path."""
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,  # type: ignore[arg-type]
    )
    page = context.new_page()
    page.set_default_timeout(90_000)
    path, _, query = name.partition("?")
    page.goto(f"{server.url}/{'' if path == 'home' else path}{'?' + query if query else ''}")
    settle(page)
    if path == "add":
        _bring(page)
    if full:
        # The page scrolls inside a container: give it a window as high as its content.
        tall = page.evaluate(
            "() => document.querySelector('[data-testid=\"stMainBlockContainer\"]').scrollHeight"
        )
        page.set_viewport_size({"width": width, "height": min(int(tall) + 80, 6000)})
        settle(page)
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(1200)
    target = out / f"{path}{'-more' if query else ''}-{size}-{scheme}.png"
    page.screenshot(path=target)
    context.close()
    return target


def _bring(page: Page) -> None:
    """Upload a small folder, so that the page shows what it makes of one."""
    with tempfile.TemporaryDirectory() as given:
        for i in range(24):
            style, shape = ("flat", "outline")[i % 2], ("disc", "square", "bar")[i // 2 % 3]
            picture = Image.new("RGB", (96, 96), "white")
            pen = ImageDraw.Draw(picture)
            hue = ("#0072B2", "#E69F00", "#009E73")[i // 2 % 3]
            box = (12, 12 + i, 84, 84 - (i if shape == "bar" else 0))
            draw = pen.ellipse if shape == "disc" else pen.rectangle
            draw(box, fill=hue if style == "flat" else None, outline=hue, width=4)
            target = Path(given) / "shapes" / style / shape / f"{shape}_{i:02d}.png"
            target.parent.mkdir(parents=True, exist_ok=True)
            picture.save(target)
        (target.parent / "torn.png").write_bytes(target.read_bytes()[:200])
        page.locator("input.in-folder").set_input_files(str(Path(given) / "shapes"))
        page.wait_for_selector("text=Which column is what")
        settle(page)


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / "out")
    parser.add_argument("--readme", action="store_true", help="write assets/screenshots instead")
    parser.add_argument("--pages", default=",".join(PAGES))
    parser.add_argument("--home", type=Path, help="a workspace to show; a fresh one otherwise")
    parser.add_argument("--sizes", default="wide,narrow")
    parser.add_argument("--schemes", default="light,dark")
    args = parser.parse_args()
    out = SHOTS if args.readme else args.out
    out.mkdir(parents=True, exist_ok=True)
    sizes = ["wide"] if args.readme else args.sizes.split(",")
    schemes = ["light"] if args.readme else args.schemes.split(",")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        home = args.home or Path(folder) / "home"
        process, server = start_server(home, Path(folder) / "server.log")
        try:
            browser = start_chromium(play)
            for name in args.pages.split(","):
                for size in sizes:
                    for scheme in schemes:
                        print(take(browser, server, name, scheme, size, out, full=not args.readme))
        finally:
            stop_server(process)


if __name__ == "__main__":
    main()
