"""Explore's view "Search": what is like an item, like words, or like a picture of one's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from core.compare import query
from core.compare.index import METRICS, Index, build, found
from core.data.dataset import Dataset
from core.errors import UserError
from core.types import Features
from core.workspace import Workspace
from pages._shell import explore_view, grid, layout, pickers, state
from pages._shell.words import as_text, count, number, percent, plural

PAGE = "explore"
QUESTION = "What is like this?"
ASK = {"item": "An item", "words": "Words", "picture": "A picture"}
_OFFERED = 200  # items in the drop-down
_LAYERS = 6  # rows of results across layers
READ = (
    "Nearest first, in the original space of the layer, never on the map. The badge is the cosine "
    "(1 is the same direction) or the distance.",
    "Outlined items are found under both encoders.",
    "Words find pictures only under an encoder that was trained on both.",
)
MISLEADS = (
    "A search always finds something: look at the scores before you believe the first row.",
    "Scores of two encoders have different scales and cannot be compared; the items can.",
    "Above 200,000 items the search is approximate; the share of true neighbours it finds is "
    "written above the results.",
)
METHOD = (
    "FAISS. Up to 200,000 items every row is compared; above, an inverted file whose reach is "
    "widened until 95 % of the true 10 nearest of a sample of 200 items are found. Rows that are "
    "not finite, or zero under the cosine, are left out."
)
Hit = tuple[np.ndarray, np.ndarray]


def draw(ws: Workspace, data: Dataset, top: Any) -> None:
    """Draw the view; ``top`` is the container of the page's question."""
    with st.sidebar:
        choice = explore_view.choose(ws, data)
    with pickers.settings():
        metric = state.choose_one(PAGE, "metric", "Distance", list(METRICS))
        k = state.whole(PAGE, "found", "Items to find", low=1, high=200, default=24)
    with top:
        layout.header(QUESTION, [data.title, *choice.titles(), plural(data.n, "item")])
    asked = _question(ws, data, choice)
    if asked is None:
        return
    layers = choice.sides()
    deep = len(ws.features.get(data.name, choice.model).layers) > 1 and asked[0] != "words"
    if deep and state.switch(
        PAGE, "across", "Across the layers of A",
        help="The same question at several depths of encoder A",
    ):  # fmt: skip
        layers = _depths(ws, data, choice.model)
    _results(ws, data, layers, asked, metric, k)
    layout.explain(read=READ, misleads=MISLEADS, method=METHOD)


def _question(ws: Workspace, data: Dataset, choice: explore_view.Choice) -> tuple[str, Any] | None:
    """Draw how to ask; return the kind and the question, or None while there is none."""
    kinds = ["item"]
    if data.kind == "image":
        kinds += ["words", "picture"]
    kind = state.choose_one(PAGE, "ask", "Search by", kinds, show=lambda name: ASK[name])
    if kind == "words":
        text = st.text_input(
            "Words", key=f"{PAGE}_words", max_chars=query.MAX_WORDS, bind="query-params",
            placeholder="a red fruit",
        )  # fmt: skip
        if not any(query.text_tower(model) for _, model, _ in choice.sides()):
            layout.state_panel(
                "Neither encoder reads words",
                "Choose the image tower of a dual encoder as A or B, for instance LiT CNN.",
            )
            return None
        return ("words", text) if text.strip() else _wait("Say what to look for")
    if kind == "picture":
        sent = st.file_uploader(
            "A picture of yours", type=["png", "jpg", "jpeg", "webp", "bmp", "gif"],
            key=f"{PAGE}_picture",
            help="It is read for this search only, and is no part of the address",
        )  # fmt: skip
        if sent is None:
            return _wait("Choose a picture")
        st.image(sent, width=120, caption="The question")
        return "picture", (sent.getvalue(), sent.name)
    return _item(data)


def _wait(words: str) -> None:
    layout.state_panel(words, "The nearest items appear here, under each encoder.")


def _item(data: Dataset) -> tuple[str, int] | None:
    items = data.items
    left, right = st.columns([2, 3], gap="medium", vertical_alignment="bottom")
    with left:
        text = st.text_input(
            "Find an item", key=f"{PAGE}_find", bind="query-params", placeholder="part of a caption"
        )
    if text.strip():
        items = items[items["caption"].str.contains(text.strip(), case=False, regex=False)]
    if items.empty:
        return _wait("No caption holds these words")
    one = state.selected_ids(PAGE)
    head = items.head(_OFFERED)
    ids = [int(i) for i in head["id"]]
    if len(one) == 1 and one[0] in set(map(int, data.ids)) and not text.strip():
        ids = [one[0], *(i for i in ids if i != one[0])]
    rows = data.items.set_index("id").loc[ids]
    names = {
        i: f"{caption or label or 'item'} · {domain} · {i}"
        if domain
        else f"{caption or label} · {i}"
        for i, caption, label, domain in zip(
            ids, rows["caption"], rows["label"], rows["domain"], strict=True
        )
    }
    with right:
        which = state.select(
            PAGE, "item", f"Item ({count(len(items))} match)", ids, show=names.__getitem__
        )
    return "item", int(which)


def _depths(ws: Workspace, data: Dataset, model: str) -> list[tuple[str, str, str]]:
    layers = ws.features.get(data.name, model).layers
    at = np.unique(np.linspace(0, len(layers) - 1, min(_LAYERS, len(layers))).round().astype(int))
    return [("a", model, layers[i]) for i in at]


def _results(
    ws: Workspace, data: Dataset, sides: list[tuple[str, str, str]], asked: tuple[str, Any],
    metric: str, k: int,
) -> None:  # fmt: skip
    if asked[0] == "item":
        grid.items(data, [asked[1]], key=f"{PAGE}_asked", cell=104, label="The question")
    hits: list[Hit | UserError] = []
    notes: list[str] = []
    for _, model, layer in sides:
        features = ws.features.get(data.name, model)
        try:
            hit, note = _one(ws, features, layer, asked, metric, k)
        except UserError as error:
            hits, notes = [*hits, error], [*notes, ""]
            continue
        hits, notes = [*hits, hit], [*notes, note]
    good = [set(map(int, hit[0])) for hit in hits if not isinstance(hit, UserError)]
    both = set.intersection(*good) if len(good) > 1 else set()
    _answer(sides, good, both)
    across = len(sides) > 2 or (len(sides) == 2 and sides[0][0] == sides[1][0])
    places = [st.container() for _ in sides] if across else st.columns(len(sides), gap="medium")
    for at, (place, side, hit, note) in enumerate(zip(places, sides, hits, notes, strict=True)):
        with place:
            _side(data, side, hit, note, both, at)


def _answer(sides: list[tuple[str, str, str]], good: list[set[int]], both: set[int]) -> None:
    if len(good) < 2:
        return
    what = "the two" if len(sides) == 2 else f"all {len(sides)} layers"
    most = max(len(ids) for ids in good)
    layout.verdict(f"{len(both)} of the {most} nearest items are the same under {what}.")


def _side(
    data: Dataset,
    side: tuple[str, str, str],
    hit: Hit | UserError,
    note: str,
    both: set[int],
    at: int,
) -> None:
    title = f"{side[0].upper()}: {pickers.model_title(side[1])}, {side[2]}"
    st.markdown(f"**{as_text(title)}**")
    if isinstance(hit, UserError):
        layout.state_panel("No answer from this encoder", hit.message, hit.hint)
        return
    st.caption(as_text(note))
    ids, scores = hit
    domains = data.items.set_index("id")["domain"]
    grid.items(
        data, ids, key=f"{PAGE}_found_{at}", marked=both, cell=84, page_size=48,
        scores=dict(zip(map(int, ids), map(float, scores), strict=True)),
        badge=number,
        notes={int(i): str(domains.get(int(i), "")) for i in ids},
        label=f"Nearest under {title}",
    )  # fmt: skip


def _one(
    ws: Workspace, features: Features, layer: str, asked: tuple[str, Any], metric: str, k: int
) -> tuple[Hit, str]:
    """Return the ids and scores of one side, and how they were found."""
    kind, question = asked
    if kind == "item":
        row = query.item(features, layer, question)
    else:
        with st.spinner("Asking the encoder; the first question loads it"):
            if kind == "words":
                row, layer = query.words(ws, features, question), features.default_layer
            else:
                row = query.picture(ws, features, layer, *question)
    index = _index(features.key, layer, metric, features)
    # One more than asked for: the item itself is among its nearest.
    rows, scores = index.search(row[None], k=k + (kind == "item"))
    rows, scores = found(rows[0], scores[0])
    ids = features.ids[rows]
    if kind == "item":
        other = ids != question
        ids, scores = ids[other], scores[other]
    return (ids[:k], scores[:k]), _how(index)


@st.cache_resource(max_entries=16, show_spinner="Preparing the search")
def _index(key: str, layer: str, metric: str, _features: Features) -> Index:
    return build(_features.layer(layer), metric=metric)


def _how(index: Index) -> str:
    parts = [f"{plural(len(index.rows), 'item')} searched, by {index.metric}"]
    if index.kind == "flat":
        parts.append("exact")
    else:
        parts.append(
            f"approximate ({index.kind.upper()}): {percent(index.recall)} of the true 10 nearest "
            f"found, on {count(index.sampled)} items"
        )
    if index.not_finite:
        parts.append(f"left out: {count(index.not_finite)} not finite")
    if index.zero:
        parts.append(f"left out: {count(index.zero)} without direction (zero)")
    return " · ".join(parts)
