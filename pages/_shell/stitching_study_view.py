"""The study on the Stitching page: whether the published ordering holds, and what explains it."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core import analyses
from core.figures import stitching_study as figures
from core.results import Result
from core.stitching.methods import METHODS
from core.stitching.study import DEFAULTS
from pages._shell import charts, state
from pages._shell.layout import Tile, explain, footer, state_panel, verdict
from pages._shell.state import workspace
from pages._shell.stitching_view import PAGE
from pages._shell.words import count, percent, plural, seconds


def draw() -> None:
    """Draw the stored study, or say how to make one."""
    result = analyses.current("stitching-study", workspace())
    if result is None:
        state_panel(
            "No study is stored here",
            "It runs every encoder on every data set, with sweeps over anchors and shrinkage.",
            "Make it from the command line: theodolite stitch study. It takes about 20 minutes.",
        )
        return
    verdict(result.headline, _tiles(result))
    charts.figure(
        figures.claims(result),
        "stitching_study_claims",
        "The two published statements as differences in accuracy, with intervals, per data set",
        table=result.tables["comparison"],
    )
    _case(result)
    _why(result)
    _advice(result)
    explain(
        read=[
            "A swapped head is trained on one encoder and reads another; each dot is the mean "
            "over pairs of different encoders and over seeds.",
            "Methods are compared on the same seeds and pairs: both are drawn anew for the "
            "interval, and q is adjusted over all comparisons of a data set.",
            "Across languages a space is an encoder on one language; the German and the English "
            "name of one thing are one parallel row.",
        ],
        misleads=[
            "Three encoders make three pairs: an interval over three pairs is narrow by luck.",
            "Weights, temperatures and shrinkage of PARAM are ours: the paper's were not "
            "available. The sweep shows what the choice of shrinkage does.",
            f"Sweeps train {DEFAULTS['sweep_steps']} steps on {DEFAULTS['sweep_seeds']} seeds, "
            f"the comparison {DEFAULTS['steps']} on {DEFAULTS['seeds']}.",
        ],
        method="Protocol, heads and intervals as on the first tab. The shrinkage of each method "
        "is the candidate under which held-out pairs find themselves best, without labels.",
        paper="Learned Anchors and Whitened Inner Products, arXiv 2605.30596.",
    )
    footer(result, defaults=DEFAULTS)


def _tiles(result: Result) -> list[Tile]:
    claims = result.summary["claims"]
    tiles = []
    for a, b, label in (
        ("wip-param", "cosine-random", "PARAM and WIP over random and cosine"),
        ("wip-random", "cosine-random", "Random and WIP under random and cosine"),
    ):
        mine = [c for c in claims if (c["a"], c["b"]) == (a, b)]
        if not mine:
            continue
        wanted = "above" if a == "wip-param" else "below"
        held = sum(c["verdict"] == wanted for c in mine)
        against = sum(c["verdict"] not in (wanted, "cannot tell") for c in mine)
        tiles.append(Tile(
            label, f"{held} of {len(mine)}",
            f"the other way in {against}; the rest cannot tell",
            tone="good" if held == len(mine) else "unknown",
        ))  # fmt: skip
    table = result.tables["cases"]
    tiles.append(Tile(
        "Compared", plural(len(table), "data set"),
        f"{result.summary['seeds']} seeds, {count(int(table['n_test'].sum()))} test items",
    ))  # fmt: skip
    tiles.append(Tile(
        "Took", seconds(result.summary["piece_seconds"]),
        "wall time of all pieces, one thread of a shared machine",
    ))  # fmt: skip
    return tiles


def _case(result: Result) -> None:
    st.header("Every method on one data set", anchor=False)
    titles = result.summary["case_titles"]
    left, right = st.columns(2)
    with left:
        case = state.select(PAGE, "case", "Data set", list(titles), show=titles.get)
    scopes = result.tables["methods"].query("case == @case")["scope"].unique()
    with right:
        scope = state.select(PAGE, "scope", "Pairs", list(scopes))
    table = result.tables["methods"].query("case == @case and scope == @scope")
    charts.figure(
        figures.methods(result, case, scope),
        "stitching_study_methods",
        "Accuracy of every method with its interval",
        table=table,
    )
    about = result.tables["cases"].set_index("case").loc[case]
    best = table.loc[table["accuracy"].idxmax()]
    st.caption(
        f"{plural(int(about['spaces']), 'space')}, {about['n_train']:,} training and "
        f"{about['n_test']:,} test items, {about['n_parallel']:,} parallel rows, "
        f"{about['classes']} classes; {about['split']}. Best here: "
        f"{METHODS[best['method']].title}, {percent(best['accuracy'])}, "
        f"keeping {percent(best['retention'])} of native; own heads {percent(about['native'])}."
    )


def _why(result: Result) -> None:
    st.header("What makes the difference", anchor=False)
    curves = result.tables["curves"]
    if len(curves):
        titles = result.summary["case_titles"]
        swept = list(dict.fromkeys(curves["case"]))
        case = state.choose_one(PAGE, "swept", "Data set of the sweeps", swept, show=titles.get)
        for column, axis in zip(st.columns(2, gap="medium"), ("anchors", "support"), strict=True):
            with column:
                charts.figure(
                    figures.curve(result, case, axis),
                    f"stitching_study_{axis}",
                    f"Accuracy against {axis}, one line a method, with intervals",
                    table=curves.query("case == @case and axis == @axis"),
                )
    left, right = st.columns(2, gap="medium")
    if len(curves):
        with left:
            charts.figure(
                figures.curve(result, case, "shrinkage"),
                "stitching_study_shrinkage",
                "Accuracy against the shrinkage of the whitening, one line a method",
                table=curves.query("case == @case and axis == 'shrinkage'"),
            )
            st.caption(result.summary["explained"])
    with right:
        known = list(dict.fromkeys(result.tables["predicts"]["method"]))
        method = state.choose_one(
            PAGE, "predicted", "Method", known, show=figures.short, label_visibility="collapsed"
        )
        charts.figure(
            figures.predicts(result, method),
            "stitching_study_predicts",
            "Rank correlation of each similarity with what a swap keeps",
            table=result.tables["predicts"].query("method == @method"),
        )


def _advice(result: Result) -> None:
    st.header("Which encoder can replace which", anchor=False)
    titles = result.summary["case_titles"]
    names = result.summary["titles"]
    frame = result.tables["advice"].sort_values(
        ["case", "retention"], ascending=[True, False], key=lambda c: _in_order(c, list(titles))
    )
    shown = frame.assign(
        case=[titles[c] for c in frame["case"]],
        i=[names[m] for m in frame["i"]], j=[names[m] for m in frame["j"]],
        **{c: (100 * frame[c]).round(1) for c in ("stitched", "native", "retention", "low",
                                                   "high")},
        lost=(100 * (frame["native"] - frame["stitched"])).round(1),
    )  # fmt: skip
    number = st.column_config.NumberColumn
    st.dataframe(
        shown[["case", "i", "j", "stitched", "native", "lost", "retention", "low", "high",
               "verdict"]],
        hide_index=True,
        column_config={
            "case": "Data set", "i": "Head of", "j": "Replaced by",
            "stitched": number("Swapped, %", format="%.1f"),
            "native": number("Own head, %", format="%.1f"),
            "lost": number("Lost, points", format="%.1f"),
            "retention": number("Kept, %", format="%.1f"),
            "low": number("from", format="%.1f", help="95 % interval, concepts resampled"),
            "high": number("to", format="%.1f"), "verdict": "Verdict",
        },
        alt="Every swap with what it keeps, best first on each data set",
    )  # fmt: skip
    st.caption(
        "The best method with anchors of each data set; intervals by drawing whole concepts anew. "
        "Above 100 % the own head of the replacement is the weak one."
    )


def _in_order(column: pd.Series, names: list[str]) -> pd.Series:
    """Return the sort key of a column: the order of the data sets, or the number itself."""
    return column.map(names.index) if column.name == "case" else column
