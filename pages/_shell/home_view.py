"""The parts of the first page: what the workspace holds, and one finding per analysis."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

import plotly.graph_objects as go
import streamlit as st

from core import analyses
from core.figures.style import compact
from core.results import Result
from core.workspace import Workspace
from pages._shell import charts, grid, table
from pages._shell.layout import state_panel
from pages._shell.server import demo_log, demo_state
from pages._shell.words import plural, safe


@dataclass(frozen=True)
class Card:
    """One analysis on the first page."""

    kind: str
    question: str
    empty: str
    alt: str


CARDS: tuple[Card, ...] = (
    Card(
        "transfer",
        "Will these sources help?",
        "Ranks the blends of your other domains before you train on them.",
        "Small figure of the transfer analysis: how source blends compare",
    ),
    Card(
        "quality",
        "Which model suits my data?",
        "Says which label-free metric can be trusted here, and which models it favours.",
        "Small figure of the quality analysis: a metric against accuracy",
    ),
    Card(
        "contrast",
        "What does A see that B misses?",
        "Finds groups that one encoder holds together and another scatters, with a certificate.",
        "Small figure of the contrast analysis: coherence of each group in A and in B",
    ),
    Card(
        "stitching",
        "Can I swap the encoder and keep the head?",
        "Tests a head trained on one encoder on the features of another.",
        "Small figure of the stitching analysis: a matrix of accuracies",
    ),
)


def holdings(ws: Workspace) -> list[str]:
    """Return what the workspace holds, in words."""
    models = {entry["model"] for entry in ws.features.list()}
    items = sum(ws.dataset(name).n for name in ws.dataset_names())
    return [
        f"{plural(len(ws.dataset_names()), 'dataset')}, {plural(items, 'item')}",
        f"{plural(len(models), 'encoder')} with features",
        plural(len(ws.results.list()), "stored result"),
    ]


def findings(ws: Workspace) -> None:
    """Draw the four findings, two a row."""
    for pair in (CARDS[:2], CARDS[2:]):
        for column, card in zip(st.columns(2, gap="small"), pair, strict=True):
            with column, st.container(border=True, height="stretch"):
                _card(card, analyses.current(card.kind, ws))
    if demo_state() == "failed":
        st.warning(
            "The demo could not be laid ready completely. Your own data is not touched. "
            f"What happened: {demo_log()}",
            icon=":material/info:",
        )


def _card(card: Card, result: Result | None) -> None:
    st.html(
        f'<p class="th-kind">{safe(card.kind.capitalize())}</p>'
        f'<h2 class="th-question">{safe(card.question)}</h2>'
    )
    if result is None:
        st.markdown(card.empty)
    else:
        st.html(f'<p class="th-finding">{safe(result.headline)}</p>')
        figure = small_figure(card.kind, result)
        if figure is not None:
            charts.figure(compact(figure), f"home_{card.kind}", card.alt)
    table.link(card.kind, f"Open {card.kind.capitalize()}")


def small_figure(kind: str, result: Result) -> go.Figure | None:
    """Return the method's own small figure of a result; None when it has none."""
    draw = getattr(importlib.import_module(f"core.figures.{kind}"), "small", None)
    return None if draw is None else draw(result)


def datasets(ws: Workspace) -> None:
    """Draw a strip of what is in each dataset."""
    names = ws.dataset_names()
    if not names:
        state_panel(
            "No data yet",
            "Import a folder of pictures or a table of texts to begin.",
            "theodolite import FOLDER --name NAME",
        )
        return
    st.subheader("What is in here", anchor=False)
    for name in names:
        data = ws.dataset(name)
        classes, domains = data.items["label"].nunique(), data.items["domain"].nunique()
        noun = "picture" if data.kind == "image" else "text"
        facts = [plural(data.n, noun), plural(classes, "label"), plural(domains, "domain")]
        with st.container(gap="xsmall"):
            st.html(
                f'<p class="th-figtitle">{safe(data.title)}</p>'
                f'<p class="th-dim">{" · ".join(facts)}</p>'
            )
            grid.thumbs(data, grid.sample(data, 20), label=f"Examples of {data.title}")
    with st.container(horizontal=True):
        table.link("datasets", "Open Datasets")
        table.link("explore", "See where everything lies")
