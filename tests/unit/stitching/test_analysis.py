"""The analysis on a small workspace of digits: tables, words, keys, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from fakes import MODELS, FakeDataset, FakeWorkspace

from core.errors import BadInput, Cancelled, NotFound
from core.figures import stitching as figures
from core.figures import stitching_anchors
from core.results import Result
from core.stitching import analysis
from core.stitching.rows import read_rows

QUICK = {
    "models": MODELS,
    "n_anchors": 20,
    "n_support": 120,
    "n_parallel": 150,
    "seeds": 2,
    "steps": 60,
}


@pytest.fixture(scope="module")
def ws(small_space):
    return small_space


@pytest.fixture(scope="module")
def result(ws) -> Result:
    params = analysis.resolve(ws, {"dataset": "digits", **QUICK, "shrink": 0.3})
    return analysis.compute(ws, params)


def test_rows_are_joined_by_id_and_the_rest_is_reported(ws):
    rows = read_rows(ws, "digits", MODELS, "label", 0)
    first = ws.data.items.set_index("id")
    for model, x in zip(MODELS, rows.train, strict=True):
        f = ws.store[model]
        at = int(np.flatnonzero(f.ids == rows.train_ids[7])[0])
        np.testing.assert_allclose(x[7], f.layer()[at])
    assert list(rows.y_test) == list(first.loc[rows.test_ids, "label"])
    assert {line.reason for line in rows.left_out} >= {
        "no features under one of the encoders", "no label",
    }  # fmt: skip
    assert "own split, no concept on both sides" in rows.split_note


def test_without_a_split_whole_concepts_are_drawn(ws):
    items = ws.data.items.assign(split="")
    other = FakeWorkspace(FakeDataset(items), ws.store)
    rows = read_rows(other, "digits", MODELS, "label", 0)
    concept = items.set_index("id")["concept"]
    assert not set(concept[rows.train_ids]) & set(concept[rows.test_ids])
    assert "drawn here" in rows.split_note


def test_summary_and_tables_agree(result):
    s = result.summary
    assert "→" in s["headline"]
    assert "± " in s["headline"]
    assert s["n_parallel"] == 150
    cells = result.tables["cells"]
    assert len(cells) == 5 * 9
    best = cells[(cells["method"] == s["preferred"]) & (cells["i"] != cells["j"])]
    assert np.isclose(best["accuracy"].mean(), s["accuracy"])
    native = result.tables["native"].set_index("model")["accuracy"]
    gaps = native.loc[best["j"]].to_numpy() - best["accuracy"].to_numpy()
    np.testing.assert_allclose(best["gap"], gaps)
    per_seed = result.tables["matrix"].groupby(["method", "i", "j"])["accuracy"].mean()
    for row in best.itertuples():
        assert np.isclose(per_seed[(row.method, row.i, row.j)], row.accuracy)
    assert s["control"] < 0.3
    assert s["preferred"] != "ridge"


def test_failures_fail_and_confusions_add_up(result, ws):
    failures = result.tables["failures"]
    label = ws.data.items.set_index("id")["label"]
    assert (label.loc[failures["id"]].to_numpy() == failures["true"].to_numpy()).all()
    assert (failures["true"] != failures["stitched"]).all()
    assert failures["share"].between(0.5, 1.0).all()
    totals = result.tables["confusion"].groupby(["method", "i", "j"])["count"].sum()
    np.testing.assert_allclose(totals, result.summary["n"])


def test_advice_has_ordered_intervals(result):
    advice = result.tables["advice"]
    assert len(advice) == 6
    assert (advice["low"] <= advice["retention"]).all()
    assert (advice["retention"] <= advice["high"]).all()
    assert set(advice["verdict"]) <= {"swap", "train a new head", "cannot tell"}


def test_anchors_losses_and_health(result):
    anchors, facts = result.tables["anchors"], result.tables["anchor_facts"]
    assert anchors.groupby("anchor").size().eq(10).all()
    assert np.isclose(anchors.groupby("anchor")["weight"].sum()[3], facts["top_share"][3])
    assert facts["n_eff"].between(1, 120).all()
    assert set(result.tables["losses"]["seed"]) == {0, 1}
    health = result.tables["health"]
    assert (health["shrinkage"] == 0.3).all()
    assert (health["energy_ratio"] > 0.5).all()


def test_every_figure_draws(result):
    drawn = [
        figures.small(result),
        *(
            figures.matrix(result, measure=m, view=v, base="cosine-random")
            for m in figures.MEASURES
            for v in figures.VIEWS
        ),
        *(figures.scale(result, view=v, base="cosine-random") for v in figures.VIEWS),
        figures.matrix(result, methods=["ridge"], columns=1, bar=False),
        figures.retention(result),
        *(figures.similarity(result, measure=m) for m in ("cka", "mutual_knn", "procrustes")),
        figures.confusion(result, "wip-param", MODELS[0], MODELS[1]),
        stitching_anchors.shrinkage(result),
        stitching_anchors.losses(result),
        stitching_anchors.anchors(result, chosen=3),
    ]
    assert all(len(fig.to_json()) > 100 for fig in drawn)


def test_matrix_panels_share_one_scale_and_can_be_clicked(result):
    fig = figures.matrix(result)
    heat = [t for t in fig.data if t.type == "heatmap"]
    points = [t for t in fig.data if t.type == "scatter"]
    assert {t.coloraxis for t in heat} == {"coloraxis"}
    assert len(points) == 5
    assert list(points[0].customdata[1][:3]) == [points[0].customdata[0][0], 0, 1]
    alone = figures.matrix(result, methods=["ridge"], columns=1, bar=False)
    assert alone.layout.coloraxis.cmin == fig.layout.coloraxis.cmin
    assert alone.layout.coloraxis.cmax == fig.layout.coloraxis.cmax
    native = heat[1]  # the strip of own heads follows its matrix
    np.testing.assert_allclose(
        np.ravel(native.z), 100 * result.tables["native"]["accuracy"], atol=1e-9
    )


def test_translators_alone_need_no_anchors(ws):
    params = analysis.resolve(
        ws, {"dataset": "digits", **QUICK, "methods": ["ridge"], "seeds": 1, "label": "odd"}
    )
    got = analysis.compute(ws, params)
    assert got.summary["preferred"] == "ridge"
    assert "anchors" not in got.tables
    assert "whitens" in got.summary["shrinkage_reason"]
    assert "no anchors" in stitching_anchors.anchors(got).to_json().lower()


def test_automatic_shrinkage_says_why(ws):
    params = analysis.resolve(
        ws, {"dataset": "digits", **QUICK, "methods": ["wip-random"], "seeds": 1}
    )
    got = analysis.compute(ws, params)
    assert "chosen without labels" in got.summary["shrinkage_reason"]
    assert got.tables["shrinkage"]["chosen"].sum() == 1


def test_same_choice_same_parameters(ws):
    a = analysis.resolve(ws, {"dataset": "digits", "models": MODELS})
    b = analysis.resolve(ws, {"dataset": "digits", "models": MODELS[::-1] + MODELS[:1]})
    assert a == b
    assert (
        analysis.resolve(ws, {"dataset": "digits", "models": MODELS, "shrink": "0.5"})["shrink"]
        == 0.5
    )


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"models": MODELS[:1]}, "compares encoders"),
        ({"methods": []}, "methods is empty"),
        ({"methods": ["magic"]}, "method='magic'"),
        ({"n_anchors": 1}, "n_anchors must be"),
        ({"seeds": 2.5}, "seeds must be"),
        ({"shrink": "a lot"}, "shrink must be"),
        ({"shrink": 2}, "shrink must be"),
    ],
)
def test_bad_parameters_are_named(ws, wrong, words):
    with pytest.raises(BadInput, match=words):
        analysis.resolve(ws, {"dataset": "digits", "models": MODELS, **wrong})


def test_missing_things_are_named(ws):
    with pytest.raises(NotFound, match="net/z"):
        analysis.resolve(ws, {"dataset": "digits", "models": ["net/a", "net/z"]})
    with pytest.raises(BadInput, match="label='colour'"):
        read_rows(ws, "digits", MODELS, "colour", 0)
    with pytest.raises(BadInput, match="of 1 classes"):
        read_rows(ws, "digits", MODELS, "domain", 0)


def test_cancel_comes_through(ws):
    def stop(fraction: float, message: str) -> None:
        if fraction > 0.1:
            raise Cancelled("Stopped.")

    params = analysis.resolve(ws, {"dataset": "digits", **QUICK, "shrink": 0.3, "seeds": 1})
    with pytest.raises(Cancelled):
        analysis.compute(ws, params, stop)


def test_importing_the_analysis_is_cheap():
    import subprocess
    import sys

    code = (
        "import sys, core.stitching.analysis, core.stitching.methods;"
        "print([m for m in ('torch', 'sklearn', 'plotly') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
