"""The study on the Transfer page: on which encoders and targets RADAR ranks, and why not."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core import analyses
from core.figures import transfer_study as figures
from core.radar.study import DEFAULTS
from core.radar.study_reading import by_encoder, widest
from core.results import Result
from pages._shell import charts, pickers, state
from pages._shell.layout import Tile, explain, footer, state_panel, table, verdict
from pages._shell.state import workspace
from pages._shell.transfer_view import PAGE, signed
from pages._shell.words import MISSING, as_text, count, listed, number, p_value, plural, seconds

BASE = "radar: base: joint"


def draw() -> None:
    """Draw the stored study, or say how to make one."""
    result = analyses.current("transfer-study", workspace())
    if result is None:
        state_panel(
            "No study is stored here",
            "It ranks every blend of every target under every encoder, and trains on all of them.",
            "Make it from the command line: theodolite transfer-study. It takes about half an "
            "hour and goes on where it was stopped.",
        )
        return
    verdict(result.headline, _tiles(result))
    dataset = _dataset(result)
    _reading(result, dataset)
    _configurations(result, dataset)
    _pieces(result, dataset)
    _one(result, dataset)
    explain(
        read=[
            "Each rho compares a measure with measured gains over all blends of one target; + is "
            "good for every measure. The interval draws whole targets anew.",
            "Base is what the page uses: flat geometry, all layers, anchors from the blend, any "
            "class, one Gaussian. The other rows change one or two of these.",
            "Chosen on the other targets: the configuration that was best without the target it "
            "is read on. Best in hindsight is shown only as a ceiling.",
        ],
        misleads=[
            "Six targets are few: a mean over them can hide an inversion. Look at each cell.",
            "Blends of one target share data, so the p of a single cell is optimistic.",
            "Mixtures and OTDD are slow and were read with one encoder a data set: over several "
            "encoders their mean rests on fewer pairs than the others'.",
            "Networks without two states of equal width are read through random projections.",
        ],
        method="Gains: logistic probe on frozen features, a few target items a class, sources "
        "without any concept of the target's test set; RADAR and the baselines see training rows "
        "only. Measures made to compare encoders are adapted to blends, as their note says.",
        paper="RADAR, arXiv 2605.23028. No number of the paper is repeated here: all are computed.",
    )
    footer(result, defaults=DEFAULTS)


def _tiles(result: Result) -> list[Tile]:
    pieces = result.tables["pieces"]
    counts = pieces["verdict"].value_counts()
    scored = int((pieces["verdict"] != "no score").sum())
    ranks = int(counts.get("ranks", 0))
    return [
        Tile("RADAR ranks", f"{ranks} of {scored}",
             f"inverts {counts.get('inverts', 0)}, says nothing "
             f"{counts.get('says nothing', 0)}; p < .05",
             tone="good" if scored and ranks > scored / 2 else "unknown"),
        Tile("Compared", plural(len(pieces), "pair"),
             f"encoder and target; {result.summary['gain_seeds']} seeds of every gain"),
        Tile("Blends trained on", count(result.summary["n"]),
             f"test concepts among sources: {result.summary['leaks']}"),
        Tile("Took", seconds(result.summary["piece_seconds"]),
             "wall time of all pieces, one thread of a shared machine"),
    ]  # fmt: skip


def _dataset(result: Result) -> str:
    names = sorted(set(result.tables["pieces"]["dataset"]))
    there = workspace().dataset_names()
    titles = {n: pickers.dataset_title(workspace(), n) if n in there else n for n in names}
    return str(state.choose_one(PAGE, "study_set", "Data set", names, show=titles.get))


def _reading(result: Result, dataset: str) -> None:
    """What the study says of this data set; its name is on the control above."""
    others = [name for name in result.summary["targets"] if name != dataset]
    for line in result.summary["explained"]:
        if not line.startswith(tuple(f"{name}{mark}" for name in others for mark in (":", ","))):
            said = line.removeprefix(f"{dataset}: ").removeprefix(f"{dataset}, ")
            st.markdown(f"- {as_text(said[:1].upper() + said[1:])}")
    targets, models = (result.summary[name][dataset] for name in ("targets", "models"))
    st.caption(
        f"Targets, each with the others as sources: {listed(targets)}; "
        f"{plural(len(models), 'encoder')}. The yardstick is the excess between the target's own "
        "classes."
    )


def _configurations(result: Result, dataset: str) -> None:
    st.header("Which configuration, and does it beat the plain measures?", anchor=False)
    frame = result.tables["configurations"].query("dataset == @dataset")
    scopes = list(dict.fromkeys(frame["scope"]))
    if not scopes:
        st.caption("All blends gained alike on this data set: there is no order to foretell.")
        return
    best = widest(result.tables["configurations"], dataset)
    scope = state.select(
        PAGE, "study_scope", "Encoders", scopes, default=best or scopes[0],
        show=pickers.model_title,
    )  # fmt: skip
    mine = frame[frame["scope"] == scope]
    left, right = st.columns(2)
    with left:
        charts.figure(
            figures.configurations(result, dataset, scope), "transfer_study_configurations",
            "Mean rank correlation of every measure with the gain, with intervals over targets",
            table=mine,
        )  # fmt: skip
    with right:
        charts.figure(
            figures.held_out(result, dataset), "transfer_study_held_out",
            "Rank correlation on the target that had no part in choosing the configuration",
            table=result.tables["chosen"].query("dataset == @dataset")
            if len(result.tables["chosen"]) else None,
        )  # fmt: skip
        _versus(result, dataset, scope)
    _by_encoder(result, dataset)


def _by_encoder(result: Result, dataset: str) -> None:
    """The table of the paper's kind: a row a measure, a column an encoder."""
    mine = by_encoder(result.tables["configurations"], dataset)
    if not len(mine):
        return
    wide = mine.assign(
        said=[
            f"{signed(rho)} (p {p_value(p)}), place {place:.0f}"
            for rho, p, place in zip(mine["rho"], mine["p"], mine["place"], strict=True)
        ]
    ).pivot(index="measure", columns="scope", values="said")
    order = mine.groupby("measure")["rho"].mean().sort_values(ascending=False).index
    wide = wide.loc[order].fillna(MISSING).rename(columns=pickers.model_title)
    table(wide.reset_index(), name="transfer-study-encoders", key="transfer_study_encoders")
    st.caption(
        f"Mean rho over {plural(int(mine['targets'].max()), 'target')} with "
        f"{plural(int(mine['blends'].max()), 'blend')} in all for each encoder; place among the "
        "measures shown. p tries every sign of the targets' values, so with six targets it "
        "cannot fall below .03."
    )


def _versus(result: Result, dataset: str, scope: str) -> None:
    frame = result.tables["versus"]
    if not len(frame):
        return
    mine = frame.query("dataset == @dataset and scope == @scope and family != 'RADAR'")
    if not len(mine):
        st.caption("These encoders have one stored layer: RADAR has no score to compare.")
        return
    table(
        pd.DataFrame({
            "RADAR against": mine["other"], "difference in rho": mine["difference"].map(signed),
            "95 % interval": [
                f"[{signed(lo)}, {signed(hi)}]" for lo, hi in zip(mine["low"], mine["high"],
                                                                  strict=True)
            ],
            "RADAR is": mine["verdict"], "pairs": mine["pieces"],
        }), name="transfer-study-versus", key="transfer_study_versus",
    )  # fmt: skip


def _pieces(result: Result, dataset: str) -> None:
    st.header("Where does it say something, and where not?", anchor=False)
    rho = result.tables["rho"].query("dataset == @dataset")
    names = dict(zip(rho["column"], rho["measure"], strict=True))
    left, right = st.columns(2)
    with left:
        column = state.select(
            PAGE, "study_measure", "Measure", list(names), default=BASE, show=lambda c: names[c]
        )
        charts.figure(
            figures.pieces(result, dataset, column), "transfer_study_pieces",
            "Rank correlation of one measure for every encoder and target",
            table=rho[rho["column"] == column].drop(columns=["dataset", "column"]),
        )  # fmt: skip
        st.caption("Bold: q < .05 over the encoders and targets of this data set.")
    with right:
        charts.figure(
            figures.distance(result, dataset), "transfer_study_distance",
            "RADAR's rank correlation against the distance of the nearest source",
            table=result.tables["why"].query("dataset == @dataset"),
        )  # fmt: skip
    frame = result.tables["pieces"].query("dataset == @dataset")
    shown = pd.DataFrame({
        "encoder": frame["model"].map(pickers.model_title), "target": frame["target"],
        "RADAR": frame["verdict"], "rho": frame["rho"].map(signed), "p": frame["p"].map(p_value),
        "size alone": frame["rho_size"].map(signed),
        "distance of means": frame["rho_distance_of_means"].map(signed),
        "seeds agree": frame["reliability"].map(lambda v: number(v, 2)),
        "gain, points": [
            f"{100 * lo:+.1f} to {100 * hi:+.1f}"
            for lo, hi in zip(frame["gain_min"], frame["gain_max"], strict=True)
        ],
        "seen beside it": frame["why"],
    })  # fmt: skip
    table(shown, name="transfer-study-pieces", key="transfer_study_pieces_table")


def _one(result: Result, dataset: str) -> None:
    st.header("One encoder and target", anchor=False)
    rho = result.tables["rho"].query("dataset == @dataset")
    a, b, c = st.columns(3)
    with a:
        models = list(dict.fromkeys(rho["model"]))
        deepest = result.tables["pieces"].query("dataset == @dataset").sort_values("transitions")
        first = str(deepest["model"].iloc[-1])
        model = state.select(PAGE, "study_model", "Encoder", models, default=first,
                             show=pickers.model_title)  # fmt: skip
    here = rho[rho["model"] == model]
    with b:
        target = state.select(PAGE, "study_target", "Target", list(dict.fromkeys(here["target"])))
    here = here[here["target"] == target]
    names = dict(zip(here["column"], here["measure"], strict=True))
    with c:
        column = state.select(PAGE, "study_against", "Foretold by", list(names),
                              default=BASE, show=lambda key: names[key])  # fmt: skip
    left, right = st.columns(2)
    with left:
        charts.figure(
            figures.scatter(result, dataset, model, target, column), "transfer_study_scatter",
            "One measure against the gain of every blend, with the interval over seeds",
        )  # fmt: skip
    with right:
        table(
            pd.DataFrame({
                "measure": here["measure"], "rho": here["rho"].map(signed),
                "p": here["p"].map(p_value), "q": here["q"].map(p_value),
                "Kendall": here["kendall"].map(signed),
                "at equal size": here["rho_within_size"].map(signed), "blends": here["n"],
                "seconds": here["seconds"].map(seconds), "note": here["note"],
            }), name="transfer-study-one", key="transfer_study_one",
        )  # fmt: skip
