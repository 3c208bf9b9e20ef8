"""A figure on the page: its title above it, words for those who cannot see it, its table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from core.figures.style import TITLE_ROOM, download_config
from pages._shell.layout import table as draw_table
from pages._shell.words import safe

Mode = Literal["points", "box", "lasso"]


def figure(
    fig: go.Figure,
    key: str,
    alt: str,
    *,
    select: Sequence[Mode] | None = None,
    on_select: Callable[[], None] | None = None,
    table: pd.DataFrame | None = None,
) -> list[int]:
    """Draw a figure and return the positions of the selected points.

    Parameters
    ----------
    fig : Figure
        From ``core/figures``, with :func:`core.figures.style.layout`, made for this drawing:
        its title is taken off and put above the chart so that it wraps on a narrow screen.
    key : str
        ``<page>_<name>``; also the file name of an export.
    alt : str
        What the figure shows, in one sentence.
    select : sequence of {"points", "box", "lasso"}, optional
        Makes points selectable.
    on_select : callable, optional
        Called before the rerun; read the state with :func:`selection`.
    table : DataFrame, optional
        The numbers of the figure: its twin for readers and screen readers.

    Returns
    -------
    list of int
        ``point_indices`` of the selection; see :func:`picked` for ``customdata``.
    """
    # Changed in place: plotly would check a copy all over again, a quarter of a redraw's time.
    title = fig.layout.title.text if fig.layout.title else None
    if title:
        st.html(f'<p class="th-figtitle">{safe(title).replace("&lt;br&gt;", " ")}</p>')
        top = fig.layout.margin.t or 0
        fig.update_layout(title={"text": ""}, margin={"t": max(10, top - TITLE_ROOM)})
    config = download_config(key.replace("_", "-"), selectable=bool(select))
    if select:
        # The mode bar of a selectable figure is always there: the legend makes room for it.
        fig.update_layout(
            clickmode="event+select",
            legend={"yref": "container", "y": 0.0, "yanchor": "bottom"},
            margin={"t": max(34, fig.layout.margin.t or 0)},
        )
        st.plotly_chart(
            fig,
            key=key,
            alt=alt,
            config=config,
            on_select=on_select or "rerun",
            selection_mode=list(select),
        )
    else:
        st.plotly_chart(fig, key=key, alt=alt, config=config)
    if table is not None and len(table):
        with st.expander("The numbers of this figure"):
            draw_table(table, name=key.replace("_", "-"), key=f"{key}_twin")
    return selection(key)


def selection(key: str) -> list[int]:
    """Return the positions selected in the chart of that key (empty when none)."""
    return [int(i) for i in _state(key).get("point_indices", [])]


def picked(key: str) -> list[Any]:
    """Return the ``customdata`` of the selected points: ids, whatever trace they are in."""
    found = []
    for point in _state(key).get("points", []):
        data = point.get("customdata") if isinstance(point, Mapping) else None
        if isinstance(data, Mapping):
            data = list(data.values())
        if isinstance(data, list | tuple):
            data = data[0] if len(data) == 1 else list(data)
        if data is not None:
            found.append(data)
    return found


def outlines(key: str) -> list[np.ndarray]:
    """Return the lassos and boxes drawn on the chart of that key, each (v, 2), in its units."""
    chosen = _state(key)
    found = []
    for shape in chosen.get("lasso", []):
        if shape.get("x") and len(shape["x"]) == len(shape.get("y", [])):
            found.append(np.column_stack([shape["x"], shape["y"]]).astype(float))
    for shape in chosen.get("box", []):
        if shape.get("x") and shape.get("y"):
            (x0, x1), (y0, y1) = (sorted(shape[axis])[:: len(shape[axis]) - 1] for axis in "xy")
            found.append(np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], dtype=float))
    return [outline for outline in found if len(outline) >= 3 and np.isfinite(outline).all()]


def _state(key: str) -> Mapping[str, Any]:
    event = st.session_state.get(key)
    if not isinstance(event, Mapping):
        return {}
    chosen = event.get("selection", {})
    return chosen if isinstance(chosen, Mapping) else {}
