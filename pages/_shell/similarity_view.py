"""Explore's view "Similarity": how alike encoders, or layers, are, with intervals and chance."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.compare.measures import MEASURES
from core.compare.similarity import DEFAULTS
from core.data.dataset import Dataset
from core.figures import similarity as figures
from core.results import Result
from core.workspace import Workspace
from pages._shell import charts, jobs, layout, pickers, state
from pages._shell.layout import Tile
from pages._shell.words import count, plural, tip

PAGE = "explore"
QUESTION = "How alike are the representations?"
TITLES = {"cka": "CKA", "cka-rbf": "CKA, RBF", "knn": "Neighbours", "rsa": "RSA",
          "procrustes": "Procrustes"}  # fmt: skip
WHAT = {"encoders": "Encoders", "layers": "Layers"}
READ = (
    "1 is the same up to rotation, scale and shift; about 0 is unrelated. The brackets are 95 % "
    "intervals.",
    "The grey tick is what 95 % of random pairings of the same items stay below: read a "
    "similarity against it, above all Procrustes.",
    "CKA and RSA weigh the large structure (classes, styles), neighbours the small. Two encoders "
    "can agree on one and not on the other.",
)
MISLEADS = (
    "It is a similarity on these items. Items of one kind make encoders look more alike than "
    "they are elsewhere, or less.",
    "A few directions of large variance can decide CKA and Procrustes alone.",
    "Alike is not as good: a head may transfer worse than the similarity says. Stitching measures "
    "that.",
)
METHOD = """
**CKA**: HSIC(K, L) / √(HSIC(K, K) HSIC(L, L)) with the unbiased HSIC, which is about 0 for
unrelated features even when dimensions outnumber items; linear kernel, or Gaussian with the
median distance as width. **Neighbours**: mean share of common k nearest neighbours, by cosine.
**RSA**: Spearman's correlation of the dissimilarities (1 − Pearson) of all pairs of items.
**Procrustes**: nuclear norm of AᵀB, centred, each of norm 1. **Intervals**: ±1.96 deviations by
the delete-d jackknife, from subsamples drawn without replacement (a bootstrap would draw copies,
which are their own nearest neighbours); whole concepts are drawn where the data name them.
**Chance**: the items of one side in random order, on one subsample; q is the false discovery rate
over the pairs.
"""
PAPER = (
    "Kornblith et al., arXiv 1905.00414. Song et al., JMLR 13, 2012, Eq. 5. Huh et al., arXiv "
    "2405.07987. Kriegeskorte et al., 2008, doi 10.3389/neuro.06.004.2008. Ding et al., arXiv "
    "2108.01661. Shao and Wu, Annals of Statistics 17(3), 1989."
)


def draw(ws: Workspace, data: Dataset, top: Any) -> None:
    """Draw the view; ``top`` is the container of the page's question."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        with st.container(width="content"):
            method = state.choose_one(
                PAGE, "between", "Compare", list(WHAT), show=lambda name: WHAT[name]
            )
        with st.container(width="content"):
            measure = state.choose_one(
                PAGE, "measure", "Similarity", list(MEASURES), show=lambda name: TITLES[name],
                help="CKA and RSA see the large structure, neighbours the small",
            )  # fmt: skip
    params = {"dataset": data.name, "method": method, "measure": measure}
    with st.sidebar:
        params |= _encoders(ws, data) if method == "encoders" else _layers(ws, data)
    with pickers.settings():
        params |= _settings(measure)
    with top:
        layout.header(QUESTION, [data.title, MEASURES[measure].title, _shown(params)])
    if method == "encoders" and _too_few(ws, data, params):
        return
    result = jobs.result_or_run(
        "similarity", params, label="Compare the representations", seconds_hint=60,
        what="How alike each pair is, with its interval and what chance would give.",
    )  # fmt: skip
    if result is not None:
        _answer(result)


def _encoders(ws: Workspace, data: Dataset) -> dict[str, Any]:
    chosen = pickers.models(ws, PAGE, data.name, name="encoders", label="Encoders")
    # All of them is the default, whatever is added later: the shipped answer's key.
    every = pickers.models_with_features(ws, data.name)
    return {"models": [] if len(chosen) == len(every) else chosen}


def _layers(ws: Workspace, data: Dataset) -> dict[str, Any]:
    several = [
        m for m in pickers.models_with_features(ws, data.name)
        if len(ws.features.get(data.name, m).layers) > 1
    ]  # fmt: skip
    model = pickers.model(
        ws, PAGE, data.name, label="Encoder A", default="demo/vit-s14",
        only=several or None,
    )  # fmt: skip
    others = pickers.models_with_features(ws, data.name)
    if model not in several:
        others = [name for name in others if name != model]
    reference = state.select(
        PAGE, "against", "Encoder B", others, default=model, show=pickers.model_title,
        help="The same encoder, or another one: every layer of A against every layer of B",
    )  # fmt: skip
    return {"model": model, "reference": str(reference)}


def _settings(measure: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if measure == "knn":
        found["k"] = state.whole(
            PAGE, "k", "Neighbours", low=1, high=100, default=int(DEFAULTS["k"]),
            help="How many nearest items are compared",
        )  # fmt: skip
    found["max_rows"] = state.whole(
        PAGE, "rows", "Items, at most", low=100, high=100_000, step=1_000,
        default=int(DEFAULTS["max_rows"]),
        help="A random sample of this many; more than 2,000 takes minutes",
    )  # fmt: skip
    found["seed"] = state.whole(
        PAGE, "seed", "Seed", low=0, high=10_000, default=int(DEFAULTS["seed"]), help=tip("seed")
    )
    return found


def _shown(params: dict[str, Any]) -> str:
    if params["method"] == "layers":
        a, b = (pickers.model_title(params[name]) for name in ("model", "reference"))
        return f"layers of {a}" if a == b else f"layers of {a} against {b}"
    return plural(len(params["models"]), "encoder") if params["models"] else "all encoders"


def _too_few(ws: Workspace, data: Dataset, params: dict[str, Any]) -> bool:
    several = len(pickers.models_with_features(ws, data.name)) if not params["models"] else len(
        params["models"]
    )  # fmt: skip
    if several >= 2:
        return False
    layout.state_panel(
        "Choose two encoders or more",
        "This view compares encoders with one another on the same items.",
        "Extract another encoder on the Models page, or compare the layers of one.",
    )
    return True


def _answer(result: Result) -> None:
    facts = result.summary
    words = result.headline
    for model in sorted({space[0] for space in facts["rows"] + facts["columns"]}, key=len)[::-1]:
        words = words.replace(model, pickers.model_title(model))
    unit = "concept" if facts["by"] == "concept" else "item"
    layout.verdict(
        words,
        [
            Tile("pairs", count(facts["pairs"]),
                 f"{count(facts['flat'])} n/a: a side does not vary" if facts["flat"] else ""),
            Tile("beyond chance", count(facts["above_chance"]), "false discovery rate 5 %"),
            Tile("n", count(facts["n"]), f"intervals over {plural(facts['groups'], unit)}"),
        ],
    )  # fmt: skip
    left, right = st.columns(2, gap="medium")
    with left:
        charts.figure(
            figures.matrix(result, show=pickers.model_title),
            f"{PAGE}_matrix",
            f"Heat map of {facts['title']} between {plural(len(facts['rows']), 'row')} and "
            f"{plural(len(facts['columns']), 'column')}",
            table=result.tables["pairs"],
        )
    with right:
        charts.figure(
            figures.pairs(result, show=pickers.model_title),
            f"{PAGE}_pairs",
            "Similarities with 95 % intervals beside what chance gives",
            table=figures.shown_pairs(result)[0],
        )
    st.caption(
        f"Intervals from {plural(result.params['n_draws'], 'subsample')}; chance from "
        f"{plural(result.params['n_permutations'], 'permutation')} of "
        f"{plural(facts['drawn'], 'item')}."
    )
    layout.explain(read=READ, misleads=MISLEADS, method=METHOD, paper=PAPER)
    layout.footer(result, defaults=DEFAULTS)
