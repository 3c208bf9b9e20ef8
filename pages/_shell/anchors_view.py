"""The lower parts of the Stitching page: learned anchors as mosaics, the whitening's health."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.data.dataset import Dataset
from core.figures import stitching_anchors as figures
from core.results import Result
from pages._shell import charts, grid, state
from pages._shell.layout import table
from pages._shell.stitching_view import PAGE, short_captions
from pages._shell.words import number, percent


def viewer(dataset: Dataset, result: Result) -> None:
    """Draw the learned anchors, and one of them as a weighted mosaic."""
    facts = result.tables.get("anchor_facts", pd.DataFrame())
    if not len(facts):
        st.caption("None of the methods learns anchors; add one with PARAM in Settings.")
        return
    left, right = st.columns([5, 6], gap="medium")
    pick = st.session_state.pop("stitching_anchor_pick", None)
    if pick is not None:
        st.session_state[state.key_of(PAGE, "anchor")] = pick
    order = list(facts.sort_values("norm", ascending=False)["anchor"])
    line = facts.set_index("anchor")
    with right:
        chosen = state.select(
            PAGE,
            "anchor",
            "Anchor, longest first",
            order,
            show=lambda a: (
                f"{a} · mostly {line.loc[a, 'label']} ({100 * line.loc[a, 'label_share']:.0f} %)"
            ),
        )
        row = line.loc[chosen]
        st.caption(
            f"Effective number of samples {row['n_eff']:.0f} of {result.summary['n_support']:,}; "
            f"its ten heaviest carry {percent(row['top_share'])}; effective classes "
            f"{number(row['label_n_eff'])}; length {number(row['norm'])}. Closest anchor of "
            f"{percent(row['coverage'])} of test items; largest cosine with another anchor "
            f"{number(row['correlation'])}. Without it swapped heads change by "
            f"{100 * row['drop_one']:+.1f} ± {100 * row['drop_one_sd']:.1f} points (spread over "
            "pairs, head not retrained). Badge: weight in %."
        )
        mine = result.tables["anchors"].query("anchor == @chosen")
        weights = {int(r.id): float(r.weight) for r in mine.itertuples()}
        grid.items(
            dataset,
            mine["id"],
            key="stitching_mosaic",
            scores=weights,
            captions=short_captions(dataset, mine["id"]),
            page_size=10,
            cell=96,
            badge=lambda w: f"{100 * w:.1f}",
            label="The heaviest samples of the anchor",
        )
    with left:
        view = state.choose_one(PAGE, "anchor_axes", "Anchors by", list(figures.ANCHOR_AXES),
                                show=lambda v: figures.ANCHOR_AXES[v][0])  # fmt: skip
        charts.figure(
            figures.anchors(result, chosen=int(chosen), axes=view),
            "stitching_anchor_map",
            "Each learned anchor as a point: " + figures.ANCHOR_AXES[view][0],
            select=["points"],
            on_select=_open_anchor,
        )
    if float(facts["n_eff"].median()) < 20:
        st.caption("These anchors average fewer than 20 samples each: expect noise.")


def _open_anchor() -> None:
    found = charts.picked("stitching_anchor_map")
    if found and isinstance(found[0], list):
        st.session_state["stitching_anchor_pick"] = int(found[0][0])


def health(result: Result) -> None:
    """Draw how the shrinkage was chosen and how well the covariances are known."""
    frame = result.tables.get("health", pd.DataFrame())
    st.caption(result.summary["shrinkage_reason"])
    left, right = st.columns(2, gap="medium")
    with left:
        charts.figure(
            figures.shrinkage(result),
            "stitching_shrinkage",
            "Held-out retrieval for each shrinkage tried",
        )
    with right:
        charts.figure(figures.losses(result), "stitching_losses", "Losses over training steps")
    if not len(frame):
        return
    names = result.summary["titles"]
    high = frame[frame["energy_ratio"] > 1.5]
    if len(high):
        st.caption(
            "Held-out rows are much longer than training rows under "
            + ", ".join(names[m] for m in high["model"])
            + ": the covariance is not well known. More rows, or more shrinkage."
        )
    shown = frame.assign(model=[names[m] for m in frame["model"]]).round(3)
    table(shown, name="stitching-health", key="stitching_health_table")
