"""Every page, in an empty, a small and the demo workspace, opens and says its question."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from page_kit import PAGES, ROOT, Open, assert_sound, html_of


def test_every_page_file_is_in_the_table() -> None:
    from pages._shell.table import PAGES as ROWS

    assert set(PAGES) == {row.name for row in ROWS}


@pytest.mark.parametrize("page", PAGES)
def test_page_in_an_empty_workspace(page: str, open_page: Open, tmp_path: Path) -> None:
    at = open_page(page, tmp_path)
    assert_sound(at)


@pytest.mark.parametrize("page", PAGES)
def test_page_in_a_small_workspace(page: str, open_page: Open, small_home: Path) -> None:
    at = open_page(page, small_home)
    assert_sound(at)


@pytest.mark.parametrize("page", PAGES)
def test_page_with_the_demo(page: str, open_page: Open, demo_home: Path) -> None:
    at = open_page(page, demo_home)
    assert_sound(at)
    assert not at.warning, [w.value for w in at.warning]


@pytest.mark.parametrize("page", ["transfer", "quality", "contrast", "stitching"])
def test_the_demo_answers_at_once(page: str, open_page: Open, demo_home: Path) -> None:
    at = open_page(page, demo_home)
    assert "th-verdict" in html_of(at)
    assert at.get("plotly_chart")
    assert not [b for b in at.button if b.key and b.key.startswith(f"{page}_run")]


def test_home_shows_one_live_figure_per_analysis(open_page: Open, demo_home: Path) -> None:
    at = open_page("home", demo_home)
    assert len(at.get("plotly_chart")) == 4
    assert html_of(at).count('class="th-finding"') == 4


def test_an_unknown_dataset_in_the_address_falls_back(open_page: Open, small_home: Path) -> None:
    at = open_page("explore", small_home, dataset="no such data")
    assert_sound(at)


def test_captions_are_escaped(open_page: Open, small_home: Path) -> None:
    body = html_of(open_page("explore", small_home))
    assert "<b>noto</b>" not in body
    assert "&lt;b&gt;" in body


def test_a_newer_workspace_is_refused_in_words(open_page: Open, tmp_path: Path) -> None:
    import sqlite3

    from core.workspace import open_workspace

    open_workspace(tmp_path).close()
    with sqlite3.connect(tmp_path / "catalogue.sqlite") as db:
        db.execute("PRAGMA user_version = 9999")
    at = open_page("home", tmp_path)
    assert at.warning
    assert not at.exception
    assert not at.error


def test_home_never_imports_torch(small_home: Path) -> None:
    code = f"""
import json, sys
sys.path.insert(0, {str(ROOT)!r})
from streamlit.testing.v1 import AppTest
at = AppTest.from_file({str(ROOT / "pages/_shell/main.py")!r}, default_timeout=120).run()
assert not at.exception and not at.error
heavy = [m for m in ("torch", "umap", "numba", "transformers", "timm") if m in sys.modules]
print(json.dumps(heavy))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "THEODOLITE_HOME": str(small_home)},
    )
    assert json.loads(done.stdout.splitlines()[-1]) == []
