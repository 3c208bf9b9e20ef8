"""One look for every figure: roles, colours, axes and export, light and dark alike.

Backgrounds are transparent and text carries no fixed colour, so the page's theme shows
through; every colour below reads on white and on near-black. A figure built with
:func:`layout` can also be written to a report, where plotly's own font colour is used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

# A role has the same colour on every page; a hue alone never says good or bad.
ROLE: dict[str, str] = {
    "within": "#0072B2",
    "cross": "#D55E00",
    "a": "#0072B2",
    "b": "#E69F00",
    "null": "#8A8F98",
    "accent": "#0072B2",
    "unselected": "#B0B0B0",
    "good": "#009E73",
    "bad": "#D55E00",
    "unknown": "#8A8F98",
}

# Okabe and Ito's palette, black replaced by a grey that also shows on a dark page; yellow
# last but one, because it is the weakest on white.
OKABE_ITO: tuple[str, ...] = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#B8A800",
    "#8A8F98",
)

# The second and third rounds differ by marker, never by a near-identical colour.
SYMBOLS: tuple[str, ...] = ("circle", "diamond", "square", "triangle-up", "cross", "x")

SEQUENTIAL = "Cividis"
DIVERGING: list[list[float | str]] = [
    [0.0, "#B35806"],
    [0.25, "#F1A340"],
    [0.5, "#F2F2F2"],
    [0.75, "#67A9CF"],
    [1.0, "#0B5A94"],
]

GRID = "rgba(128,134,145,0.18)"
LINE = "rgba(128,134,145,0.55)"
FONT = 'Source Sans, "Source Sans 3", "Segoe UI", Helvetica, Arial, sans-serif'

_AXIS = re.compile(r"[xy]axis\d*")

# Pixels a title takes inside a figure; the page lifts it out and takes them back.
TITLE_ROOM = 34


def domain_colour(name: str, all_names: Sequence[str]) -> str:
    """Return the colour of a category: fixed by its place among the sorted names.

    Parameters
    ----------
    name : str
        The category; a name outside ``all_names`` is grey.
    all_names : sequence of str
        Every category of the same column, in any order.

    Examples
    --------
    >>> domain_colour("noto", ["twemoji", "noto"])
    '#0072B2'
    """
    ordered = sorted(set(map(str, all_names)))
    if str(name) not in ordered:
        return ROLE["unknown"]
    return OKABE_ITO[ordered.index(str(name)) % len(OKABE_ITO)]


def domain_symbol(name: str, all_names: Sequence[str]) -> str:
    """Return the marker of a category: it changes each time the colours start again."""
    ordered = sorted(set(map(str, all_names)))
    if str(name) not in ordered:
        return SYMBOLS[0]
    return SYMBOLS[(ordered.index(str(name)) // len(OKABE_ITO)) % len(SYMBOLS)]


def rgba(colour: str, alpha: float) -> str:
    """Return ``#RRGGBB`` with an opacity in [0, 1].

    Examples
    --------
    >>> rgba("#0072B2", 0.25)
    'rgba(0,114,178,0.25)'
    """
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:g})"


def layout(
    fig: go.Figure,
    *,
    title: str = "",
    x: str = "",
    y: str = "",
    height: int = 360,
    legend: bool = True,
    hover: str = "closest",
    toolbar: bool = False,
) -> go.Figure:
    """Give a figure the house look and return it.

    Parameters
    ----------
    fig : Figure
        Changed in place.
    title : str
        The finding or the quantity, a short sentence. The page lifts it above the chart, so
        that it wraps on a phone; a report shows it inside the figure.
    x, y : str
        Axis titles with their unit, as ``"theta, radians"``.
    height : int
        Pixels; figures in one row have the same.
    legend : bool
        A legend on top; False when lines are labelled directly.
    hover : str
        Plotly's ``hovermode``.
    toolbar : bool
        Keep room on top for the mode bar and put the legend below: for selectable figures.
    """
    look: dict[str, Any] = {
        "height": height,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 13},
        "colorway": list(OKABE_ITO),
        "hovermode": hover,
        "hoverdistance": 12,
        "hoverlabel": {"font": {"family": FONT, "size": 13}, "align": "left"},
        "margin": {"l": 8, "r": 12, "t": _top(title, toolbar), "b": 8},
        "showlegend": legend,
        "legend": {
            "orientation": "h",
            "yanchor": "bottom",
            "y": 1.01,
            "xanchor": "left",
            "x": 0.0,
            "title": {"text": ""},
            "itemsizing": "constant",
            "font": {"size": 12},
            "bgcolor": "rgba(0,0,0,0)",
        },
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": LINE, "activecolor": ROLE["accent"]},
        "dragmode": "pan",
        "uirevision": "keep",
    }
    if toolbar:
        look["legend"] |= {"yref": "container", "y": 0.0}
    if title:
        look["title"] = {
            "text": title,
            "x": 0.0,
            "xref": "container",
            "xanchor": "left",
            "y": 1.0,
            "yref": "container",
            "yanchor": "top",
            "pad": {"l": 8, "t": 8},
            "font": {"size": 15},
        }
    for name in fig.layout:
        if _AXIS.fullmatch(name):
            look[name] = _axis(x, 8) if name[0] == "x" else _axis(y, 22)
    return _dressed(fig, look)


def _dressed(fig: go.Figure, look: dict[str, Any]) -> go.Figure:
    """Merge a look into the layout.

    Each part is merged here and set whole: plotly's own update resolves and checks every leaf
    by its path, which took ten times as long and most of a page's redraw.
    """
    whole = {}
    for name, part in look.items():
        held = fig.layout[name]
        kept = held.to_plotly_json() if hasattr(held, "to_plotly_json") else None
        whole[name] = _merged(kept, part) if isinstance(kept, dict) else part
    fig.update_layout(whole, overwrite=True)
    return fig


def _merged(held: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return both, the new one's leaves first."""
    out = dict(held)
    for name, value in new.items():
        old = out.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            out[name] = _merged(old, value)
        else:
            out[name] = value
    return out


def _top(title: str, toolbar: bool) -> int:
    return 10 + (TITLE_ROOM if title else 0) + (24 if toolbar else 0)


def _axis(title: str, standoff: int) -> dict[str, Any]:
    named = {"title": {"text": title, "standoff": standoff, "font": {"size": 13}}} if title else {}
    return named | {
        "gridcolor": GRID,
        "linecolor": LINE,
        "zerolinecolor": LINE,
        "zerolinewidth": 1,
        "ticks": "",
        "automargin": True,
        "tickfont": {"size": 12},
    }


def small_multiples(
    titles: Sequence[str],
    *,
    columns: int = 3,
    title: str = "",
    x: str = "",
    y: str = "",
    panel_height: int = 230,
    shared_x: bool = True,
    shared_y: bool = True,
) -> go.Figure:
    """Return an empty grid of panels with one set of axis titles.

    Add traces with ``row=i // columns + 1, col=i % columns + 1``; :func:`panel` gives both.
    """
    columns = max(1, min(columns, len(titles)))
    rows = max(1, math.ceil(len(titles) / columns))
    fig = make_subplots(
        rows=rows,
        cols=columns,
        subplot_titles=list(titles),
        shared_xaxes="all" if shared_x else False,
        shared_yaxes="all" if shared_y else False,
        x_title=x or None,
        y_title=y or None,
        horizontal_spacing=0.16 / columns,
        vertical_spacing=0.26 / rows if rows > 1 else 0.1,
    )
    layout(fig, title=title, height=rows * panel_height + 40, legend=False)
    fig.update_annotations(font={"size": 13})
    extra = 24 + (TITLE_ROOM if title else 0)
    fig.update_layout(margin={"t": extra, "b": 44 if x else 8, "l": 56 if y else 8})
    return fig


def panel(index: int, columns: int) -> dict[str, int]:
    """Return ``row=`` and ``col=`` of the ``index``-th panel.

    Examples
    --------
    >>> panel(4, 3)
    {'row': 2, 'col': 2}
    """
    return {"row": index // columns + 1, "col": index % columns + 1}


def empty(message: str, *, height: int = 240) -> go.Figure:
    """Return a figure that says in words why there is nothing to draw."""
    fig = layout(go.Figure(), height=height, legend=False)
    fig.update_xaxes(visible=False)
    fig.update_yaxes(visible=False)
    fig.add_annotation(
        text=message, showarrow=False, x=0.5, y=0.5, xref="paper", yref="paper", font={"size": 14}
    )
    return fig


def null_band(fig: go.Figure, low: float, high: float, *, axis: str = "y", label: str = "") -> None:
    """Shade the range a null leaves, in the null's grey, behind the data.

    Parameters
    ----------
    axis : {"x", "y"}
        The axis the range lies on.
    label : str
        A word beside the band, as ``"null"``.
    """
    add = fig.add_hrect if axis == "y" else fig.add_vrect
    span = {"y0": low, "y1": high} if axis == "y" else {"x0": low, "x1": high}
    add(
        **span,
        fillcolor=rgba(ROLE["null"], 0.18),
        line_width=0,
        layer="below",
        annotation_text=label or None,
        annotation_position="top left",
        annotation_font_size=12,
    )


def compact(fig: go.Figure, *, height: int = 220) -> go.Figure:
    """Return the figure made small for a card: no legend, no axis titles, no title."""
    fig.update_layout(height=height, showlegend=False, title=None, margin={"t": 8, "b": 8})
    fig.update_xaxes(title=None)
    fig.update_yaxes(title=None)
    return fig


def download_config(name: str, *, selectable: bool = False) -> dict[str, Any]:
    """Return plotly's config: a quiet mode bar with SVG and PNG export.

    Parameters
    ----------
    name : str
        File name without its ending.
    selectable : bool
        Keep lasso and box in the mode bar.
    """
    drop = ["autoScale2d", "zoomIn2d", "zoomOut2d"]
    if not selectable:
        drop += ["lasso2d", "select2d"]
    return {
        "displaylogo": False,
        "displayModeBar": True if selectable else "hover",
        "modeBarButtonsToRemove": drop,
        "toImageButtonOptions": {"format": "svg", "filename": name, "scale": 2},
        "scrollZoom": selectable,
        "responsive": True,
    }
