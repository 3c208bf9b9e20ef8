"""Will these sources help? RADAR: verdict, layers, pairs, blends, and what really happened."""

from __future__ import annotations

import streamlit as st

from core.errors import BadInput
from core.radar.analysis import DEFAULTS
from pages._shell import pickers, state, transfer_more_view, transfer_study_view, transfer_view
from pages._shell.jobs import result_or_run
from pages._shell.layout import explain, footer, header, state_panel
from pages._shell.state import workspace

QUESTION = "Will these sources help?"
READ = (
    "Lower is nearer: the score is a divergence between triangles drawn inside a domain and "
    "triangles drawn to the other domain. Compare it with the null, never with another model's.",
    "Within over cross: where the two densities part, the layer sees the domain and not only "
    "the content.",
    "The advice sets each source against one yardstick: how far the target's own classes are from "
    "one another. ± is one standard deviation over repeats that each use a random half of the "
    "items.",
    "A gain is measured, a score is an estimate. Where both are shown, trust the gain.",
)
MISLEADS = (
    "Far from every source (outlying styles) the order can invert: then the page says that it "
    "cannot tell.",
    "Blend size alone is a strong guess, and near is not useful: a copy of the target scores "
    "best and adds nothing. Look at the size beside the score.",
    "Duplicates across domains make a score too low; class imbalance mixes label shift into it "
    "(choose partners of the same class).",
    "Theta and d nearly say the same (correlation about .98): both together are not twice the "
    "evidence. A joint density has a noise floor that grows with layers: hence the null.",
)
METHOD = """
For an anchor x with partner z at layer l: separation h_l(z) − h_l(x), detour
h_{l+1}(x) − h_l(z), trajectory h_{l+1}(x) − h_l(x). **theta** is the angle between separation
and detour (Eq. 9), **d** = (|separation| + |detour|) / |trajectory| − 1 (Eq. 10). Each anchor has
one partner of its own domain (within) and one of the other (cross). The **score** is the
symmetric Kullback–Leibler divergence between the densities of (theta, d) of the within and of
the cross pairs, over all layer steps at once. A blend takes its rows from its members by size.
The **null** scores one half of the target against the other; **excess** = score − null.
The **gain** is the accuracy of a logistic probe with the blend minus without it; test concepts
never occur in training, in any style.
"""
PAPER = (
    "RADAR, arXiv 2605.23028, Eq. 1-10. The estimator (one Gaussian, anchors from the blend, the "
    "null) is our choice, judged on the demo: see the table of measures."
)


def _evidence(dataset, params, result):
    st.header("How do the triangles differ?", anchor=False)
    layer, compared = transfer_view.layer_and_sources(result)
    transfer_view.densities(result, compared, layer)
    st.header("Where in the network do the domains part?", anchor=False)
    if note := transfer_view.dropped(result):
        st.caption(note)
    transfer_view.strip(result, layer)
    st.header("One pair, and what it is", anchor=False)
    source = transfer_view.one_source(result)
    transfer_view.one_pair(dataset, result, source, layer)
    st.header("All blends", anchor=False)
    transfer_view.blends(result)
    transfer_view.measures(result)
    transfer_more_view.measured(params, result)
    transfer_more_view.robust(params)
    transfer_more_view.by_class(params)
    transfer_more_view.advice(result)


def _main():
    ws = workspace()
    with pickers.selection():
        dataset = pickers.dataset(ws)
    key = state.key_of(transfer_view.PAGE, "tab")
    on_study = "study" in (st.session_state.get(key), st.query_params.get(key))
    if dataset.items["domain"].nunique() < 2 and not on_study:
        header(QUESTION, "RADAR")
        raise BadInput(
            f"Dataset {dataset.title!r} has one domain; this page compares domains.",
            "Choose another dataset, or import one with a column 'domain'.",
        )
    if on_study:
        header(QUESTION, ["RADAR", "the stored study: every encoder, every target, all blends"])
        _tab()
        transfer_study_view.draw()
        return
    params = transfer_view.choices(ws, dataset)
    if not params["sources"]:
        header(QUESTION, ["RADAR", f"target: {params['target']}"])
        state_panel("Choose at least one source", "The sidebar lists the other domains.")
        return
    header(QUESTION, transfer_view.shown_line(params))
    _tab()
    result = result_or_run(
        "transfer",
        params,
        label="Rank the sources",
        seconds_hint=20,
        what="Which sources to add, which to leave out, and the evidence layer by layer.",
    )
    if result is None:
        return
    transfer_view.answer(result)
    _evidence(dataset, params, result)
    explain(read=READ, misleads=MISLEADS, method=METHOD, paper=PAPER)
    footer(result, defaults=DEFAULTS)


def _tab():
    return state.choose_one(
        transfer_view.PAGE,
        "tab",
        "Shown",
        ("sources", "study"),
        show={"sources": "Your sources", "study": "The study: can it be trusted?"}.get,
        label_visibility="collapsed",
    )


_main()
