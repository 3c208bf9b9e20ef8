"""Figures of the transfer study: which measure foretells the gain, by encoder and by target."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.figures.style import LINE, OKABE_ITO, SYMBOLS, empty, layout
from core.results import Result

FAMILIES = ("RADAR", "baseline", "plain")


def ranking(result: Result, dataset: str, model: str) -> go.Figure:
    """Dots: mean rho of each measure over targets, best on top, with one target left out."""
    table = result.tables["means"]
    part = table[(table["dataset"] == dataset) & (table["model"] == model)]
    part = part[part["rho"].notna()].sort_values("rho")
    if not len(part):
        return empty("No measure ranks the blends of this encoder.")
    fig = go.Figure()
    for at, family in enumerate(FAMILIES):
        mine = part[part["family"] == family]
        if not len(mine):
            continue
        fig.add_scatter(
            x=mine["rho"], y=mine["name"], mode="markers", name=family,
            marker={"color": OKABE_ITO[at], "symbol": SYMBOLS[at], "size": 9},
            error_x={
                "type": "data", "symmetric": False, "thickness": 1.4, "width": 3,
                "array": mine["high"] - mine["rho"], "arrayminus": mine["rho"] - mine["low"],
            },
            customdata=np.stack([mine["worst"], mine["n_targets"], mine["n"]], axis=1),
            hovertemplate="%{y}<br>rho %{x:+.2f}; worst target %{customdata[0]:+.2f}; "
            "%{customdata[1]:.0f} targets of %{customdata[2]:.0f} blends<extra></extra>",
        )  # fmt: skip
    fig.add_vline(x=0, line={"color": LINE, "dash": "dot"})
    layout(
        fig, title="Which measure foretells the gain, mean over targets",
        height=150 + 22 * len(part), x="mean rho with the gain [with any one target left out]",
    )  # fmt: skip
    fig.update_yaxes(
        categoryorder="array", categoryarray=list(part["name"]), automargin=True, dtick=1
    )
    return fig


def by_target(result: Result, dataset: str, model: str) -> go.Figure:
    """Heat map: rho of each measure for each target."""
    table = result.tables["measures"]
    part = table[(table["dataset"] == dataset) & (table["model"] == model)]
    wide = part.pivot_table(index="name", columns="target", values="rho", dropna=False)
    wide = wide.loc[wide.mean(axis=1).sort_values().index]
    wide = wide[wide.notna().any(axis=1)]
    if not len(wide):
        return empty("No measure ranks the blends of this encoder.")
    fig = go.Figure(
        go.Heatmap(
            z=wide.to_numpy(), x=list(wide.columns), y=list(wide.index), zmin=-1, zmax=1,
            colorscale="RdBu", text=_words(wide), texttemplate="%{text}", xgap=1, ygap=1,
            colorbar={"title": "rho", "thickness": 12},
            hovertemplate="%{y}, %{x}: rho %{z:+.2f}<extra></extra>",
        )
    )  # fmt: skip
    layout(
        fig, title="The same, target by target", height=150 + 22 * len(wide), x="target",
        legend=False,
    )  # fmt: skip
    fig.update_yaxes(automargin=True, dtick=1)
    return fig


def _words(wide: pd.DataFrame) -> list[list[str]]:
    return [[f"{v:+.2f}" if np.isfinite(v) else "n/a" for v in row] for row in wide.to_numpy()]
