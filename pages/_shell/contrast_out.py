"""Clusters out and in again on the Contrast page: downloads, and an export that opens."""

from __future__ import annotations

import streamlit as st

from core.contrast import export as files
from core.data.dataset import Dataset
from core.errors import NotFound
from core.figures import contrast as figures
from core.results import Result
from core.workspace import Workspace
from pages._shell import contrast_view, grid, state
from pages._shell.layout import state_panel
from pages._shell.words import as_text, plural


def downloads(ws: Workspace, dataset: Dataset, result: Result) -> None:
    """Offer the clusters as a table, as JSON that opens here again, and as a page."""
    notes = ws.notes.all(contrast_view.scope(result))
    offered = (
        ("csv", "Clusters as CSV", "text/csv", files.clusters_csv),
        ("json", "Clusters as JSON", "application/json", files.clusters_json),
        ("html", "Gallery as HTML", "text/html", files.gallery_html),
    )
    with st.container(horizontal=True, gap="small"):
        for ending, label, mime, make in offered:
            st.download_button(
                label,
                lambda make=make: make(dataset, result, notes),
                f"contrast-clusters.{ending}",
                mime,
                key=f"contrast_export_{ending}",
                on_click="ignore",
            )
    st.caption(
        "CSV and JSON hold ids, scores, captions, settings and your verdicts; the JSON opens "
        "under Open an export. The gallery holds its pictures and needs no network."
    )


def reopened(ws: Workspace) -> None:
    """Take a JSON export and show the clusters in it."""
    sent = st.file_uploader("A clusters export (JSON)", type=["json"], key="contrast_reopen")
    if sent is None:
        state_panel(
            "Open an export",
            "Choose a file that Clusters as JSON gave, from here or from somebody else.",
            "Nothing in the workspace is changed by it.",
        )
        return
    result, notes, captions = files.reopen(sent.getvalue())
    table = figures.shown_directions(result)
    name = str(result.params.get("dataset", ""))
    st.subheader(f"{plural(len(table), 'cluster')} of {as_text(name)}", anchor=False)
    st.caption(
        as_text(
            f"A: {result.params.get('target', 'n/a')} · B: {result.params.get('reference', 'n/a')}"
            f" · {result.headline}"
        )
    )
    try:
        dataset = ws.dataset(name)
    except NotFound:
        dataset = None
        st.caption("This workspace does not hold the dataset: captions stand for the pictures.")
    rows = {int(r["direction"]): r for r in table.to_dict("records")}
    if not rows:
        state_panel("No cluster in this export", "No direction of it met its epsilon.")
        return
    direction = state.select(
        "", "contrast_reopened", "Cluster", list(rows),
        show=lambda d: contrast_view.title_of(rows[d]),
    )  # fmt: skip
    yours = notes.get(str(direction), {})
    said = " · ".join(yours[k] for k in ("verdict", "tag", "note") if yours.get(k))
    if said:
        st.caption(as_text(f"Noted: {said}"))
    _members(dataset, result, direction, captions)


def _members(
    dataset: Dataset | None, result: Result, direction: int, captions: dict[int, str]
) -> None:
    members = result.tables["members"]
    mine = members[(members["direction"] == direction) & (members["pole"] == 1)]
    known = dataset is not None and set(mine["id"]) <= set(dataset.items["id"])
    if dataset is None or not known:
        for row in mine.to_dict("records"):
            st.text(f"{row['score']:.2f}  {captions.get(int(row['id']), '')}")
        return
    grid.items(
        dataset,
        mine["id"],
        key=f"contrast_reopened_{direction}",
        scores=dict(zip(mine["id"], mine["score"], strict=True)),
        captions=captions,
        label="Samples of the exported cluster, strongest first",
    )
