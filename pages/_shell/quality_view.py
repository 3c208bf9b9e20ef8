"""The parts of the Quality page that show this workspace's own encoders."""

from __future__ import annotations

import streamlit as st

from core.data.dataset import Dataset
from core.figures import quality as figures
from core.quality.flags import FLAGS
from core.results import Result
from pages._shell import charts, grid, state
from pages._shell.layout import Tile, chips, table, verdict
from pages._shell.words import count, interval, number, percent, plural

PAGE = "quality"


def answer(result: Result) -> None:
    """Draw the verdict: the best encoder, its lead, and whether a metric can be trusted."""
    models, summary = result.tables["models"], result.summary
    names = figures.titles(result)
    best, nearest = (models.loc[models[probe].idxmax()] for probe in ("linear", "knn"))
    tiles = [
        Tile(
            "Linear probe, best",
            percent(best["linear"]),
            f"{names[best['model']]} {_bounds(best, 'linear')}",
        ),
        Tile(
            "1-NN, best",
            percent(nearest["knn"]),
            f"{names[nearest['model']]} {_bounds(nearest, 'knn')}",
        ),
        Tile(
            "Measured on",
            f"{count(summary['n_train'])} + {count(summary['n_test'])}",
            f"items to train and test, {plural(summary['n_classes'], 'class', 'classes')}",
        ),
        Tile(
            "Which metric to trust",
            "cannot tell" if summary["correlations"] != "computed" else "see below",
            summary["correlations"] if summary["correlations"] != "computed" else "",
            tone="unknown" if summary["correlations"] != "computed" else "",
            help="A correlation over fewer than eight encoders is not claimed.",
        ),
    ]
    verdict(result.headline, tiles)
    if summary["judge_reason"]:
        st.caption(f"{summary['judge_reason']}.")


def _bounds(row, column: str) -> str:
    return interval(100 * row[f"{column}_lo"], 100 * row[f"{column}_hi"])


@st.fragment
def evidence(result: Result) -> None:
    """Draw the accuracies beside one metric, and every metric as a table."""
    specs = result.tables["specs"].set_index("metric")
    st.header("Your encoders, computed here", anchor=False)
    left, right = st.columns(2, gap="medium")
    with right:
        metric = state.select(
            PAGE,
            "metric",
            "Label-free metric",
            list(specs.index),
            default="rankme",
            show=lambda name: specs.loc[name, "title"],
        )
    with left:
        probe = state.choose_one(
            PAGE,
            "probe",
            "Accuracy of the right-hand figure",
            # The probe that decides comes first, as the default.
            sorted(("linear", "knn"), key=lambda probe: probe != result.summary["judge"]),
            show={"linear": "linear probe", "knn": "1-NN"}.get,
        )
    left, right = st.columns(2, gap="medium")
    with left:
        charts.figure(
            figures.accuracies(result),
            "quality_accuracies",
            "Accuracy of every encoder on held-out items with intervals",
        )
    with right:
        charts.figure(
            figures.metric_scatter(result, metric, accuracy=probe),
            "quality_metric_figure",
            f"{specs.loc[metric, 'title']} of every encoder against its accuracy",
        )
    st.caption(
        f"{specs.loc[metric, 'meaning']} Bars are the range over subsamples of 90 % of the rows."
    )
    table(figures.metric_table(result), name="quality-metrics", key="quality_metrics_table")
    flags = sorted({word for text in result.tables["metrics"]["flags"] for word in text.split()})
    if flags:
        with st.expander("What the flags mean"):
            for flag in flags:
                st.markdown(f"- **{flag.replace('_', ' ')}**: {FLAGS.get(flag, '')}")
    if "correlations" in result.tables:
        table(result.tables["correlations"], name="quality-rho", key="quality_rho")


@st.fragment
def pinned(dataset: Dataset, result: Result) -> None:
    """Draw one encoder's spectrum, TwoNN line and the pictures it gets wrong."""
    names = figures.titles(result)
    st.header("One encoder in detail", anchor=False)
    model = state.select(
        PAGE, "model", "Encoder", list(result.tables["models"]["model"]), show=names.get
    )
    left, right = st.columns(2, gap="medium")
    with left:
        charts.figure(
            figures.spectrum(result, model),
            "quality_spectrum",
            f"Eigenvalues of {names[model]} on log axes with two fitted power laws",
        )
    with right:
        charts.figure(
            figures.twonn(result, model),
            "quality_twonn",
            f"TwoNN plot of {names[model]}: its slope is the intrinsic dimension",
        )
    rows = result.tables["metrics"]
    mine = rows[(rows["model"] == model) & (rows["flags"] != "")]
    if len(mine):
        chips(
            f"{row.metric.replace('_', ' ')}: {', '.join(_plain(row.flags))}"
            for row in mine.itertuples()
        )
    _mistakes(dataset, result, model, names)


def _plain(flags: str) -> list[str]:
    return [flag.replace("_", " ") for flag in flags.split()]


def _mistakes(dataset: Dataset, result: Result, model: str, names: dict[str, str]) -> None:
    said = result.tables["predictions"]
    mine = said[said["model"] == model]
    if mine.empty:
        return
    right = (said["linear"] == said["label"]).groupby(said["id"]).sum()
    wrong = mine[mine["linear"] != mine["label"]]
    wrong = wrong.assign(others=right.reindex(wrong["id"]).to_numpy())
    wrong = wrong.sort_values(["others", "id"], ascending=[False, True])
    rest = said["model"].nunique() - 1
    st.subheader(f"What {names[model]} gets wrong: {len(wrong):,} of {len(mine):,}", anchor=False)
    st.caption(
        "Held-out items its linear probe names wrongly; first those that the other encoders get "
        f"right (the badge: how many of {rest}). The second line is what it said."
    )
    grid.items(
        dataset,
        wrong["id"],
        key="quality_wrong",
        scores=dict(zip(wrong["id"], wrong["others"].astype(float), strict=True)),
        badge=lambda value: number(value, 1),
        notes={int(row.id): f"{row.label}, said {row.linear}" for row in wrong.itertuples()},
        page_size=24,
        cell=96,
        label=f"Items {names[model]} gets wrong",
    )


def conditioning(result: Result) -> None:
    """Draw how the ridge changes accuracy, and what it gains against the condition number."""
    st.header("Is it the encoder or the solver?", anchor=False)
    left, right = st.columns(2, gap="medium")
    with left:
        charts.figure(
            figures.ridge_sweep(result),
            "quality_ridge",
            "Accuracy of the linear probe over four ridges, one line an encoder",
            table=result.tables["sweep"],
        )
    with right:
        charts.figure(
            figures.conditioning(result),
            "quality_conditioning",
            "Gain of a ridge against the condition number, one point an encoder",
        )
    st.caption(
        "The study finds that the condition number predicts least squares and not 1-NN: a solver's "
        "artefact. An encoder that gains much from a ridge was judged by its solver."
    )
