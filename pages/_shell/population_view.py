"""The part of the Quality page on measured models: 260 small ones trained here."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from core.errors import NotFound
from core.figures import population as figures
from core.figures.quality import titles
from core.quality import chooser, model_study, stored
from core.quality import population as populations
from core.quality.population import METRICS, PROBES, STUDY, Population
from core.quality.registry import ARCHITECTURES
from core.quality.rivals import rivals
from core.results import Result
from pages._shell import charts, errors, merge_view, population_parts, state
from pages._shell.layout import Tile, downloads, state_panel, table, verdict
from pages._shell.words import count, number, plural, safe

PAGE = "quality"
_MARK = {"trust": "trust it here", "not here": "not here", "turns round": "turns round",
         "cannot tell": "cannot tell"}  # fmt: skip
_TONE = {"trust": "good", "not here": "bad", "turns round": "bad", "cannot tell": "unknown"}


@st.cache_data(max_entries=48, show_spinner=False)
def _cells(
    probe: str, kinds: tuple[str, ...], groups: tuple[str, ...], everything: bool
) -> pd.DataFrame:
    """Correlations of a filter, looked up: any filter is a union of stored blocks."""
    names = list(METRICS) if everything else list(STUDY)
    return stored.zoo_cells(probe, architectures=kinds, groups=groups, metrics=names)


@st.cache_data(max_entries=48, show_spinner=False)
def _study_cells(
    key: str, probe: str, kinds: tuple[str, ...], groups: tuple[str, ...], everything: bool,
    _study: Result,
) -> pd.DataFrame:  # fmt: skip
    """The same for the user's own stored study, by its key."""
    names = list(METRICS) if everything else list(STUDY)
    blocks = _study.tables["rho"].set_index(["block", "probe"]).sort_index()
    return stored.block_cells(
        blocks, probe, architectures=kinds, groups=groups, metrics=names,
        n_boot=int(_study.params["n_boot"]),
    )  # fmt: skip


@st.fragment
def study_panel(study: Result, result: Result | None) -> None:
    """Draw the pretrained models that ``theodolite quality study`` measured, as the zoo is drawn.

    Parameters
    ----------
    study : Result
        Of kind "model-study".
    result : Result, optional
        The user's own encoders, ranked by the chosen metric.
    """
    with errors.plainly():
        _study_panel(study, result)


def _study_panel(study: Result, result: Result | None) -> None:
    whole = model_study.population_of(study)
    models = study.tables["models"]
    gone = models[~models["state"].isin(["measured", "kept"])]
    st.header(
        f"{plural(int(study.summary['n_models']), 'pretrained model')} on "
        f"{study.params['dataset']}",
        anchor=False,
    )
    st.caption(
        f"{count(study.summary['n_train'])} items for the metrics and the probes' training, "
        f"{count(study.summary['n_test'])} tested. The same for every model."
    )
    if whole is not None:
        shown, settings = _filters(whole)
        if shown.table.empty:
            state_panel("No model passes these filters", "Choose more classes or objectives.")
            return
        probe = settings["probe"]
        cells = _study_cells(
            f"{study.key} {study.created}", probe, settings["kinds"], settings["groups"],
            settings["everything"], study,
        )  # fmt: skip
        _chooser(cells, result, whole)
        _evidence(shown, cells, probe, None)
        population_parts.heatmaps(shown, cells)
        population_parts.one_model(shown, None)
        _downloads(shown, cells, settings)
    if not gone.empty:
        with st.expander(f"{plural(len(gone), 'model')} could not be measured", expanded=True):
            table(gone[["model", "state", "reason"]], name="quality-study-failures",
                  key="quality_study_failures")  # fmt: skip
            st.caption("They are tried again by the next `theodolite quality study`.")


@st.fragment
def panel(result: Result | None) -> None:
    """Draw the population: which metric to trust, the evidence, the claims, one model.

    Parameters
    ----------
    result : Result, optional
        The user's own encoders, drawn into the scatter and ranked by the chosen metric.
    """
    with errors.plainly():
        _panel(result)


def all_models() -> None:
    """Draw what no filter changes: claims, conditioning, alpha-ReQ's range, curves."""
    with errors.plainly():
        population_parts.fixed()


def _panel(result: Result | None) -> None:
    try:
        whole = populations.zoo()
    except NotFound as error:
        state_panel("The study is not installed", str(error))
        return
    st.header(f"{count(whole.n_models)} small models trained for this study", anchor=False)
    st.caption(
        "Four architecture classes, supervised and four self-supervised objectives, 60 recipes; "
        "trained on emoji of 213 concepts, measured on six real image sets. Small networks at 32 "
        "pixels: read how the metrics behave, not the accuracies."
    )
    if whole.n_models < int(whole.about.get("planned", whole.n_models)):
        st.caption(
            f"{count(whole.n_models)} of {count(whole.about['planned'])} planned models are "
            "measured so far."
        )
    shown, settings = _filters(whole)
    if shown.table.empty:
        state_panel("No model passes these filters", "Choose more classes or objectives.")
        return
    probe = settings["probe"]
    cells = _cells(probe, settings["kinds"], settings["groups"], settings["everything"])
    mine = merge_view.own(state.workspace(), whole)
    _chooser(cells, result, whole)
    _evidence(shown, cells, probe, mine)
    population_parts.heatmaps(shown, cells)
    population_parts.agreement(shown, cells)
    population_parts.one_model(shown, mine)
    _downloads(shown, cells, settings)


def _downloads(shown: Population, cells: pd.DataFrame, settings: dict) -> None:
    with st.expander("The models as a table"):
        lists = ["eigenvalues", "twonn_x", "twonn_y"]
        frame = shown.table.drop(columns=[c for c in lists if c in shown.table])
        downloads(frame, name="quality-study", key="quality_study_rows")
        st.caption("Correlations, with the settings that made them:")
        downloads(_with_settings(cells, settings), name="quality-rho", key="quality_study_rho")


def _with_settings(cells: pd.DataFrame, settings: dict) -> pd.DataFrame:
    """The correlations with what a reader needs to make them again."""
    return cells.assign(
        architectures="+".join(settings["kinds"]),
        objectives="+".join(settings["groups"]),
        resampled="families",
        n_boot=stored.N_BOOT,
        seed=0,
        q_over="metrics and data sets of a stratum",
    )


def _filters(whole: Population) -> tuple[Population, dict]:
    left, right = st.columns([3, 2], gap="medium", vertical_alignment="bottom")
    with left:
        probe = state.choose_one(
            PAGE, "study_probe", "Accuracy by", ["knn", "linear", "linear.0"], show=PROBES.get,
            help="1-NN has nothing to fit; least squares without a ridge measures its solver "
            "where rows are about as many as features.",
        )  # fmt: skip
    with right:
        everything = state.switch(
            PAGE, "study_all", "All metrics", help="The study's seven, or every one computed."
        )
    kinds_all = list(dict.fromkeys(whole.table["architecture"]))
    kinds_all = [k for k in ARCHITECTURES if k in kinds_all]
    groups_all = list(dict.fromkeys(whole.table["group"]))
    with st.expander("Filters: what is left decides every rho, interval and q"):
        one, two = st.columns(2, gap="medium")
        with one:
            kinds = state.choose_many(PAGE, "study_kinds", "Architecture", kinds_all)
        with two:
            groups = state.choose_many(
                PAGE, "study_groups", "Objective", groups_all, show=populations.GROUPS.get
            )
    settings = {"probe": probe, "kinds": tuple(kinds), "groups": tuple(groups),
                "everything": everything}  # fmt: skip
    return populations.select(whole, architectures=kinds, groups=groups), settings


def _chooser(cells: pd.DataFrame, result: Result | None, whole: Population) -> None:
    st.subheader("Which metric to trust", anchor=False)
    strata = list(dict.fromkeys(cells["stratum"]))
    names = dict(zip(cells["dataset"], cells["dataset"], strict=True))
    titles = whole.datasets
    left, right = st.columns(2, gap="medium")
    with left:
        stratum = state.select(
            PAGE, "study_stratum", "Your models are", strata,
            show=lambda s: "of several classes" if s == "All" else s,
        )  # fmt: skip
    with right:
        like = state.choose_many(
            PAGE, "study_like", "Your pictures resemble", list(names), show=titles.get
        )
    if not like:
        st.caption("Choose at least one data set.")
        return
    choice = chooser.choose_metric(
        cells, stratum, datasets=like, metrics=list(dict.fromkeys(cells["metric"]))
    )
    words = f"Trust {choice.reason}." if choice.metric else choice.reason
    tiles = [
        Tile(METRICS[t.metric][0], _MARK[t.verdict], t.reason, tone=_TONE[t.verdict])
        for t in choice.table
        if t.metric in STUDY
    ]
    verdict(words, tiles)
    if choice.metric and result is not None:
        _own_ranking(choice, result)
    if stratum in chooser.PUBLISHED_STRATA:
        _to_try(stratum)


def _own_ranking(choice: chooser.Choice, result: Result) -> None:
    rows = result.tables["metrics"]
    rows = rows[rows["metric"] == choice.metric]
    if rows.empty:
        return
    ranked = chooser.rank_by(rows[["model", "value", "lo", "hi"]], choice.sign)
    if ranked.empty or "tied" not in ranked:
        return
    names = titles(result)
    first, *others = [
        names[m] for m in ranked.loc[ranked["tied"].fillna(False).astype(bool), "model"]
    ]
    words = f"Among your encoders {first} comes first by {METRICS[choice.metric][0]}"
    words += f"; {', '.join(others)} cannot be told from it." if others else "."
    st.html(f"<p>{safe(words)}</p>")


@st.cache_data(max_entries=16, show_spinner=False)
def _published(stratum: str) -> pd.DataFrame:
    return chooser.models_to_try(stratum)


def _to_try(stratum: str) -> None:
    """Published models of this class to begin with; across classes nothing is ranked."""
    rows = _published(stratum)
    with st.expander("Models to try"):
        if rows.empty:
            st.caption("No accuracy of this class is published.")
            return
        across = " One of each class: across classes nothing is ranked." * (stratum == "All")
        st.caption(
            f"The best of each recipe family by published accuracy ({rows['protocol'].iloc[0]}; "
            f"measured by others, not here; 95 % over 50,000 test pictures).{across} Measure them "
            "on your pictures before you choose."
        )
        table(
            pd.DataFrame(
                {
                    "Model": rows["id"],
                    "Class": rows["architecture"],
                    "Published, percent": [
                        f"{r.accuracy:.1f} [{r.lo:.1f}, {r.hi:.1f}]" for r in rows.itertuples()
                    ],
                    "Parameters, M": [number(v) for v in rows["params_M"]],
                    "Licence": rows["license"].fillna("n/a"),
                }
            ),
            name="quality-to-try",
            key="quality_to_try",
        )


def _evidence(shown: Population, cells: pd.DataFrame, probe: str, mine: Population | None) -> None:
    st.subheader("The evidence", anchor=False)
    metrics = list(dict.fromkeys(cells["metric"]))
    left, middle, right = st.columns([3, 3, 2], gap="medium", vertical_alignment="bottom")
    with left:
        metric = state.select(
            PAGE, "study_metric", "Metric", metrics, default="ne_sum", show=figures.metric_title
        )
    with middle:
        dataset = state.select(
            PAGE, "study_set", "Data set", list(shown.datasets), show=shown.datasets.get
        )
    with right, st.container(horizontal=True, gap="medium"):
        ranks = state.switch(PAGE, "study_ranks", "Ranks", help="rho compares ranks.")
        facets = state.switch(PAGE, "study_facets", "All six")
    pin = str(st.session_state.get("quality_study_pin", ""))
    own = None if mine is None else mine.table.assign(value=mine.table[metric].astype(float))
    charts.figure(
        figures.scatter(
            shown, list(shown.datasets) if facets else [dataset], metric, probe, cells,
            ranks=ranks, pinned=pin, own=own,
        ),
        "quality_study",
        f"{figures.metric_title(metric)} of {shown.n_models} models against accuracy",
        select=("points",),
        on_select=_take_pin,
    )  # fmt: skip
    star = " Stars: your encoders, measured as these were." if own is not None else ""
    st.caption(
        f"{count(shown.n_models)} models, families resampled together. Size: parameters. A click "
        f"pins a model in every panel.{star}"
    )
    rows = cells[cells["metric"] == metric].assign(
        dataset=lambda frame: frame["dataset"].map(shown.datasets)
    )
    left, right = st.columns(2, gap="medium")
    with left:
        charts.figure(
            figures.forest(rows, title=f"{figures.metric_title(metric)}: rho in each stratum"),
            "quality_study_forest",
            "Rank correlation with its interval in each stratum and data set",
            table=rows,
        )
    with right:
        st.markdown(f"**{figures.metric_title(metric)} on {shown.datasets[dataset]}**")
        st.caption("Partial rho takes out what the feature width alone explains.")
        here = cells[(cells["metric"] == metric) & (cells["dataset"] == dataset)]
        table(
            pd.DataFrame(
                {
                    "Stratum": here["stratum"],
                    "rho": [_rho(*v) for v in here[["rho", "lo", "hi"]].to_numpy()],
                    "partial, given width": [
                        _rho(*v) for v in here[["partial", "partial_lo", "partial_hi"]].to_numpy()
                    ],
                    "models": here["n"],
                    "families": here["n_clusters"],
                }
            ),
            name="quality-partial",
            key="quality_study_partial",
        )
        if state.switch(
            PAGE, "study_rivals", "Against the other metrics",
            help="Intervals that overlap do not say that two metrics are equal: both rest on the "
            "same models. This resamples their difference.",
        ):  # fmt: skip
            _rivals(shown, dataset, metric, probe, list(dict.fromkeys(cells["metric"])))
    if mine is not None:
        merge_view.places(shown, mine, metric, probe)


def _rivals(shown: Population, dataset: str, metric: str, probe: str, metrics: list[str]) -> None:
    found = rivals(shown, dataset, metric, probe, metrics=metrics, n_boot=stored.N_BOOT)
    table(
        pd.DataFrame(
            {
                "Metric": found["metric"].map(figures.metric_title),
                "its rho": [f"{v:+.2f}" if np.isfinite(v) else "n/a" for v in found["rho"]],
                f"{figures.metric_title(metric)} is ahead by": [
                    _rho(*v) for v in found[["difference", "lo", "hi"]].to_numpy()
                ],
                "q": [number(v) if np.isfinite(v) else "n/a" for v in found["q"]],
                "models": found["n"],
            }
        ),
        name="quality-rivals",
        key="quality_study_rivals_table",
    )
    st.caption(
        "Each rho in its metric's direction, over all models shown; families resampled together, "
        f"{count(stored.N_BOOT)} times; q over these rows."
    )


def _rho(rho: float, lo: float, hi: float) -> str:
    return f"{rho:+.2f} [{lo:+.2f}, {hi:+.2f}]" if np.isfinite(rho) else "n/a"


def _take_pin() -> None:
    picked = charts.picked("quality_study")
    if picked:
        first = picked[0]
        st.session_state["quality_study_pin"] = str(first[0] if isinstance(first, list) else first)
