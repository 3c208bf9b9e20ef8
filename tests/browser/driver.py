"""Start the app's server and a Chromium, and wait for pages: shared by tests and scripts."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, ConsoleMessage, Page, Playwright, TimeoutError, expect

ROOT = Path(__file__).resolve().parents[2]
OUT = Path(__file__).resolve().parent / "out"
ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
READY = '[data-testid="stApp"][data-test-script-state="notRunning"]'
# The heading of the page that a new workspace shows first.
LAYING = "Laying the demo ready"
# The browser probes the health of a nested address on a deep link: two harmless 404s.
HARMLESS = ("_stcore/health", "_stcore/host-config", "fonts.gstatic.com", "WebGL", "GPU stall")


@dataclass
class Server:
    """A running server and what it printed."""

    url: str
    log: Path
    started: float
    home: Path


def find_chromium() -> str | None:
    """Return the Chromium to drive: named, installed, else playwright's own (None)."""
    named = os.environ.get("THEODOLITE_CHROMIUM")
    if named:
        return named
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        found = shutil.which(name)
        if found:
            return found
    return None


def start_chromium(play: Playwright) -> Browser:
    """Start Chromium, or fail saying how to get one."""
    path = find_chromium()
    try:
        return play.chromium.launch(executable_path=path, args=ARGS)
    except Exception as error:  # playwright raises its own type for each reason
        raise RuntimeError(
            "No Chromium could be started. `make test` installs one; or set "
            f"THEODOLITE_CHROMIUM to its path. ({str(error).splitlines()[0]})"
        ) from error


def free_port() -> int:
    """Return a port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_server(home: Path, log: Path, **env: str) -> tuple[subprocess.Popen[bytes], Server]:
    """Start the app as a user does and wait until it says it is healthy."""
    port = free_port()
    environment = {**os.environ, "THEODOLITE_HOME": str(home), **env}
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py")]
    command += ["--server.port", str(port), "--server.address", "127.0.0.1"]
    command += ["--server.headless", "true"]
    started = time.monotonic()
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
    server = Server(f"http://127.0.0.1:{port}", log, started, home)
    deadline = started + 120
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"The server ended:\n{log.read_text()[-4000:]}")
        try:
            with urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=2) as answer:
                if answer.status == 200:
                    return process, server
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    stop_server(process)
    raise RuntimeError(f"The server was not healthy in time:\n{log.read_text()[-4000:]}")


def stop_server(process: subprocess.Popen[bytes]) -> None:
    """Stop the server and what it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


class Watcher:
    """What a page said on its console."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def console(self, message: ConsoleMessage) -> None:
        where = str(message.location.get("url", ""))
        text = f"{message.text} {where}"
        if message.type == "error" and not any(word in text for word in HARMLESS):
            self.errors.append(text)

    def crash(self, error: Exception) -> None:
        self.errors.append(f"uncaught: {error}")


def settle(page: Page) -> None:
    """Wait until the script has run, with the demo laid ready, and nothing says that it broke."""
    page.wait_for_selector(READY)
    page.wait_for_selector('[data-testid="stMainBlockContainer"] h1')
    page.wait_for_function(
        "() => !document.querySelector('[data-testid=\"stSkeleton\"]')", timeout=60_000
    )
    # A fresh server lays its demo ready first; the page goes on by itself.
    expect(page.get_by_role("heading", name=LAYING)).to_have_count(0, timeout=120_000)
    page.wait_for_selector(READY)
    assert page.get_by_text("Something broke here").count() == 0
    assert page.locator('[data-testid="stException"]').count() == 0


def visit(page: Page, server: Server, path: str) -> None:
    """Open an address of the app and wait for it."""
    page.goto(f"{server.url}/{path}")
    settle(page)


def choose(page: Page, key: str, option: str) -> None:
    """Choose an option of a drop-down, single or multiple, by its key, until it is chosen.

    A list closes when the page scrolls under it, draws only the options in sight (so the name
    is typed), and a choice made while the page is drawn anew can be lost.
    """
    field = page.locator(f".st-key-{key}")
    box = field.get_by_role("combobox")
    wanted = page.get_by_role("option", name=option, exact=True)
    for _ in range(8):
        box.scroll_into_view_if_needed()
        box.click()
        page.keyboard.type(option)
        try:
            wanted.click(timeout=5_000)
        except TimeoutError:
            page.keyboard.press("Escape")
            continue
        page.keyboard.press("Escape")  # the open list hides the rest of the page from roles
        settle(page)
        if option in field.inner_text() or option in (box.input_value() or ""):
            return
    raise AssertionError(f"{option!r} could not be chosen in {key}")
