"""Figures beside the clusters: agreement, overlap, attribution, alignment, the study's matrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.figures.style import OKABE_ITO, ROLE, SEQUENTIAL, empty, layout
from core.results import Result

# What the study's matrix can show: column, words, hover format.
MEASURES: dict[str, tuple[str, str]] = {
    "groups": ("groups among the first directions", ".0f"),
    "named": ("groups with a name", ".0f"),
    "pure": ("sets of one style or one label (80 %)", ".0f"),
    "lead": ("mean kernel similarity, A minus B", ".3f"),
    "k_a": ("mean kernel similarity under A", ".3f"),
    "group_size": ("automatic group size", ".3g"),
}


def agreement(result: Result) -> go.Figure:
    """AMI of k-means with each method's sets, under A and under B."""
    table = result.tables.get("agreement", pd.DataFrame())
    if table.empty:
        return empty("No set to compare")
    fig = go.Figure()
    for side in ("B", "A"):
        part = table[table["embedding"] == side]
        fig.add_bar(
            y=part["method"],
            x=part["AMI"],
            orientation="h",
            name=f"k-means in {side}",
            marker_color=ROLE[side.lower()],
            error_x={"type": "data", "array": part["spread"], "color": ROLE["null"]},
            customdata=part[["NMI", "ARI", "silhouette", "samples"]].to_numpy(),
            hovertemplate="%{y}<br>AMI %{x:.2f}, NMI %{customdata[0]:.2f}, ARI "
            "%{customdata[1]:.2f}, silhouette %{customdata[2]:.2f}<br>%{customdata[3]:.0f} "
            "samples<extra></extra>",
        )
    fig.update_layout(barmode="group", bargap=0.3, legend_traceorder="reversed")
    fig.update_yaxes(autorange="reversed")
    layout(
        fig,
        title="Does k-means find the sets?",
        x="adjusted mutual information (± sd over ten k-means runs)",
        height=340,
    )
    return fig


def overlaps(result: Result) -> go.Figure:
    """Jaccard overlap of every two sets."""
    table = result.tables.get("overlaps", pd.DataFrame())
    if table.empty:
        return empty("No set to compare")
    wide = table.pivot(index="direction", columns="other", values="overlap")
    names = [str(int(d) + 1) for d in wide.index]
    fig = go.Figure(
        go.Heatmap(
            z=wide.to_numpy(),
            x=names,
            y=names,
            zmin=0.0,
            zmax=1.0,
            colorscale=SEQUENTIAL,
            colorbar={"title": "Jaccard"},
            hovertemplate="directions %{y} and %{x}<br>overlap %{z:.2f}<extra></extra>",
        )
    )
    layout(fig, title="Which sets share samples", x="direction", y="direction", height=340)
    fig.update_xaxes(type="category")
    fig.update_yaxes(type="category", autorange="reversed")
    return fig


def attribution(result: Result, direction: int) -> go.Figure:
    """Stack what makes the pairs of a set alike, under A and under B."""
    table = result.tables.get("attribution", pd.DataFrame())
    table = table[table["direction"] == direction] if len(table) else table
    if table.empty:
        return empty("One modality only")
    words = (
        ("both", "picture and caption"),
        ("first_only", "picture only"),
        ("second_only", "caption only"),
        ("neither", "neither"),
    )
    fig = go.Figure()
    for place, (column, name) in enumerate(words):
        fig.add_bar(
            y=table["side"],
            x=table[column],
            orientation="h",
            name=name,
            marker_color=ROLE["null"] if column == "neither" else OKABE_ITO[place],
            hovertemplate=f"under %{{y}}: {name} %{{x:.0%}}<extra></extra>",
        )
    fig.update_layout(barmode="stack", bargap=0.35)
    layout(fig, title="What makes its pairs alike", x="share of the set's pairs", height=220)
    fig.update_xaxes(range=[0, 1], tickformat=".0%")
    fig.update_yaxes(autorange="reversed")
    return fig


def aligned(result: Result) -> go.Figure:
    """Agreement on held-out samples before and after the alignment, and in the target."""
    table = result.tables["agreement"]
    fig = go.Figure()
    for place, measure in enumerate(("AMI", "NMI", "ARI")):
        fig.add_bar(
            x=table["space"],
            y=table[measure],
            name=measure,
            marker_color=OKABE_ITO[place],
            error_y=(
                {"type": "data", "array": table["spread"], "color": ROLE["null"]}
                if measure == "AMI"
                else None
            ),
            hovertemplate=f"%{{x}}<br>{measure} %{{y:.2f}}<extra></extra>",
        )
    fig.update_layout(barmode="group", bargap=0.3)
    return layout(
        fig,
        title="Held-out halves of the sets: does k-means tell them apart?",
        x="space",
        y="agreement (± sd of ten runs)",
        height=320,
    )


def study_matrix(
    study: Result, dataset: str, modality: str, measure: str, title_of: Callable[[str], str]
) -> go.Figure:
    """One square an ordered pair: rows A, columns B; a ring where the test of the scale passes.

    Squares carry (dataset, modality, target, reference) as customdata and can be clicked.
    """
    table = study.tables["pairs"]
    table = table[(table["dataset"] == dataset) & (table["modality"] == modality)]
    if table.empty:
        return empty("This part was not computed")
    words, form = MEASURES[measure]
    models = sorted({*table["target"], *table["reference"]})
    values = table[measure].to_numpy(dtype=float)
    middle = (values.min() + values.max()) / 2
    fig = go.Figure(
        go.Scatter(
            x=[title_of(m) for m in table["reference"]],
            y=[title_of(m) for m in table["target"]],
            mode="markers+text",
            marker={
                "symbol": "square",
                "size": 54,
                "color": values,
                "colorscale": SEQUENTIAL,
                "cmin": float(min(values.min(), 0.0)),
                "cmax": float(max(values.max(), 1e-9)),
                "line": {
                    "width": [3 if p else 0 for p in table["passed"]],
                    "color": ROLE["good"],
                },
            },
            text=[format(v, form) for v in values],
            # Cividis runs from dark blue to yellow: white on the one, black on the other.
            textfont={"color": ["#FFFFFF" if v <= middle else "#111111" for v in values]},
            customdata=table[["dataset", "modality", "target", "reference"]].to_numpy(),
            hovertemplate="A %{y}, B %{x}<br>" + words + " %{text}<extra></extra>",
            unselected={"marker": {"opacity": 1.0}},
        )
    )
    layout(fig, title=f"{words.capitalize()}: A is the row, B the column", x="B", y="A",
           height=120 + 74 * len(models), legend=False)  # fmt: skip
    names = [title_of(m) for m in models]
    fig.update_xaxes(type="category", categoryorder="array", categoryarray=names,
                     range=[-0.6, len(names) - 0.4])  # fmt: skip
    fig.update_yaxes(type="category", categoryorder="array", categoryarray=names,
                     range=[len(names) - 0.4, -0.6])  # fmt: skip
    return fig


def membership(result: Result, direction: int) -> go.Figure:
    """Sort the entries of the direction by size and mark the cut of the set."""
    ids = np.asarray(result.arrays["directions"])
    if direction >= len(ids):
        return empty("No direction to show")
    x = np.sort(np.abs(ids[direction]))[::-1]
    shown = np.unique(np.geomspace(1, len(x), min(len(x), 400)).astype(int)) - 1
    members = result.tables["members"]
    cut = int(((members["direction"] == direction) & (members["pole"] == 1)).sum())
    fig = go.Figure()
    fig.add_scatter(
        x=shown + 1,
        y=x[shown],
        mode="lines",
        line={"color": ROLE["a"], "width": 2},
        hovertemplate="rank %{x}: |x| %{y:.3f}<extra></extra>",
        showlegend=False,
    )
    fig.add_vline(x=cut, line={"color": ROLE["null"], "dash": "dash"}, annotation_text="set")
    fig.update_xaxes(type="log")
    return layout(
        fig,
        title="How sharply the set ends",
        x="rank of the sample",
        y="weight |x| in the direction",
        height=340,
    )
