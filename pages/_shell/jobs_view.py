"""The parts of the Jobs page."""

from __future__ import annotations

from collections import Counter

import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.workspace import Workspace
from pages._shell.jobs import progress
from pages._shell.layout import state_panel
from pages._shell.state import workspace
from pages._shell.words import as_text, plural, seconds

_WORDS = {
    "done": "done",
    "failed": "failed",
    "cancelled": "stopped",
    "lost": "lost",
    "running": "running",
    "queued": "waiting",
}


def counts(ws: Workspace) -> list[str]:
    """Return how many jobs are in each state, in words."""
    found = Counter(job.state for job in ws.jobs.list())
    if not found:
        return ["No job has run in this workspace yet"]
    return [f"{n} {_WORDS.get(state, state)}" for state, n in found.most_common()]


def title(job: Job) -> str:
    """Return what a job does, in words."""
    name = str(job.params.get("name") or job.kind).capitalize()
    if isinstance(job.params.get("plan"), dict):
        name = f"{name} · {job.params['plan'].get('title', '')}"
    parts = [
        str(job.params[field])
        for field in ("dataset", "model", "target", "reference", "method")
        if isinstance(job.params.get(field), str) and job.params[field]
    ]
    return " · ".join([name, *parts])


def active(ws: Workspace) -> None:
    """Draw the jobs that wait or run; they move by themselves."""
    if any(job.active for job in ws.jobs.list()):
        _active()
    else:
        state_panel(
            "Nothing is running",
            "Extractions, analyses and maps run here as processes of their own; closing the "
            "browser does not stop them.",
            "Start one from any analysis page, or with: theodolite extract DATASET MODEL.",
        )


@st.fragment(run_every=1.0)
def _active() -> None:
    running = [job for job in workspace().jobs.list() if job.active]
    if not running:
        st.rerun()
    for job in running:
        with st.container(border=True):
            st.markdown(f"**{as_text(title(job))}**")
            progress(job, key="jobs")


def ended(ws: Workspace) -> None:
    """Draw the jobs that ended: what can go on has a button, the rest is a table."""
    jobs = [job for job in ws.jobs.list() if not job.active]
    for job in jobs[:20]:
        if job.resumable:
            _stopped(job)
    if jobs:
        st.subheader("Finished", anchor=False)
        frame = pd.DataFrame(
            [
                {
                    "What": title(job),
                    "State": _WORDS.get(job.state, job.state),
                    "Ended": str(job.finished or "")[:19].replace("T", " "),
                    "Took": seconds(job.seconds),
                    "Note": job.error or job.message,
                    "Id": job.id,
                }
                for job in jobs
            ]
        )
        st.dataframe(frame, hide_index=True, alt="Jobs that ended")
        st.caption(f"{plural(len(jobs), 'job')}; times are UTC.")


def _stopped(job: Job) -> None:
    with st.container(border=True):
        st.markdown(f"**{as_text(title(job))}**: {_WORDS[job.state]}")
        st.caption(as_text(f"{job.error or job.message} {job.error_hint}".strip()))
        with st.container(horizontal=True):
            if st.button("Go on", key=f"jobs_{job.id}_resume", help="Finished parts are kept"):
                workspace().jobs.resume(job.id)
                st.rerun()
            with st.popover("Log"):
                st.code(_tail(job), language=None, wrap_lines=True)


def _tail(job: Job, lines: int = 60) -> str:
    try:
        text = job.log_path.read_text(errors="replace")
    except OSError:
        text = ""
    return "\n".join(text.splitlines()[-lines:]) or "The log is empty."
