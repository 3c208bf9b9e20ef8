"""The parts of the Transfer page: choices, verdict, evidence by layer, one pair, the ranking."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from core.data.dataset import Dataset
from core.figures import transfer as figures
from core.figures import transfer_more as more
from core.radar.advice import advise
from core.radar.analysis import DEFAULTS
from core.results import Result
from core.workspace import Workspace
from pages._shell import charts, grid, pickers, state
from pages._shell.layout import Tile, table, verdict
from pages._shell.words import (
    MISSING,
    as_text,
    count,
    known,
    listed,
    number,
    p_value,
    percent,
    plural,
    plus_minus,
    seconds,
    tip,
)

PAGE = "transfer"
STRIP, PLANE = "transfer_strip", "transfer_plane"
_SHOW = {
    "layers": {"late": "last half", "all": "all"},
    "geometry": {"sphere": "sphere", "euclidean": "Euclidean (paper)", "poincare": "Poincaré"},
    "label_mode": {"any": "any class", "same": "same class", "different": "another class"},
    "direction": {"blend": "the blend", "target": "the target", "both": "both, averaged"},
    "density": {"gaussian": "one Gaussian", "gmm": "Gaussian mixture (minutes)"},
    "mode": {"joint": "all layers jointly", "per_layer": "mean over layers"},
}
_LABELS = {
    "layers": ("Layers", "Which layer steps enter the score."),
    "geometry": ("Geometry", "Where distances and angles are measured."),
    "label_mode": ("Partners", "Which class an anchor's partners may have."),
    "direction": ("Anchors from", "RADAR's argument order is blend, then target."),
    "density": ("Density", "What is fitted to theta and d before the divergence."),
    "mode": ("Score", "What the ranking is sorted by; both are always computed."),
}


def choices(ws: Workspace, dataset: Dataset) -> dict[str, Any]:
    """Everything that decides the result, from the sidebar."""
    domains = sorted(set(dataset.items["domain"]) - {""})
    with st.sidebar:
        model = pickers.model(
            ws, PAGE, dataset.name, default=str(DEFAULTS["model"]), only=_deep(ws, dataset)
        )
        preferred = str(DEFAULTS["target"])
        default = preferred if preferred in domains else domains[0] if domains else ""
        target = pickers.domain(PAGE, domains or [""], default=default)
        others = [name for name in domains if name != target]
        sources = pickers.domains(PAGE, others, default=others)
    params: dict[str, Any] = {
        "dataset": dataset.name, "model": model, "target": target,
        "sources": sorted(sources),
    }  # fmt: skip
    with pickers.settings():
        for name, shown in _SHOW.items():
            label, why = _LABELS[name]
            params[name] = state.select(
                PAGE, name, label, list(shown), default=DEFAULTS[name], show=shown.get, help=why
            )
        params["n_pairs"] = state.select(
            PAGE, "n_pairs", "Pairs a repeat", (1_000, 2_000, 5_000, 10_000),
            default=DEFAULTS["n_pairs"], show=count, help="More pairs, a lower noise floor.",
        )  # fmt: skip
        params["seed"] = state.whole(
            PAGE, "seed", "Seed", low=0, high=999, default=0, help=tip("seed")
        )
        params["gain"] = state.switch(
            PAGE, "gain", "Measure the gain", default=True,
            help="Trains probes for every blend; adds about ten seconds.",
        )  # fmt: skip
    return params


def _deep(ws: Workspace, dataset: Dataset) -> list[str]:
    """Models with at least two stored layers: RADAR looks at the step from one to the next."""
    return [
        entry["model"]
        for entry in ws.features.list()
        if entry["dataset"] == dataset.name and len(entry["layers"]) > 1
    ]


def answer(result: Result) -> None:
    """The verdict, its tiles, and one line a source."""
    facts, ranking = result.summary, result.tables["ranking"]
    best = ranking.iloc[0]
    tiles = [
        Tile(
            "Nearest blend",
            str(best["blend"]).replace(" + ", ", "),
            f"score {plus_minus(best['score'], best['sd'])}; lower is nearer",
        ),
        Tile(
            "Null",
            plus_minus(facts["null"], facts["null_sd"]),
            f"half of the target against the other; yardstick {number(facts['far'])}",
            help=tip("null") or "",
        ),
    ]
    if facts["gain"] and known(facts["rho"]):
        tiles.append(
            Tile(
                "Score against measured gain",
                f"rho {facts['rho']:+.2f}",
                f"p {p_value(facts['rho_p'])}, {plural(len(ranking), 'blend')}",
                tone="good" if facts["rho"] > 0 and facts["rho_p"] < 0.05 else "unknown",
            )
        )
    tiles.append(
        Tile(
            "Pairs",
            count(facts["n_pairs"]),
            f"× {facts['repeats']} repeats; {count(facts['n_masked'])} left out; "
            f"{count(facts['n'])} target items ({facts['rows']})",
        )
    )
    verdict(facts["headline"], tiles)
    for text in facts["warnings"]:
        st.caption(f"Note: {as_text(text)}")
    table(decisions(result), name="transfer-sources", key="transfer_sources")


def decisions(result: Result) -> pd.DataFrame:
    """One row a source: what to do, how sure, its excess, its measured gain, the reason."""
    ranking = result.tables["ranking"].set_index("blend")
    rows = []
    for line, one in zip(result.summary["decisions"], advise(result), strict=True):
        mine = ranking.loc[one.source]
        row = {
            "source": one.source,
            "advice": one.decision,
            "confidence": sure(one.confidence),
            "excess over null": plus_minus(one.excess, one.excess_sd),
        }
        if "gain" in ranking:
            row["measured gain"] = plus_minus(mine["gain"], mine["gain_sd"], as_percent=True)
        needed = line["pairs_needed"]
        more = f"; about {needed:.0f}x the items would settle it" if needed and needed > 1.5 else ""
        rows.append({**row, "why": f"{line['reason']}{more}"})
    return pd.DataFrame(rows)


def layer_and_sources(result: Result) -> tuple[int, list[str]]:
    """The layer step and the sources that the densities show."""
    names = [figures.short_layer(name) for name in result.summary["layers"]]
    nearest = [line["source"] for line in result.summary["decisions"]]
    widest = int(result.tables["per_layer"].groupby("layer")["value"].mean().to_numpy().argmax())
    left, right = st.columns([2, 1])
    with left:
        # The nearest and the farthest: between them the eye sees what the score sees.
        ends = list(dict.fromkeys([nearest[0], nearest[-1]]))
        sources = state.choose_many(
            PAGE, "compared", "Sources side by side", nearest, default=ends, most=4,
            help=tip("source"),
        )  # fmt: skip
    with right:
        layer = state.select(
            PAGE, "layer", "Layer step (or click a point below)", list(range(len(names))),
            default=widest, show=lambda index: names[index], help=tip("layer"),
        )  # fmt: skip
    return int(layer), sources or ends


def strip(result: Result, layer: int) -> None:
    """Divergence by layer with its bands; a click chooses the layer of the page."""
    charts.figure(
        figures.layer_strip(result, chosen=layer),
        STRIP,
        "Divergence of each source from the target at every layer step, with the null band",
        select=["points"],
        on_select=_take_layer,
        table=result.tables["per_layer"].round(4),
    )
    st.caption(
        "Bands are one standard deviation over repeats; grey is one half of the target against "
        "the other. Click a point to see its layer above and below."
    )


def one_source(result: Result) -> str:
    """The source whose pairs are shown."""
    nearest = [line["source"] for line in result.summary["decisions"]]
    shown = state.select(
        PAGE, "source", "Source shown", nearest, default=nearest[-1], help=tip("source")
    )
    return str(shown)


def _take_layer() -> None:
    found = charts.picked(STRIP)
    if found:
        st.session_state[state.key_of(PAGE, "layer")] = int(found[0])


def _take_pair() -> None:
    found = charts.picked(PLANE)
    if found:
        st.session_state[state.key_of(PAGE, "pair")] = int(found[0])


def densities(result: Result, sources: list[str], layer: int) -> None:
    """Theta and d, within over cross: a column a source, a ridge a layer step."""
    whole = state.switch(
        PAGE, "whole", "Theta from 0 to pi", default=False,
        help="In wide models theta lies near pi: the axis is zoomed to where the values are.",
    )  # fmt: skip
    left, right = st.columns(2)
    for column, descriptor in ((left, "theta"), (right, "d")):
        with column:
            charts.figure(
                more.ridge_grid(result, sources, descriptor, chosen=layer, whole=whole),
                f"transfer_{descriptor}",
                f"Density of {descriptor} for within and cross pairs at every layer step, "
                "one column a source",
            )


def one_pair(dataset: Dataset, result: Result, source: str, layer: int) -> None:
    """The plane of pairs, the triangle of one, and its three pictures."""
    at = figures.source_row(result, source)
    ids = np.asarray(result.arrays["pair_ids"])[at]
    captions = dict(zip(dataset.items["id"], dataset.items["caption"], strict=True))
    n = len(ids)
    options = [*range(1_000, 1_000 + n), *range(n)]

    def show(pair: int) -> str:
        kind, row = divmod(pair, 1_000)
        both = (int(ids[row, 0]), int(ids[row, 1 + kind]))
        a, b = (str(captions.get(item, item)).split(",")[0] for item in both)
        return f"{figures.KINDS[kind]} {row + 1}: {a} with {b}"

    pair = state.select(
        PAGE, "pair", "Pair (or click a point of the plane)", options,
        default=1_000 + typical(result, at, layer), show=show,
        help="An anchor and its partner; the triangle joins both with the anchor one layer on.",
    )  # fmt: skip
    left, right = st.columns(2)
    with left:
        charts.figure(
            figures.plane(result, source, layer, chosen=pair),
            PLANE,
            "Theta against relative distance of within and cross pairs at the chosen layer",
            select=["points"],
            on_select=_take_pair,
        )
    with right:
        charts.figure(
            figures.triangle(result, source, layer, pair),
            "transfer_triangle",
            "Triangle of the chosen pair: separation, detour and trajectory with their lengths",
        )
    kind, row = divmod(pair, 1_000)
    trio = [int(ids[row, 0]), int(ids[row, 1]), int(ids[row, 2])]
    roles = ["anchor", "within partner", "cross partner"]
    domain = dict(zip(dataset.items["id"], dataset.items["domain"], strict=True))
    grid.items(
        dataset, trio, key="transfer_trio", cell=150,
        notes={
            item: f"{role}, {domain.get(item, '')}" for item, role in zip(trio, roles, strict=True)
        },
        marked={trio[0], trio[1 + kind]}, label="Anchor and its two partners",
    )  # fmt: skip
    st.caption("The two outlined pictures are the chosen pair.")


def typical(result: Result, at: int, layer: int) -> int:
    """Return the cross pair nearest to the median theta and d of its layer."""
    theta = np.asarray(result.arrays["pair_theta"])[at, 1, :, layer]
    d = np.asarray(result.arrays["pair_d"])[at, 1, :, layer]
    away = [np.abs(v - np.median(v)) / (v.std() + 1e-12) for v in (theta, d)]
    return int(np.argmin(away[0] + away[1]))


def blends(result: Result) -> None:
    """The ranking with its members, and the score against the measured gain."""
    reading = state.choose_one(
        PAGE, "reading", "Sort and draw by", ("score", "excess", "joint", "per_layer"),
        show=lambda key: {"per_layer": "mean over layers"}.get(key, key),
    )  # fmt: skip
    left, right = st.columns(2)
    shown = result.tables["ranking"].drop(columns=["members"]).round(4)
    with left:
        charts.figure(
            figures.ranking(result, reading=reading),
            "transfer_blends",
            "All blends sorted by their score, with dots for their members",
            table=shown,
        )
    with right:
        measures = ["score", "size", "distance_of_means", "distance_of_class_means"]
        measure = state.choose_one(
            PAGE, "against", "Foretold by", measures,
            show=lambda key: {"score": "RADAR"}.get(key, key.replace("_", " ")),
            label_visibility="collapsed",
        )  # fmt: skip
        charts.figure(
            figures.gain_scatter(result, measure),
            "transfer_foretold",
            "Each blend's score against the accuracy a probe gained with it",
        )
        if result.summary["gain"]:
            facts = result.summary
            st.caption(
                f"Gain: accuracy on {facts['gain_n_test']} target test items with the blend, minus "
                f"{plus_minus(facts['gain_baseline'], facts['gain_baseline_sd'], as_percent=True)} "
                f"without ({facts['gain_per_class']} target items a class, "
                f"{facts['gain_seeds']} seeds, {facts['gain_layer']})."
            )


def measures(result: Result) -> None:
    """Which measure foretold the gains, the plain ones included."""
    frame = result.tables["measures"]
    if not len(frame):
        return
    st.header("Which measure foretold the gain?", anchor=False)
    radar = frame.iloc[0]
    if not frame["rho"].notna().any():
        words = "All blends gained alike, so there is no order to foretell."
    else:
        best = frame.loc[frame["rho"].idxmax()]
        words = (
            f"RADAR does best here: rho {signed(radar['rho'])}."
            if str(best["measure"]).startswith("RADAR")
            else f"On this target the {best['measure']} does best (rho {signed(best['rho'])}); "
            f"RADAR has {signed(radar['rho'])}."
        )
    st.markdown(words + " Nested blends share data, so p is optimistic.")
    shown = pd.DataFrame({
        "measure": frame["measure"], "better": frame["better"],
        "rho": frame["rho"].map(signed), "p": frame["p"].map(p_value),
        "Kendall": frame["kendall"].map(signed),
        "rho among blends of equal size": frame["rho_within_size"].map(signed),
        "blends": frame["n"], "seconds": frame["seconds"].map(seconds),
    })  # fmt: skip
    table(shown, name="transfer-measures", key="transfer_measures")


def shown_line(params: dict[str, Any]) -> list[str]:
    """What is shown, for the line under the question."""
    return [
        "RADAR", f"target: {params['target']}", pickers.model_title(params["model"]),
        plural(len(params["sources"]), "source"), f"{count(params['n_pairs'])} pairs",
        f"partners of {_SHOW['label_mode'][params['label_mode']]}",
    ]  # fmt: skip


def dropped(result: Result) -> str:
    """Layers left out, in words."""
    steps = [line.what for line in result.left_out if "→" in line.what]
    return f"Layer steps left out: {listed(steps)}." if steps else ""


def sure(confidence: float) -> str:
    """Write a confidence; never as certainty."""
    return "> 99.9 %" if confidence > 0.999 else percent(confidence)


def signed(value: float) -> str:
    """Write a correlation with its sign and two decimals."""
    return f"{value:+.2f}" if known(value) else MISSING
