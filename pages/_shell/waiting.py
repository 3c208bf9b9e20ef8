"""The first seconds of a new workspace: every page waits for the demo, then goes on by itself."""

from __future__ import annotations

import streamlit as st

from core import analyses
from core.workspace import Workspace
from pages._shell.layout import state_panel
from pages._shell.server import demo_state
from pages._shell.state import workspace

# Explore draws its first map itself; the others need a stored result to answer at once.
_FIRST = tuple(name for name in analyses.names() if name != "explore")


def for_demo(ws: Workspace) -> bool:
    """Say whether the demo is being laid ready and the pages have nothing to show yet."""
    if demo_state() != "running":
        return False
    return not ws.dataset_names() or not all(ws.results.latest(kind) for kind in _FIRST)


def panel() -> None:
    """Draw what is being done, and look again every second."""
    state_panel(
        "Laying the demo ready",
        "Pictures, features and results of the demo are being put into your workspace.",
        "This takes some seconds, once. The page goes on by itself.",
    )
    _poll()


@st.fragment(run_every=1.0)
def _poll() -> None:
    if not for_demo(workspace()):
        st.rerun()
