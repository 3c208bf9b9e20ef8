"""The parts of the Explore page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from core import analyses
from core.compare.analysis import DEFAULTS
from core.compare.search import nearest_items
from core.data.dataset import Dataset
from core.figures import explore as figures
from core.results import Result
from core.workspace import Workspace
from pages._shell import charts, grid, jobs, layout, pickers, state
from pages._shell.layout import Tile
from pages._shell.words import count, listed, number, percent, plural, tip

PAGE = "explore"
NONE = "none"
# A larger PCA is no longer instant, so it runs as a job.
_INSTANT = 20_000

METHOD = (
    "PCA: eigenvectors of the covariance, in float64, signs fixed. UMAP: seeded, on at most 50 "
    "principal directions; for the cosine, rows are first scaled to length one. *Neighbours "
    "kept* is the mean share of the k nearest neighbours in the original space that are also "
    "among the k nearest on the map. *Shared neighbours* of A and B is the mutual "
    "k-nearest-neighbour share in the two original spaces."
)
PAPERS = (
    "McInnes, Healy and Melville, UMAP, arXiv 1802.03426. Huh et al., The Platonic "
    "Representation Hypothesis, arXiv 2405.07987."
)


@dataclass(frozen=True)
class Choice:
    """What is mapped: model and layer A, and B when there is one."""

    model: str
    layer: str
    reference: str = ""
    reference_layer: str = ""

    def sides(self) -> list[tuple[str, str, str]]:
        """Return (side, model, layer) of each map."""
        a = [("a", self.model, self.layer)]
        return a + ([("b", self.reference, self.reference_layer)] if self.reference else [])

    def titles(self) -> list[str]:
        """Return each side in words."""
        return [
            f"{side.upper()}: {pickers.model_title(model)}, {layer}"
            for side, model, layer in self.sides()
        ]


def choose(ws: Workspace, data: Dataset) -> Choice:
    """Draw the pickers of A and B."""
    model = pickers.model(ws, PAGE, data.name, label="Encoder A", default="demo/vit-s14")
    layer = _layer(ws, data, model, "layer", "Layer of A")
    others = [NONE, *pickers.models_with_features(ws, data.name)]
    reference = state.select(
        PAGE,
        "reference",
        "Encoder B",
        others,
        show=lambda name: "No second map" if name == NONE else pickers.model_title(name),
        help="A second encoder, or another layer of the same one, mapped beside A",
    )
    if reference == NONE:
        return Choice(model, layer)
    return Choice(model, layer, reference, _layer(ws, data, reference, "layer_b", "Layer of B"))


def _layer(ws: Workspace, data: Dataset, model: str, name: str, label: str) -> str:
    features = ws.features.get(data.name, model)
    if len(features.layers) == 1:
        return features.layers[0]
    return str(
        state.select(
            PAGE, name, label, features.layers, default=features.default_layer, help=tip("layer")
        )
    )


def settings() -> dict[str, Any]:
    """Draw the settings and return the analysis parameters they stand for."""
    metric = state.choose_one(
        PAGE, "metric", "Distance", ["cosine", "euclidean"], help="How near two items are"
    )
    neighbours = state.whole(
        PAGE,
        "neighbours",
        "UMAP neighbours",
        low=2,
        high=200,
        default=int(DEFAULTS["n_neighbors"]),
        help="Small shows fine groups, large the whole; a new value makes a new map",
    )
    seed = state.whole(
        PAGE, "seed", "Seed", low=0, high=10_000, default=int(DEFAULTS["seed"]), help=tip("seed")
    )
    return {"metric": metric, "n_neighbors": neighbours, "seed": seed}


def verdict(ws: Workspace, data: Dataset, choice: Choice, options: dict[str, Any]) -> None:
    """Draw the answer: what moved between A and B, or what the one map keeps."""
    if choice.reference:
        found = _moved(ws, data, choice, options)
        if found is None:
            return
        layout.verdict(
            found.headline,
            [
                Tile(
                    "shared neighbours",
                    f"{percent(found.summary['overlap'])}",
                    f"± {percent(found.summary['overlap_sd'])} over items",
                ),
                Tile("chance", percent(found.summary["chance"])),
                Tile("n", count(found.summary["n"])),
            ],
        )
        return
    found = _map(ws, data, choice.model, choice.layer, "pca", options)
    if found is not None:
        layout.verdict(
            found.headline,
            [
                Tile("variance in two directions", percent(sum(found.summary["explained"]))),
                Tile(
                    "neighbours kept",
                    percent(found.summary["kept"]),
                    f"chance {percent(found.summary['chance'])}",
                ),
                Tile(
                    "n",
                    count(found.summary["n"]),
                    f"of {number(found.summary['dim'])} numbers each",
                ),
            ],
        )


def _moved(ws: Workspace, data: Dataset, choice: Choice, options: dict[str, Any]) -> Result | None:
    params = {
        "dataset": data.name,
        "model": choice.model,
        "layer": choice.layer,
        "reference": choice.reference,
        "reference_layer": choice.reference_layer,
        "method": "moved",
        "metric": options["metric"],
    }
    return _at_once(ws, data, params, "Compare the neighbours")


def _map(
    ws: Workspace, data: Dataset, model: str, layer: str, method: str, options: dict[str, Any]
) -> Result | None:
    params = {"dataset": data.name, "model": model, "layer": layer, "method": method, **options}
    if method == "pca":
        return _at_once(ws, data, params, "Draw the map")
    return jobs.result_or_run(
        "explore",
        params,
        label=f"Make the UMAP of {pickers.model_title(model)}",
        seconds_hint=30,
        what="UMAP keeps neighbours together better than PCA. Until it is ready, PCA is shown.",
    )


def _at_once(ws: Workspace, data: Dataset, params: dict[str, Any], label: str) -> Result | None:
    if data.n <= _INSTANT:
        return analyses.run("explore", ws, **params)
    return jobs.result_or_run("explore", params, label=label, seconds_hint=20)


def controls(data: Dataset) -> tuple[str, str]:
    """Draw how the map is made and what colours it; return both."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        with st.container(width="content"):
            method = state.choose_one(
                PAGE, "map", "Map", ["pca", "umap"], show=lambda m: m.upper(), help=tip("UMAP")
            )
        with st.container(width=260):
            colour = state.select(
                PAGE,
                "colour",
                "Colour by",
                figures.colour_columns(data.items),
                show=lambda name: name.replace("_", " "),
                help="Any column of the dataset",
            )
    return str(method), str(colour)


def maps(
    ws: Workspace, data: Dataset, choice: Choice, options: dict[str, Any], method: str
) -> list[Result]:
    """Return the map of each side: UMAP where it is asked for and ready, else PCA."""
    found = []
    for _side, model, layer in choice.sides():
        result = _map(ws, data, model, layer, method, options)
        if result is None and method == "umap":
            result = _map(ws, data, model, layer, "pca", options)
        if result is not None:
            found.append(result)
    return found


@st.fragment
def linked(data: Dataset, choice: Choice, results: list[Result], colour: str) -> None:
    """Draw the maps and the pictures of what is selected; a lasso reruns only this part."""
    sides = choice.sides()[: len(results)]
    columns = st.columns([3, 2] if len(sides) == 1 else 2, gap="medium")
    for column, (side, model, layer), result in zip(columns, sides, results, strict=False):
        with column:
            _one_map(data, side, f"{pickers.model_title(model)}, {layer}", result, colour)
    with columns[1] if len(sides) == 1 else st.container():
        _selection(data)
    _neighbours(data, sides)


def _one_map(data: Dataset, side: str, name: str, result: Result, colour: str) -> None:
    key = f"{PAGE}_map_{side}"
    ids = state.selected_ids(PAGE)
    # The map the lasso was drawn on shows it by itself; drawing it again would clear it.
    own = st.session_state.get(f"{PAGE}_source") == side and bool(charts.picked(key))
    fig = figures.map_figure(
        result,
        data.items,
        colour=colour,
        selected=() if own else ids,
        title=f"{side.upper()}: {name}, {str(result.params['method']).upper()}",
    )
    # A new revision makes the chart forget its own lasso.
    fig.update_layout(selectionrevision=st.session_state.get(f"{PAGE}_cleared", 0))
    charts.figure(
        fig,
        key,
        f"Map {side.upper()} of {data.title}: {plural(len(result.tables['map']), 'point')} "
        f"coloured by {colour}",
        select=("points", "box", "lasso"),
        on_select=partial(_take, side),
    )
    if not ids and charts.picked(key):
        _take(side)


def _take(side: str) -> None:
    state.set_selected_ids(PAGE, charts.picked(f"{PAGE}_map_{side}"))
    st.session_state[f"{PAGE}_source"] = side


def _selection(data: Dataset) -> None:
    ids = state.selected_ids(PAGE)
    known = set(map(int, data.ids))
    ids = [i for i in ids if i in known]
    if not ids:
        layout.state_panel(
            "Nothing selected",
            "Draw a lasso or a box on the map, or click a point, to see what lies there.",
        )
        st.caption("A sample of the data")
        grid.items(
            data, grid.sample(data, 12), key=f"{PAGE}_sample", cell=84, label="A sample of the data"
        )
        return
    chosen = data.items[data.items["id"].isin(ids)]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{plural(len(chosen), 'item')} selected**")
        st.button("Clear", key=f"{PAGE}_clear", on_click=_clear)
    layout.chips(_shares(chosen))
    notes = {int(i): str(d) for i, d in zip(chosen["id"], chosen["domain"], strict=True)}
    grid.items(
        data, chosen["id"], key=f"{PAGE}_picked", notes=notes, page_size=48, label="Selected"
    )
    with st.expander("Selected items as a table"):
        layout.table(chosen.drop(columns="sha256"), name="selection", key=f"{PAGE}_rows")


def _neighbours(data: Dataset, sides: list[tuple[str, str, str]]) -> None:
    """Draw the nearest items of a single selected item, for each encoder."""
    ids = state.selected_ids(PAGE)
    if len(ids) != 1:
        return
    st.subheader("Nearest in the original space", anchor=False)
    columns = st.columns(len(sides), gap="medium")
    for column, (side, model, layer) in zip(columns, sides, strict=True):
        features = state.workspace().features.get(data.name, model)
        near, scores = nearest_items(features, ids[0], layer=layer)
        with column:
            st.caption(
                f"{side.upper()}: {pickers.model_title(model)}, {layer}. Exact, by cosine; "
                f"{plural(len(features), 'item')} searched"
            )
            grid.items(
                data,
                near,
                key=f"{PAGE}_near_{side}",
                scores=dict(zip(map(int, near), map(float, scores), strict=True)),
                cell=84,
                label=f"Nearest under {side.upper()}",
            )


def _clear() -> None:
    state.set_selected_ids(PAGE, [])
    st.session_state[f"{PAGE}_cleared"] = st.session_state.get(f"{PAGE}_cleared", 0) + 1
    st.session_state[f"{PAGE}_source"] = ""


def _shares(chosen: pd.DataFrame) -> list[str]:
    words = []
    for column in ("label", "domain"):
        counts = chosen[column].replace("", "none").value_counts()
        words.append(listed([f"{name} {n}" for name, n in counts.items()], most=4))
    return words


def moved(ws: Workspace, data: Dataset, choice: Choice, options: dict[str, Any]) -> None:
    """Draw the items whose neighbours changed most between A and B."""
    if not choice.reference:
        return
    found = _moved(ws, data, choice, options)
    if found is None:
        return
    st.subheader("What moved most between A and B", anchor=False)
    table = found.tables["moved"]
    left, right = st.columns([2, 3], gap="medium")
    with left:
        charts.figure(
            figures.overlap_figure(found),
            f"{PAGE}_overlap",
            "How many nearest neighbours items share between A and B",
            table=table.head(2_000),
        )
    with right:
        st.caption(f"The 24 items that share the fewest of their {found.params['k']} neighbours")
        first = table.head(24)
        grid.items(
            data,
            first["id"],
            key=f"{PAGE}_moved",
            scores={int(i): float(v) for i, v in zip(first["id"], first["overlap"], strict=True)},
            badge=lambda value: f"{100 * value:.0f} %",
            cell=84,
            label="Moved most",
        )
