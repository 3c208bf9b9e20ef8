"""A stranger's own data, from a zip with a broken picture and a wrong guess to every answer."""

from __future__ import annotations

import io
import re
import time
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from driver import OUT, Server, Watcher, choose, settle, start_server, stop_server, visit
from PIL import Image, ImageDraw
from playwright.sync_api import Browser, Page, expect

from core.workspace import open_workspace

pytestmark = pytest.mark.browser

PATIENCE = 120_000
# Nothing waits longer than this for a job of 96 small pictures; a guard, not a measure.
LONG = 300_000
# A job is stopped within 2 s on a quiet machine (it prints the figure); a guard beside others.
STOP_GUARD_S = 30.0
N = 96
MODEL = "demo/squeezenet1.1"
MATRIX = "my-layers"
DEAD = "This could not be computed"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of its own on an empty workspace, without the demo."""
    folder = tmp_path_factory.mktemp("own")
    process, found = start_server(folder / "home", folder / "log", THEODOLITE_DEMO="0")
    yield found
    stop_server(process)


@pytest.fixture
def tab(browser: Browser, bare: Server, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    watcher = Watcher()
    page.on("console", watcher.console)
    page.on("pageerror", watcher.crash)
    failed = request.session.testsfailed
    yield page
    if request.session.testsfailed > failed:
        OUT.mkdir(exist_ok=True)
        page.screenshot(path=OUT / f"{request.node.name}.png", full_page=True)
    context.close()
    assert not watcher.errors, "\n".join(watcher.errors)


def picture(shape: str, dark: bool, seed: int) -> bytes:
    """A disc or a box of a random size, place and colour, on a dark or a light ground."""
    rng = np.random.default_rng(seed)
    back = (20, 20, 40) if dark else (250, 250, 245)
    low, high = (140, 255) if dark else (0, 140)
    ink = tuple(int(v) for v in rng.integers(low, high, 3))
    left, top = (int(v) for v in rng.integers(2, 18, 2))
    size = int(rng.integers(24, 42))
    drawn = Image.new("RGB", (64, 64), back)
    pen = ImageDraw.Draw(drawn)
    mark = pen.ellipse if shape == "disc" else pen.rectangle
    mark((left, top, left + size, top + size), fill=ink)
    out = io.BytesIO()
    drawn.save(out, "PNG")
    return out.getvalue()


def archive(path: Path) -> Path:
    """Pictures of two classes in two styles, a table, and a picture that is none."""
    lines = ["file_name,label,shape"]
    with zipfile.ZipFile(path, "w") as packed:
        for i in range(N):
            shape, dark = ("disc", "box")[i % 2], i % 4 < 2
            name = f"p{i:02}.png"
            packed.writestr(name, picture(shape, dark, i))
            # The column called label holds the style: only a person knows.
            lines.append(f"{name},{'night' if dark else 'day'},{shape}")
        packed.writestr("broken.png", b"this is no picture")
        lines.append("broken.png,day,disc")
        packed.writestr("metadata.csv", "\n".join(lines) + "\n")
    return path


def matrix(path: Path, home: Path) -> Path:
    """Features of another tool in three layers of one width, which follow class and style."""
    items = open_workspace(home).dataset("shapes").items
    rng = np.random.default_rng(0)
    kind = (items["label"] == "disc").to_numpy().astype(int)
    style = (items["domain"] == "day").to_numpy().astype(int)
    of_kind, of_style = rng.standard_normal((2, 2, 16))
    x = 0.6 * rng.standard_normal((len(items), 16))
    layers = {}
    for k in range(3):
        x = x + 0.6 * of_kind[kind] + 0.4 * of_style[style] + 0.3 * rng.standard_normal(x.shape)
        layers[f"block{k}"] = x.astype(np.float32)
    np.savez(path, ids=items["id"].to_numpy(), **layers)
    return path


def test_a_zip_is_previewed_corrected_and_accounted_for(
    tab: Page, bare: Server, tmp_path: Path
) -> None:
    visit(tab, bare, "add")
    tab.locator("input.in-files").set_input_files(archive(tmp_path / "shapes.zip"))
    expect(tab.get_by_text("Which column is what")).to_be_visible()
    settle(tab)
    for role, column in (("label", "shape"), ("domain", "label")):
        field = tab.locator(f"[class*=st-key-add_role_{role}_]")
        choose(tab, field.evaluate("e => e.className.match(/st-key-(add_role\\w+)/)[1]"), column)
    tab.locator(".st-key-add_import button").click()
    expect(tab.get_by_text("is in the workspace.")).to_be_visible()
    settle(tab)
    expect(tab.get_by_text("Left out: 1.").first).to_be_attached()
    # The table of the report is painted on a canvas: its words are read from the stored report.
    space = open_workspace(bare.home)
    data = space.dataset("shapes")
    assert data.n == N
    assert set(data.items["label"]) == {"disc", "box"}
    assert set(data.items["domain"]) == {"day", "night"}
    (line,) = space.datasets.report("shapes").left_out
    assert line.what == f"row {N + 1}"
    assert line.reason == "broken.png: it is no picture by its content"


def test_an_encoder_is_run_and_a_matrix_brought(tab: Page, bare: Server, tmp_path: Path) -> None:
    visit(tab, bare, "models?models_text=squeezenet1.1")
    grid = tab.locator(".st-key-models_rows")
    grid.scroll_into_view_if_needed()
    # The table is a canvas: its first row is chosen by the box at its left edge.
    grid.locator(".dvn-scroller").click(position={"x": 18, "y": 52})
    extract = tab.locator(".st-key-models_extract button")
    expect(extract).to_be_visible()
    extract.click()
    visit(tab, bare, "jobs")
    expect(tab.get_by_text("Nothing is running")).to_be_visible(timeout=LONG)
    assert open_workspace(bare.home).features.get("shapes", MODEL).ids.shape == (N,)
    visit(tab, bare, "models")
    tab.locator("input.in-files").set_input_files(matrix(tmp_path / f"{MATRIX}.npz", bare.home))
    go = tab.get_by_role("button", name="Import the features")
    go.scroll_into_view_if_needed()
    go.click()
    expect(tab.get_by_text(f"imported/{MATRIX} is ready on shapes")).to_be_visible()


@pytest.mark.parametrize(
    ("page", "answer"),
    [
        ("explore", "nearest neighbours"),
        ("transfer", "Add night|Leave out night|Cannot tell"),
        ("quality", "suits this data best|Cannot tell .* from "),
        ("contrast", r"No clear group|\d+ groups?; the clearest"),
        ("stitching", "of native accuracy"),
    ],
)
def test_each_analysis_answers_on_it(tab: Page, bare: Server, page: str, answer: str) -> None:
    visit(tab, bare, page)
    run = tab.locator(f"[class*=st-key-{page}_run_] button")
    if run.count():
        run.first.click()
    words = tab.locator(".th-verdict").filter(has_text=re.compile(answer)).first
    expect(words).to_be_visible(timeout=LONG)
    settle(tab)
    assert not tab.get_by_text(DEAD).count()
    assert "nan" not in words.inner_text().lower().split()


def test_a_stopped_job_goes_on_and_outlives_its_tab(
    tab: Page, browser: Browser, bare: Server
) -> None:
    jobs = open_workspace(bare.home).jobs
    job = jobs.submit("core.jobs.selftest:count", {"n": 60, "pause": 0.1})
    visit(tab, bare, "jobs")
    stop = tab.locator(f".st-key-jobs_{job}_stop button")
    expect(tab.get_by_text(re.compile(r"\d+ of 60")).first).to_be_visible()
    asked = time.time()
    stop.click()
    go_on = tab.locator(f".st-key-jobs_{job}_resume button").first
    expect(go_on).to_be_visible()
    ended = jobs.get(job)
    assert ended.state == "cancelled"
    took = datetime.fromisoformat(str(ended.finished)).timestamp() - asked
    print(f"cancelled {took:.2f} s after the click")
    assert took <= STOP_GUARD_S, took
    go_on.click()
    expect(stop).to_be_visible()
    tab.goto("about:blank")
    other = browser.new_page()
    other.set_default_timeout(PATIENCE)
    visit(other, bare, "jobs")
    expect(other.get_by_text("Nothing is running")).to_be_visible()
    other.close()
    assert jobs.get(job).state == "done"
