"""Where is everything? One or two linked maps; a lasso shows the pictures behind the points."""

from __future__ import annotations

import streamlit as st

from core.compare.analysis import DEFAULTS
from pages._shell import changed_view, explore_parts, layout, maps_view, pickers, words
from pages._shell import explore_view as view
from pages._shell.state import workspace

ws = workspace()
with pickers.selection():
    data = maps_view.shared(ws, pickers.dataset(ws))
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
answer = st.container()
with answer:
    changed = view.changed_result(ws, data, choice, options)
chosen = maps_view.controls(ws, data, choice, changed)
results = maps_view.maps(ws, data, choice, options, chosen)
with answer:
    view.verdict(choice, results, changed)
if results:
    maps_view.linked(data, choice, results, chosen)
    if changed is not None:
        changed_view.draw(data, choice, changed)
    layout.explain(
        read=[
            "A point is an item; points that are near each other look alike to the encoder.",
            "Lasso or box points to see their pictures; the same items light up on the other map.",
            "Neighbours kept says how far the picture can be believed.",
        ],
        misleads=[
            "Two dimensions cannot hold many: most neighbours are lost on the way.",
            "On a UMAP or a t-SNE, distances between groups, their sizes and gaps mean little.",
            "An item that moved is one whose link cannot be told from chance: with few items, or "
            "two encoders that agree little, that is most of them.",
        ],
        method=view.METHOD,
        paper=view.PAPERS,
    )
    layout.footer(changed or results[0], defaults=DEFAULTS)
