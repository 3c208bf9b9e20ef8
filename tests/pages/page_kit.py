"""What the page tests share: where the pages are, and how to read an opened one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[2]
SHELL = ROOT / "pages" / "_shell" / "main.py"
PAGES = sorted(path.stem for path in (ROOT / "pages").glob("*.py"))
Open = Callable[..., AppTest]


def assert_sound(at: AppTest) -> None:
    """Nothing broke: no traceback and no bug number on the page, and it has its question."""
    assert not at.exception, [e.message for e in at.exception]
    assert not at.error, [e.value for e in at.error]
    assert len(at.title) == 1
    assert at.title[0].value.endswith("?")


def html_of(at: AppTest) -> str:
    """Return everything the page says through ``st.html``."""
    return "\n".join(element.proto.body for element in at.get("html"))
