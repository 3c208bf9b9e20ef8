"""The stored answer, or a job that makes it: nothing long ever runs in the page itself."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core import analyses
from core.digest import recipe_key
from core.jobs.job import Job
from core.results import Result
from pages._shell.layout import state_panel
from pages._shell.state import workspace
from pages._shell.words import as_text, seconds

_ENDED = {
    "failed": "This did not finish",
    "cancelled": "Stopped",
    "lost": "The process behind this has gone",
}


def result_or_run(
    kind: str,
    params: dict[str, Any],
    *,
    label: str,
    seconds_hint: float | None = None,
    what: str = "",
) -> Result | None:
    """Return the stored result of these parameters; if there is none, draw the way to get it.

    The page goes on when it gets a result and stops drawing its evidence when it gets None.

    Parameters
    ----------
    kind : str
        "transfer", "quality", "contrast", "stitching" or "explore".
    params : dict
        As for ``core.run``; what is missing takes its default.
    label : str
        The button, a verb and its object: "Rank the sources".
    seconds_hint : float, optional
        About how long it takes on two cores.
    what : str
        What the page will show once it has run, one sentence.

    Raises
    ------
    UserError
        The parameters cannot be used; see :func:`pages._shell.errors.plainly`.
    """
    ws = workspace()
    found = analyses.find(kind, ws, **params)
    if found is not None:
        return found
    full = analyses.resolve(kind, ws, **params)
    job = last_job(kind, full)
    if job is not None and job.active:
        watch(job.id)
        return None
    if job is not None and job.state in _ENDED:
        _ended(job)
    else:
        hint = (
            f"It takes about {seconds(seconds_hint)} and runs beside the page."
            if seconds_hint
            else ""
        )
        state_panel("Not computed yet for this choice", what, hint)
    again = job is not None and job.state in _ENDED
    if st.button(
        "Try again" if again else label, type="primary", key=f"{kind}_run_{recipe_key(full)[:8]}"
    ):
        ws.jobs.submit(*_work(kind, full))
        st.rerun()
    return None


def _work(kind: str, full: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    # Maps have a lane of their own: people wait for them while an analysis runs.
    return ("map", full) if kind == "explore" else ("analysis", {"name": kind, **full})


def last_job(kind: str, full: dict[str, Any]) -> Job | None:
    """Return the newest job that would make this result, or None."""
    job_kind, params = _work(kind, full)
    wanted = recipe_key(params)
    for job in workspace().jobs.list():
        if job.kind == job_kind and recipe_key(job.params) == wanted:
            return job
    return None


def _ended(job: Job) -> None:
    bug = f"Bug {job.bug_id}: its log is {job.log_path}" if job.bug_id else ""
    state_panel(
        _ENDED[job.state], job.error or job.message, job.error_hint, bug, _advice(job.state)
    )


def _advice(state: str) -> str:
    if state == "lost":
        return "What was finished is kept. Try again to go on from there."
    if state == "cancelled":
        return "Nothing was changed. Run it again whenever you like."
    return "What was stored before is untouched."


@st.fragment(run_every=1.0)
def watch(job_id: str) -> None:
    """Draw one job as it goes; the page is drawn anew when it ends."""
    job = workspace().jobs.get(job_id)
    if not job.active:
        st.rerun()
    progress(job)


def progress(job: Job, *, key: str = "watch") -> None:
    """Draw one active job: what it does, how far, how long still, and a button to stop it."""
    done = min(max(job.progress, 0.0), 1.0)
    parts = [job.message or ("Waiting for its turn" if job.state == "queued" else "Starting")]
    if job.rate:
        parts.append(f"{job.rate:,.0f} {job.rate_unit} a second".replace("  ", " "))
    if job.eta_s:
        parts.append(f"about {seconds(job.eta_s)} left")
    st.progress(done, text=f"{100 * done:.0f} % · {as_text(' · '.join(parts))}")
    st.button(
        "Stopping" if job.cancelling else "Stop",
        key=f"{key}_{job.id}_stop",
        disabled=job.cancelling,
        on_click=workspace().jobs.cancel,
        args=(job.id,),
    )


def sidebar_panel() -> None:
    """Say in the sidebar what is running; nothing when nothing is."""
    if any(job.active for job in workspace().jobs.list()):
        _running_line()


@st.fragment(run_every=2.0)
def _running_line() -> None:
    active = [job for job in workspace().jobs.list() if job.active]
    if not active:
        st.rerun()
    first = max(active, key=lambda job: job.progress)
    done = min(max(first.progress, 0.0), 1.0)
    noun = "job" if len(active) == 1 else "jobs"
    st.progress(done, text=f"{len(active)} {noun} running · {100 * done:.0f} %")
