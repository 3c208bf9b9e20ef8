"""Features another tool computed: upload, see what is inside, join to a dataset, outcome."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from core.data.feature_files import SUFFIXES
from core.data.feature_import import PREFIX, FeaturePreview, preview_features
from core.data.importers import ImportLimits
from core.data.importers.inbox import Inbox
from core.data.importers.trees import TABLES, suffix
from core.data.importers.work import allowed_folders, allowed_path
from core.errors import BadInput, NotFound
from core.types import LeftOut
from core.workspace import Workspace
from pages._shell import errors, jobs, layout, pickers
from pages._shell.features_new_view import new_dataset
from pages._shell.outcome_view import outcome
from pages._shell.uploader import uploader
from pages._shell.words import as_text, count, plural

_INBOX, _JOB, _SEEN = "features_inbox", "features_job", "features_seen"
_NEW, _AUTO, _NONE = "A new dataset, made of this file", "found by themselves", "the file has none"
_AXES = {None: "found by itself", 1: "second: (items, layers, width)",
         0: "first: (layers, items, width)", 2: "third: (items, width, layers)"}  # fmt: skip


def bring(ws: Workspace) -> None:
    """Draw the section of the Models page that takes features in."""
    st.subheader("Bring features of another tool", anchor=False)
    st.caption(
        f"A matrix from {', '.join(SUFFIXES)}, one row an item; layered files give layers. Rows "
        "are joined to a dataset by their ids, or make a dataset of their own with a table of "
        "labels and domains beside them. They then count as a model in every analysis."
    )
    with errors.plainly():
        if not _running(ws):
            given = _files(ws)
            if given is not None:
                _choose(ws, *given)


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
        if st.button("Change the choices", type="primary", key="features_back"):
            del st.session_state[_JOB]
            st.rerun()
    st.button("Bring another file", key="features_again", on_click=_forget, args=(ws,))
    return True


def _done(ws: Workspace, params: dict[str, Any]) -> None:
    name = f"{PREFIX}{params['name']}"
    made = params.get("plan")
    found = ws.features.get(str(made["name"] if made else params["dataset"]), name)
    lines = [LeftOut(**line) for line in found.meta.get("left_out", [])]
    ids = str(found.meta.get("joined_by", ""))
    column = str(found.meta.get("matched", ""))
    layout.verdict(
        f"{name} is ready on {ws.dataset(found.dataset).title}.",
        [
            layout.Tile("Rows", count(len(found)), f"of {count(ws.dataset(found.dataset).n)}"),
            layout.Tile("Layers", count(len(found.layers)), f"default {found.default_layer}"),
            layout.Tile("Joined by", ids, f"found in the column {column}" if column else ""),
        ],
    )
    layout.left_out(lines)
    if made:
        outcome(ws.datasets.report(found.dataset), key="features_outcome")


def _forget(ws: Workspace) -> None:
    name = st.session_state.pop(_INBOX, None)
    with contextlib.suppress(NotFound):
        Inbox(ws.root, str(name), ImportLimits.from_environment()).discard()
    for key in [key for key in st.session_state if str(key).startswith("features_")]:
        del st.session_state[key]


def _files(ws: Workspace) -> tuple[Path, Path | None] | None:
    """Draw the ways in; return the feature file and the table beside it."""
    folders = allowed_folders()
    if folders:
        given = st.text_input(
            "A file on the server", key="features_path", placeholder=str(folders[0]),
            help="Or upload one below.",
        )  # fmt: skip
        if given.strip():
            beside = st.text_input("A table beside it, for a new dataset", key="features_table")
            return allowed_path(given), allowed_path(beside) if beside.strip() else None
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
    found = two_of(inbox.source())
    st.caption(f"Here: {' and '.join(as_text(path.name) for path in found if path is not None)}")
    st.button("Start over", key="features_over", on_click=_forget, args=(ws,))
    return found


def two_of(given: Path) -> tuple[Path, Path | None]:
    """Tell the feature file from the table among what was uploaded.

    Raises
    ------
    BadInput
        More than one of either, or anything else.
    """
    paths = [given] if given.is_file() else sorted(p for p in given.rglob("*") if p.is_file())
    if len(paths) == 1:
        return paths[0], None
    # A Parquet file may be either: beside another feature file it is the table.
    features = [path for path in paths if suffix(path.name) in SUFFIXES]
    if len(features) == 2:
        features = [path for path in features if suffix(path.name) != ".parquet"]
    tables = [path for path in paths if path not in features and suffix(path.name) in TABLES]
    if len(features) != 1 or len(tables) != 1 or len(paths) != 2:
        raise BadInput(
            f"{plural(len(paths), 'file')} were uploaded: one file of features is taken, and a "
            "table beside it.",
            "Start over. Layers of one model belong in one file.",
        )
    return features[0], tables[0]


def _choose(ws: Workspace, path: Path, table: Path | None) -> None:
    _forget_choices(f"{path} {table}")
    left, right = st.columns(2, gap="medium")
    # A table beside the file describes its rows: most likely they are to be a dataset. The key
    # has it, too, so that a table that comes later changes the first choice.
    choices = [_NEW, *ws.dataset_names()] if table else [*ws.dataset_names(), _NEW]
    with left:
        dataset = str(st.selectbox(
            "They belong to", choices, key=f"features_dataset_{bool(table)}",
            format_func=lambda name: name if name == _NEW else pickers.dataset_title(ws, name),
        ))  # fmt: skip
    with right:
        name = st.text_input("Name of the model", value=_stem(path), key="features_name",
                             max_chars=80).strip()  # fmt: skip
    own = "" if dataset == _NEW else dataset
    how = _how(path, own)
    found = preview_features(ws, own, path, **how)
    _show(found, ws.dataset(own).n if own else None)
    layers = list(found.layers)
    chosen = layers
    if len(layers) > 1:
        chosen = st.multiselect("Layers", layers, default=layers, key="features_layers") or layers
    layer = st.selectbox("Default layer", chosen, index=len(chosen) - 1, key="features_layer")
    params = {
        "path": str(path), "name": name, "default_layer": str(layer),
        "layers": [] if chosen == layers else list(chosen), "ids": how["ids"],
        "layer_axis": how["layer_axis"],
        "keep_flat": st.checkbox(
            "Take rows that are all zero or all one value, too", key="features_flat",
            help="Many tools write them where an item could not be embedded: by default they are "
                 "left out and named.",
        ),
    }  # fmt: skip
    if own:
        params = _join(ws, own, name, found, params, how["match"])
    else:
        params = new_dataset(ws, path, table, found, params)
    if st.button("Import the features", type="primary", key="features_go",
                 disabled=not params):  # fmt: skip
        st.session_state[_JOB] = ws.jobs.submit("import-features", params)
        st.rerun()


def _forget_choices(given: str) -> None:
    """Drop the choices that were made for another file: its name, its layers, its columns."""
    if st.session_state.get(_SEEN, given) != given:
        kept = {_INBOX, _JOB, "features_path", "features_table"}
        for key in [key for key in st.session_state if str(key).startswith("features_")]:
            if key not in kept and not str(key).startswith("features_upload_"):
                del st.session_state[key]
    st.session_state[_SEEN] = given


def _how(path: Path, dataset: str) -> dict[str, Any]:
    """Draw how the file is read and return it; most files need no answer."""
    with st.expander("Read the file otherwise"):
        first, second, third = st.columns(3)
        ids = str(first.selectbox(
            "Ids are in", [_AUTO, _NONE, *_columns(path)], key="features_ids",
            help="The file's array or column that names the items.",
        ))  # fmt: skip
        match = second.text_input(
            "They are values of the dataset's column", key="features_match",
            placeholder="found by itself", disabled=not dataset,
        )  # fmt: skip
        axis = third.selectbox(
            "Layers of a 3-D array are on its axis", list(_AXES), key="features_axis",
            format_func=lambda at: _AXES[at],
        )  # fmt: skip
    return {
        "ids": {_AUTO: "", _NONE: "none"}.get(ids, ids), "match": (match or "").strip(),
        "layer_axis": axis,
    }  # fmt: skip


def _columns(path: Path) -> list[str]:
    from core.data.feature_files import open_features

    with open_features(path, ids="none") as file:
        return list(file.columns)


def _join(
    ws: Workspace, dataset: str, name: str, found: FeaturePreview, params: dict[str, Any],
    match: str,
) -> dict[str, Any]:  # fmt: skip
    """Draw what the join still needs; return the job's parameters, empty when it cannot be."""
    params |= {"dataset": dataset, "match": match}
    if not found.id_name:
        params["in_order"] = st.checkbox(
            "The file has no ids: its rows are the dataset's items in their order",
            key="features_order",
        )
        if not params["in_order"]:
            st.caption("Rows are never joined by luck: tick the box, or say where the ids are.")
            return {}
    if found.problem:
        layout.state_panel("These rows do not fit the dataset as they are", found.problem)
        params["partial"] = found.partial and st.checkbox(
            f"Join the {plural(found.n_matched, 'row')} that match, and report the others",
            key="features_partial",
        )
        if not params["partial"]:
            return {}
    if _other(ws, dataset, name):
        params["replace"] = st.checkbox(
            f"Replace the features named {name} on this dataset", key="features_replace",
            help="The same file with the same choices is not stored twice.",
        )  # fmt: skip
    return params


def _other(ws: Workspace, dataset: str, name: str) -> bool:
    return bool(name) and ws.features.find(dataset, f"{PREFIX}{name}") is not None


def _stem(path: Path) -> str:
    plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in path.stem)
    return plain.strip("-.")[:60] or "features"


def _show(found: FeaturePreview, n_items: int | None) -> None:
    how = f"ids in `{as_text(found.id_name)}`" if found.id_name else "no ids"
    whose = f" for {plural(n_items, 'item')}" if n_items is not None else ""
    st.markdown(f"{plural(found.n, 'row')}{whose}; {how}.")
    if found.id_name and n_items is not None:
        where = f", in its column {as_text(found.matched_by)}" if found.matched_by else ""
        st.caption(f"{count(found.n_matched)} of them name an item of this dataset{where}.")
    for name, words in found.layered.items():
        st.caption(f"{as_text(name)}: {words}.")
    rows = [{"layer": k, "width": w, "stored as": d} for k, (w, d) in found.layers.items()]
    st.dataframe(pd.DataFrame(rows), hide_index=True, alt="Layers of the file")
    if found.skipped:
        layout.left_out([LeftOut(k, v) for k, v in found.skipped.items()])
