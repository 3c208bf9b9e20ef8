"""Figures of the stitching study: methods with intervals, claims, curves, what predicts."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.figures.style import (
    LINE,
    OKABE_ITO,
    ROLE,
    SYMBOLS,
    compact,
    empty,
    layout,
    rgba,
)
from core.results import Result

AXES = {
    "anchors": ("Accuracy against the number of anchors", "anchors"),
    "support": ("Accuracy against the support size", "support rows that may be mixed"),
    "shrinkage": ("Accuracy against the shrinkage of the whitening", "shrinkage"),
}
MEASURES = {"cka": "linear CKA", "mutual_knn": "shared neighbours", "procrustes": "Procrustes"}


def short(method: str) -> str:
    """Return a method's name as it fits an axis.

    Examples
    --------
    >>> short("wip-param_single"), short("ridge")
    ('WIP, PARAM Single', 'ridge map')
    """
    from core.stitching.methods import method_of

    if method_of(method).translator:
        words = {"irp": "inverse relative", "cca": "CCA map", "ortho": "orthogonal map"}
        return words.get(method, f"{method} map")
    return method_of(method).title.removesuffix(" anchors")


def small(result: Result) -> go.Figure:
    """Return the figure of a card: what the paper claims, and what was found."""
    return compact(claims(result))


def methods(result: Result, case: str, scope: str) -> go.Figure:
    """Dots and intervals: every method on one data set, best on top; the native heads a line."""
    table = result.tables["methods"]
    part = table[(table["case"] == case) & (table["scope"] == scope)].sort_values("accuracy")
    if not len(part):
        return empty("This data set has no such pairs.")
    about = result.tables["cases"].set_index("case").loc[case]
    fig = go.Figure()
    for at, (kind, words) in enumerate(
        (("relative", "one map an encoder"), ("map", "one map a pair"))
    ):
        mine = part[[_is_map(m) == (kind == "map") for m in part["method"]]]
        if not len(mine):
            continue
        fig.add_scatter(
            x=100 * mine["accuracy"], y=[short(m) for m in mine["method"]], mode="markers",
            name=words, marker={"color": OKABE_ITO[at], "symbol": SYMBOLS[at], "size": 10},
            error_x={
                "type": "data", "symmetric": False, "thickness": 1.4, "width": 3,
                "array": 100 * (mine["accuracy_high"] - mine["accuracy"]),
                "arrayminus": 100 * (mine["accuracy"] - mine["accuracy_low"]),
            },
            customdata=np.stack([
                100 * mine["accuracy_low"], 100 * mine["accuracy_high"], 100 * mine["retention"],
                100 * mine["R@1"],
            ], axis=1),
            hovertemplate="%{y}<br>%{x:.1f} % [%{customdata[0]:.1f}, %{customdata[1]:.1f}]<br>"
            "keeps %{customdata[2]:.0f} % of native; R@1 %{customdata[3]:.0f} %<extra></extra>",
        )  # fmt: skip
    fig.add_vline(x=100 * about["native"], line={"color": LINE, "dash": "dot"},
                  annotation_text="own heads", annotation_position="top")  # fmt: skip
    fig.add_vline(x=100 * about["majority"], line={"color": LINE, "dash": "dash"},
                  annotation_text="chance", annotation_position="top")  # fmt: skip
    layout(
        fig, title=f"{about['title']}: accuracy of swapped heads, {scope}",
        x="accuracy, % [95 %]", height=150 + 30 * len(part),
    )  # fmt: skip
    fig.update_layout(legend={"y": 1.06})
    fig.update_yaxes(categoryorder="array", categoryarray=[short(m) for m in part["method"]])
    return fig


def _is_map(method: str) -> bool:
    from core.stitching.methods import method_of

    return bool(method_of(method).translator)


def claims(result: Result) -> go.Figure:
    """Dots and intervals: the two published statements as differences, on every data set."""
    found = pd.DataFrame(result.summary["claims"])
    if not len(found):
        return empty("The methods of the published statements were not run.")
    titles = result.summary["case_titles"]
    labels = [
        _wrapped(titles[c]) + ("" if s == "all pairs" else f"<br><i>{s}</i>")
        for c, s in zip(found["case"], found["scope"], strict=True)
    ]
    fig = go.Figure()
    for at, ((a, b), part) in enumerate(found.groupby(["a", "b"], sort=False)):
        fig.add_scatter(
            x=100 * part["difference"], y=[labels[i] for i in part.index], mode="markers",
            name=f"{short(a)} minus {short(b)}",
            marker={"color": OKABE_ITO[at], "symbol": SYMBOLS[at], "size": 10},
            error_x={
                "type": "data", "symmetric": False, "thickness": 1.4, "width": 3,
                "array": 100 * (part["high"] - part["difference"]),
                "arrayminus": 100 * (part["difference"] - part["low"]),
            },
            customdata=np.stack([100 * part["low"], 100 * part["high"], part["q"]], axis=1),
            hovertemplate="%{x:+.1f} points [%{customdata[0]:+.1f}, %{customdata[1]:+.1f}], "
            "q %{customdata[2]:.3f}<extra></extra>",
        )  # fmt: skip
    fig.add_vline(x=0, line={"color": LINE, "dash": "dot"})
    layout(
        fig, title="The published ordering, on each data set", height=190 + 44 * len(set(labels)),
        x="difference, points [95 %]",
    )  # fmt: skip
    fig.update_layout(legend={"y": 1.04})
    fig.update_yaxes(autorange="reversed")
    return fig


def _wrapped(title: str) -> str:
    """Break a title at its comma, so that it leaves room on a phone."""
    return title.replace(", ", ",<br>")


def curve(result: Result, case: str, axis: str, *, height: int = 360) -> go.Figure:
    """Lines with bands: accuracy against anchors, support size or shrinkage, by method."""
    table = result.tables["curves"]
    part = table[(table["case"] == case) & (table["axis"] == axis)] if len(table) else table
    title, words = AXES[axis]
    if not len(part):
        return empty("This data set was not swept.", height=height)
    fig = go.Figure()
    categorical = axis == "shrinkage"
    for at, (method, line) in enumerate(part.groupby("method", sort=False)):
        x = ["Ledoit-Wolf" if v == "lw" else v for v in line["x"]]
        x = x if categorical else [float(v) for v in x]
        colour = OKABE_ITO[at % 8]
        fig.add_scatter(
            x=[*x, *x[::-1]], y=100 * pd.concat([line["high"], line["low"][::-1]]), mode="lines",
            line={"width": 0}, fill="toself", fillcolor=rgba(colour, 0.16), hoverinfo="skip",
            showlegend=False,
        )  # fmt: skip
        fig.add_scatter(
            x=x, y=100 * line["accuracy"], mode="lines+markers", name=short(str(method)),
            line={"color": colour, "width": 2},
            marker={"symbol": SYMBOLS[at % 6], "size": 7, "color": colour},
            customdata=np.stack([100 * line["low"], 100 * line["high"]], axis=1),
            hovertemplate="%{x}: %{y:.1f} % [%{customdata[0]:.1f}, %{customdata[1]:.1f}]"
            f"<extra>{short(str(method))}</extra>",
        )  # fmt: skip
    layout(fig, title=title, x=words, y="accuracy, %", height=height)
    if categorical:
        fig.update_xaxes(type="category")
    else:
        ticks = sorted({float(v) for v in part["x"]})
        fig.update_xaxes(
            type="log", tickvals=ticks, ticktext=[f"{t:g}" for t in ticks], tickangle=0
        )
    return fig


def predicts(result: Result, method: str, *, height: int = 360) -> go.Figure:
    """Dots and intervals: rank correlation of each similarity with what a swap keeps."""
    table = result.tables["predicts"]
    part = table[table["method"] == method]
    if not len(part):
        return empty("This method was not run.", height=height)
    titles = {**result.summary["case_titles"], "all": "all, ranked within each"}
    names = {case: _wrapped(title) for case, title in titles.items()}
    order = [c for c in names if c in set(part["case"])]
    fig = go.Figure()
    for at, (measure, words) in enumerate(MEASURES.items()):
        mine = part[part["measure"] == measure].set_index("case").loc[order].reset_index()
        known = mine["low"].notna()
        wide = [
            f"[{a:.2f}, {b:.2f}]" if math.isfinite(a) else f"{n} pairs: no interval"
            for a, b, n in zip(mine["low"], mine["high"], mine["n_pairs"], strict=True)
        ]
        fig.add_scatter(
            x=mine["rho"], y=[names[c] for c in mine["case"]], mode="markers", name=words,
            marker={
                "color": OKABE_ITO[at], "size": 10,
                "symbol": [SYMBOLS[at] + ("" if k else "-open") for k in known],
            },
            error_x={
                "type": "data", "symmetric": False, "thickness": 1.4, "width": 3,
                "array": (mine["high"] - mine["rho"]).fillna(0.0),
                "arrayminus": (mine["rho"] - mine["low"]).fillna(0.0),
            },
            customdata=wide,
            hovertemplate="%{y}<br>" + words + " %{x:.2f} %{customdata}<extra></extra>",
        )  # fmt: skip
    fig.add_vline(x=0, line={"color": ROLE["null"], "dash": "dot"})
    layout(
        fig, title=f"Which similarity predicts what a swap keeps? {short(method)}",
        x="Spearman's rho [95 %]", height=max(height, 170 + 36 * len(order)),
    )  # fmt: skip
    fig.update_xaxes(range=[-1.08, 1.08])
    fig.update_yaxes(autorange="reversed")
    return fig
