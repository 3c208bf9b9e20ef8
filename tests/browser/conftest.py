"""A real server on a free port, a real Chromium, a fresh workspace."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent))

from driver import OUT, Server, Watcher, start_chromium, start_server, stop_server

# The library waits five seconds, which a page drawn beside another worker can need.
expect.set_options(timeout=60_000)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The app on a fresh workspace; the demo is laid ready by the server itself.

    ``THEODOLITE_BROWSER_HOME`` names an existing workspace instead, to look at a page quickly.
    """
    folder = tmp_path_factory.mktemp("browser")
    home = Path(os.environ.get("THEODOLITE_BROWSER_HOME") or folder / "home")
    process, found = start_server(home, folder / "server.log")
    yield found
    stop_server(process)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as play:
        chromium = start_chromium(play)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser, server: Server, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A fresh page; on failure its picture and the server's log are kept in ``out/``."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, accept_downloads=True)
    tab = context.new_page()
    tab.set_default_timeout(60_000)
    watcher = Watcher()
    tab.on("console", watcher.console)
    tab.on("pageerror", watcher.crash)
    failed = request.session.testsfailed
    yield tab
    if request.session.testsfailed > failed:
        OUT.mkdir(exist_ok=True)
        name = request.node.name
        tab.screenshot(path=OUT / f"{name}.png", full_page=True)
        shutil.copy(server.log, OUT / f"{name}.log")
    context.close()
    assert not watcher.errors, "The browser's console reports:\n" + "\n".join(watcher.errors)
