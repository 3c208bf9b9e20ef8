"""Figures of the anchors and of the whitening behind a stitching result."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.figures.style import LINE, OKABE_ITO, SYMBOLS, empty, layout, rgba
from core.results import Result

_TERMS = {
    "coverage": "coverage",
    "correlation": "correlated anchors",
    "length": "anchor length",
    "nce": "alignment (InfoNCE)",
    "entropy": "entropy floor",
    "total": "total",
}


def shrinkage(result: Result, *, height: int = 320) -> go.Figure:
    """Bars: held-out retrieval of each shrinkage tried, the chosen one filled."""
    table = result.tables.get("shrinkage", pd.DataFrame())
    if not len(table):
        return empty("The shrinkage was given, not chosen.", height=height)
    fig = go.Figure()
    for at, (kind, part) in enumerate(table.groupby("anchors", sort=False)):
        colour = OKABE_ITO[at % 8]
        fig.add_bar(
            x=["Ledoit-Wolf" if c == "lw" else c for c in part["candidate"]], y=part["mrr"],
            name=f"{kind.replace('_', ' ')} anchors",
            marker={
                "color": [rgba(colour, 1.0 if c else 0.25) for c in part["chosen"]],
                "line": {"color": colour, "width": 1.2},
            },
            text=["chosen" if c else "" for c in part["chosen"]], textposition="outside",
            cliponaxis=False,
            hovertemplate="shrinkage %{x}<br>mean reciprocal rank %{y:.3f}<extra></extra>",
        )  # fmt: skip
    layout(
        fig, title="The shrinkage is chosen by held-out pairs, without labels", x="shrinkage",
        y="held-out MRR", height=height,
    )  # fmt: skip
    fig.update_xaxes(type="category")
    return fig


def losses(result: Result, *, height: int = 320) -> go.Figure:
    """Lines: each loss of PARAM over the steps, mean over seeds, unweighted."""
    table = result.tables.get("losses", pd.DataFrame())
    if not len(table):
        return empty("No anchors were learned.", height=height)
    mean = table.groupby(["term", "step"], as_index=False)["value"].mean()
    fig = go.Figure()
    for at, (term, words) in enumerate(_TERMS.items()):
        part = mean[mean["term"] == term]
        if len(part) and float(part["value"].abs().max()) > 0:
            fig.add_scatter(
                x=part["step"], y=part["value"], mode="lines", name=words,
                line={"color": OKABE_ITO[at % 8], "width": 2,
                      "dash": "dot" if term == "total" else "solid"},
                hovertemplate="step %{x}: %{y:.3f}<extra>" + words + "</extra>",
            )  # fmt: skip
    return layout(
        fig, title="Losses while the anchors are learned", x="step", y="loss, unweighted",
        height=height,
    )  # fmt: skip


# What the two axes of the anchor map may be: name, columns, axis titles.
ANCHOR_AXES = {
    "width": ("Width and length", "n_eff", "norm", "effective number of samples",
              "length, whitened units"),
    "worth": ("Coverage and worth", "coverage", "drop_one", "closest anchor of, % of test items",
              "accuracy without it, points"),
    "alike": ("Likeness and worth", "correlation", "drop_one", "largest cosine with another anchor",
              "accuracy without it, points"),
}  # fmt: skip
_IN_PERCENT = ("coverage", "drop_one")


def anchors(
    result: Result, *, chosen: int | None = None, axes: str = "width", height: int = 340
) -> go.Figure:
    """Scatter of the learned anchors, selectable.

    Parameters
    ----------
    chosen : int, optional
        The anchor drawn large.
    axes : {"width", "worth", "alike"}
        Samples against length; coverage, or correlation, against the drop-one effect.
    """
    table = result.tables.get("anchor_facts", pd.DataFrame())
    if not len(table):
        return empty("No anchors were learned.", height=height)
    _, first, second, x_title, y_title = ANCHOR_AXES[axes]
    table = table.assign(**{c: 100 * table[c] for c in _IN_PERCENT})
    fig = go.Figure()
    for at, (label, part) in enumerate(table.groupby("label")):
        picked = part["anchor"] == chosen
        fig.add_scatter(
            x=part[first], y=part[second], mode="markers", name=str(label),
            marker={
                "color": OKABE_ITO[at % 8], "symbol": SYMBOLS[(at // 8) % 6],
                "size": np.where(picked, 16, 8),
                "line": {"width": np.where(picked, 2, 0), "color": LINE},
            },
            customdata=np.stack([part["anchor"], 100 * part["label_share"]], axis=1),
            hovertemplate="anchor %{customdata[0]}<br>" + x_title + " %{x:.2f}<br>" + y_title
            + " %{y:.2f}<br>%{customdata[1]:.0f} % of its weight: " + str(label)
            + "<extra></extra>",
        )  # fmt: skip
    titles = {
        "width": "Every anchor: how widely it averages, how far it stands out",
        "worth": "Every anchor: what it covers, what is lost without it",
        "alike": "Every anchor: how like another it is, what is lost without it",
    }
    layout(fig, title=titles[axes], x=x_title, y=y_title, height=height)
    if second == "drop_one":
        fig.add_hline(y=0, line={"color": LINE, "dash": "dot"})
    return fig
