"""The page table: one row a page. A new page is one file in ``pages/`` and one row here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from streamlit.navigation.page import Page


@dataclass(frozen=True)
class Row:
    """One page: its file without ending (also its address), title and section."""

    name: str
    title: str
    section: str
    icon: str


PAGES: tuple[Row, ...] = (
    Row("home", "Home", "", ":material/home:"),
    Row("datasets", "Datasets", "", ":material/photo_library:"),
    Row("models", "Models", "", ":material/memory:"),
    Row("transfer", "Transfer", "Analyses", ":material/merge:"),
    Row("quality", "Quality", "Analyses", ":material/trending_up:"),
    Row("contrast", "Contrast", "Analyses", ":material/compare:"),
    Row("stitching", "Stitching", "Analyses", ":material/grid_on:"),
    Row("explore", "Explore", "Analyses", ":material/scatter_plot:"),
    Row("jobs", "Jobs", "Work", ":material/hourglass:"),
)


def page_table(folder: Path, rows: Sequence[Row]) -> dict[str, list[Page]]:
    """Return Streamlit's page table by section, for the page files that exist."""
    table: dict[str, list[Page]] = {}
    for row in rows:
        path = folder / f"{row.name}.py"
        if path.exists():
            table.setdefault(row.section, []).append(
                st.Page(
                    path,
                    title=row.title,
                    icon=row.icon,
                    url_path=row.name,
                    default=row.name == "home",
                )
            )
    return table


def page_path(name: str) -> str:
    """Return the path ``st.page_link`` and ``st.switch_page`` take."""
    return str(Path(__file__).resolve().parents[1] / f"{name}.py")


def link(name: str, label: str) -> None:
    """Draw a link to a page, where that page exists."""
    if Path(page_path(name)).exists():
        st.page_link(page_path(name), label=label, icon=":material/arrow_forward:")
