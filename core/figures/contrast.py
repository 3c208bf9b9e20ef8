"""Figures of a contrast result: coherence of the groups, maps, paths, spectra, similarities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.figures.style import ROLE, compact, domain_colour, empty, layout, rgba
from core.results import Result

MOST_POINTS = 20_000


def small(result: Result) -> go.Figure:
    """Return the figure of the Home card: coherence under A and B of the first groups."""
    return compact(coherence(result, most=6))


def shown_directions(result: Result) -> pd.DataFrame:
    """Return the directions that have a set (feasible ones): named groups, groups, the rest."""
    table = result.tables["directions"]
    if "k_a" not in table:
        return table.iloc[:0]
    table = table[table["k_a"].notna()]
    named = table["is_group"].astype(bool) & table["named"].astype(bool)
    ranked = table.assign(_named=named)
    order = ["_named", "is_group", "direction"]
    ranked = ranked.sort_values(order, ascending=[False, False, True], kind="stable")
    return ranked.drop(columns="_named")


def coherence(result: Result, *, most: int = 12) -> go.Figure:
    """Two bars a direction: mean kernel similarity of the set under A and under B.

    Both kernels stand at the same scale (the same leading eigenvalue), so the bars compare;
    cosines of two encoders do not, because one may hold everything closer together.
    """
    table = shown_directions(result).head(most)
    if table.empty:
        return empty("No direction meets this epsilon")
    names = [f"{int(d) + 1}. {t}" for d, t in zip(table["direction"], table["title"], strict=True)]
    fig = go.Figure()
    for side, column, words in (("b", "k_b", "under B"), ("a", "k_a", "under A")):
        fig.add_bar(
            y=names,
            x=table[column],
            orientation="h",
            name=words,
            marker_color=ROLE[side],
            customdata=np.stack([table["n_members"], table["cos_a"], table["cos_b"]], axis=1),
            hovertemplate="%{y}<br>coherence "
            + words
            + " %{x:.2f}<br>mean cosine A %{customdata[1]:.2f}, B %{customdata[2]:.2f}"
            + "<br>%{customdata[0]:.0f} samples<extra></extra>",
        )
    fig.update_layout(barmode="group", bargap=0.3, legend_traceorder="reversed")
    layout(
        fig,
        title="Tight under A, looser under B",
        x="coherence: mean kernel similarity inside the set",
        height=max(220, 60 + 34 * len(names)),
    )
    fig.update_yaxes(autorange="reversed")
    fig.update_xaxes(rangemode="tozero")
    return fig


def maps(
    result: Result, direction: int, side: str, *, names: dict[int, str] | None = None
) -> go.Figure:
    """PCA map under A or B with the direction's set lit.

    Parameters
    ----------
    result : Result
    direction : int
    side : {"a", "b"}
    names : dict, optional
        Hover text by item id.
    """
    points = np.asarray(result.arrays[f"map_{side}"])
    ids = np.asarray(result.arrays["ids"])
    members = result.tables["members"]
    chosen = members[(members["direction"] == direction) & (members["pole"] == 1)]["id"]
    lit = np.isin(ids, chosen.to_numpy())
    rest = np.flatnonzero(~lit)
    if len(rest) > MOST_POINTS:
        rest = np.sort(np.random.default_rng(0).choice(rest, MOST_POINTS, replace=False))
    fig = go.Figure()
    text = [(names or {}).get(int(i), str(i)) for i in ids]
    styles = (
        (rest, "others", {"color": ROLE["unselected"], "size": 4, "opacity": 0.45}),
        (
            np.flatnonzero(lit),
            "the set",
            {"color": ROLE[side], "size": 9, "line": {"width": 1, "color": "#FFFFFF"}},
        ),
    )
    for rows, name, marker in styles:
        fig.add_scattergl(
            x=points[rows, 0],
            y=points[rows, 1],
            mode="markers",
            name=name,
            marker=marker,
            customdata=ids[rows],
            text=[text[r] for r in rows],
            hovertemplate="%{text}<extra></extra>",
        )
    where = "A: the set lies together" if side == "a" else "B: where the same samples lie"
    layout(fig, title=where, x="first principal component", y="second", height=380)
    fig.update_xaxes(showticklabels=False)
    fig.update_yaxes(showticklabels=False)
    return fig


def epsilon_path(result: Result) -> go.Figure:
    """p*(epsilon) of the first direction, with the chosen epsilon and SPEC's point."""
    table = result.tables.get("epsilon_path", pd.DataFrame())
    if table.empty:
        return empty("The path is drawn up to 3,000 samples")
    fig = go.Figure()
    line = table[table["status"] != "infeasible"]
    fig.add_scatter(
        x=line["epsilon"],
        y=line["objective"],
        mode="lines+markers",
        name="best objective under A",
        line={"color": ROLE["a"], "width": 2},
        marker={"size": 5},
        customdata=np.stack([line["multiplier"], line["quotient"]], axis=1),
        hovertemplate="epsilon %{x:.2f}<br>objective %{y:.3g}<br>lambda %{customdata[0]:.3g}, "
        "quotient %{customdata[1]:.2f}<extra></extra>",
    )
    marks = (("chosen", "chosen epsilon", "diamond"), ("spec", "SPEC (lambda = 1)", "x"))
    for role, name, symbol in marks:
        at = line[line["role"] == role]
        fig.add_scatter(
            x=at["epsilon"],
            y=at["objective"],
            mode="markers",
            name=name,
            marker={"size": 12, "symbol": symbol, "color": ROLE["cross"]},
            hovertemplate=name + "<br>epsilon %{x:.2f}, objective %{y:.3g}<extra></extra>",
        )
    fig.update_xaxes(type="log")
    return layout(
        fig,
        title="What A gains when B may see more",
        x="epsilon, raw (coherence allowed under B)",
        y="objective under A, raw",
        height=320,
    )


def scale_path(result: Result) -> go.Figure:
    """Group coherence over the group size: where directions turn from groups into smears."""
    table = result.tables.get("scale_path", pd.DataFrame())
    if table.empty:
        return empty("The group size was given, so no scale was searched")
    fig = go.Figure()
    names = [f"{size:g}" for size in table["group_size"]]
    for side, column in (("a", "k_a"), ("b", "k_b")):
        fig.add_scatter(
            x=names,
            y=table[column],
            mode="lines+markers",
            name=f"coherence under {side.upper()}",
            line={"color": ROLE[side], "width": 2},
            marker={"size": [13 if c else 7 for c in table["chosen"]]},
            customdata=np.stack([table["median_size"], table["passed"], table["of"]], axis=1),
            hovertemplate="group size %{x}<br>mean coherence %{y:.2f}<br>median set "
            "%{customdata[0]:.0f} samples, %{customdata[1]:.0f} of %{customdata[2]:.0f} are "
            "groups<extra></extra>",
        )
    # On a category axis an annotation stands by place: "6" would be read as the number six.
    for place, row in enumerate(table.to_dict("records")):
        chosen = "<br>chosen" if row["chosen"] else ""
        fig.add_annotation(
            x=place,
            y=row["k_a"],
            text=f"{row['passed']} of {row['of']}{chosen}",
            showarrow=False,
            yshift=24 if chosen else 16,
            font={"size": 12},
        )
    fig.add_hline(y=0.12, line={"color": ROLE["null"], "width": 1, "dash": "dash"})
    fig.update_xaxes(type="category")
    fig.update_yaxes(range=[0.0, 1.3 * float(table["k_a"].max())])
    return layout(
        fig,
        title="Finer or coarser: how many of five directions are groups",
        x="group size m (leading eigenvalue of the raw kernel)",
        y="mean coherence of the sets",
        height=320,
    )


def similarities(result: Result, direction: int) -> go.Figure:
    """Histograms of similarity inside the set under A and B, over random pairs."""
    table = result.tables["similarities"]
    inside = table[table["direction"] == direction]
    random = table[table["direction"] == -1]
    if inside.empty:
        return empty("No set to show")
    fig = go.Figure()
    for side in ("a", "b"):
        middle = (inside["low"] + inside["high"]) / 2
        fig.add_scatter(
            x=middle,
            y=random[side],
            mode="lines",
            name=f"random pairs, {side.upper()}",
            line={"color": ROLE[side], "width": 1, "dash": "dot", "shape": "hvh"},
            hovertemplate="cosine %{x:.2f}<br>%{y:.1%} of random pairs<extra></extra>",
        )
        fig.add_scatter(
            x=middle,
            y=inside[side],
            mode="lines",
            name=f"inside the set, {side.upper()}",
            line={"color": ROLE[side], "width": 2, "shape": "hvh"},
            fill="tozeroy",
            fillcolor=rgba(ROLE[side], 0.18),
            hovertemplate="cosine %{x:.2f}<br>%{y:.1%} of pairs<extra></extra>",
        )
    fig.update_yaxes(tickformat=".0%")
    return layout(
        fig,
        title="How alike the set's pairs are",
        x="cosine similarity of a pair",
        y="share of pairs",
        height=340,
    )


def spectra(result: Result) -> go.Figure:
    """Leading eigenvalues of both raw kernels, with epsilon."""
    if "spectrum_a" not in result.arrays:
        return empty("Spectra are drawn up to 3,000 samples")
    fig = go.Figure()
    for side in ("a", "b"):
        values = np.asarray(result.arrays[f"spectrum_{side}"])
        fig.add_scatter(
            x=np.arange(1, len(values) + 1),
            y=values,
            mode="lines+markers",
            name=f"kernel of {side.upper()}",
            line={"color": ROLE[side], "width": 2},
            hovertemplate="eigenvalue %{x}: %{y:.2f}<extra></extra>",
        )
    fig.add_hline(
        y=float(result.summary["epsilon"]),
        line={"color": ROLE["null"], "dash": "dash"},
        annotation_text="epsilon",
        annotation_position="top right",
    )
    limit = result.summary.get("resolution_a")
    if limit is not None:
        fig.add_hline(
            y=float(limit),
            line={"color": ROLE["bad"], "dash": "dot"},
            annotation_text="resolution limit of A",
            annotation_position="bottom right",
        )
    return layout(
        fig,
        title="Both kernels at the same scale",
        x="rank",
        y="eigenvalue, raw (1 = one sample alone)",
        height=320,
    )


def shares(values: Sequence[str], *, everything: Sequence[str], height: int = 90) -> go.Figure:
    """One stacked bar: the set's share of each domain (or any other column)."""
    counts = pd.Series(list(values)).value_counts(normalize=True)
    fig = go.Figure()
    for name, share in counts.items():
        fig.add_bar(
            x=[share],
            y=[""],
            orientation="h",
            name=str(name),
            marker_color=domain_colour(str(name), everything),
            hovertemplate=f"{name} %{{x:.0%}}<extra></extra>",
        )
    fig.update_layout(barmode="stack")
    layout(fig, height=height)
    fig.update_xaxes(visible=False, range=[0, 1])
    fig.update_yaxes(visible=False)
    return fig
