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
    """One page: its file without ending (also its address), title, section and question."""

    name: str
    title: str
    section: str
    question: str
    icon: str


PAGES: tuple[Row, ...] = (
    Row("home", "Home", "", "What do your models see?", ":material/home:"),
    Row("datasets", "Datasets", "", "What is in here?", ":material/photo_library:"),
    Row("add", "Add data", "", "What do you bring?", ":material/upload:"),
    Row("models", "Models", "", "Which encoders can I use?", ":material/memory:"),
    Row("transfer", "Transfer", "Analyses", "Will these sources help?", ":material/merge:"),
    Row("quality", "Quality", "Analyses", "Which model suits my data?", ":material/trending_up:"),
    Row("contrast", "Contrast", "Analyses", "What does A see that B misses?", ":material/compare:"),
    Row(
        "stitching",
        "Stitching",
        "Analyses",
        "Can I swap the encoder and keep the head?",
        ":material/grid_on:",
    ),
    Row("explore", "Explore", "Analyses", "Where is everything?", ":material/scatter_plot:"),
    Row("jobs", "Jobs", "Work", "What is running?", ":material/hourglass:"),
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
