"""Workspaces for the page tests, and a way to open a page of the app without a server."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import synthetic
from page_kit import ROOT, SHELL, Open


@pytest.fixture(scope="session")
def small_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with two small data sets and features of five encoders, and no results."""
    home = tmp_path_factory.mktemp("small")
    synthetic.build(home)
    return home


@pytest.fixture(scope="session")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo as it is shipped."""
    from core.data.demo import prepare
    from core.workspace import open_workspace

    home = tmp_path_factory.mktemp("demo")
    prepare(open_workspace(home))
    return home


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> Open:
    """Return a function that opens one page of the app in a workspace."""

    def opened(page: str, home: Path, *, run: bool = True, **query: str) -> AppTest:
        monkeypatch.setenv("THEODOLITE_HOME", str(home))
        at = AppTest.from_file(SHELL, default_timeout=120)
        for name, value in query.items():
            at.query_params[name] = value
        if page != "home":
            at.switch_page(str(ROOT / "pages" / f"{page}.py"))
        return at.run() if run else at

    return opened
