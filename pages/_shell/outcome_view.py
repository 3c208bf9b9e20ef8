"""The outcome report of an import: what was taken, left out and repaired, with its downloads."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.data.importers.outcome import OutcomeReport
from pages._shell import layout
from pages._shell.words import plural, safe

_LINES = 2_000


def outcome(report: OutcomeReport, *, key: str, open_first: bool = False) -> None:
    """Draw a report.

    Parameters
    ----------
    report : OutcomeReport
        From ``workspace.datasets.report(name)``.
    key : str
        Unique on the page.
    open_first : bool
        Show the lines unfolded.
    """
    with st.expander(f"Outcome of the import. {report.headline}", expanded=open_first):
        for note in report.notes:
            st.html(f'<p class="th-dim">{safe(note)}</p>')
        frame = report.table()
        if len(frame):
            st.dataframe(
                frame.head(_LINES), hide_index=True, alt="What was left out or repaired, and why",
                column_config={"outcome": "Outcome", "what": "What", "why": "Why or how",
                               "items": "Items"},
            )  # fmt: skip
            if len(frame) > _LINES:
                rest = plural(len(frame), "line")
                st.caption(f"The first {_LINES:,} of {rest}; the downloads hold all of them.")
            layout.downloads(frame, name=f"{report.dataset}-outcome", key=key)
        else:
            st.caption("Every row was taken as it was given.")
        facts = pd.DataFrame({"what": list(report.facts), "how": list(report.facts.values())})
        if len(facts):
            st.dataframe(facts, hide_index=True, alt="How the source was read",
                         column_config={"what": "What was read", "how": "How"})  # fmt: skip
