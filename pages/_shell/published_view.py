"""The published part of the Quality page: no job, no pictures, the literature's numbers."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.figures import published as figures
from core.quality.published import CLUSTERS, PublishedPanel, published_panel
from core.quality.registry import (
    ARCHITECTURES,
    AXES,
    OBJECTIVES,
    POPULATIONS,
    PROTOCOLS,
    TEST_SETS,
    cell_title,
    published_cells,
)
from pages._shell import charts, errors, state
from pages._shell.layout import chips, state_panel, table
from pages._shell.words import count, number, safe

PAGE = "quality"
_X = (*AXES, "knn|imagenet-1k", "linear|imagenet-1k", "finetuned_head|imagenet-1k")


@st.cache_data(max_entries=64, show_spinner=False)
def _panel(cells: tuple[str, ...], **settings) -> PublishedPanel:
    return published_panel(cells, **settings)


def _settings() -> tuple[str, list[str], dict]:
    """Draw the controls; return the cell in front, its protocol's cells and the filter."""
    cells = published_cells()
    left, middle, right = st.columns([5, 3, 3], gap="medium")
    with left:
        protocol = state.choose_one(
            PAGE,
            "protocol",
            "Protocol",
            list(PROTOCOLS),
            show=PROTOCOLS.get,
            help="A fine-tuned head, a linear probe, nearest neighbours and zero-shot are "
            "different tasks and never share a rho.",
        )
    with middle:
        cell = state.select(
            PAGE,
            "test_set",
            "Test set",
            cells[protocol],
            show=lambda name: TEST_SETS[name.split("|")[1]],
        )
    with right:
        x = state.select(
            PAGE,
            "x",
            "Against",
            [name for name in _X if name != cell],
            show=lambda name: AXES[name] if name in AXES else cell_title(name),
        )
    with st.expander("Filters: what is left decides every rho, interval and q"):
        one, two, three = st.columns(3, gap="medium")
        with one:
            population = state.choose_one(
                PAGE,
                "population",
                "Models",
                list(POPULATIONS),
                show=POPULATIONS.get,
                default="all" if protocol == "zero_shot" else "core260",
            )
        with two:
            kinds = state.choose_many(PAGE, "architectures", "Architecture", ARCHITECTURES)
        with three:
            goals = state.choose_many(
                PAGE, "objectives", "Objective", list(OBJECTIVES), show=OBJECTIVES.get
            )
        clusters = state.choose_one(
            PAGE,
            "clusters",
            "Resampled together",
            list(CLUSTERS),
            show=CLUSTERS.get,
            help="Finer families separate checkpoints that share an initialisation: their "
            "intervals are too narrow.",
        )
    if protocol == "zero_shot" and population == "core260":
        # None of the 260 is a vision-language model: the filter would leave nothing to see.
        population = "all"
        st.caption("Zero-shot numbers exist for vision-language models only: all 554 are shown.")
    filters = {
        "x": x,
        "population": population,
        "architectures": tuple(kinds),
        "objectives": tuple(goals),
        "clusters": clusters,
    }
    return cell, cells[protocol], filters


@st.fragment
def panel() -> None:
    """Draw the scatter of the published models, the strata and the pinned model.

    A fragment: its controls redraw this part alone.
    """
    with errors.plainly():
        _panel_body()


def _panel_body() -> None:
    place = st.empty()
    cell, family, filters = _settings()
    place.header(
        f"{POPULATIONS[filters['population']]}: published accuracies, not computed here",
        anchor=False,
    )
    data = _panel(tuple(family), **filters)
    if data.table.empty:
        state_panel("No model passes these filters", "Choose more architectures or objectives.")
        return
    _sentence(data, cell)
    many = False
    left, right = st.columns(2, gap="medium", vertical_alignment="bottom")
    with left:
        pin = _pin(data.table)
    with right, st.container(horizontal=True, gap="medium"):
        ranks = state.switch(PAGE, "ranks", "Ranks", help="rho is a correlation of ranks.")
        if len(family) > 1:
            many = state.switch(PAGE, "facets", "All test sets side by side")
    shown = family if many else [cell]
    charts.figure(
        figures.scatter(data, shown, x=filters["x"], ranks=ranks, pinned=pin),
        "quality_published",
        f"{len(data.table)} models: {figures.axis_title(filters['x'])} against published accuracy",
        select=("points",),
        on_select=_take_pin,
    )
    _counts(data, cell)
    _card(data.table, pin)
    charts.figure(
        figures.heatmap(data, family),
        "quality_strata",
        "Rank correlation by stratum and test set, with intervals",
        table=data.correlations,
    )
    st.caption("Blue: positive; brown: negative; hatched: fewer than 8 families.")
    _simpson(data)
    with st.expander("The models as a table"):
        first = [
            "id",
            "arch_class",
            "objective_group",
            "family",
            "params_M",
            "embed_dim",
            "license",
        ]
        table(
            data.table[[*first, *family]].rename(columns={c: cell_title(c) for c in family}),
            name="quality-published",
            key="quality_published_table",
        )


def _sentence(data: PublishedPanel, cell: str) -> None:
    found = data.correlations.set_index(["stratum", "target"]).loc[("All", cell)]
    name = figures.axis_title(found["metric"]).split(",")[0]
    if found["status"] == "n/a":
        words = f"Too few models or families to say how {name} goes with this accuracy."
    elif found["lo"] > 0 or found["hi"] < 0:
        way = "higher" if found["rho"] > 0 else "lower"
        more = "More parameters go" if name == "parameters" else f"A larger {name} goes"
        words = f"{more} with {way} accuracy: {figures.rho_text(found)}."
    else:
        words = f"Cannot tell how {name} goes with this accuracy: {figures.rho_text(found)}."
    st.html(f"<p>{safe(words)}</p>")


def _counts(data: PublishedPanel, cell: str) -> None:
    there = int(data.table[cell].notna().sum())
    rest = len(data.table) - there
    hidden = f" {count(data.n_hidden)} hidden by the filters." if data.n_hidden else ""
    st.caption(
        f"{count(there)} of {count(len(data.table))} models have a published number under this "
        f"protocol; the other {count(rest)} lie on the grey rug.{hidden} Size of a mark: "
        "parameters. A click pins a model."
    )


def _pin(frame: pd.DataFrame) -> str:
    return str(
        state.select(
            PAGE,
            "pin",
            "Pin a model",
            ["", *sorted(frame["id"])],
            show=lambda name: name or "none",
            help="Or click a point.",
        )
    )


def _take_pin() -> None:
    picked = charts.picked("quality_published")
    if picked:
        first = picked[0]
        st.session_state["quality_pin"] = str(first[0] if isinstance(first, list) else first)


def _card(frame: pd.DataFrame, pin: str) -> None:
    rows = frame[frame["id"] == pin]
    if rows.empty:
        return
    row = rows.iloc[0]
    st.markdown(f"**{pin}**")
    chips(
        str(fact)
        for fact in (
            row["arch_class"],
            OBJECTIVES.get(row["objective_group"], row["objective_group"]),
            row["method"],
            f"data {row['pretrain_data']}",
            f"family {row['family']}",
            f"{number(row['params_M'])} M parameters",
            f"width {row['embed_dim']}",
            f"input {row['input_size_extract']} px",
            f"licence {row['license']}",
        )
        if str(fact) != "nan"
    )
    known = [c for c in frame.columns if "|" in c and pd.notna(row[c])]
    words = "; ".join(f"{cell_title(c)} {row[c]:.1f} %" for c in known)
    st.caption(f"Published: {words}." if words else "No accuracy of this model is published.")


def _simpson(data: PublishedPanel) -> None:
    turned = data.simpson[data.simpson["reversed"]] if len(data.simpson) else data.simpson
    if len(turned):
        names = ", ".join(cell_title(target) for target in turned["target"])
        st.caption(f"Simpson: over all models the sign differs from that within classes: {names}.")
    elif len(data.simpson):
        st.caption("Simpson check: pooled and within architecture classes the signs agree.")
