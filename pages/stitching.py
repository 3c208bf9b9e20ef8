"""Can I swap the encoder and keep the head? Matrices, what fails, the anchors, the doubt."""

from __future__ import annotations

import streamlit as st

from core.errors import BadInput
from core.figures import stitching as figures
from core.stitching.analysis import DEFAULTS
from core.stitching.spaces import MARK
from pages._shell import (
    anchors_view,
    charts,
    pickers,
    state,
    stitching_cell_view,
    stitching_kit_view,
    stitching_methods_view,
    stitching_study_view,
)
from pages._shell import stitching_view as view
from pages._shell.jobs import result_or_run
from pages._shell.layout import explain, footer, header, verdict
from pages._shell.state import workspace
from pages._shell.words import plural


def _evidence(dataset, result):
    view.matrices(result)
    st.header("The open cell", anchor=False)
    method, i, j = view.cell(dataset, result, stitching_cell_view.cover_badges)
    stitching_cell_view.covered(dataset, result, method, i, j)
    stitching_cell_view.contrast(dataset, result, method, i, j)
    st.header("Which swap is safe", anchor=False)
    left, right = st.columns(2, gap="medium")
    with left:
        charts.figure(
            figures.retention(result),
            "stitching_retention",
            "What each ordered pair keeps of the native accuracy, with intervals",
            table=result.tables["advice"],
        )
    with right:
        measure = state.choose_one(
            view.PAGE,
            "alike",
            "Similarity of the encoders",
            ("cka", "mutual_knn", "procrustes"),
            show={"cka": "CKA", "mutual_knn": "Neighbours", "procrustes": "Procrustes"}.get,
        )
        charts.figure(
            figures.similarity(result, measure=measure),
            "stitching_similarity",
            "Similarity of two encoders against what a swap between them keeps",
            table=result.tables["similarity"],
        )
    st.header("Methods side by side", anchor=False)
    stitching_methods_view.draw(result)
    st.header("Anchors", anchor=False)
    anchors_view.viewer(dataset, result)
    st.header("Can the whitening be trusted?", anchor=False)
    anchors_view.health(result)
    st.header("Take it along", anchor=False)
    stitching_kit_view.draw(result)


def _main():
    ws = workspace()
    with pickers.selection():
        dataset = pickers.dataset(ws)
    params = view.choices(ws, dataset)
    on_study = "study" in (
        st.session_state.get(state.key_of(view.PAGE, "tab")),
        st.query_params.get(state.key_of(view.PAGE, "tab")),
    )
    header(
        "Can I swap the encoder and keep the head?",
        ["Stitching", "the stored study: every encoder on every data set"]
        if on_study
        else [
            "Stitching",
            dataset.title,
            plural(
                len(params["models"]), "space" if MARK in "".join(params["models"]) else "encoder"
            ),
            f"{plural(params['n_parallel'], 'parallel row')} asked for",
            f"{params['n_anchors']} anchors",
            plural(params["seeds"], "seed"),
        ],
    )
    shown = state.choose_one(
        view.PAGE,
        "tab",
        "Shown",
        ("matrix", "study"),
        show={"matrix": "Your encoders", "study": "The study: does it hold?"}.get,
        label_visibility="collapsed",
    )
    if shown == "study":
        stitching_study_view.draw()
        return
    if len(params["models"]) < 2:
        raise BadInput("Stitching compares encoders.", "Choose at least two models.")
    result = result_or_run(
        "stitching",
        params,
        label="Fill the matrix",
        seconds_hint=90,
        what="How well a head trained on one encoder works on the features of every other.",
    )
    if result is None:
        return
    verdict(result.headline, view.tiles(result))
    st.caption(view.pairs_note(result))
    _evidence(dataset, result)
    explain(
        read=[
            "A row is the encoder a head was trained on, a column the encoder the features come "
            "from; the last strip is each encoder with a head of its own.",
            "Kept is stitched over native accuracy of the column's encoder; its interval comes "
            "from resampling whole concepts of the test items.",
            "The difference view says where a method helps; one colour scale serves all panels.",
        ],
        misleads=[
            "Without retraining is not without data: parallel rows tie the encoders together. "
            "Few of them, and every method fades.",
            "A linear map per ordered pair often ties or beats anchors in accuracy when pairs are "
            "many; anchors need one map an encoder, not one a pair.",
            "A high diagonal with a low rest says that whitening amplified private noise: raise "
            "the shrinkage. Cosine is enough when encoders are near copies.",
        ],
        method="$r(x) = (s(x, a_1), \\dots, s(x, a_k))$ with $s$ the cosine or the whitened inner "
        "product $\\langle L(x-\\mu), L(a-\\mu)\\rangle$; PARAM anchors $A_i = P X_{sub}^i$ share "
        "one row-stochastic $P$, learned by coverage, correlation, length and symmetric InfoNCE "
        "losses (Adam, 300 steps, no labels). Head: standardisation and multinomial logistic "
        "regression, fitted on one encoder's training rows and applied unchanged. Everything "
        "unsupervised is fitted on training rows only. Shrinkage, weights and temperatures are "
        "ours: the paper's were not available.",
        paper="Relative representations, arXiv 2209.15430; Learned Anchors and Whitened Inner "
        "Products, arXiv 2605.30596.",
    )
    footer(result, defaults=DEFAULTS)


_main()
