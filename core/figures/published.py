"""Figures of published accuracies: the models' scatter and rho by stratum and test set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.figures.style import (
    DIVERGING,
    ROLE,
    domain_colour,
    layout,
    panel,
    small_multiples,
)
from core.quality.published import PublishedPanel
from core.quality.registry import ARCHITECTURES, AXES, OBJECTIVES, TEST_SETS, cell_title

SYMBOL = {"supervised": "circle", "ssl": "diamond", "vision_language": "square"}
HEADING = "published accuracies, not computed here"
# Above this many points the browser draws them on the graphics card.
MANY = 2500
HATCH = {"color": "rgba(255,255,255,0.55)", "width": 1.2}


def axis_title(name: str) -> str:
    """Return the words of an axis: a property of the models or a published cell."""
    return AXES[name] if name in AXES else f"{cell_title(name)}, percent"


def rho_text(row: pd.Series | Mapping[Any, Any]) -> str:
    """Return ``rho [lo, hi] stars, n, G`` of a cell in words."""
    if row["status"] == "n/a":
        return f"rho n/a, n {row['n']:.0f}, {row['n_clusters']:.0f} families"
    few = " (few families)" if row["status"] == "few families" else ""
    return (
        f"rho {row['rho']:.2f} [{row['lo']:.2f}, {row['hi']:.2f}]{row['stars']}{few}, "
        f"n {row['n']:.0f}, {row['n_clusters']:.0f} families"
    )


def scatter(
    data: PublishedPanel,
    cells: Sequence[str],
    *,
    x: str = "params_M",
    ranks: bool = False,
    pinned: str = "",
    height: int = 480,
) -> go.Figure:
    """Draw every model: a property against published accuracy, one panel a cell.

    Models without a number in a cell lie on a grey rug below it, so that all are there.
    """
    many = len(cells) > 1
    found = data.correlations[data.correlations["stratum"] == "All"].set_index("target")
    if many:
        columns = 3 if len(cells) > 4 else 2
        names = [TEST_SETS.get(c.split("|")[1], c) for c in cells]
        fig = small_multiples(
            names, columns=columns, x=_ranked(axis_title(x), ranks), y=_ranked("percent", ranks),
            panel_height=250, shared_y=False,
        )  # fmt: skip
    else:
        columns, fig = 1, go.Figure()
    kind = go.Scattergl if len(data.table) * len(cells) > MANY else go.Scatter
    for at, cell in enumerate(cells):
        where = panel(at, columns) if many else {}
        for trace in _points(data.table, cell, x, ranks, pinned, kind):
            fig.add_trace(trace, **where)
        if many and cell in found.index:
            _label(fig, at, rho_text(found.loc[cell]))
    if x in ("params_M", "embed_dim") and not ranks:
        fig.update_xaxes(type="log", dtick=1 if x == "params_M" else None)
    if not many:
        words = rho_text(found.loc[cells[0]]) if cells[0] in found.index else ""
        title = f"{cell_title(cells[0])}: {HEADING}"
        layout(
            fig,
            title=f"{title}. {words}",
            x=_ranked(axis_title(x), ranks),
            y=_ranked("published accuracy, percent", ranks),
            height=height,
        )
    _legend(fig, data.table)
    fig.update_layout(showlegend=True, legend={"itemclick": False, "itemdoubleclick": False})
    if many:
        fig.update_layout(margin={"t": 96, "b": 58}, height=(fig.layout.height or 400) + 64)
        fig.update_layout(legend={"y": 1.0, "yref": "container", "yanchor": "top"})
    return fig


def _ranked(words: str, ranks: bool) -> str:
    return f"rank of {words}" if ranks else words


def _points(
    table: pd.DataFrame, cell: str, x: str, ranks: bool, pinned: str, kind: Any
) -> list[Any]:
    """Return the traces of one panel: the models with a number, the rug, the pinned one."""
    known = table[cell].notna() & table[x].notna()
    shown = table[known]
    across, up = shown[x].astype(float), shown[cell].astype(float)
    if ranks:
        across, up = across.rank(), up.rank()
    out = [
        kind(
            x=across,
            y=up,
            mode="markers",
            marker={
                "color": [domain_colour(a, ARCHITECTURES) for a in shown["arch_class"]],
                "symbol": [SYMBOL[o] for o in shown["objective_group"]],
                "size": 6 + 5 * np.clip(np.log10(shown["params_M"].clip(lower=1)), 0, 3.2),
                "opacity": 0.78,
                "line": {"width": 0.6, "color": "rgba(255,255,255,0.7)"},
            },
            customdata=shown[["id", "family", "params_M", "embed_dim"]].assign(v=shown[cell]),
            hovertemplate="%{customdata[0]}<br>%{customdata[4]:.1f} % published"
            "<br>%{customdata[2]:.1f} M parameters<br>width %{customdata[3]}<extra></extra>",
            showlegend=False,
        )
    ]
    rest = table[~known & table[x].notna()]
    if len(rest) and not ranks:
        floor = float(up.min()) - 0.08 * max(float(np.ptp(up)), 1.0) if len(shown) else 0.0
        out.append(
            kind(
                x=rest[x],
                y=np.full(len(rest), floor),
                mode="markers",
                marker={"symbol": "line-ns-open", "size": 9, "color": ROLE["unselected"]},
                customdata=rest[["id", "params_M"]],
                hovertemplate="%{customdata[0]}<br>%{customdata[1]:.1f} M parameters"
                "<br>no published number here<extra></extra>",
                showlegend=False,
            )
        )
    mine = shown["id"] == pinned
    if mine.any():
        out.append(
            kind(
                x=across[mine],
                y=up[mine],
                mode="markers",
                marker={
                    "symbol": "circle-open", "size": 24, "color": ROLE["cross"],
                    "line": {"width": 3},
                },
                hoverinfo="skip",
                showlegend=False,
            )
        )  # fmt: skip
    return out


def _label(fig: go.Figure, at: int, words: str) -> None:
    # The panel's own title is its at-th annotation; rho goes on a line below it.
    title = fig.layout.annotations[at]
    short = words.replace(" families", " fam.").replace(" (few families)", "")
    title.update(text=f"{title.text}<br><span style='font-size:11px'>{short}</span>")


def _legend(fig: go.Figure, table: pd.DataFrame) -> None:
    """Add one entry an architecture class and one an objective, without data."""
    for name in ARCHITECTURES:
        if (table["arch_class"] == name).any():
            _entry(fig, name, "circle", domain_colour(name, ARCHITECTURES))
    for key, words in OBJECTIVES.items():
        if (table["objective_group"] == key).any():
            _entry(fig, words, SYMBOL[key], ROLE["null"])


def _entry(fig: go.Figure, name: str, symbol: str, colour: str) -> None:
    fig.add_trace(
        go.Scatter(
            x=[None],
            y=[None],
            mode="markers",
            name=name,
            marker={"symbol": symbol, "color": colour, "size": 10},
        )
    )


def heatmap(data: PublishedPanel, cells: Sequence[str], *, height: int = 0) -> go.Figure:
    """Draw rho of every stratum and test set, hatched where there are few families.

    Blue is positive, brown negative; the text shrinks with the cells and the table beside the
    figure has every number.
    """
    rows = data.correlations
    names = list(dict.fromkeys(rows["stratum"]))[::-1]
    grid = rows.set_index(["stratum", "target"])
    z = np.array([[grid.loc[(s, c), "rho"] for c in cells] for s in names], dtype=float)
    words = [[_cell_text(grid.loc[(s, c)]) for c in cells] for s in names]
    hover = [[rho_text(grid.loc[(s, c)]) for c in cells] for s in names]
    columns = [TEST_SETS.get(c.split("|")[1], c) for c in cells]
    fig = go.Figure(
        go.Heatmap(
            z=z,
            x=list(range(len(cells))),
            y=list(range(len(names))),
            text=words,
            customdata=hover,
            texttemplate="%{text}",
            hovertemplate="%{customdata}<extra></extra>",
            colorscale=DIVERGING,
            showscale=False,
            zmin=-1,
            zmid=0,
            zmax=1,
            xgap=2,
            ygap=2,
        )
    )
    few = [
        (i, j)
        for j, s in enumerate(names)
        for i, c in enumerate(cells)
        if grid.loc[(s, c), "status"] == "few families"
    ]
    _hatch(fig, few)
    _missing(fig, z, hover)
    fig.update_xaxes(tickmode="array", tickvals=list(range(len(cells))), ticktext=columns)
    fig.update_yaxes(tickmode="array", tickvals=list(range(len(names))), ticktext=names)
    layout(
        fig,
        title=f"{axis_title(str(rows['metric'].iloc[0])).capitalize()}: rho in each stratum",
        height=height or 46 * len(names) + 90,
        legend=False,
    )
    fig.update_xaxes(showgrid=False, zeroline=False, tickangle=None)
    fig.update_yaxes(showgrid=False, zeroline=False)
    return fig


def _cell_text(row: pd.Series) -> str:
    if row["status"] == "n/a":
        return ""
    return f"<b>{row['rho']:.2f}{row['stars']}</b><br>[{row['lo']:.2f}, {row['hi']:.2f}]"


def _hatch(fig: go.Figure, few: Sequence[tuple[int, int]]) -> None:
    x: list[float | None] = []
    y: list[float | None] = []
    half = 0.46
    for i, j in few:
        for shift in (-0.6, -0.3, 0.0, 0.3, 0.6):  # the lines y = x + shift, cut at the cell
            left, right = max(-half, -half - shift), min(half, half - shift)
            x += [i + left, i + right, None]
            y += [j + left + shift, j + right + shift, None]
    if few:
        fig.add_scatter(x=x, y=y, mode="lines", line=HATCH, hoverinfo="skip")


def _missing(fig: go.Figure, z: np.ndarray, hover: Sequence[Sequence[str]]) -> None:
    """Write n/a where there is no number; a heat map has no hover there."""
    gone = [(i, j) for j in range(z.shape[0]) for i in range(z.shape[1]) if np.isnan(z[j, i])]
    if gone:
        fig.add_scatter(
            x=[i for i, _ in gone],
            y=[j for _, j in gone],
            mode="text",
            text="n/a",
            textfont={"size": 11, "color": ROLE["null"]},
            customdata=[hover[j][i] for i, j in gone],
            hovertemplate="%{customdata}<extra></extra>",
        )
