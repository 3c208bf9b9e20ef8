"""The maps of the Explore page: one or two, linked, with the pictures of what is selected.

Small maps are plotly's, large ones our WebGL component's. A selection made on one is lit on
the other, whatever draws it; the rest turns grey.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from core.compare.columns import CLUSTERS, change_columns, cluster_column, with_columns
from core.compare.map_points import MapPoints
from core.compare.search import nearest_items
from core.data.dataset import Dataset
from core.data.export import csv_text
from core.figures import explore as figures
from core.figures.paint import Paint, paint
from core.results import Result
from core.workspace import Workspace
from pages._shell import charts, explore_view, grid, layout, map_selection, pickers, state
from pages._shell.explore_view import MOST_PLOTLY, PAGE, Choice
from pages._shell.hover_lens import hover_lens
from pages._shell.map_routes import shared_dataset, stored_map
from pages._shell.map_selection import Shown
from pages._shell.webgl_map import clicked, lassoed, webgl_map
from pages._shell.words import listed, number, plural, safe, tip

_ROWS_SHOWN = 200
_METHODS = {"pca": "PCA", "umap": "UMAP", "tsne": "t-SNE"}


@dataclass(frozen=True)
class Controls:
    """What the row above the maps says.

    Attributes
    ----------
    method, colour : str
        How the maps are made, and the column that colours them.
    column : dict of str to Series
        The colour column by id, where it is not one of the dataset's own.
    max_points : int
        Points a map draws; the rest of the dataset is left out, and the page says so.
    """

    method: str
    colour: str
    column: dict[str, pd.Series]
    max_points: int


def shared(ws: Workspace, data: Dataset) -> Dataset:
    """Return the dataset with a table that is read once, not on each run of the page."""
    return shared_dataset(str(ws.root), data.name, data.digest)


def controls(ws: Workspace, data: Dataset, choice: Choice, changed: Result | None) -> Controls:
    """Draw how the maps are made and what colours them."""
    further = _further(ws, data, choice, changed)
    offered = [*_columns(data.digest, data), *further]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        with st.container(width="content"):
            method = state.choose_one(
                PAGE,
                "map",
                "Map",
                list(_METHODS),
                show=lambda name: _METHODS[name],
                help=tip("UMAP"),
            )
        with st.container(width=260):
            colour = state.select(
                PAGE,
                "colour",
                "Colour by",
                offered,
                show=lambda name: name.replace("_", " "),
                help="Any column of the dataset, what changed between A and B, or clusters",
            )
        points = "all"
        if data.n > MOST_PLOTLY:
            with st.container(width="content"):
                points = state.choose_one(
                    PAGE,
                    "points",
                    "Points",
                    ["all", "sample"],
                    show=lambda name: "All" if name == "all" else f"{MOST_PLOTLY:,}",
                    help="All are drawn by WebGL; a sample works in every browser",
                )
    most = explore_view.most_points(data) if points == "all" and method == "pca" else MOST_PLOTLY
    column = {str(colour): further[str(colour)]} if colour in further else {}
    return Controls(str(method), str(colour), column, most)


@st.cache_data(max_entries=8, show_spinner=False)
def _columns(digest: str, _data: Dataset) -> list[str]:
    return list(figures.colour_columns(_data.items))


def _further(
    ws: Workspace, data: Dataset, choice: Choice, changed: Result | None
) -> dict[str, pd.Series]:
    found = change_columns(changed) if changed is not None else {}
    clusters = cluster_column(ws, data.name, choice.model, choice.reference)
    return found if clusters is None else {**found, CLUSTERS: clusters}


def maps(
    ws: Workspace, data: Dataset, choice: Choice, options: dict[str, Any], chosen: Controls
) -> list[Result]:
    """Return the map of each side: the method asked for where it is ready, else PCA."""
    found = []
    for _side, model, layer in choice.sides():
        wanted = {**options, "max_points": chosen.max_points}
        result = explore_view.one_map(ws, data, model, layer, chosen.method, wanted)
        if result is None and chosen.method != "pca":
            all_points = {**wanted, "max_points": explore_view.most_points(data)}
            result = explore_view.one_map(ws, data, model, layer, "pca", all_points)
        if result is not None:
            found.append(result)
    return found


@st.fragment
def linked(data: Dataset, choice: Choice, results: list[Result], chosen: Controls) -> None:
    """Draw the maps and the pictures of what is selected; a lasso reruns only this part."""
    sides = choice.sides()[: len(results)]
    root = str(state.workspace().root)
    shown = [
        Shown(side, str(result.params["method"]), stored_map(root, result.key))
        for (side, _model, _layer), result in zip(sides, results, strict=True)
    ]
    trouble = map_selection.restore(shown)
    if trouble:
        st.caption(trouble)
    if f"{PAGE}_source" not in st.session_state:
        for one in shown:
            # A chart whose lasso was there before this page said anything of it.
            if charts.picked(f"{PAGE}_map_{one.side}"):
                _take(one)
    ids = map_selection.current()
    columns = st.columns([3, 2] if len(sides) == 1 else 2, gap="medium")
    drawn = []
    for column, (_side, model, layer), one, result in zip(
        columns, sides, shown, results, strict=False
    ):
        title = f"{one.side.upper()}: {pickers.model_title(model)}, {layer}, {one.method.upper()}"
        with column:
            if len(one.points) > MOST_PLOTLY:
                _large(data, one, title, chosen, ids)
            else:
                drawn.append(_small(data, one, title, chosen, ids, result))
    hover_lens(data, drawn, key=f"{PAGE}_lens")
    with columns[1] if len(sides) == 1 else st.container():
        _selection(data, ids)
    _neighbours(data, sides, ids)


def _small(
    data: Dataset, one: Shown, title: str, chosen: Controls, ids: np.ndarray, result: Result
) -> str:
    key = f"{PAGE}_map_{one.side}"
    # The map the lasso was drawn on shows it by itself; drawing it again would clear it.
    own = st.session_state.get(f"{PAGE}_source") == one.side and bool(charts.picked(key))
    fig = figures.map_figure(
        result,
        with_columns(data.items, chosen.column),
        colour=chosen.colour,
        selected=() if own else ids,
        title=title,
    )
    # A new revision makes the chart forget its own lasso.
    fig.update_layout(selectionrevision=st.session_state.get(f"{PAGE}_cleared", 0))
    charts.figure(
        fig,
        key,
        _alt(data, one, chosen.colour),
        select=("points", "box", "lasso"),
        on_select=partial(_take, one),
    )
    return key


def _take(one: Shown) -> None:
    key = f"{PAGE}_map_{one.side}"
    outlines = charts.outlines(key)
    region = map_selection.region_of(one, outlines[0]) if len(outlines) == 1 else ""
    map_selection.take_ids(charts.picked(key), region)
    st.session_state[f"{PAGE}_source"] = one.side


def _large(data: Dataset, one: Shown, title: str, chosen: Controls, ids: np.ndarray) -> None:
    key = f"{PAGE}_map_{one.side}_large"
    colours = _paint(data.digest, one.points.key, chosen.colour, data, one.points, chosen)
    st.html(f'<p class="th-figtitle">{safe(title)}</p>')
    webgl_map(
        one.points,
        colours,
        one.points.lit(ids) if len(ids) else None,
        key=key,
        alt=_alt(data, one, chosen.colour),
        on_lasso=partial(_take_large, key, one),
        on_click=partial(_take_click, key, one),
    )
    _legend(colours, chosen.colour)


@st.cache_resource(max_entries=8, show_spinner=False)
def _paint(
    digest: str, key: str, colour: str, _data: Dataset, _points: MapPoints, _chosen: Controls
) -> Paint:
    items = with_columns(_data.items, _chosen.column)
    values = items[colour]
    own = items["id"].to_numpy()
    if len(own) != len(_points) or not np.array_equal(own, _points.ids):
        values = values.iloc[pd.Index(own).get_indexer(pd.Index(_points.ids))]
    return paint(values.reset_index(drop=True))


def _take_large(key: str, one: Shown) -> None:
    flat = lassoed(key)
    if len(flat) >= 6:
        outline = one.points.extent.back(np.asarray(flat[: len(flat) // 2 * 2]).reshape(-1, 2))
        map_selection.take_region(one, outline)
        st.session_state[f"{PAGE}_source"] = one.side


def _take_click(key: str, one: Shown) -> None:
    row = clicked(key)
    if row is not None and 0 <= row < len(one.points):
        map_selection.take_ids([int(one.points.ids[row])])
        st.session_state[f"{PAGE}_source"] = one.side


def _alt(data: Dataset, one: Shown, colour: str) -> str:
    return (
        f"Map {one.side.upper()} of {data.title}: {plural(len(one.points), 'point')} "
        f"coloured by {colour.replace('_', ' ')}"
    )


def _legend(colours: Paint, name: str) -> None:
    """Draw what the colours of a large map mean."""
    if colours.names:
        parts = [
            f'<span class="th-key"><i style="background:{shade}"></i>{safe(word)}</span>'
            for shade, word in zip(colours.palette, colours.names, strict=True)
        ]
    else:
        ramp = ", ".join(colours.palette[: len(colours.palette) - 1 : 25])
        parts = [
            f'<span class="th-key">{safe(number(colours.low))}'
            f'<i class="th-ramp" style="background:linear-gradient(90deg, {ramp})"></i>'
            f"{safe(number(colours.high))}</span>"
        ]
        if colours.missing:
            words = f"grey: {plural(colours.missing, 'item')} without a value"
            parts.append(f'<span class="th-key">{safe(words)}</span>')
    label = safe(f"Colours: {name.replace('_', ' ')}")
    st.html(f'<div class="th-keys" role="group" aria-label="{label}">{"".join(parts)}</div>')


def _selection(data: Dataset, ids: np.ndarray) -> None:
    at = grid.positions(data, ids)
    if not len(at):
        layout.state_panel(
            "Nothing selected",
            "Draw a lasso or a box on the map, or click a point, to see what lies there.",
        )
        st.caption("A sample of the data")
        grid.items(
            data, grid.sample(data, 12), key=f"{PAGE}_sample", cell=84, label="A sample of the data"
        )
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{plural(len(at), 'item')} selected**")
        st.button("Clear", key=f"{PAGE}_clear", on_click=_clear)
    layout.chips(_shares(data.items, at))
    chosen = data.items["id"].to_numpy()[at]
    grid.items(
        data, chosen, key=f"{PAGE}_picked", note_column="domain", page_size=48, label="Selected"
    )
    with st.expander("Selected items as a table"):
        head = data.items.iloc[at[:_ROWS_SHOWN]].drop(columns="sha256")
        if len(at) > _ROWS_SHOWN:
            st.caption(f"The first {_ROWS_SHOWN:,} of {len(at):,}; the file holds all of them.")
        st.dataframe(head, hide_index=True, alt="Selected items")
        st.download_button(
            "CSV",
            lambda: csv_text(data.items.iloc[at].drop(columns="sha256")).encode("utf-8", "replace"),
            "selection.csv",
            "text/csv",
            key=f"{PAGE}_rows_csv",
            on_click="ignore",
        )


def _shares(items: pd.DataFrame, at: np.ndarray) -> list[str]:
    words = []
    for column in ("label", "domain"):
        counts = items[column].iloc[at].replace("", "none").value_counts()
        words.append(listed([f"{name} {n:,}" for name, n in counts.items()], most=4))
    return words


def _clear() -> None:
    map_selection.clear()
    st.session_state[f"{PAGE}_cleared"] = st.session_state.get(f"{PAGE}_cleared", 0) + 1
    st.session_state[f"{PAGE}_source"] = ""


def _neighbours(data: Dataset, sides: list[tuple[str, str, str]], ids: np.ndarray) -> None:
    """Draw the nearest items of a single selected item, for each encoder."""
    if len(ids) != 1:
        return
    st.subheader("Nearest in the original space", anchor=False)
    neighbour_grids(data, sides, int(ids[0]), key="near")


def neighbour_grids(
    data: Dataset, sides: list[tuple[str, str, str]], item: int, *, key: str
) -> None:
    """Draw an item's nearest items under each encoder; those under both have an outline."""
    found = []
    for side, model, layer in sides:
        features = state.workspace().features.get(data.name, model)
        found.append((side, model, layer, features, *nearest_items(features, item, layer=layer)))
    both = set.intersection(*({int(i) for i in near} for *_, near, _scores in found))
    marked = both if len(found) > 1 else set()
    for column, (side, model, layer, features, near, scores) in zip(
        st.columns(len(found), gap="medium"), found, strict=True
    ):
        with column:
            st.caption(
                f"{side.upper()}: {pickers.model_title(model)}, {layer}. Exact, by cosine; "
                f"{plural(len(features), 'item')} searched"
                + (f"; outlined: near under both ({len(both)})" if len(found) > 1 else "")
            )
            grid.items(
                data,
                near,
                key=f"{PAGE}_{key}_{side}",
                scores=dict(zip(map(int, near), map(float, scores), strict=True)),
                marked=marked,
                cell=84,
                label=f"Nearest under {side.upper()}",
            )
