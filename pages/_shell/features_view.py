"""Features another tool computed: upload, see what is inside, join to a dataset, outcome."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from core.data.feature_files import SUFFIXES
from core.data.feature_import import FeaturePreview, preview_features
from core.data.importers import ImportLimits
from core.data.importers.inbox import Inbox
from core.data.importers.work import allowed_folders, allowed_path
from core.errors import NotFound
from core.types import LeftOut
from core.workspace import Workspace
from pages._shell import errors, jobs, layout, pickers
from pages._shell.uploader import uploader
from pages._shell.words import as_text, count, plural

_INBOX, _JOB = "features_inbox", "features_job"


def bring(ws: Workspace) -> None:
    """Draw the section of the Models page that takes features in."""
    st.subheader("Bring features of another tool", anchor=False)
    st.caption(
        f"A matrix from {', '.join(SUFFIXES)}, one row an item; layered files give layers. Rows "
        "are joined by their ids. They then count as a model in every analysis."
    )
    if not ws.dataset_names():
        layout.state_panel("No dataset yet", "Features belong to items: add a dataset first.")
        return
    with errors.plainly():
        if not _running(ws):
            path = _file(ws)
            if path is not None:
                _choose(ws, path)


def _running(ws: Workspace) -> bool:
    job_id = st.session_state.get(_JOB)
    if job_id is None:
        return False
    try:
        job = ws.jobs.get(job_id)
    except NotFound:
        del st.session_state[_JOB]
        return False
    if job.active:
        jobs.watch(job.id)
        return True
    if job.state == "done":
        _done(ws, job.params)
    else:
        layout.state_panel("This could not be imported", job.error or "Nothing was changed.",
                           job.error_hint)  # fmt: skip
    st.button("Bring another file", key="features_again", on_click=_forget, args=(ws,))
    return True


def _done(ws: Workspace, params: dict[str, Any]) -> None:
    name = f"imported/{params['name']}"
    found = ws.features.get(str(params["dataset"]), name)
    lines = [LeftOut(**line) for line in found.meta.get("left_out", [])]
    layout.verdict(
        f"{name} is ready on {params['dataset']}.",
        [
            layout.Tile("Rows", count(len(found)), f"of {count(ws.dataset(found.dataset).n)}"),
            layout.Tile("Layers", count(len(found.layers)), f"default {found.default_layer}"),
            layout.Tile("Joined by", str(found.meta.get("joined_by", "")), ""),
        ],
    )
    layout.left_out(lines)


def _forget(ws: Workspace) -> None:
    name = st.session_state.pop(_INBOX, None)
    with contextlib.suppress(NotFound):
        Inbox(ws.root, str(name), ImportLimits.from_environment()).discard()
    for key in [key for key in st.session_state if str(key).startswith("features_")]:
        del st.session_state[key]


def _file(ws: Workspace) -> Path | None:
    folders = allowed_folders()
    if folders:
        given = st.text_input(
            "A file on the server", key="features_path", placeholder=str(folders[0]),
            help="Or upload one below.",
        )  # fmt: skip
        if given.strip():
            return allowed_path(given)
    limits = ImportLimits.from_environment()
    inbox = None
    with contextlib.suppress(NotFound, KeyError):
        inbox = Inbox(ws.root, str(st.session_state[_INBOX]), limits)
    if inbox is None:
        inbox = Inbox.new(ws.root, limits)
        st.session_state[_INBOX] = inbox.name
    uploader(inbox.name, key=f"features_upload_{inbox.name[:8]}")
    files, _ = inbox.content()
    if not files:
        return None
    if files > 1:
        layout.state_panel("One file at a time", f"{plural(files, 'file')} were uploaded.")
        st.button("Start over", key="features_over", on_click=_forget, args=(ws,))
        return None
    return inbox.source()


def _choose(ws: Workspace, path: Path) -> None:
    left, right = st.columns(2, gap="medium")
    with left:
        dataset = st.selectbox(
            "They belong to", ws.dataset_names(), key="features_dataset",
            format_func=lambda name: pickers.dataset_title(ws, name),
        )  # fmt: skip
    found = preview_features(ws, str(dataset), path)
    with right:
        name = st.text_input("Name", value=_stem(path), key="features_name", max_chars=80)
    _show(found, ws.dataset(str(dataset)).n)
    layers = list(found.layers)
    layer = st.selectbox("Default layer", layers, index=len(layers) - 1, key="features_layer")
    in_order = False
    if not found.id_name:
        in_order = st.checkbox(
            "The file has no ids: its rows are the dataset's items in their order",
            key="features_order",
        )
    ready = bool(found.id_name or in_order)
    if st.button("Import the features", type="primary", key="features_go", disabled=not ready):
        st.session_state[_JOB] = ws.jobs.submit(
            "import-features",
            {"dataset": str(dataset), "path": str(path), "name": name.strip(),
             "in_order": in_order, "default_layer": str(layer)},
        )  # fmt: skip
        st.rerun()
    if not ready:
        st.caption("Rows are never joined by luck: tick the box, or add an array named `ids`.")


def _stem(path: Path) -> str:
    plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in path.stem)
    return plain.strip("-.")[:60] or "features"


def _show(found: FeaturePreview, n_items: int) -> None:
    how = f"ids in `{as_text(found.id_name)}`" if found.id_name else "no ids"
    st.markdown(f"{count(found.n)} rows for {count(n_items)} items; {how}.")
    if found.id_name:
        st.caption(f"{count(found.n_matched)} of them name an item of this dataset.")
    rows = [{"layer": k, "width": w, "stored as": d} for k, (w, d) in found.layers.items()]
    st.dataframe(pd.DataFrame(rows), hide_index=True, alt="Layers of the file")
    if found.skipped:
        layout.left_out([LeftOut(k, v) for k, v in found.skipped.items()])
