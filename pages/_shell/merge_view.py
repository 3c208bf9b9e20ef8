"""The user's own encoders among the study's models: chosen, measured as these were, placed."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.errors import NotFound
from core.quality import merge
from core.quality.population import METRICS, PROBES, Population
from core.workspace import Workspace
from pages._shell import jobs, state
from pages._shell.layout import table
from pages._shell.words import number, plural

PAGE = "quality"
_JOB = "quality_merge_job"


def own(ws: Workspace, population: Population) -> Population | None:
    """Draw the choice of own encoders; return those that are measured, or None."""
    known = merge.candidates(ws)
    with st.expander("Your encoders among them", expanded=bool(known)):
        if not known:
            st.caption(
                "Features of the emoji or clip art pictures are needed: extract them, or bring "
                "a matrix of another tool on the Models page."
            )
            return None
        chosen = state.choose_many(
            PAGE, "merge", "Encoders", list(known), default=[],
            help="Bring a feature matrix of another tool on the Models page; it is listed here.",
        )  # fmt: skip
        st.caption(
            "Measured with the study's rows, splits and probes. They are drawn as stars and "
            "placed below; no correlation counts them."
        )
        if not chosen:
            return None
        pairs = [(dataset, model) for model in chosen for dataset in known[model]]
        ready = [pair for pair in pairs if merge.is_measured(ws, *pair)]
        _measure(ws, sorted({model for _, model in set(pairs) - set(ready)}))
    rows = [row for pair in ready for row in merge.study_rows(ws, *pair)]
    return merge.own_population(rows, population) if rows else None


def _measure(ws: Workspace, missing: list[str]) -> None:
    """Offer the job that measures what is missing, or watch it."""
    job_id = st.session_state.get(_JOB)
    if job_id is not None:
        try:
            job = ws.jobs.get(job_id)
        except NotFound:
            job = None
        if job is not None and job.active:
            jobs.watch(job.id)
            return
        if job is not None and job.state == "failed" and missing:
            st.caption(f"{job.error} {job.error_hint}")
    if missing and st.button(
        f"Measure {plural(len(missing), 'encoder')} as the study does", type="primary",
        key="quality_merge_go", help="About ten seconds an encoder.",
    ):  # fmt: skip
        st.session_state[_JOB] = ws.jobs.submit("core.quality.merge:run_merge", {"models": missing})
        st.rerun()


def places(population: Population, mine: Population, metric: str, probe: str) -> None:
    """Draw where the own encoders stand among the models shown, for one metric."""
    found = merge.places(population, mine, metric, probe)
    if found.empty:
        return
    st.markdown(f"**Yours among the models shown: {METRICS[metric][0]}**")
    table(
        pd.DataFrame(
            {
                "Encoder": found["model"],
                "Data set": found["dataset"].map(population.datasets),
                METRICS[metric][0]: [_value(v) for v in found["value"]],
                "above": [_share(v) for v in found["above"]],
                f"{PROBES[probe]}, percent": [number(100 * v) for v in found["accuracy"]],
                "ahead of": [_share(v) for v in found["ahead_of"]],
                "of models": found["n"],
                "flags": found["flags"].str.replace("_", " "),
            }
        ),
        name="quality-yours",
        key="quality_yours",
    )


def _value(value: float) -> str:
    return number(value) if value == value else "n/a"


def _share(value: float) -> str:
    return f"{100 * value:.0f} %" if value == value else "n/a"
