"""Figures of a stitching result: matrices side by side, what a swap keeps."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.figures.style import (
    DIVERGING,
    LINE,
    OKABE_ITO,
    ROLE,
    SEQUENTIAL,
    SYMBOLS,
    compact,
    layout,
    panel,
    small_multiples,
)
from core.results import Result

MEASURES = {"accuracy": "accuracy", "f1": "macro F1"}
VIEWS = ("value", "gap", "difference")
MOST_CLASSES = 24
_NATIVE_AT = 0.3  # the strip of native heads stands a little apart from the matrix


def small(result: Result) -> go.Figure:
    """Return the figure of the Home card: the matrix of the preferred method."""
    method = result.summary["preferred"]
    fig = go.Figure()
    values, _, _ = _grid(result, method, "accuracy", "value", "")
    names = _names(result)
    fig.add_heatmap(
        z=100 * values, x=names, y=names, colorscale=SEQUENTIAL, showscale=False,
        zmin=100 * result.summary["majority"], zmax=100 * _top(result, "accuracy"),
        texttemplate="%{z:.0f}", xgap=2, ygap=2,
        hovertemplate="head of %{y}, features of %{x}<br>accuracy %{z:.1f} %<extra></extra>",
    )  # fmt: skip
    fig = compact(layout(fig, legend=False))
    fig.update_yaxes(autorange="reversed", showgrid=False)
    fig.update_xaxes(showgrid=False)
    return fig


def matrix(
    result: Result,
    *,
    measure: str = "accuracy",
    view: str = "value",
    base: str = "",
    methods: list[str] | None = None,
    columns: int = 3,
    bar: bool = True,
) -> go.Figure:
    """Return the matrices of all methods on one colour scale, the native heads as a strip.

    Parameters
    ----------
    measure : {"accuracy", "f1"}
    view : {"value", "gap", "difference"}
        The measure; native minus stitched; or the difference to the method ``base``.
    base : str
        Method the differences are taken to.
    methods : list of str, optional
        In the order to be drawn; best first by default. The colours are those of all methods
        even when only some are drawn, so that figures side by side can be compared.
    columns : int
        Panels in a row.
    bar : bool
        Title and colour bar; without them :func:`scale` is drawn once for several figures.
    """
    shown = methods or list(result.tables["summary"]["method"])
    title_of = dict(result.tables["summary"][["method", "title"]].itertuples(index=False))
    names = _names(result)
    n = len(names)
    fig = small_multiples(
        [f"<b>{title_of[m]}</b>" for m in shown],
        columns=columns, title=matrix_title(result, measure, view, base) if bar else "",
        panel_height=150 + 46 * n,
    )  # fmt: skip
    for at, method in enumerate(shown):
        values, spread, hover = _grid(result, method, measure, view, base)
        place = panel(at, columns)
        _heat(fig, values, spread, names, place, view)
        _strip(fig, result, measure, place, view)
        _overlay(fig, method, hover, n, place)
        _outline(fig, n, place, view)
    if columns == 1:  # leave the corner to the mode bar
        fig.update_annotations(x=0.0, xanchor="left")
    _axes(fig, names, view, rows=-(-len(shown) // columns))
    _colour(fig, result, measure, view, base, bar=bar)
    return fig


def matrix_title(result: Result, measure: str, view: str, base: str = "") -> str:
    """Return what the numbers in the cells are."""
    name = MEASURES[measure]
    if view == "gap":
        return f"Lost against the own head of the column's encoder, {name} points"
    if view == "difference":
        titles = result.tables["summary"].set_index("method")["title"]
        return f"Difference to: {titles.get(base, 'the chosen method')}; {name} points"
    return f"Stitching {name}, %"


def scale(
    result: Result, *, measure: str = "accuracy", view: str = "value", base: str = ""
) -> go.Figure:
    """Return the colour scale of the matrices as a figure of its own."""
    axis, ticks, words = _colours(result, measure, view, base)
    shades = np.linspace(axis["cmin"], axis["cmax"], 120)
    fig = go.Figure(
        go.Heatmap(
            z=shades[None, :], x=shades, y=[""], colorscale=axis["colorscale"], showscale=False,
            zmin=axis["cmin"], zmax=axis["cmax"], hoverinfo="skip",
        )
    )  # fmt: skip
    layout(fig, height=64, legend=False)
    fig.update_layout(margin={"t": 12, "b": 32, "l": 12, "r": 24})
    fig.update_xaxes(tickvals=ticks, ticktext=words, showgrid=False, fixedrange=True)
    fig.update_yaxes(visible=False, fixedrange=True)
    return fig


def _names(result: Result) -> list[str]:
    return [result.summary["titles"][m] for m in result.params["models"]]


def _top(result: Result, measure: str) -> float:
    cells, native = result.tables["cells"][measure], result.tables["native"][measure]
    return float(max(cells.max(), native.max()))


def _grid(
    result: Result, method: str, measure: str, view: str, base: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return values, spreads and what the hover says, each (N, N)."""
    models = result.params["models"]

    def wide(frame: pd.DataFrame, column: str) -> np.ndarray:
        table = frame.pivot(index="i", columns="j", values=column)
        return table.loc[models, models].to_numpy(float)

    cells = result.tables["cells"]
    own = cells[cells["method"] == method]
    values, spread = wide(own, measure), wide(own, f"{measure}_sd")
    native = result.tables["native"].set_index("model").loc[models, measure].to_numpy()
    hover = np.stack([values, spread, np.broadcast_to(native, values.shape)], axis=-1)
    if view == "gap":
        return native[None, :] - values, spread, hover
    if view == "difference" and base:
        return values - wide(cells[cells["method"] == base], measure), spread * np.nan, hover
    return values, spread, hover


def _heat(
    fig: go.Figure,
    values: np.ndarray,
    spread: np.ndarray,
    names: list[str],
    place: dict[str, int],
    view: str,
) -> None:
    sign = "+" if view == "difference" else ""
    text = [
        [
            f"{100 * v:{sign}.1f}" + (f"<br>± {100 * s:.1f}" if math.isfinite(s) else "")
            for v, s in zip(row, spreads, strict=True)
        ]
        for row, spreads in zip(values, spread, strict=True)
    ]
    fig.add_heatmap(
        z=100 * values, x=np.arange(len(names)), y=np.arange(len(names)), text=text,
        texttemplate="%{text}", coloraxis="coloraxis", xgap=2, ygap=2, hoverinfo="skip", **place,
    )  # fmt: skip


def _strip(fig: go.Figure, result: Result, measure: str, place: dict[str, int], view: str) -> None:
    """Add the native heads below the matrix; differences have none."""
    if view != "value":
        return
    models = result.params["models"]
    native = result.tables["native"].set_index("model").loc[models, measure].to_numpy()
    n = len(models)
    fig.add_heatmap(
        z=100 * native[None, :], x=np.arange(n), y0=n + _NATIVE_AT, dy=1, coloraxis="coloraxis",
        texttemplate="%{z:.1f}", xgap=2, ygap=2,
        hovertemplate="own head on own features: %{z:.1f} %<extra></extra>", **place,
    )  # fmt: skip


def _overlay(fig: go.Figure, method: str, hover: np.ndarray, n: int, place: dict[str, int]) -> None:
    """Add invisible points over the cells: heat maps cannot be clicked, points can."""
    i, j = (a.ravel() for a in np.indices((n, n)))
    numbers = hover.reshape(-1, 3)
    data = [[method, int(a), int(b), *(100 * row)] for a, b, row in zip(i, j, numbers, strict=True)]
    unseen = {"marker": {"opacity": 0}}
    fig.add_scatter(
        x=j, y=i, mode="markers", customdata=data, showlegend=False,
        marker={"size": 44, "opacity": 0, "symbol": "square"}, selected=unseen, unselected=unseen,
        hovertemplate="stitched %{customdata[3]:.1f} ± %{customdata[4]:.1f} %<br>"
        "own head %{customdata[5]:.1f} %<br>click for the samples<extra></extra>", **place,
    )  # fmt: skip


def _outline(fig: go.Figure, n: int, place: dict[str, int], view: str) -> None:
    colour = "rgba(255,255,255,0.95)" if view == "value" else "rgba(60,60,60,0.9)"
    for at in range(n):
        fig.add_shape(
            type="rect", x0=at - 0.45, x1=at + 0.45, y0=at - 0.45, y1=at + 0.45,
            line={"color": colour, "width": 2}, **place,
        )  # fmt: skip


def _axes(fig: go.Figure, names: list[str], view: str, rows: int) -> None:
    n = len(names)
    ticks, labels = list(np.arange(n, dtype=float)), [_wrapped(name) for name in names]
    columns = [_wrapped(name, narrow=True) for name in names]
    if view == "value":
        ticks, labels = [*ticks, n + _NATIVE_AT], [*labels, "<i>own head</i>"]
    fig.update_yaxes(
        tickvals=ticks, ticktext=labels, range=[ticks[-1] + 0.55, -0.55], showgrid=False,
        zeroline=False, fixedrange=True,
    )  # fmt: skip
    fig.update_xaxes(
        tickvals=list(range(n)), ticktext=columns, range=[-0.55, n - 0.45], showgrid=False,
        zeroline=False, fixedrange=True, showticklabels=True, tickangle=0 if n <= 5 else -45,
        tickfont={"size": 9},
    )  # fmt: skip
    fig.update_yaxes(title={"text": "head trained on", "standoff": 14}, col=1)
    fig.update_xaxes(title={"text": "features from", "standoff": 4}, row=rows)
    fig.update_layout(dragmode=False)


def _wrapped(name: str, *, narrow: bool = False) -> str:
    """Break a name at its first space or hyphen past the middle, so that it fits a column.

    A narrow one is broken inside a compound as well, before the last inner capital.
    """
    for at, letter in enumerate(name):
        if letter in " -" and at >= 6 and len(name) > 11:
            return f"{name[: at + 1].strip()}<br>{name[at + 1 :]}"
    inner = list(re.finditer(r"(?<=[a-z])[A-Z]", name)) if narrow and len(name) > 8 else []
    if inner:
        at = inner[-1].start()
        return f"{name[:at]}<br>{name[at:]}"
    return name


def _colour(
    fig: go.Figure, result: Result, measure: str, view: str, base: str, *, bar: bool
) -> None:
    axis, ticks, words = _colours(result, measure, view, base)
    drawn = {"thickness": 12, "outlinewidth": 0, "len": 0.9, "tickvals": ticks, "ticktext": words}
    fig.update_layout(coloraxis={**axis, "showscale": bar, "colorbar": drawn})


def _colours(
    result: Result, measure: str, view: str, base: str
) -> tuple[dict[str, Any], list[float], list[str]]:
    """Return the colour axis over all methods, and its ticks with their words."""
    if view == "value":
        low = 100 * result.summary["majority"] if measure == "accuracy" else 0.0
        high = 100 * _top(result, measure)
        ticks = [t for t in range(10, 101, 10) if low + 4 < t < high]
        axis = {"colorscale": SEQUENTIAL, "cmin": low, "cmax": high}
        words = "chance" if measure == "accuracy" else "0"
        return axis, [low, *ticks], [words, *(f"{t} %" for t in ticks)]
    shown = result.tables["summary"]["method"]
    grids = [_grid(result, m, measure, view, base)[0] for m in shown]
    most = max(100 * max(float(np.abs(g).max()) for g in grids), 1.0)
    # A loss is drawn in the colour of "less", whichever way it is counted.
    stops = DIVERGING if view == "difference" else _reversed(DIVERGING)
    half = float(round(most / 2)) or 0.5
    axis = {"colorscale": stops, "cmin": -most, "cmax": most, "cmid": 0}
    return axis, [-half, 0.0, half], [f"{-half:+.0f}", "0", f"{half:+.0f} points"]


def _reversed(scale: list[list[float | str]]) -> list[list[float | str]]:
    return [[1.0 - float(at), colour] for at, colour in reversed(scale)]


def retention(result: Result) -> go.Figure:
    """Dots and intervals: what each ordered pair keeps of the native accuracy."""
    table = result.tables["advice"].sort_values("retention")
    names = result.summary["titles"]
    labels = [f"{names[i]} → {names[j]}" for i, j in zip(table["i"], table["j"], strict=True)]
    colours = {"swap": "good", "train a new head": "bad", "cannot tell": "unknown"}
    signs = {"swap": "circle", "train a new head": "x", "cannot tell": "diamond-open"}
    fig = go.Figure()
    for verdict in colours:
        at = (table["verdict"] == verdict).to_numpy()
        if not at.any():
            continue
        part = table[at]
        fig.add_scatter(
            x=100 * part["retention"], y=[x for x, keep in zip(labels, at, strict=True) if keep],
            mode="markers", name=verdict,
            marker={"color": ROLE[colours[verdict]], "size": 9, "symbol": signs[verdict]},
            error_x={
                "type": "data", "symmetric": False, "thickness": 1.4, "width": 3,
                "array": 100 * (part["high"] - part["retention"]),
                "arrayminus": 100 * (part["retention"] - part["low"]),
            },
            customdata=np.stack([100 * part["low"], 100 * part["high"]], axis=1),
            hovertemplate="%{y}<br>keeps %{x:.1f} % [%{customdata[0]:.1f}, %{customdata[1]:.1f}]"
            "<extra></extra>",
        )  # fmt: skip
    fig.add_vline(x=90, line={"color": LINE, "dash": "dot"})
    layout(
        fig, title="What each swap keeps of the native accuracy", x="kept, % [95 % interval]",
        height=max(300, 120 + 22 * len(table)),
    )  # fmt: skip
    fig.update_yaxes(categoryorder="array", categoryarray=labels)
    return fig


def similarity(result: Result, *, measure: str = "cka", height: int = 360) -> go.Figure:
    """Scatter of what a swap keeps against the similarity of the two representations."""
    words = {"cka": "linear CKA", "mutual_knn": "shared neighbours (k = 10)",
             "procrustes": "Procrustes distance"}  # fmt: skip
    names = result.summary["titles"]
    value = {frozenset((r.i, r.j)): getattr(r, measure)
             for r in result.tables["similarity"].itertuples()}  # fmt: skip
    fig = go.Figure()
    for at, (model, part) in enumerate(result.tables["advice"].groupby("i", sort=False)):
        fig.add_scatter(
            x=[value[frozenset((model, j))] for j in part["j"]], y=100 * part["retention"],
            mode="markers", name=f"head of {names[model]}",
            marker={"color": OKABE_ITO[at % 8], "symbol": SYMBOLS[at % 6], "size": 10},
            customdata=[names[j] for j in part["j"]],
            hovertemplate="features of %{customdata}<br>" + words[measure]
            + " %{x:.3f}<br>keeps %{y:.1f} %<extra></extra>",
        )  # fmt: skip
    return layout(
        fig, title="Does similarity predict what a swap keeps?", x=words[measure],
        y="kept, % of native", height=height,
    )  # fmt: skip


def confusion(result: Result, method: str, i: str, j: str) -> go.Figure:
    """Heat map of true against predicted class in one cell, in % of the true class."""
    table = _cell(result.tables["confusion"], method, i, j)
    classes = sorted(set(table["true"]) | set(table["predicted"]))
    if len(classes) > MOST_CLASSES:
        wrong = table[table["true"] != table["predicted"]]
        worst = wrong.groupby("true")["count"].sum().nlargest(MOST_CLASSES).index
        classes = sorted(worst)
    wide = table.pivot(index="true", columns="predicted", values="count")
    totals = wide.sum(axis=1)
    share = 100 * wide.div(totals, axis=0).reindex(index=classes, columns=classes).fillna(0.0)
    fig = go.Figure(
        go.Heatmap(
            z=share.to_numpy(), x=classes, y=classes, colorscale=SEQUENTIAL, zmin=0, zmax=100,
            texttemplate="%{z:.0f}", xgap=1, ygap=1,
            colorbar={"thickness": 12, "outlinewidth": 0, "ticksuffix": " %"},
            hovertemplate="%{y} called %{x}: %{z:.1f} %<extra></extra>",
        )
    )  # fmt: skip
    names = result.summary["titles"]
    layout(
        fig, title=f"Head of {names[i]} on features of {names[j]}: % of the true class",
        x="predicted", y="true", height=max(320, 150 + 26 * len(classes)), legend=False,
    )  # fmt: skip
    fig.update_yaxes(autorange="reversed", showgrid=False)
    fig.update_xaxes(showgrid=False)
    return fig


def _cell(frame: pd.DataFrame, method: str, i: str, j: str) -> pd.DataFrame:
    return frame[(frame["method"] == method) & (frame["i"] == i) & (frame["j"] == j)]
