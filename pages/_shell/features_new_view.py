"""A dataset of a feature file's own: what its table says, corrected by the person."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from core.data.feature_dataset import preview_feature_dataset
from core.data.feature_import import FeaturePreview
from core.data.importers import Plan, Preview
from core.data.importers.plan import clean_name
from core.data.importers.roles import ROLE_WORDS
from core.workspace import Workspace
from pages._shell.words import as_text

_NONE = "none"
_ASKED = {"label": "Classes", "domain": "Domains", "split": "Splits", "caption": "Captions",
          "id": "Ids"}  # fmt: skip
_WORDS = {"caption": "caption"}
_HELP = {
    "label": "What an item shows: the classes that probes are trained on.",
    "domain": "Where an item comes from: a style, a site, a language.",
    "split": "Train, test and the like.",
    "caption": "What is said of the item; without one its row's name stands for it.",
    "id": "A value of its own in each row, the same as the ids of the features.",
}


def new_dataset(
    ws: Workspace, path: Path, table: Path | None, found: FeaturePreview, params: dict[str, Any]
) -> dict[str, Any]:
    """Draw the table beside the features, its roles and its name.

    Parameters
    ----------
    ws : Workspace
    path, table : Path
        The feature file, and the table beside it when there is one.
    found : FeaturePreview
        What the feature file holds.
    params : dict
        The job's parameters so far.

    Returns
    -------
    dict
        The job's parameters; empty while something is missing.
    """
    shown = preview_feature_dataset(
        path, table, taken_names=ws.dataset_names(), layer_axis=params["layer_axis"],
        scratch=ws.root,
    )  # fmt: skip
    st.markdown("**What is known of the rows**")
    if table is None:
        st.caption(
            "Taken from the file itself. For labels, domains and captions of a table, upload the "
            "table together with the features: CSV, JSONL, Parquet or Arrow."
        )
    plan = _roles(shown)
    frame = pd.DataFrame(
        {f"{_WORDS.get(role, ROLE_WORDS[role])}: {name}": [row[name] for row in shown.rows]
         for name, role in plan.roles.items()}
    )  # fmt: skip
    st.dataframe(frame, hide_index=True, alt="The first rows, with the role of each column")
    title = st.text_input("Title of the dataset", value=plan.title, key="features_title",
                          max_chars=100)  # fmt: skip
    name = clean_name(title or plan.name, ws.dataset_names())
    st.caption(f"Its name in links and commands: {name}")
    params |= {"plan": replace(plan, name=name, title=title or plan.title).as_dict()}
    if table is not None:
        params["table"] = str(table)
        if not found.id_name:
            params["in_order"] = st.checkbox(
                f"The rows of {as_text(path.name)} and {as_text(table.name)} are in the same order",
                key="features_same_order",
            )
            if not params["in_order"]:
                st.caption("The features carry no ids: say that the order is the same.")
                return {}
    return params


def _roles(shown: Preview) -> Plan:
    names = [column.name for column in shown.columns]
    roles = {name: "keep" if role in _ASKED else role for name, role in shown.plan.roles.items()}
    picked: dict[str, str] = {}
    for cell, role in zip(st.columns(len(_ASKED)), _ASKED, strict=True):
        guess = shown.plan.column(role)
        with cell:
            chosen = st.selectbox(
                _ASKED[role], [_NONE, *names], index=names.index(guess) + 1 if guess else 0,
                key=f"features_role_{role}", help=_HELP[role],
            )  # fmt: skip
        if chosen != _NONE and chosen not in picked.values():
            picked[role] = str(chosen)
    return replace(shown.plan, roles={**roles, **{name: role for role, name in picked.items()}})
