"""Where is everything? One or two linked maps; a lasso shows the pictures behind the points."""

from __future__ import annotations

import streamlit as st

from core.compare.analysis import DEFAULTS
from pages._shell import explore_parts, layout, pickers, words
from pages._shell import explore_view as view
from pages._shell.state import workspace

ws = workspace()
with pickers.selection():
    data = pickers.dataset(ws)
top = explore_parts.begin(ws, data)
with st.sidebar:
    choice = view.choose(ws, data)
with pickers.settings():
    options = view.settings()

with top:
    layout.header(
        "Where is everything?",
        [data.title, *choice.titles(), words.plural(data.n, "item")],
    )
view.verdict(ws, data, choice, options)
method, colour = view.controls(data)
results = view.maps(ws, data, choice, options, method)
if results:
    view.linked(data, choice, results, colour)
    view.moved(ws, data, choice, options)
    layout.explain(
        read=[
            "A point is an item; points that are near each other look alike to the encoder.",
            "Lasso or box points to see their pictures; the same items light up on the other map.",
            "Neighbours kept says how far the picture can be believed.",
        ],
        misleads=[
            "Two dimensions cannot hold many: most neighbours are lost on the way.",
            "On a UMAP, distances between groups, their sizes and their gaps mean little.",
            "What moved between A and B is measured in the original spaces, not on the picture.",
        ],
        method=view.METHOD,
        paper=view.PAPERS,
    )
    layout.footer(results[0], defaults=DEFAULTS)
