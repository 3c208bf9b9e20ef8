"""Alignment on the Contrast page: can B learn what A holds together?"""

from __future__ import annotations

from typing import Any

import streamlit as st

from core import analyses
from core.contrast.alignment import DEFAULTS
from core.data.export import csv_text
from core.figures import contrast_more as figures
from core.workspace import Workspace
from pages._shell import charts, contrast_view, pickers, state
from pages._shell.jobs import result_or_run
from pages._shell.layout import explain, footer, table, verdict
from pages._shell.words import plural

PAGE = contrast_view.PAGE


def _kept(ws: Workspace, params: dict[str, Any]) -> list[int]:
    """Return the directions of the pair's stored clusters that were kept by hand, if several."""
    found = analyses.find("contrast", ws, **params, modality="image")
    if found is None:
        return []
    notes = ws.notes.all(contrast_view.scope(found))
    kept = sorted(int(d) for d, said in notes.items() if said.get("verdict") == "keep")
    return kept if len(kept) > 1 else []


def alignment(ws: Workspace, params: dict[str, Any]) -> None:
    """Draw the adapter's outcome for the pair on the page, or the way to compute it."""
    kept = ("dataset", "target", "reference", "epsilon", "group_size", "n_directions", "seed")
    left, right = st.columns(2)
    with left:
        keep = state.select(
            PAGE, "keep", "Weight of staying put", (0.1, 1.0, 0.01),
            help="Larger: less drift elsewhere, less alignment.",
        )  # fmt: skip
    with right:
        steps = state.select(PAGE, "steps", "Training steps", (300, 100, 1000))
    a, b = (pickers.model_title(params[k]) for k in ("target", "reference"))
    chosen = _kept(ws, {k: params[k] for k in kept})
    st.caption(
        f"The {plural(len(chosen), 'cluster')} you kept are aligned."
        if chosen
        else "Every group found is aligned; keep two or more on This pair to align those alone."
    )
    result = result_or_run(
        "alignment",
        {**{k: params[k] for k in kept}, "keep": keep, "steps": steps, "directions": chosen},
        label="Align B to A",
        seconds_hint=60,
        what=f"How far an adapter on the features of {b} can learn the groups of {a}.",
    )
    if result is None:
        return
    verdict(result.headline)
    summary = result.summary
    st.caption(
        f"{summary['n_sets']} groups; {summary['n_train']} samples for training, "
        f"{summary['n_held_out']} held out. Adapter alignment on frozen features, not the paper's "
        "fine-tuning of the encoder. With so few held-out samples read the spread first."
    )
    left, right = st.columns(2, gap="medium")
    with left:
        charts.figure(
            figures.aligned(result),
            "contrast_aligned",
            "Agreement of k-means with the sets before, after and in the target",
            table=result.tables["agreement"],
        )
    with right:
        st.html('<p class="th-figtitle">Drift, 1 minus the cosine to the old features</p>')
        table(result.tables["drift"].round(4), name="drift", key="contrast_drift")
        st.html('<p class="th-figtitle">Is the nearest neighbour also the target\'s nearest?</p>')
        table(result.tables["retrieval"].round(3), name="retrieval", key="contrast_retrieval")
        st.download_button(
            "Sample list for fine-tuning (CSV)",
            lambda: csv_text(result.tables["samples"]).encode("utf-8", "replace"),
            "alignment-samples.csv",
            "text/csv",
            key="contrast_align_samples",
            on_click="ignore",
        )
    explain(
        read=["Half of every group trains a residual adapter on B's features; the other half is "
              "never seen. Good: agreement rises towards the target, drift elsewhere stays small."],
        misleads=["The labels are A's own groups, so the target is at an advantage.",
                  "An adapter sees features only: what B threw away it cannot bring back."],
        method="Loss: keep times $|f(z)-z|^2$ plus weight times $(k_S-k_T)^2$ over a batch, cubic "
        "kernels normalised to a unit diagonal; $f(z)=z+W_2\\,\\mathrm{gelu}(W_1 z)$, AdamW.",
        paper="KODA, arXiv 2606.04180, Section 6; objective of Gong (2025), KUEA.",
    )  # fmt: skip
    footer(result, defaults=DEFAULTS)
