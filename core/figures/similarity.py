"""Figures of the similarity of representations: the matrix, and pairs with their intervals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.figures.style import OKABE_ITO, ROLE, SEQUENTIAL, layout
from core.results import Result

MOST_PAIRS = 40
_WRITTEN = 14  # cells a side that still hold a number

Show = Callable[[str], str]


def matrix(result: Result, *, show: Show = str) -> go.Figure:
    """Draw the similarity of every row with every column; a space with itself is 1.

    Parameters
    ----------
    result : Result
        Of kind "similarity".
    show : callable
        Encoder id to the name people read.
    """
    rows, columns = result.summary["rows"], result.summary["columns"]
    grid, hover = _cells(result, show)
    small = max(len(rows), len(columns)) <= _WRITTEN
    text = [["" if np.isnan(v) else f"{v:.2f}" for v in line] for line in grid]
    names = [[_axis(result, space, show) for space in side] for side in (rows, columns)]
    fig = go.Figure(
        go.Heatmap(
            z=[[None if np.isnan(v) else float(v) for v in line] for line in grid],
            x=list(range(len(columns))), y=list(range(len(rows))),
            colorscale=SEQUENTIAL, zmin=0, zmax=1,
            text=text, texttemplate="%{text}" if small else None, customdata=hover,
            xgap=1, ygap=1, hoverongaps=False, hovertemplate="%{customdata}<extra></extra>",
            colorbar={"thickness": 12, "outlinewidth": 0, "len": 0.9},
        )
    )  # fmt: skip
    height = max(340, 190 + (34 if small else 22) * len(rows))
    layout(fig, title=f"Similarity: {result.summary['title']}", height=height, legend=False)
    fig.update_yaxes(
        tickvals=list(range(len(rows))), ticktext=names[0], autorange="reversed", showgrid=False,
        zeroline=False, fixedrange=True, title={"text": _side(result, "model", show)},
    )  # fmt: skip
    fig.update_xaxes(
        tickvals=list(range(len(columns))), ticktext=names[1], showgrid=False, zeroline=False,
        fixedrange=True, tickangle=-45, title={"text": _side(result, "reference", show)},
    )  # fmt: skip
    return fig.update_layout(dragmode=False)


def pairs(result: Result, *, show: Show = str) -> go.Figure:
    """Draw similarities with 95 % intervals beside chance: which pairs, see :func:`shown_pairs`."""
    table, title = shown_pairs(result)
    labels = [_pair(result, row, show) for row in table.to_dict("records")]
    fig = go.Figure()
    fig.add_scatter(
        x=table["chance_high"], y=labels, mode="markers", name="chance, 95th percentile",
        marker={"symbol": "line-ns-open", "size": 12, "color": ROLE["null"],
                "line": {"width": 2, "color": ROLE["null"]}},
        hovertemplate="%{y}<br>by chance below %{x:.3f} in 95 %<extra></extra>",
    )  # fmt: skip
    fig.add_scatter(
        x=table["value"], y=labels, mode="markers", name="similarity, 95 % interval",
        marker={"color": OKABE_ITO[0], "size": 9},
        error_x={"type": "data", "symmetric": False, "thickness": 1.4, "width": 3,
                 "array": table["high"] - table["value"],
                 "arrayminus": table["value"] - table["low"]},
        customdata=np.stack([table["low"], table["high"]], axis=1),
        hovertemplate="%{y}<br>%{x:.3f} [%{customdata[0]:.3f}, %{customdata[1]:.3f}]"
        "<extra></extra>",
    )  # fmt: skip
    layout(
        fig, title=title, x=f"{result.summary['title']}, no unit",
        height=max(340, 150 + 24 * len(table)),
    )  # fmt: skip
    fig.update_yaxes(
        categoryorder="array", categoryarray=labels[::-1], range=[-0.7, len(labels) - 0.3]
    )
    return fig


def shown_pairs(result: Result) -> tuple[pd.DataFrame, str]:
    """Return the pairs worth drawing one by one, and what they are.

    Encoders: every pair, the most alike first. Layers of one encoder: each with the next.
    Layers of two: each layer of A with the layer of B most like it.
    """
    table = result.tables["pairs"].dropna(subset="value")
    params = result.params
    if params["method"] == "encoders":
        ranked = table.sort_values("value", ascending=False, kind="stable")
        return ranked.head(MOST_PAIRS), "Pairs of encoders, the most alike first"
    if params["model"] != params["reference"]:
        best = table.loc[table.groupby("layer_a", sort=False)["value"].idxmax()]
        return best, "Each layer of A with the layer of B most like it"
    order = {space[1]: at for at, space in enumerate(result.summary["rows"])}
    step = table["layer_b"].map(order) - table["layer_a"].map(order)
    return table[step == 1], "Each layer and the next: where the representation changes"


def _cells(result: Result, show: Show) -> tuple[np.ndarray, list[list[str]]]:
    rows, columns = result.summary["rows"], result.summary["columns"]
    known = {}
    for r in result.tables["pairs"].to_dict("records"):
        one, other = (r["a"], r["layer_a"]), (r["b"], r["layer_b"])
        known[one, other] = known[other, one] = r
    grid = np.full((len(rows), len(columns)), np.nan)
    hover = []
    for i, row in enumerate(rows):
        line = []
        for j, column in enumerate(columns):
            names = f"{_full(row, show)}<br>{_full(column, show)}"
            found = known.get((tuple(row), tuple(column)))
            if found is None:
                grid[i, j] = 1.0
                line.append(f"{names}<br>the same")
            elif np.isnan(found["value"]):
                line.append(f"{names}<br>n/a: one of them does not vary")
            else:
                grid[i, j] = found["value"]
                line.append(
                    f"{names}<br>{found['value']:.3f} [{found['low']:.3f}, {found['high']:.3f}]"
                    f"<br>by chance below {found['chance_high']:.3f}"
                )
        hover.append(line)
    return grid, hover


def _full(space: list[str], show: Show) -> str:
    return f"{show(space[0])}, {space[1]}"


def _axis(result: Result, space: list[str], show: Show) -> str:
    return show(space[0]) if result.params["method"] == "encoders" else space[1]


def _side(result: Result, name: str, show: Show) -> str:
    if result.params["method"] == "encoders":
        return "encoder"
    return f"layers of {show(result.params[name])}"


def _pair(result: Result, row: dict[str, str], show: Show) -> str:
    if result.params["method"] == "encoders":
        return f"{show(row['a'])} · {show(row['b'])}"
    return f"{row['layer_a']} · {row['layer_b']}"
