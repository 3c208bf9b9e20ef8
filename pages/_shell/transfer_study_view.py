"""The study on the Transfer page: which measure foretold the measured gains, and where not."""

from __future__ import annotations

import streamlit as st

from core import analyses
from core.figures import transfer_study as figures
from core.radar.study import DEFAULTS
from pages._shell import charts, pickers, state
from pages._shell.layout import explain, footer, state_panel, verdict
from pages._shell.state import workspace
from pages._shell.words import as_text

PAGE = "transfer"


def draw() -> None:
    """Draw the stored study, or say how to make one."""
    ws = workspace()
    result = analyses.current("transfer-study", ws)
    if result is None:
        state_panel(
            "No study is stored here",
            "It trains a probe on every blend of every target and scores every blend by RADAR "
            "and its rivals.",
            "Make it from the command line: theodolite transfer-study. About half a minute a "
            "target and encoder; it goes on where it stopped.",
        )
        return
    verdict(result.headline)
    with st.expander("What each encoder says", expanded=True):
        for line in result.summary["reading"]:
            st.markdown(as_text(line))
    means = result.tables["means"]
    left, right = st.columns(2)
    with left:
        dataset = state.choose_one(
            PAGE, "study_set", "Data set", list(means["dataset"].unique()),
            show=lambda n: pickers.dataset_title(ws, n) if n in ws.dataset_names() else n,
        )  # fmt: skip
    with right:
        here = means[means["dataset"] == dataset]
        model = state.select(
            PAGE, "study_model", "Encoder", list(here["model"].unique()),
            show=pickers.model_title,
        )  # fmt: skip
    mine = here[here["model"] == model].sort_values("rho", ascending=False)
    charts.figure(
        figures.ranking(result, dataset, model),
        "transfer_study_ranking",
        "Mean rank correlation of each measure with the measured gain, best on top",
        table=mine,
    )
    every = result.tables["measures"]
    charts.figure(
        figures.by_target(result, dataset, model),
        "transfer_study_targets",
        "Rank correlation of each measure with the gain, one column a target",
        table=every[(every["dataset"] == dataset) & (every["model"] == model)],
    )
    explain(
        read=[
            "rho is Spearman's rank correlation of a measure with the gain over all blends of "
            "one target; + is good for every measure. The whisker is the range of the mean when "
            "any one target is left out.",
            "rho within size compares only blends of equally many members: it takes away the "
            "credit for more data.",
        ],
        misleads=[
            "Blends share their members' items, so permutation p-values are optimistic.",
            "Few targets: a difference of a tenth between two measures is not a finding.",
            "Of more than six domains each target is given five sources, in a circle by name.",
        ],
        method="Gains by a logistic probe on the default layer, a few target items a class, "
        "several seeds; no source item shows a concept of the target's test items. RADAR in each "
        "configuration reads the stored layers. Layers that are not shipped are recomputed by "
        "`theodolite extract DATASET --model MODEL --layers all`.",
        paper="RADAR, arXiv 2605.23028; no number of the paper is shown.",
    )
    footer(result, defaults=DEFAULTS)
