"""What the Transfer page adds on demand: measured gains, robustness, classes; and the advice."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from core.figures import transfer_more as figures
from core.radar import classes, robustness, truth
from core.radar.advice import advise
from core.results import Result
from pages._shell import charts, state
from pages._shell.jobs import result_or_run
from pages._shell.layout import table
from pages._shell.transfer_view import PAGE, signed, sure
from pages._shell.words import (
    as_text,
    number,
    p_value,
    percent,
    plural,
    plus_minus,
    seconds,
)


def _shared(params: dict[str, Any], kind: Any) -> dict[str, Any]:
    """The choices of the page that this analysis takes as well."""
    own = ("mode", "label_mode", "n_pairs", "repeats") if kind is classes else ()
    return {k: v for k, v in params.items() if k in kind.DEFAULTS and k not in own}


def measured(params: dict[str, Any], result: Result) -> None:
    """Every baseline against gains over many seeds, as a job."""
    if not result.summary["gain"]:
        st.caption(f"No gain was measured: {as_text(result.summary['gain_reason'])}.")
        if result.summary["gain_reason"] not in ("", "switched off") and not str(
            result.summary["gain_reason"]
        ).startswith("more than"):
            return
    st.subheader("All published measures, twelve seeds", anchor=False)
    found = result_or_run(
        "transfer-truth", _shared(params, truth), label="Measure it thoroughly", seconds_hint=90,
        what="LEEP, NCE, LogME, TransRate, H-score and s-OTDD beside RADAR, with exact p and "
        "gains over twelve seeds.",
    )  # fmt: skip
    if found is None:
        return
    facts = found.summary
    st.markdown(as_text(found.headline))
    frame = found.tables["measures"]
    left, right = st.columns(2)
    names = dict(zip(frame["column"], frame["measure"], strict=True))
    with left:
        column = state.select(
            PAGE, "truth", "Measure", list(names), default="score", show=lambda c: names[c]
        )
        charts.figure(
            figures.truth(found, column), "transfer_truth_chart",
            "One measure against the gain of every blend, with the interval over seeds",
            table=found.tables["blends"].drop(columns=["members"]).round(4),
        )  # fmt: skip
    with right:
        table(_measures(frame), name="transfer-truth", key="transfer_truth_table")
    exact = "exact p" if bool(frame["exact"].any()) else "p from 9,999 orders"
    st.caption(
        f"{plural(len(found.tables['blends']), 'blend')}, {exact}; gains on {facts['n']} target "
        f"test items at {as_text(facts['layer'])}, {found.params['gain_seeds']} seeds, intervals "
        f"95 %; without a source {percent(facts['baseline'])} ± "
        f"{100 * facts['baseline_sd']:.1f}. Seeds rank the gains alike to "
        f"{number(facts['reliability'], 2)} of 1: no measure can correlate above the root of "
        f"that. Test concepts among the sources' items: {facts['leaks']}. "
        "Measures made for choosing an encoder are adapted; the note says how."
    )


def _measures(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({
        "measure": frame["measure"], "better": frame["better"],
        "rho": frame["rho"].map(signed), "± seeds": frame["rho_sd"].map(lambda v: number(v, 2)),
        "p": frame["p"].map(p_value), "Kendall": frame["kendall"].map(signed),
        "its p": frame["kendall_p"].map(p_value),
        "at equal size": frame["rho_within_size"].map(signed), "blends": frame["n"],
        "seconds": frame["seconds"].map(seconds), "note": frame["note"],
    })  # fmt: skip


def robust(params: dict[str, Any]) -> None:
    """What other settings would have said, as a job."""
    st.header("Does the answer depend on the settings?", anchor=False)
    found = result_or_run(
        "transfer-robustness", _shared(params, robustness), label="Change every setting once",
        seconds_hint=120, what="The advice and the ranking under other pairs, seeds, densities, "
        "geometries, layers and directions, one change at a time.",
    )  # fmt: skip
    if found is None:
        return
    st.markdown(as_text(found.headline))
    left, right = st.columns(2)
    with left:
        charts.figure(
            figures.against_pairs(found), "transfer_pairs",
            "Excess of each source against the number of pairs, with two standard deviations",
            table=found.tables["sources"].round(4),
        )  # fmt: skip
        stable = found.tables["stability"]
        table(
            pd.DataFrame({
                "source": stable["source"], "advice shown": stable["shown"],
                "the same under": [
                    f"{same} of {of}" for same, of in zip(stable["same"], stable["of"],
                                                          strict=True)
                ],
                "add": stable["add"], "leave out": stable["leave_out"],
                "cannot tell": stable["cannot_tell"],
            }), name="transfer-stability", key="transfer_stability",
        )  # fmt: skip
    with right:
        charts.figure(
            figures.agreement(found), "transfer_agreement",
            "Spearman's rho between the rankings of every two settings",
            table=found.tables["variants"].round(3),
        )  # fmt: skip
    st.caption(
        "One setting is changed at a time. Slow densities score the single sources once and give "
        "no advice; agreement with them rests on the sources they share."
    )


def by_class(params: dict[str, Any]) -> None:
    """Which class carries the divergence, as a job."""
    st.header("Which class carries the divergence?", anchor=False)
    found = result_or_run(
        "transfer-classes", _shared(params, classes), label="Look inside the classes",
        seconds_hint=20, what="RADAR inside one class at a time: which kinds of things the other "
        "domain shows differently.",
    )  # fmt: skip
    if found is None:
        return
    st.markdown(as_text(found.headline))
    left, right = st.columns(2)
    with left:
        charts.figure(
            figures.class_map(found), "transfer_classes_map",
            "Excess over the null of every source inside every class",
            table=found.tables["classes"].round(4),
        )  # fmt: skip
    with right:
        sources = sorted(set(found.tables["classes"]["source"]))
        far = found.tables["classes"].groupby("source")["excess"].mean().idxmax()
        source = state.select(PAGE, "class_source", "Source", sources, default=far)
        charts.figure(
            figures.class_steps(found, source), "transfer_classes_steps",
            "Excess of one source by class and layer step",
        )  # fmt: skip
    st.caption(
        f"Mean over layer steps, {found.params['n_pairs']:,} pairs, {found.params['repeats']} "
        "repeats of random halves. Bold: two standard deviations above the class's own null; in "
        f"brackets: not told apart. Classes with fewer than {found.summary['least']} items in "
        "either domain are left out."
    )


def advice(result: Result) -> None:
    """What to do with each source, how sure, and what would settle the open ones."""
    st.header("What to do", anchor=False)
    found = advise(result)
    left, right = st.columns(2)
    with left:
        charts.figure(
            figures.advice_bars(found), "transfer_advice",
            "Excess of each source with two standard deviations, against the yardstick",
        )  # fmt: skip
    with right:
        for one in found:
            known = f" Confidence {sure(one.confidence)}." if one.confidence > 0 else ""
            settles = f" What would settle it: {one.settles}" if one.settles else ""
            st.markdown(f"- {as_text(one.sentence)}{as_text(known)}{as_text(settles)}")
        yard = plus_minus(found[0].far, None) if found else ""
        st.caption(
            f"Yardstick: {yard} nats, the excess between halves of the target's own classes. "
            "Confidence is that of the side of the yardstick, by Student's t over repeats; it "
            "knows the noise of the score and not whether the score foretells the gain."
        )
