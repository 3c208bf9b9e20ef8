"""Figures of Explore: a map with selectable points, and the neighbours two encoders share."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from core.figures.style import (
    GRID,
    OKABE_ITO,
    ROLE,
    SEQUENTIAL,
    domain_colour,
    domain_symbol,
    layout,
)
from core.results import Result

# More categories than this cannot be told apart by colour and marker.
MOST_CATEGORIES = 16
# Captions travel with every point; above this the hover shows the id alone.
MOST_CAPTIONS = 5_000
# Below this, vector points are crisp and fast enough; above, WebGL.
_VECTOR = 3_000
OTHER = "other"


def map_figure(
    result: Result,
    items: pd.DataFrame,
    *,
    colour: str = "label",
    selected: Collection[int] = (),
    title: str = "",
    height: int = 480,
) -> go.Figure:
    """Draw a stored map; every point carries its item id as ``customdata``.

    Parameters
    ----------
    result : Result
        Of kind "explore", with a table "map".
    items : DataFrame
        The dataset's table, with ``id`` and the colour column.
    colour : str
        A column of ``items``: categories by colour and marker, numbers by a single ramp.
    selected : collection of int
        Ids that stay in full colour while the others turn grey; none selects all.
    """
    frame = result.tables["map"].merge(items, on="id", how="left", suffixes=("", "_item"))
    fig = go.Figure()
    chosen = set(map(int, selected))
    if is_ramp(frame[colour]):
        _numbers(fig, frame, colour, chosen)
    else:
        _categories(fig, frame, colour, chosen)
    layout(fig, title=title, height=height, toolbar=True)
    fig.update_layout(dragmode="lasso")
    bare = {
        "showticklabels": False,
        "zeroline": False,
        "showgrid": False,
        "mirror": True,
        "linecolor": GRID,
    }
    # Directions of a map have no unit: what counts is who is near whom.
    fig.update_xaxes(title=_axis(result, 0), **bare)
    fig.update_yaxes(title=_axis(result, 1), **bare)
    return fig


def _axis(result: Result, index: int) -> str:
    explained = result.summary.get("explained") or []
    if index < len(explained):
        return f"direction {index + 1} ({100 * explained[index]:.0f} % of the variance)"
    return ""


def is_ramp(values: pd.Series) -> bool:
    """Say whether a column is coloured by a ramp: numbers of more than a dozen values."""
    numbers = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    return bool(numbers) and values.nunique() > 12


def short_list(values: pd.Series, most: int = MOST_CATEGORIES) -> pd.Series:
    """Return the categories as text, the rarest joined as "other" past ``most``."""
    text = values.fillna("").astype(str).replace("", "none")
    counts = text.value_counts()
    if len(counts) <= most:
        return text
    kept = set(counts.index[: most - 1])
    return text.where(text.isin(kept), OTHER)


def _categories(fig: go.Figure, frame: pd.DataFrame, colour: str, chosen: set[int]) -> None:
    names = short_list(frame[colour])
    known = [name for name in sorted(names.unique()) if name != OTHER]
    for name in [*known, *([OTHER] if OTHER in set(names) else [])]:
        part = frame[names == name]
        marker = {
            "color": ROLE["null"] if name == OTHER else domain_colour(name, known),
            "symbol": domain_symbol(name, known),
        }
        _points(fig, part, len(frame), chosen, name, marker)


def _numbers(fig: go.Figure, frame: pd.DataFrame, colour: str, chosen: set[int]) -> None:
    marker = {
        "color": frame[colour].to_numpy(dtype=np.float32),
        "colorscale": SEQUENTIAL,
        "showscale": True,
        "colorbar": {
            "title": {"text": colour.replace("_", " ")},
            "thickness": 12,
            "outlinewidth": 0,
        },
    }
    _points(fig, frame, len(frame), chosen, colour, marker, legend=False)


def _points(
    fig: go.Figure,
    part: pd.DataFrame,
    total: int,
    chosen: set[int],
    name: str,
    marker: dict[str, Any],
    *,
    legend: bool = True,
) -> None:
    size = 8 if total <= 1_000 else 6 if total <= 5_000 else 3
    ids = part["id"].to_numpy(dtype=np.int32)
    words = total <= MOST_CAPTIONS and "caption" in part
    draw = go.Scatter if total <= _VECTOR else go.Scattergl
    fig.add_trace(
        draw(
            x=part["x"].to_numpy(dtype=np.float32),
            y=part["y"].to_numpy(dtype=np.float32),
            mode="markers",
            name=name,
            customdata=ids,
            text=_captions(part) if words else None,
            hovertemplate=("%{text}<br>" if words else "")
            + f"{name}, id %{{customdata}}<extra></extra>",
            marker={"size": size, "opacity": 0.8, "line": {"width": 0}, **marker},
            selectedpoints=np.flatnonzero(np.isin(ids, list(chosen))) if chosen else None,
            # A handful among thousands must be found at a glance.
            selected={"marker": {"opacity": 1.0, "size": size + (5 if len(chosen) <= 50 else 1)}},
            unselected={"marker": {"opacity": 0.22, "color": ROLE["unselected"]}},
            showlegend=legend,
        )
    )


def _captions(part: pd.DataFrame) -> list[str]:
    # Plotly reads a few tags in hover text; captions are other people's data.
    return [str(c)[:60].replace("&", "&amp;").replace("<", "&lt;") for c in part["caption"]]


def overlap_figure(result: Result, *, height: int = 300) -> go.Figure:
    """Draw how many of their neighbours the items keep between A and B, against chance."""
    k = int(result.params["k"])
    shared = np.rint(result.tables["changed"]["overlap"].to_numpy() * k).astype(int)
    counts = np.bincount(shared, minlength=k + 1)
    fig = go.Figure(
        go.Bar(
            x=np.arange(k + 1),
            y=counts,
            marker={"color": OKABE_ITO[0]},
            hovertemplate="%{y:,} items share %{x} of " + str(k) + "<extra></extra>",
        )
    )
    layout(
        fig,
        title=f"Most items {'keep' if shared.mean() > k / 2 else 'lose'} most of their neighbours",
        x=f"shared neighbours of {k}",
        y="items",
        height=height,
        legend=False,
    )
    fig.add_vline(
        x=float(result.summary["chance"]) * k,
        line={"color": ROLE["null"], "dash": "dot"},
        annotation_text="chance",
    )
    fig.update_xaxes(dtick=1 if k <= 15 else None)
    return fig


def colour_columns(items: pd.DataFrame, *, most: int = 80) -> Sequence[str]:
    """Return the columns a map can be coloured by: label, domain and split first."""
    skip = {"id", "sha256", "caption", "text"}
    first = [name for name in ("label", "domain", "split") if items[name].nunique() > 1]
    rest = [
        name
        for name in items.columns
        if name not in skip
        and name not in ("label", "domain", "split")
        and (pd.api.types.is_numeric_dtype(items[name]) or items[name].nunique() <= most)
        and items[name].nunique() > 1
    ]
    return [*first, *rest] or ["label"]
