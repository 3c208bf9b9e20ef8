"""The shell: page table, gate, workspace in the sidebar, then the page itself."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import streamlit as st  # noqa: E402

from pages._shell import errors, gate, jobs, layout, state, theme, waiting  # noqa: E402
from pages._shell.table import PAGES, page_table  # noqa: E402
from pages._shell.words import safe  # noqa: E402

ICON = ROOT / "assets" / "icon.svg"
LOGO = ROOT / "assets" / "logo.svg"

st.set_page_config(
    page_title="Theodolite",
    page_icon=str(ICON),
    layout="wide",
    initial_sidebar_state="auto",
    menu_items={"About": "Theodolite: measure neural representations from two places."},
)
st.logo(str(LOGO), icon_image=str(ICON), size="large")
theme.apply()
gate.require()
page = st.navigation(page_table(ROOT / "pages", PAGES), position="sidebar", expanded=True)
question = next((row.question for row in PAGES if row.title == page.title), page.title)
layout.begin()
with errors.plainly(lambda: layout.ensure_header(question)):
    ws = state.workspace()
    with st.sidebar:
        st.html(
            f'<p class="th-dim" title="{safe(ws.root)}">Workspace '
            f"<strong>{safe(ws.root.name)}</strong></p>"
        )
        jobs.sidebar_panel()
    if waiting.for_demo(ws):
        layout.ensure_header(question)
        waiting.panel()
    else:
        page.run()
