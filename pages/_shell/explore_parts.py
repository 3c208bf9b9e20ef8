"""The three views of Explore: maps, search, similarity. One row of tabs under the question."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.data.dataset import Dataset
from core.workspace import Workspace
from pages._shell import search_view, similarity_view, state

VIEWS = {"maps": "Maps", "search": "Search", "similarity": "Similarity"}


def begin(ws: Workspace, data: Dataset) -> Any:
    """Draw the tabs; return the place of the question for the maps, or stop after another view.

    Returns
    -------
    container
        Above the tabs; the maps draw their header into it.
    """
    top = st.container()
    chosen = state.choose_one(
        "explore", "view", "View", list(VIEWS), show=lambda name: VIEWS[name],
        label_visibility="collapsed",
    )  # fmt: skip
    if chosen != "maps":
        (search_view if chosen == "search" else similarity_view).draw(ws, data, top)
        st.stop()
    return top
