"""The parts of the Stitching page: choices, matrices, the open cell, methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st

from core.data.dataset import Dataset
from core.figures import stitching as figures
from core.results import Result
from core.stitching.analysis import DEFAULTS, default_models, ordered
from core.stitching.heads import HEADS
from core.stitching.methods import METHODS
from core.stitching.spaces import MARK
from core.workspace import Workspace
from pages._shell import charts, grid, pickers, state
from pages._shell.layout import Tile, table
from pages._shell.words import number, percent, plural, plus_minus, safe, tip

PAGE = "stitching"
SHRINKAGES = ("auto", "lw", "0", "0.05", "0.2", "0.5", "0.8", "1")
_HIDDEN = {"id", "sha256", "split", "caption", "concept", "hexcode", "text"}
_MOST_CLASSES = 200


def choices(ws: Workspace, dataset: Dataset) -> dict[str, Any]:
    """Return everything that decides the result, from the pickers."""
    offered = pickers.models_with_features(ws, dataset.name)
    with pickers.selection("Encoders"):
        models = state.choose_many(
            PAGE,
            "models",
            "Models",
            offered,
            default=default_models(ws, dataset.name),
            show=pickers.model_title,
            help=tip("model"),
            most=10,
        )
        models = _by_domain(dataset, models)
        label = state.select(PAGE, "label", "Label", _labels(dataset), default="label")
    with pickers.settings():
        methods = state.choose_many(
            PAGE,
            "methods",
            "Methods",
            list(METHODS),
            default=DEFAULTS["methods"],
            show=lambda m: METHODS[m].title,
            help="A similarity with a kind of anchors, or one map per ordered pair.",
        )
        n_parallel = state.whole(
            PAGE,
            "parallel",
            "Parallel rows",
            low=20,
            high=100_000,
            default=DEFAULTS["n_parallel"],
            step=50,
            help="Training items known to every encoder. No labels are read from them.",
        )
        n_anchors = state.whole(
            PAGE,
            "anchors",
            "Anchors",
            low=10,
            high=768,
            default=DEFAULTS["n_anchors"],
            step=10,
            help=tip("anchors"),
        )
        n_support = state.whole(
            PAGE,
            "support",
            "Support rows",
            low=20,
            high=5000,
            default=DEFAULTS["n_support"],
            step=50,
            help="Parallel rows that may be mixed into anchors.",
        )
        shrink = state.select(
            PAGE,
            "shrink",
            "Shrinkage",
            SHRINKAGES,
            show=lambda s: {"auto": "automatic", "lw": "Ledoit-Wolf"}.get(s, s),
            help="Automatic: the candidate under which held-out pairs find themselves best.",
        )
        head = state.select(
            PAGE,
            "head",
            "Head",
            HEADS,
            show={"logistic": "logistic", "ridge": "ridge", "tanh": "the papers' (tanh)"}.get,
            help="The papers' head has one hidden layer; its batch statistics are frozen here.",
        )
        seeds = state.whole(
            PAGE,
            "seeds",
            "Seeds",
            low=1,
            high=20,
            default=DEFAULTS["seeds"],
            help="Repeats with other parallel rows, support and anchors. Time grows with them.",
        )
        seed = state.whole(PAGE, "seed", "First seed", low=0, high=9999, default=0,
                           help=tip("seed"))  # fmt: skip
    return {
        "dataset": dataset.name, "models": ordered(models), "label": label,
        "methods": [m for m in METHODS if m in methods]
        if set(methods) != set(DEFAULTS["methods"]) else list(DEFAULTS["methods"]),
        "n_parallel": n_parallel, "n_anchors": n_anchors, "n_support": n_support,
        "shrink": shrink if shrink in ("auto", "lw") else float(shrink), "head": head,
        "seeds": seeds, "seed": seed,
    }  # fmt: skip


def _by_domain(dataset: Dataset, models: list[str]) -> list[str]:
    """Return the spaces: the encoders, or each encoder on each chosen domain (language, style)."""
    items = dataset.items
    if "concept" not in items.columns or items["concept"].astype(str).eq("").all():
        return models
    domains = sorted(items["domain"].astype(str).unique())
    if len(domains) < 2 or not state.switch(
        PAGE,
        "across",
        "Across domains",
        help="A space is then an encoder on one domain, a language or a drawing style; one "
        "concept in two domains is one parallel row.",
    ):
        return models
    chosen = state.choose_many(PAGE, "domains", "Domains", domains, default=domains[:3], most=6)
    return [f"{model}{MARK}{domain}" for model in models for domain in chosen]


def _labels(dataset: Dataset) -> list[str]:
    """Return the columns that can serve as labels: more than one value, not one an item."""
    items = dataset.items
    found = [
        column
        for column in items.columns
        if column not in _HIDDEN
        and not column.startswith("name_")
        and 1 < items[column].nunique() <= min(_MOST_CLASSES, dataset.n // 4)
    ]
    return found or ["label"]


def tiles(result: Result) -> list[Tile]:
    """Return the numbers of the verdict."""
    s = result.summary
    methods = result.tables["summary"].set_index("method")
    best = methods.loc[s["preferred"]]
    ridge = methods[methods.index.isin(["ridge", "linear"])]
    against = f"; ridge map per pair {percent(ridge['accuracy'].iloc[0])}" if len(ridge) else ""
    return [
        Tile(
            "Stitching accuracy", plus_minus(s["accuracy"], s["accuracy_sd"], as_percent=True),
            f"{s['preferred_title']}, {s['pairs']} pairs{against}", help=tip("stitching accuracy"),
        ),
        Tile(
            "Kept of native", percent(s["retention"]),
            f"native {percent(s['native_mean'])}, chance {percent(s['majority'])}",
        ),
        Tile(
            "Safe swaps", f"{s['swap']} of {s['pairs']}",
            "interval above 90 % of native",
            tone="good" if s["swap"] else "unknown",
        ),
        Tile(
            "Finds itself again", percent(best["R@5"]),
            f"R@5 among {s['n']:,}; R@1 {percent(best['R@1'])}",
        ),
    ]  # fmt: skip


def pairs_note(result: Result) -> str:
    """Return the sentence on what "without retraining" needs."""
    s = result.summary
    return (
        f"No head is retrained, but {s['n_parallel']:,} parallel rows are used: items known to "
        f"all encoders, without their labels. Heads see {s['n_train']:,} labelled training items; "
        f"tested on {s['n']:,} ({s['split']}). With the pairs shuffled accuracy falls to "
        f"{percent(s['control'])}."
    )


def matrices(result: Result) -> None:
    """Draw the matrices with their toggles; a click opens a cell."""
    shown = list(result.tables["summary"]["method"])
    with st.container(horizontal=True, gap="medium"):
        measure = state.choose_one(
            PAGE,
            "measure",
            "Measure",
            list(figures.MEASURES),
            show=lambda m: {"accuracy": "Accuracy", "f1": "Macro F1"}[m],
        )
        view = state.choose_one(
            PAGE,
            "view",
            "Show",
            figures.VIEWS if len(shown) > 1 else figures.VIEWS[:2],
            show=lambda v: {
                "value": "Value",
                "gap": "Lost against native",
                "difference": "Difference to a method",
            }[v],
        )
        base = shown[-1]
        if view == "difference":
            base = state.select(
                PAGE,
                "base",
                "Difference to",
                shown,
                show=lambda m: METHODS[m].title,
                default="cosine-random" if "cosine-random" in shown else shown[-1],
            )
            shown = [m for m in shown if m != base]  # its differences to itself are all 0
    title = figures.matrix_title(result, measure, view, base)
    st.html(f'<p class="th-figtitle">{safe(title)}</p>')
    charts.figure(
        figures.scale(result, measure=measure, view=view, base=base),
        "stitching_scale",
        "Colour scale of the matrices",
    )
    per_row = 3 if len(result.params["models"]) <= 5 else 2
    for start in range(0, len(shown), per_row):
        for column, method in zip(
            st.columns(per_row), shown[start : start + per_row], strict=False
        ):
            with column:
                _panel(result, method, measure, view, base)
    st.caption(
        "Best method first; rows: head trained on, columns: features from. Outlined: the same "
        "encoder on both sides. ± is one standard deviation over seeds. Click a cell for its "
        "samples."
    )
    with st.expander("The numbers of these matrices"):
        table(result.tables["cells"], name="stitching-cells", key="stitching_cells_twin")


def _panel(result: Result, method: str, measure: str, view: str, base: str) -> None:
    # One chart a method, so that they stand below each other on a phone.
    key = f"stitching_matrix_{method}"
    fig = figures.matrix(
        result, measure=measure, view=view, base=base, methods=[method], columns=1, bar=False
    )
    charts.figure(
        fig,
        key,
        f"Stitching matrix of {METHODS[method].title}: rows are the encoder a head was trained "
        "on, columns the encoder the features come from",
        select=["points"],
        on_select=lambda: _open_cell(key),
    )


def _open_cell(key: str) -> None:
    found = charts.picked(key)
    if not found or not isinstance(found[0], list) or len(found[0]) < 3:
        return
    method, i, j = found[0][:3]
    st.session_state["stitching_pick"] = [str(method), int(i), int(j)]


def cell(
    dataset: Dataset, result: Result, cosines: Callable[[Result, str], dict[int, float]]
) -> tuple[str, str, str]:
    """Draw the open cell: what fails when stitched though the own head is right.

    ``cosines`` gives the badge of each item: how close its closest anchor is. Returns the cell.
    """
    method, i, j = _cell_choice(result)
    names = result.summary["titles"]
    failures = result.tables["failures"]
    mine = failures[
        (failures["method"] == method) & (failures["i"] == i) & (failures["j"] == j)
    ]  # fmt: skip
    row = result.tables["cells"].set_index(["method", "i", "j"]).loc[(method, i, j)]
    st.markdown(
        f"**Head of {names[i]} on features of {names[j]}**, {METHODS[method].title}: "
        f"{plus_minus(row['accuracy'], row['accuracy_sd'], as_percent=True)}, "
        f"{percent(row['retention'])} of the own head of {names[j]}. "
        f"{plural(len(mine), 'item')} of {result.summary['n']:,} fail here though that own head "
        "is right."
    )
    _alike(result, i, j)
    left, right = st.columns([6, 5], gap="medium")
    with left:
        wrong = {
            int(r.id): f"→ {r.stitched}" for r in mine.itertuples(index=False)
        }  # fmt: skip
        near = cosines(result, j)
        classes = ["all classes", *sorted(set(mine["true"]))]
        only = state.select(PAGE, "class", "True class", classes)
        if only != "all classes":
            mine = mine[mine["true"] == only]
        grid.items(
            dataset,
            mine["id"],
            key="stitching_failures",
            notes=wrong,
            scores=near,
            captions=short_captions(dataset, mine["id"]),
            page_size=24,
            cell=92,
            label="Items that fail when stitched",
        )
        if near:
            st.caption("Badge: cosine with the closest learned anchor, in whitened features.")
    with right:
        charts.figure(
            figures.confusion(result, method, i, j),
            "stitching_confusion",
            f"Confusion of the head of {names[i]} on features of {names[j]}",
        )
    return method, i, j


def _alike(result: Result, i: str, j: str) -> None:
    """Say how alike the two encoders of the open cell are."""
    table = result.tables["similarity"]
    row = table[((table["i"] == i) & (table["j"] == j)) | ((table["i"] == j) & (table["j"] == i))]
    if len(row):
        one = row.iloc[0]
        st.caption(
            f"The two encoders on the test items: linear CKA {number(one['cka'])}, shared "
            f"neighbours {number(one['mutual_knn'])} (by chance {number(one['mutual_chance'])}), "
            f"Procrustes distance {number(one['procrustes'])}."
        )


def short_captions(dataset: Dataset, ids: pd.Series) -> dict[int, str]:
    """Return the first words of each caption: the name, without its tags."""
    items = dataset.items.set_index("id").loc[list(ids)]
    return {int(i): str(c).split(",")[0] for i, c in items["caption"].items()}


def _cell_choice(result: Result) -> tuple[str, str, str]:
    """Return method and pair of the open cell: chosen by click or by the three choosers."""
    models, names = result.params["models"], result.summary["titles"]
    shown = list(result.tables["summary"]["method"])
    pick = st.session_state.pop("stitching_pick", None)
    if pick and pick[0] in shown and max(pick[1:]) < len(models):
        method, i, j = pick
        for name, value in (("method", method), ("i", models[i]), ("j", models[j])):
            st.session_state[state.key_of(PAGE, name)] = value
    worst = result.tables["summary"].set_index("method").loc[result.summary["preferred"]]
    left, middle, right = st.columns(3)
    with left:
        method = state.select(
            PAGE,
            "method",
            "Method",
            shown,
            default=result.summary["preferred"],
            show=lambda m: METHODS[m].title,
        )
    with middle:
        i = state.select(PAGE, "i", "Head trained on", models, show=names.get,
                         default=worst["worst_i"])  # fmt: skip
    with right:
        j = state.select(PAGE, "j", "Features from", models, show=names.get,
                         default=worst["worst_j"])  # fmt: skip
    return method, i, j
