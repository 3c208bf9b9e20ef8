"""Every pair of encoders at once: the stored study as a matrix whose squares open."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from core import analyses
from core.figures import contrast_more as figures
from core.results import Result
from core.workspace import Workspace
from pages._shell import charts, contrast_view, pickers, state
from pages._shell.jobs import result_or_run
from pages._shell.layout import footer, state_panel, verdict
from pages._shell.words import as_text, listed, plural

PAGE = contrast_view.PAGE
_PICK = "contrast_study_pick"
_MODALITIES = {"image": "picture", "image+text": "picture and caption"}


def study(ws: Workspace) -> None:
    """Draw the study: what it found, the matrix, the open pair."""
    found = analyses.current("contrast-study", ws)
    if found is None:
        found = result_or_run(
            "contrast-study",
            {},
            label="Compare every pair",
            seconds_hint=1200,
            what="Every ordered pair of image encoders on every image data set.",
        )
    if found is None:
        return
    verdict(found.headline)
    st.caption(
        "Test: at least 3 of the first 5 sets hold 80 % of one style or one label at the automatic "
        "scale, and fewer than 3 do at the median-rule bandwidth. A green frame marks a pass."
        + _limits(found)
    )
    pairs = found.tables["pairs"]
    left, middle, right = st.columns(3)
    with left:
        dataset = state.choose_one(
            PAGE, "study_set", "Data set", list(pairs["dataset"].unique()),
            show=lambda name: _title(ws, name),
        )  # fmt: skip
    with middle:
        modality = state.choose_one(
            PAGE, "study_modality", "What makes two items alike",
            list(pairs["modality"].unique()), show=lambda m: _MODALITIES.get(m, m),
        )  # fmt: skip
    with right:
        measure = state.select(
            PAGE, "study_measure", "Shown", list(figures.MEASURES),
            show=lambda name: figures.MEASURES[name][0],
        )  # fmt: skip
    _reading(found, dataset, modality, "", "")
    left, right = st.columns([5, 6], gap="medium")
    with left:
        charts.figure(
            figures.study_matrix(found, dataset, modality, measure, pickers.model_title),
            "contrast_study_matrix",
            "One square an ordered pair of encoders; choose one to open it",
            select=["points"],
            on_select=_pick,
            table=pairs,
        )
    with right:
        _pair(ws, found, dataset, modality)
    footer(found)


def _limits(found: Result) -> str:
    """Say which encoders the joint part was limited to."""
    joint = found.params.get("joint_models") or []
    if not joint or "image+text" not in found.params["modalities"]:
        return ""
    return f" With captions only {listed(pickers.model_title(m) for m in joint)} were compared."


def _title(ws: Workspace, name: str) -> str:
    return pickers.dataset_title(ws, name) if name in ws.dataset_names() else name


def _pick() -> None:
    chosen = charts.picked("contrast_study_matrix")
    if chosen and isinstance(chosen[0], list) and len(chosen[0]) == 4:
        st.session_state[_PICK] = [str(part) for part in chosen[0]]


def _reading(found: Result, dataset: str, modality: str, target: str, reference: str) -> None:
    table = found.tables["reading"]
    mine = _rows(table, dataset, modality, target, reference)
    for text in mine["text"]:
        st.markdown(as_text(text))


def _rows(
    table: pd.DataFrame, dataset: str, modality: str, target: str, reference: str
) -> pd.DataFrame:
    wanted = {"dataset": dataset, "modality": modality, "target": target, "reference": reference}
    return table[(table[list(wanted)] == pd.Series(wanted)).all(axis=1)]


def _pair(ws: Workspace, found: Result, dataset: str, modality: str) -> None:
    pairs = found.tables["pairs"]
    here = pairs[(pairs["dataset"] == dataset) & (pairs["modality"] == modality)]
    keys = [tuple(r) for r in here[["target", "reference"]].itertuples(index=False)]
    if not keys:
        return
    at = st.session_state.get(_PICK, [])
    chosen = tuple(at[2:]) if at[:2] == [dataset, modality] and tuple(at[2:]) in keys else keys[0]
    row = here.iloc[keys.index(chosen)].to_dict()
    target, reference = chosen
    a, b = pickers.model_title(target), pickers.model_title(reference)
    st.subheader(f"{a} over {b}", anchor=False)
    st.caption(
        f"{plural(int(row['groups']), 'group')} of {int(row['sets'])}, {int(row['named'])} with a "
        f"name; group size {row['group_size']:.3g}, widest relative gap "
        f"{row['worst_rel_gap']:.0e}, n {int(row['n']):,}."
    )
    _reading(found, dataset, modality, target, reference)
    st.button(
        "Open this pair",
        key="contrast_study_open",
        type="primary",
        on_click=_open,
        args=(dataset, modality, target, reference),
    )
    if dataset not in ws.dataset_names():
        state_panel("The pictures are not here", "This workspace does not hold the data set.")
        return
    directions = _rows(found.tables["directions"], dataset, modality, target, reference)
    members = _rows(found.tables["members"], dataset, modality, target, reference)
    shown: dict[str, Any] = {}
    contrast_view.cards(
        ws.dataset(dataset), directions[directions["k_a"].notna()], members, shown, buttons=False
    )


def _open(dataset: str, modality: str, target: str, reference: str) -> None:
    """Turn the pickers of the page to a pair and go to its clusters."""
    st.session_state["dataset"] = dataset
    for name, value in (("modality", modality), ("target", target), ("reference", reference)):
        st.session_state[state.key_of(PAGE, name)] = value
    st.session_state[state.key_of(PAGE, "view")] = "pair"
    st.session_state.pop(state.key_of(PAGE, "direction"), None)
