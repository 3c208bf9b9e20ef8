"""What changed between A and B: the verdicts, the items most moved, and the pictures of one."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from core.compare.changed import VERDICTS
from core.data.dataset import Dataset
from core.figures import explore as figures
from core.results import Result
from pages._shell import charts, grid, layout, map_selection, maps_view, state
from pages._shell.blocks import address
from pages._shell.explore_view import PAGE, Choice
from pages._shell.words import plural

_MOST = 500
_MEANING = {
    "moved": "kept neither its neighbours nor its place",
    "new neighbours": "kept its place, lost its neighbours",
    "moved with its group": "kept its neighbours, lost its place",
    "kept": "kept both",
    "cannot tell": "too few items to tell",
}


def draw(data: Dataset, choice: Choice, changed: Result) -> None:
    """Draw the table of what moved most and the pictures behind it."""
    table = changed.tables["changed"]
    st.subheader("What moved most between A and B", anchor=False)
    left, right = st.columns([2, 3], gap="medium")
    with left:
        charts.figure(
            figures.overlap_figure(changed),
            f"{PAGE}_overlap",
            "How many nearest neighbours items share between A and B",
            table=table.head(2_000),
        )
    with right:
        counts = changed.summary["verdicts"]
        layout.chips(
            f"{verdict}: {counts[verdict]:,}, {_MEANING[verdict]}"
            for verdict in VERDICTS
            if counts[verdict]
        )
        there = [verdict for verdict in VERDICTS if counts[verdict]]
        verdict = state.choose_one(
            PAGE, "verdict", "Show", there, help="Most moved first, within the verdict"
        )
        part = table[table["verdict"] == verdict].head(_MOST)
        _rows(data, part, int(changed.params["k"]), counts[verdict])
    _picked(data, choice, part)


def _rows(data: Dataset, part: pd.DataFrame, k: int, total: int) -> None:
    items = data.items.iloc[grid.positions(data, part["id"].to_numpy())]
    words = items["caption"].where(items["caption"].astype(str) != "", items["label"]).astype(str)
    frame: dict[str, Any] = {}
    if data.kind == "image":
        frame["picture"] = [address("thumb", str(sha)) for sha in items["sha256"]]
    frame |= {
        "item": words.tolist(),
        "domain": items["domain"].astype(str).tolist(),
        "shared": (part["overlap"] * k).round().astype(int).tolist(),
        "displacement": part["displacement"].round(3).tolist(),
        "q neighbours": part["q_neighbours"].round(4).tolist(),
        "q place": part["q_place"].round(4).tolist(),
        "id": part["id"].tolist(),
    }
    st.caption(
        f"{plural(total, 'item')}"
        + (f", the first {_MOST} of them" if total > _MOST else "")
        + ". Choose a row to see its neighbours under A and under B, and where it is on the maps."
    )
    st.dataframe(
        pd.DataFrame(frame),
        key=f"{PAGE}_changed_rows",
        hide_index=True,
        height=330,
        row_height=44,
        on_select=lambda: _take(part),
        selection_mode="single-row",
        column_config={
            "picture": st.column_config.ImageColumn("", width=52),
            "item": st.column_config.TextColumn(width=190),
            "domain": st.column_config.TextColumn(width=90),
            "shared": st.column_config.NumberColumn(f"shared of {k}", width=95),
            "displacement": st.column_config.NumberColumn(
                width=105, help="1 is as far as an item taken at random", format="%.2f"
            ),
            "q neighbours": st.column_config.NumberColumn(
                help="At most 0.05: its neighbours were kept", format="%.3f"
            ),
            "q place": st.column_config.NumberColumn(
                help="At most 0.05: its place was kept", format="%.3f"
            ),
        },
        alt="Items by how much they changed between A and B, most moved first",
    )


def _chosen(part: pd.DataFrame) -> int | None:
    event: Any = st.session_state.get(f"{PAGE}_changed_rows") or {}
    rows = (event.get("selection") or {}).get("rows") or []
    if not rows or not 0 <= int(rows[0]) < len(part):
        return None
    return int(part["id"].iloc[int(rows[0])])


def _take(part: pd.DataFrame) -> None:
    item = _chosen(part)
    map_selection.take_ids([] if item is None else [item])
    st.session_state[f"{PAGE}_source"] = ""


def _picked(data: Dataset, choice: Choice, part: pd.DataFrame) -> None:
    item = _chosen(part)
    if item is None:
        first = part.head(24)
        st.caption(f"The first {len(first)}; the badge says how many neighbours are shared")
        grid.items(
            data,
            first["id"],
            key=f"{PAGE}_changed",
            scores={int(i): float(v) for i, v in zip(first["id"], first["overlap"], strict=True)},
            badge=lambda value: f"{100 * value:.0f} %",
            cell=84,
            label="Moved most",
        )
        return
    left, right = st.columns([1, 5], gap="medium")
    with left:
        st.caption("The item")
        grid.items(data, [item], key=f"{PAGE}_changed_one", cell=120, label="The item")
    with right:
        maps_view.neighbour_grids(data, choice.sides(), item, key="changed_near")
