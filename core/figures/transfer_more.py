"""More figures of "transfer": several sources side by side, classes, robustness, advice.

Every one reads a stored result and computes nothing again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.figures import style
from core.figures.transfer import KINDS, short_layer
from core.radar.advice import Advice
from core.results import Result


def ridge_grid(
    result: Result, sources: Sequence[str], descriptor: str, *, chosen: int | None = None,
    whole: bool = False,
) -> go.Figure:  # fmt: skip
    """Within over cross densities, a column a source and a ridge a layer, on shared axes.

    Parameters
    ----------
    descriptor : {"theta", "d"}
    chosen : int, optional
        The layer drawn strong.
    whole : bool
        Theta over [0, pi] instead of where its values lie.
    """
    frame = result.tables["densities"]
    frame = frame[frame["descriptor"] == descriptor]
    names = list(result.summary["layers"])
    fig = make_subplots(
        rows=1, cols=max(len(sources), 1), shared_yaxes=True, shared_xaxes=True,
        horizontal_spacing=0.02, subplot_titles=list(sources),
    )  # fmt: skip
    for column, source in enumerate(sources, start=1):
        mine = frame[frame["source"] == source]
        for layer in range(len(names)):
            _ridge(fig, mine[mine["layer"] == layer], layer, column, chosen)
    low, high = _range(frame[frame["source"].isin(sources)], descriptor, whole)
    word = "Angle theta" if descriptor == "theta" else "Relative distance d"
    style.layout(
        fig, title=f"{word}: within over cross, a column a source",
        height=110 + 34 * max(len(names), 4),
    )  # fmt: skip
    # The legend stands above the columns' names, not across them.
    fig.update_layout(
        margin={"t": 96},
        legend={"yref": "container", "y": 0.995, "yanchor": "top", "x": 0, "xanchor": "left"},
    )
    fig.update_annotations(font={"size": 13})
    unit = "theta, radians" if descriptor == "theta" else "d (log scale)"
    fig.update_xaxes(title={"text": unit, "font": {"size": 12}}, range=[low, high], nticks=5)
    if descriptor == "d":
        fig.update_xaxes(type="log", nticks=None, dtick=1)
    fig.update_yaxes(
        tickvals=list(range(len(names))), ticktext=[short_layer(n) for n in names],
        showgrid=False, range=[-0.1, len(names) + 0.05],
    )  # fmt: skip
    fig.update_yaxes(title={"text": "layer step"}, col=1)
    return fig


def _ridge(fig: go.Figure, mine: pd.DataFrame, layer: int, column: int, chosen: int | None) -> None:
    peak = max(float(mine["density"].max()), 1e-12)
    strong = chosen is None or layer == chosen
    for kind in KINDS:
        part = mine[mine["kind"] == kind]
        x, height = part["x"].to_numpy(), layer + 0.92 * part["density"].to_numpy() / peak
        colour = style.ROLE[kind]
        fig.add_scatter(
            x=[x[0], *x, x[-1]], y=[layer, *height, layer], mode="lines", fill="toself",
            name=kind, legendgroup=kind, showlegend=layer == 0 and column == 1,
            line={"color": style.rgba(colour, 1.0 if strong else 0.45), "width": 1.4},
            fillcolor=style.rgba(colour, 0.3 if strong else 0.08), hoverinfo="skip",
            row=1, col=column,
        )  # fmt: skip


def _range(frame: pd.DataFrame, descriptor: str, whole: bool) -> tuple[float, float]:
    if descriptor == "theta" and whole:
        return 0.0, math.pi
    # Where some density is more than a hundredth of its peak: one far tail must not press
    # twelve layers into a line.
    seen = frame[frame["density"] > 0.01 * frame.groupby("layer")["density"].transform("max")]
    low, high = float(seen["x"].min()), float(seen["x"].max())
    return (math.log10(low), math.log10(high)) if descriptor == "d" else (low, high)


def advice_bars(advice: Sequence[Advice]) -> go.Figure:
    """Each source's excess with two standard deviations, against the yardstick.

    What lies left of the line is added, what lies right of it is left out, what holds it
    cannot be told.
    """
    fig = go.Figure()
    shown = list(reversed(advice))
    words = {"add": "good", "leave out": "bad", "cannot tell": "unknown"}
    marks = {"add": "circle", "leave out": "x", "cannot tell": "diamond"}
    for decision, role in words.items():
        mine = [one for one in shown if one.decision == decision]
        if not mine:
            continue
        fig.add_scatter(
            x=[max(one.excess, 1e-4) for one in mine], y=[one.source for one in mine],
            mode="markers", name=decision,
            marker={"size": 12, "color": style.ROLE[role], "symbol": marks[decision]},
            error_x={"type": "data", "array": [2 * one.excess_sd for one in mine],
                     "thickness": 1.5, "width": 4, "color": style.ROLE[role]},
            hovertemplate="%{y}<br>excess %{x:.3f} nats<extra></extra>",
        )  # fmt: skip
    far = advice[0].far if advice else float("nan")
    if math.isfinite(far):
        fig.add_vline(x=far, line={"color": style.ROLE["null"], "width": 2, "dash": "dash"})
        fig.add_annotation(
            x=_log(far) if _wide(advice) else far, y=0.0, yref="paper", showarrow=False,
            xanchor="left", yanchor="bottom", text=" target's own classes", font={"size": 12},
        )  # fmt: skip
    style.layout(
        fig, title="Excess over the null, ± 2 standard deviations", x="excess, nats", y="",
        height=150 + 42 * max(len(shown), 3),
    )  # fmt: skip
    fig.update_yaxes(categoryorder="array", categoryarray=[one.source for one in shown])
    if _wide(advice):
        fig.update_xaxes(type="log", dtick=1)
    return fig


def _log(value: float) -> float:
    return math.log10(max(value, 1e-4))


def _wide(advice: Sequence[Advice]) -> bool:
    values = [one.excess for one in advice]
    return bool(values) and min(values) > 0 and max(values) > 20 * min(values)


def class_map(result: Result) -> go.Figure:
    """Excess by source and class; a cell within two standard deviations of 0 is written thin.

    Colour is on the root scale, so that one far source does not press the others to nothing.
    """
    table = result.tables["classes"]
    wide = table.pivot(index="source", columns="label", values="excess")
    sure = table.pivot(index="source", columns="label", values="sure").reindex_like(wide)
    order = wide.mean(axis=1).sort_values(ascending=False).index
    columns = wide.mean(axis=0).sort_values(ascending=False).index
    wide, sure = wide.loc[order, columns], sure.loc[order, columns]
    text = [
        [_cell(value, ok) for value, ok in zip(row, oks, strict=True)]
        for row, oks in zip(wide.to_numpy(), sure.to_numpy(), strict=True)
    ]
    values = wide.to_numpy(dtype=float)
    fig = go.Figure()
    fig.add_heatmap(
        z=np.sqrt(np.clip(values, 0, None)), x=list(columns), y=list(order), text=text,
        texttemplate="%{text}", textfont={"size": 12}, colorscale=style.SEQUENTIAL,
        showscale=False, xgap=2, ygap=2,
        customdata=values, hoverongaps=False,
        hovertemplate="%{y}, %{x}<br>excess %{customdata:.3f} nats<extra></extra>",
    )  # fmt: skip
    style.layout(
        fig, title="Excess inside each class, nats", x="class", y="",
        height=150 + 46 * len(order), legend=False,
    )  # fmt: skip
    return fig


def _cell(value: float, sure: object) -> str:
    if not np.isfinite(value):
        return ""
    return f"<b>{value:.2f}</b>" if sure is True or sure is np.True_ else f"({value:.2f})"


def class_steps(result: Result, source: str) -> go.Figure:
    """Excess of one source by class and layer step."""
    table = result.tables["steps"]
    mine = table[table["source"] == source]
    wide = mine.pivot(index="label", columns="layer", values="excess")
    names = mine.drop_duplicates("layer").sort_values("layer")["name"]
    fig = go.Figure()
    fig.add_heatmap(
        z=np.sqrt(np.clip(wide.to_numpy(dtype=float), 0, None)),
        x=[short_layer(n) for n in names], y=list(wide.index), colorscale=style.SEQUENTIAL,
        showscale=False, xgap=1, ygap=1, customdata=wide.to_numpy(dtype=float),
        hovertemplate="%{y}, step %{x}<br>excess %{customdata:.3f} nats<extra></extra>",
    )  # fmt: skip
    style.layout(
        fig, title=f"{source}: class by layer step (root scale)", x="layer step", y="",
        height=150 + 34 * len(wide), legend=False,
    )  # fmt: skip
    return fig


def against_pairs(result: Result) -> go.Figure:
    """Excess of each source against the number of pairs, with two standard deviations."""
    frame = result.tables["sources"]
    frame = frame[(frame["group"] == "pairs") | (frame["variant"] == "as shown")]
    sources = list(dict.fromkeys(frame["source"]))
    fig = go.Figure()
    for source in sources:
        mine = frame[frame["source"] == source].sort_values("n_pairs")
        colour = style.domain_colour(source, [*sources, str(result.params["target"])])
        fig.add_scatter(
            x=mine["n_pairs"], y=np.maximum(mine["excess"], 1e-4), mode="lines+markers",
            name=source, line={"color": colour, "width": 2}, marker={"size": 8},
            error_y={"type": "data", "array": 2 * mine["excess_sd"].fillna(0), "thickness": 1,
                     "width": 3},
            hovertemplate=f"{source}, %{{x:,}} pairs<br>excess %{{y:.3f}} nats<extra></extra>",
        )  # fmt: skip
    style.layout(
        fig, title="Does the number of pairs decide it?", x="pairs a repeat",
        y="excess, nats", height=360,
    )  # fmt: skip
    fig.update_xaxes(type="log", tickvals=sorted(set(frame["n_pairs"])),
                     ticktext=[f"{n:,}" for n in sorted(set(frame["n_pairs"]))])  # fmt: skip
    low, high = float(frame["excess"].min()), float(frame["excess"].max())
    if low > 0 and high > 20 * low:
        fig.update_yaxes(type="log", dtick=1)
    return fig


def agreement(result: Result) -> go.Figure:
    """How alike every two variants rank: Spearman's rho, a heat map with its numbers."""
    table = result.tables["agreement"]
    names = list(result.tables["variants"]["variant"])
    wide = table.pivot(index="a", columns="b", values="rho").loc[names, names]
    values = wide.to_numpy(dtype=float)
    fig = go.Figure()
    fig.add_heatmap(
        z=values, x=names, y=names, zmin=-1, zmax=1, colorscale=style.DIVERGING,
        colorbar={"title": {"text": "rho"}, "thickness": 12}, hoverongaps=False,
        hovertemplate="%{y}<br>%{x}<br>rho %{z:.2f}<extra></extra>",
    )  # fmt: skip
    style.layout(
        fig, title="Do two settings rank the blends alike?", x="", y="",
        height=180 + 18 * len(names), legend=False,
    )  # fmt: skip
    fig.update_yaxes(autorange="reversed")
    return fig


def truth(result: Result, column: str = "score") -> go.Figure:
    """One measure against the gain, with the 95 % interval over seeds.

    Parameters
    ----------
    column : str
        A column of the table ``blends``; an axis on which lower is better is turned.
    """
    table = result.tables["blends"]
    measures = result.tables["measures"].set_index("column")
    line = measures.loc[column]
    fig = go.Figure()
    for size, mine in table.groupby("n_members"):
        if not mine[column].notna().any():
            continue
        fig.add_scatter(
            x=mine[column], y=100 * mine["gain"], mode="markers",
            name=f"{size} source" + ("s" if size > 1 else ""),
            marker={"size": 9, "color": style.OKABE_ITO[(int(size) - 1) % 8],
                    "symbol": style.SYMBOLS[(int(size) - 1) % len(style.SYMBOLS)]},
            error_y=_seed_bars(mine), customdata=mine["blend"],
            hovertemplate="%{customdata}<br>%{x:.3g}, gain %{y:.1f} points<extra></extra>",
        )  # fmt: skip
    fig.add_hline(y=0, line={"color": style.LINE, "width": 1})
    lower = line["better"] == "lower"
    style.layout(
        fig, title=f"{line['measure']} against the measured gain",
        x=str(line["measure"]) + (" (nearer to the right)" if lower else ""),
        y="gain in accuracy, points", height=380,
    )  # fmt: skip
    values = table[column].dropna()
    if len(values) and values.min() > 0 and values.max() > 20 * values.min():
        fig.update_xaxes(type="log", dtick=1)
    if lower:
        fig.update_xaxes(autorange="reversed")
    return fig


def _seed_bars(mine: pd.DataFrame) -> dict[str, object]:
    if not mine["gain_low"].notna().all():
        return {}
    up, down = mine["gain_high"] - mine["gain"], mine["gain"] - mine["gain_low"]
    return {"type": "data", "array": 100 * up, "arrayminus": 100 * down, "thickness": 1,
            "width": 0}  # fmt: skip
