"""Workspaces for the page tests, and a way to open a page of the app without a server."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import synthetic

ROOT = Path(__file__).resolve().parents[2]
SHELL = ROOT / "pages" / "_shell" / "main.py"
PAGES = sorted(path.stem for path in (ROOT / "pages").glob("*.py"))
Open = Callable[..., AppTest]


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


def assert_sound(at: AppTest) -> None:
    """Nothing broke: no traceback and no bug number on the page, and it has its question."""
    assert not at.exception, [e.message for e in at.exception]
    assert not at.error, [e.value for e in at.error]
    assert len(at.title) == 1
    assert at.title[0].value.endswith("?")


def html_of(at: AppTest) -> str:
    """Return everything the page says through ``st.html``."""
    return "\n".join(element.proto.body for element in at.get("html"))
