"""Parts of the Quality page on measured models: strata, claims, ridges, ranges, one model."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.figures import population as figures
from core.figures import sensitivity as curve_figures
from core.quality import claims, stored
from core.quality import population as populations
from core.quality.population import METRICS, Population
from core.quality.sensitivity import CURVES, elasticity, exact_curves, sampled_curve
from core.quality.study import simpson_check
from pages._shell import charts, state
from pages._shell.layout import chips
from pages._shell.words import count, number

PAGE = "quality"
_HELD = {"held": "✓ held", "partly": "◐ partly", "did not hold": "✗ did not hold",
         "cannot tell": "? cannot tell"}  # fmt: skip
_FACTS = {
    "rankme": "Largest (d) for a flat spectrum; depends on the width up to alpha 2.",
    "ne_sum": "Largest (d) for a flat spectrum; above alpha 1 the width no longer matters.",
    "alpha_req": "Exactly flat in the width; a sample is biased up near 0 (0.08 to 0.27).",
    "condition_number": "d to the power alpha / 2, without bound; least for a flat spectrum.",
    "participation_ratio": "Between RankMe and NESum: the collision form of the effective rank.",
}


@st.cache_data(max_entries=4, show_spinner=False)
def _claims() -> list[claims.Claim]:
    return claims.claims(populations.zoo(), stored.zoo_cells("knn"))


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
def heatmaps(shown: Population, cells: pd.DataFrame) -> None:
    """Draw rho of every metric in every stratum, and on every data set."""
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
    st.caption(_simpson(rows))
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


def _simpson(rows: pd.DataFrame) -> str:
    checked = simpson_check(rows.assign(target=rows["probe"]), within=claims.WITHIN)
    if checked.empty:
        return "Simpson check: n/a, too few models or classes."
    turned = checked[checked["reversed"]]
    if turned.empty:
        return "Simpson check: pooled and within the architecture classes the signs agree."
    names = "; ".join(
        f"{figures.metric_title(row.metric)} pooled {row.pooled:+.2f}, within {row.within:+.2f}"
        for row in turned.itertuples()
    )
    return f"Simpson check, the sign differs within the architecture classes: {names}."


def _short(shown: Population) -> dict[str, str]:
    return {name: name.replace("emoji-", "emoji<br>") for name in shown.datasets}


def claims_table() -> None:
    """Draw the study's claims beside what these models show."""
    st.subheader("What the study claims, and what holds here", anchor=False)
    rows = [{"Claim of the study": c.claim, "Here": c.ours, "": _HELD[c.held]} for c in _claims()]
    st.table(pd.DataFrame(rows))
    st.caption("Judged over all measured models by 1-NN, whatever the filters above.")


@st.fragment
def panels(shown: Population, cells: pd.DataFrame, probe: str) -> None:
    """Draw the conditioning artefact, alpha-ReQ's range, the metrics' agreement, the curves."""
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
    _gain(shown)
    names = [m for m in dict.fromkeys(cells["metric"]) if m in METRICS]
    rho = populations.agreement(shown, dataset, names)
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


def _gain(shown: Population) -> None:
    dataset = state.select(
        PAGE, "study_gain_set", "A ridge's gain on", list(shown.datasets), show=shown.datasets.get
    )
    charts.figure(
        curve_figures.ridge_gain(shown, dataset),
        "quality_study_gain",
        f"Gain of a ridge against the condition number on {shown.datasets[dataset]}",
    )
    st.caption(
        "Where many points lie above 0, least squares without a ridge measured its solver. Rows "
        "per feature are in the hover text."
    )


def _sensitivity() -> None:
    metric = state.select(
        PAGE, "curve", "Sensitivity of", list(CURVES), show=CURVES.get,
        help="What the metric says of a cloud whose eigenvalues fall as i to the power -alpha.",
    )  # fmt: skip
    view = state.choose_one(
        PAGE, "curve_view", "Against", ["alpha", "width", "elasticity"],
        show={"alpha": "exponent", "width": "width", "elasticity": "elasticity"}.get,
        help="Elasticity: by how many percent the metric grows when the width grows by one.",
    )  # fmt: skip
    per_width = view != "elasticity" and state.switch(PAGE, "curve_per_width", "Over the width")
    if view == "elasticity":
        found = elasticity(_curves(), metric)
        fig = curve_figures.elasticity(found, metric)
    elif view == "width":
        fig = curve_figures.over_width(_curves(), metric, per_width=per_width)
    else:
        fig = curve_figures.sensitivity(_curves(), metric, sampled=_drawn(), per_width=per_width)
    charts.figure(fig, "quality_curves", f"{CURVES[metric]} of power-law spectra")
    st.caption(_FACTS.get(metric, ""))


def _drawn() -> pd.DataFrame | None:
    if not state.switch(PAGE, "curve_sample", "Add a sample", help="64 wide, seeded."):
        return None
    rows = state.choose_one(PAGE, "curve_rows", "Rows", [100, 300, 1000, 3000], show=count)
    return _sampled(64, int(rows))


@st.fragment
def one_model(shown: Population, mine: Population | None) -> None:
    """Draw one model's facts, spectrum and TwoNN line, own encoders included."""
    st.subheader("One of the models", anchor=False)
    everyone = shown.table if mine is None else pd.concat([mine.table, shown.table])
    models = list(dict.fromkeys(everyone["model"]))
    models.sort(key=lambda name: (name.startswith("zoo/"), name))
    left, right = st.columns(2, gap="medium")
    with left:
        model = state.select(
            PAGE, "study_pin", "Pinned model", models, show=lambda m: m.removeprefix("zoo/")
        )
    with right:
        dataset = state.select(
            PAGE, "study_pin_set", "On", list(shown.datasets), show=shown.datasets.get
        )
    rows = everyone[(everyone["model"] == model) & (everyone["dataset"] == dataset)]
    if rows.empty:
        st.caption("This model was not measured on this data set.")
        return
    row = rows.iloc[0]
    chips(_facts(row))
    left, right = st.columns(2, gap="medium")
    with left:
        charts.figure(
            figures.spectrum(row, (11, 100)), "quality_study_spectrum",
            f"Eigenvalues of {model} with the fitted power law",
        )  # fmt: skip
    with right:
        charts.figure(figures.twonn(row), "quality_study_twonn", f"TwoNN plot of {model}")


def _facts(row: pd.Series) -> list[str]:
    facts = [str(row["architecture"]), str(row["objective"])]
    if pd.notna(row.get("steps")):
        facts += [
            f"augmentation {row['augmentation']}", f"width factor {row['width']}",
            f"{count(row['steps'])} steps", f"{count(row['n_params'])} parameters",
            f"{number(row['macs'] / 1e6)} M multiply-adds",
        ]  # fmt: skip
    return [
        *facts, f"{count(row['d'])} features", f"measured on {count(row['n.rankme'])} rows",
        f"1-NN {100 * row['knn']:.1f} %", f"linear {100 * row['linear']:.1f} %",
        f"chance {100 / row['n_classes']:.1f} %",
    ]  # fmt: skip
