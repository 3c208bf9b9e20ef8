"""The part of the Quality page on measured models: 260 small ones trained here."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from core.errors import NotFound
from core.figures import population as figures
from core.figures.quality import titles
from core.quality import chooser, claims
from core.quality import population as populations
from core.quality.population import METRICS, PROBES, STUDY, Correlations, Population
from core.quality.registry import ARCHITECTURES
from core.quality.sensitivity import CURVES, exact_curves, sampled_curve
from core.results import Result
from pages._shell import charts, errors, state
from pages._shell.layout import Tile, chips, downloads, state_panel, table, verdict
from pages._shell.words import count, number, safe

PAGE = "quality"
_MARK = {"trust": "trust it here", "not here": "not here", "turns round": "turns round",
         "cannot tell": "cannot tell"}  # fmt: skip
_TONE = {"trust": "good", "not here": "bad", "turns round": "bad", "cannot tell": "unknown"}
_HELD = {"held": "✓ held", "partly": "◐ partly", "did not hold": "✗ did not hold",
         "cannot tell": "? cannot tell"}  # fmt: skip


@st.cache_data(max_entries=48, show_spinner=False)
def _cells(
    probe: str, kinds: tuple[str, ...], groups: tuple[str, ...], everything: bool
) -> pd.DataFrame:
    """Correlations of a filter: stored ones when nothing is filtered out, else 400 resamples."""
    names = list(METRICS) if everything else list(STUDY)
    whole = populations.zoo()
    shown = populations.select(whole, architectures=kinds, groups=groups)
    if shown.n_models == whole.n_models:
        stored = populations.zoo_cells(probe)
        return stored[stored["metric"].isin(names)].reset_index(drop=True)
    return populations.study_table(shown, probe=probe, metrics=names, n_boot=400)


@st.cache_data(max_entries=4, show_spinner=False)
def _claims() -> list[claims.Claim]:
    return claims.claims(populations.zoo(), populations.zoo_cells("knn"))


@st.cache_data(max_entries=4, show_spinner=False)
def _ridges() -> pd.DataFrame:
    return claims.ridge_panel(populations.zoo())


@st.cache_data(max_entries=64, show_spinner=False)
def _alpha(first: int, last: int, probe: str) -> pd.DataFrame:
    return claims.alpha_rho(populations.zoo(), (first, last), probe=probe)


@st.cache_data(max_entries=2, show_spinner=False)
def _curves() -> pd.DataFrame:
    return exact_curves()


@st.cache_data(max_entries=32, show_spinner=False)
def _sampled(d: int, n: int) -> pd.DataFrame:
    return sampled_curve(d, n)


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
    _chooser(cells, result)
    _evidence(shown, cells, probe, result)
    _heatmaps(shown, cells)
    _claims_table()
    _panels(shown, cells, probe)
    _one_model(shown)
    with st.expander("The models as a table"):
        lists = ["eigenvalues", "twonn_x", "twonn_y"]
        frame = shown.table.drop(columns=[c for c in lists if c in shown.table])
        downloads(frame, name="quality-study", key="quality_study_rows")
        downloads(cells, name="quality-study-rho", key="quality_study_rho")


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
            names = {"supervised": "supervised", "ssl": "self-supervised"}
            groups = state.choose_many(
                PAGE, "study_groups", "Objective", groups_all, show=names.get
            )
    settings = {"probe": probe, "kinds": tuple(kinds), "groups": tuple(groups),
                "everything": everything}  # fmt: skip
    return populations.select(whole, architectures=kinds, groups=groups), settings


def _chooser(cells: pd.DataFrame, result: Result | None) -> None:
    st.subheader("Which metric to trust", anchor=False)
    strata = list(dict.fromkeys(cells["stratum"]))
    names = dict(zip(cells["dataset"], cells["dataset"], strict=True))
    titles = {**populations.zoo().datasets}
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


def _own_values(result: Result | None, metric: str, probe: str) -> pd.DataFrame | None:
    column = {"knn": "knn", "linear": "linear"}.get(probe)
    if result is None or column is None or result.params.get("dataset") != "emoji":
        return None
    rows = result.tables["metrics"]
    rows = rows[(rows["metric"] == metric) & rows["value"].notna()]
    merged = rows.merge(result.tables["models"][["model", column]], on="model")
    return merged.rename(columns={column: "accuracy"})[["model", "value", "accuracy"]]


def _evidence(shown: Population, cells: pd.DataFrame, probe: str, result: Result | None) -> None:
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
    own = _own_values(result, metric, probe) if dataset == "emoji-groups" and not facets else None
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
    star = " Stars: your encoders, measured on the same pictures." if own is not None else ""
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
        found = Correlations(shown, dataset, metrics=metrics, probes=[probe], n_boot=400)
        partial = [
            {"stratum": s, "rho": found.cell(s, metric, probe), "part": None
             if metric == "d" else found.partial(s, metric, probe)}
            for s in found.strata
        ]  # fmt: skip
        st.markdown(f"**{figures.metric_title(metric)} on {shown.datasets[dataset]}**")
        st.caption("Partial rho takes out what the feature width alone explains.")
        table(
            pd.DataFrame(
                {
                    "Stratum": [p["stratum"] for p in partial],
                    "rho": [_rho(p["rho"]) for p in partial],
                    "partial, given width": [_rho(p["part"]) for p in partial],
                    "models": [p["rho"].n if p["rho"] else 0 for p in partial],
                }
            ),
            name="quality-partial",
            key="quality_study_partial",
        )


def _rho(found: object) -> str:
    if found is None or not np.isfinite(found.rho):
        return "n/a"
    return f"{found.rho:+.2f} [{found.lo:+.2f}, {found.hi:+.2f}]"


def _take_pin() -> None:
    picked = charts.picked("quality_study")
    if picked:
        first = picked[0]
        st.session_state["quality_study_pin"] = str(first[0] if isinstance(first, list) else first)


def _heatmaps(shown: Population, cells: pd.DataFrame) -> None:
    st.subheader("Strata and data sets", anchor=False)
    dataset = state.select(
        PAGE, "study_map_set", "Strata on", list(shown.datasets), show=shown.datasets.get
    )
    rows = cells[cells["dataset"] == dataset]
    charts.figure(
        figures.strata_heatmap(rows, columns="stratum", titles={}),
        "quality_study_strata",
        f"Rank correlation of every metric in every stratum on {shown.datasets[dataset]}",
        table=rows,
    )
    stratum = state.select(
        PAGE, "study_map_stratum", "Data sets among", list(dict.fromkeys(cells["stratum"]))
    )
    rows = cells[cells["stratum"] == stratum]
    charts.figure(
        figures.strata_heatmap(rows, columns="dataset", titles=_short(shown)),
        "quality_study_sets",
        f"Rank correlation of every metric on every data set, {stratum}",
        table=rows,
    )
    st.caption(
        "Blue: positive; brown: negative; one star q < .05, two q < .01 (Benjamini-Hochberg over "
        "metrics and sets of a stratum); hatched: fewer than 8 families; n/a: fewer than 4 "
        "families or 8 models."
    )


def _short(shown: Population) -> dict[str, str]:
    return {name: name.replace("emoji-", "emoji<br>") for name in shown.datasets}


def _claims_table() -> None:
    st.subheader("What the study claims, and what holds here", anchor=False)
    rows = [{"Claim of the study": c.claim, "Here": c.ours, "": _HELD[c.held]} for c in _claims()]
    st.table(pd.DataFrame(rows))
    st.caption("Judged over all measured models by 1-NN, whatever the filters above.")


@st.fragment
def _panels(shown: Population, cells: pd.DataFrame, probe: str) -> None:
    left, right = st.columns(2, gap="medium")
    with left:
        charts.figure(
            figures.ridges(_ridges(), shown.datasets),
            "quality_study_ridges",
            "Rank correlation of the condition number with each probe",
            table=_ridges(),
        )
    with right:
        longest = int(shown.table["eigenvalues"].map(len).max())
        first, last = st.slider(
            "Eigenvalues of alpha-ReQ's fit", 1, longest, (11, min(100, longest)),
            key="quality_alpha_range", help="The authors fit 11 to 100.",
        )  # fmt: skip
        if last - first < 4:
            st.caption("A fit needs at least five eigenvalues.")
        else:
            found = _alpha(first, last, probe)
            charts.figure(
                figures.alpha_range(found, shown.datasets),
                "quality_study_alpha",
                "Rank correlation of alpha-ReQ for the chosen range",
                table=found,
            )
            st.caption("All models. n: those with at least five eigenvalues in the range.")
    dataset = next(iter(shown.datasets))
    names = [m for m in dict.fromkeys(cells["metric"]) if m in METRICS]
    found_all = Correlations(shown, dataset, metrics=names, probes=[probe], n_boot=1)
    rho = _between(found_all, names)
    left, right = st.columns(2, gap="medium")
    with left:
        charts.figure(
            figures.metric_matrix(rho, names),
            "quality_study_matrix",
            f"Rank correlations among the metrics on {shown.datasets[dataset]}",
        )
        st.caption(f"On {shown.datasets[dataset]}, all models shown.")
    with right:
        _sensitivity()


def _between(found: Correlations, names: list[str]) -> np.ndarray:
    out = np.full((len(names), len(names)), np.nan)
    for i, a in enumerate(names):
        for j, b in enumerate(names):
            cell = found.cell("All", a, b)
            out[i, j] = np.nan if cell is None else cell.rho
    return out


def _sensitivity() -> None:
    metric = state.select(
        PAGE, "curve", "Sensitivity of", list(CURVES), show=CURVES.get,
        help="What the metric says of a cloud whose eigenvalues fall as i to the power -alpha.",
    )  # fmt: skip
    with st.container(horizontal=True, gap="medium"):
        per_width = state.switch(PAGE, "curve_per_width", "Over the width")
        sample = state.switch(PAGE, "curve_sample", "Add a sample", help="64 wide, seeded.")
    drawn = None
    if sample:
        rows = state.choose_one(PAGE, "curve_rows", "Rows", [100, 300, 1000, 3000], show=count)
        drawn = _sampled(64, int(rows))
    charts.figure(
        figures.sensitivity(_curves(), metric, sampled=drawn, per_width=per_width),
        "quality_curves",
        f"{CURVES[metric]} of power-law spectra, one line a width",
    )


@st.fragment
def _one_model(shown: Population) -> None:
    st.subheader("One of the models", anchor=False)
    models = sorted(shown.table["model"].unique())
    left, right = st.columns(2, gap="medium")
    with left:
        model = state.select(
            PAGE, "study_pin", "Pinned model", models, show=lambda m: m.removeprefix("zoo/")
        )
    with right:
        dataset = state.select(
            PAGE, "study_pin_set", "On", list(shown.datasets), show=shown.datasets.get
        )
    rows = shown.table[(shown.table["model"] == model) & (shown.table["dataset"] == dataset)]
    if rows.empty:
        st.caption("This model failed on this data set.")
        return
    row = rows.iloc[0]
    chips(
        (
            str(row["architecture"]), str(row["objective"]), f"augmentation {row['augmentation']}",
            f"width factor {row['width']}", f"{count(row['steps'])} steps",
            f"{count(row['n_params'])} parameters", f"{number(row['macs'] / 1e6)} M multiply-adds",
            f"{count(row['d'])} features", f"1-NN {100 * row['knn']:.1f} %",
            f"linear {100 * row['linear']:.1f} %", f"chance {100 / row['n_classes']:.1f} %",
        )
    )  # fmt: skip
    left, right = st.columns(2, gap="medium")
    with left:
        charts.figure(
            figures.spectrum(row, (11, 100)), "quality_study_spectrum",
            f"Eigenvalues of {model} with the fitted power law",
        )  # fmt: skip
    with right:
        charts.figure(figures.twonn(row), "quality_study_twonn", f"TwoNN plot of {model}")
