"""The methods of a stitching result side by side, and which differences are more than chance."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.results import Result
from pages._shell.words import plural


def draw(result: Result) -> None:
    """Draw the methods side by side: accuracy, retention, retrieval, cost."""
    frame = result.tables["summary"]
    st.dataframe(
        frame.assign(
            **{c: 100 * frame[c] for c in ("accuracy", "accuracy_sd", "worst", "retention",
                                           "gap", "R@1", "R@5")}
        )[["title", "accuracy", "accuracy_sd", "worst", "retention", "gap", "R@1", "R@5", "MRR",
           "maps", "shrinkage", "seconds"]],
        hide_index=True,
        column_config=_columns(),
        alt="Methods side by side",
    )  # fmt: skip
    _comparison(result)


def _comparison(result: Result) -> None:
    """Draw every two methods against each other, paired by seed and by pair of encoders."""
    frame = result.tables["comparison"]
    if not len(frame):
        return
    titles = dict(result.tables["summary"][["method", "title"]].itertuples(index=False))
    row = frame.iloc[0]
    with st.expander("Which of these differences are more than chance"):
        shown = frame.assign(
            a=frame["a"].map(titles), b=frame["b"].map(titles),
            **{c: 100 * frame[c] for c in ("difference", "low", "high")},
        )[["a", "b", "difference", "low", "high", "q"]]  # fmt: skip
        number = st.column_config.NumberColumn
        st.dataframe(
            shown,
            hide_index=True,
            column_config={
                "a": "Method", "b": "against", "q": number("q", format="%.3f"),
                "difference": number("Difference, points", format="%+.1f"),
                "low": number("from", format="%+.1f"), "high": number("to", format="%+.1f"),
            },
            alt="Paired differences between methods",
        )  # fmt: skip
        st.caption(
            f"Paired over {plural(int(row['n_seeds']), 'seed')} and "
            f"{plural(int(row['n_pairs']), 'pair')} of encoders, both drawn anew 2,000 times; q "
            "is adjusted over the rows (Benjamini-Hochberg)."
        )


def _columns() -> dict[str, Any]:
    def pct(label: str, help_: str) -> Any:
        return st.column_config.NumberColumn(label, format="%.1f", help=help_)

    return {
        "title": "Method",
        "accuracy": pct("Accuracy, %", "Mean over pairs of different encoders"),
        "accuracy_sd": pct("±", "One standard deviation over seeds"),
        "worst": pct("Worst pair, %", "Lowest accuracy of an ordered pair"),
        "retention": pct("Kept, %", "Stitched over native accuracy of the features' encoder"),
        "gap": pct("Lost, points", "Native minus stitched"),
        "R@1": pct("R@1, %", "A sample finds itself first in the other encoder"),
        "R@5": pct("R@5, %", "Among the first five"),
        "MRR": st.column_config.NumberColumn("MRR", format="%.3f", help="Mean reciprocal rank"),
        "maps": st.column_config.NumberColumn("Maps", help="Maps fitted to serve all pairs"),
        "shrinkage": "Shrinkage",
        "seconds": st.column_config.NumberColumn("Seconds", format="%.1f"),
    }
