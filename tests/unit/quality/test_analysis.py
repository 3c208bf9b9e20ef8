"""The quality analysis on a small workspace of digits, and its figures."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from sklearn.datasets import load_digits

from core import analyses
from core.errors import BadInput, Cancelled, NotFound
from core.figures import published as published_figures
from core.figures import quality as figures
from core.quality import analysis, linear_probe, published_panel, score_record
from core.quality.registry import published_cells

X, Y = load_digits(return_X_y=True)
N = 400
QUICK = {"dataset": "digits", "n_boot": 200, "n_draws": 1}


def encoders(count):
    """Random projections of the digits, from good to bad."""
    rng = np.random.default_rng(0)
    noise = np.linspace(0.1, 12, count)
    return {
        f"net/{i}": (X[:N] @ rng.standard_normal((64, 24)) / 8 + s * rng.standard_normal((N, 24)))
        for i, s in enumerate(noise)
    }


def fill(space, tables, *, split=True, drop=()):
    items = pd.DataFrame({"id": np.arange(N) * 3, "label": [str(v) for v in Y[:N]]})
    items["caption"] = "digit"
    items["domain"] = "scan"
    items["concept"] = np.arange(N) // 2
    items["split"] = np.where(items["concept"] % 3 == 0, "test", "train") if split else ""
    data = space.add_dataset("digits", "Digits", "text", items)
    for model, rows in tables.items():
        ids = items["id"].to_numpy()
        keep = ~np.isin(ids, drop) if model == "net/0" else np.ones(N, bool)
        writer = space.features.writer(
            {"dataset_digest": data.digest, "model": model},
            dataset="digits",
            model=model,
            default_layer="out",
            n=int(keep.sum()),
            shard_size=N,
        )
        writer.write_shard(0, ids[keep], {"out": rows[keep].astype(np.float32)})
        writer.finish()
    return items


@pytest.fixture
def three(space):
    fill(space, encoders(3))
    return space


def test_the_result(three):
    seen = []
    result = analyses.run("quality", three, progress=lambda f, m: seen.append((f, m)), **QUICK)
    assert [f for f, _ in seen] == sorted(f for f, _ in seen)
    assert {"models", "metrics", "sweep", "spectrum", "twonn", "predictions", "specs"} == set(
        result.tables
    )
    models = result.tables["models"]
    assert models["model"].iloc[0] == "net/0"
    assert models["linear"].is_monotonic_decreasing
    assert (models["linear_lo"] <= models["linear"]).all()
    assert (models["linear"] <= models["linear_hi"]).all()
    assert result.summary["n"] == N
    assert result.summary["best"] == "net/0"
    assert "too few models (3 of 8 needed)" in result.summary["correlations"]
    assert result.headline.startswith("net/0 suits this data best")
    assert analyses.find("quality", three, **QUICK).key == result.key
    metrics = result.tables["metrics"]
    assert set(metrics.loc[metrics["metric"] == "rankme", "model"]) == set(models["model"])
    assert (metrics.loc[metrics["metric"] == "rankme", "n_used"] == 266).all()


def test_the_probe_is_the_public_one(three):
    result = analyses.run("quality", three, **QUICK)
    items = three.dataset("digits").items
    rows = np.asarray(three.features.get("digits", "net/1").layer())
    test = (items["split"] == "test").to_numpy()
    y = items["label"].to_numpy()
    want = linear_probe(rows[~test], y[~test], rows[test], y[test])
    mine = result.tables["models"].set_index("model").loc["net/1"]
    assert mine["linear"] == want.accuracy
    said = result.tables["predictions"]
    said = said[said["model"] == "net/1"]
    assert (said["linear"] == said["label"]).mean() == want.accuracy
    assert said["id"].tolist() == items.loc[test, "id"].tolist()


def test_the_same_run_gives_the_same_numbers(three):
    one = analyses.run("quality", three, **QUICK)
    two = analyses.run("quality", three, force=True, **QUICK)
    for name, table in one.tables.items():
        pd.testing.assert_frame_equal(table, two.tables[name])


def test_eight_encoders_get_correlations(space):
    fill(space, encoders(9))
    result = analyses.run("quality", space, **QUICK)
    assert result.summary["correlations"] == "computed"
    found = result.tables["correlations"].set_index(["metric", "target"])
    assert found.loc[("twonn", "linear"), "n"] == 9
    assert found.loc[("twonn", "linear"), "n_clusters"] == 9
    assert found.loc[("twonn", "linear"), "rho"] < -0.5


def test_models_are_measured_on_their_common_items(space):
    items = fill(space, encoders(2), drop=[0, 3, 6])
    result = analyses.run("quality", space, **QUICK)
    assert result.summary["n"] == len(items) - 3
    assert [(line.what, line.count) for line in result.left_out] == [("net/0", 3)]


def test_without_a_split_concepts_stay_together(space):
    fill(space, encoders(1), split=False)
    result = analyses.run("quality", space, **QUICK)
    items = space.dataset("digits").items.set_index("id")
    held = items.loc[result.tables["predictions"]["id"].unique(), "concept"]
    assert held.value_counts().eq(2).all()
    assert 0.15 < len(held) / N < 0.25
    assert "nothing to compare" in result.headline


def test_two_like_encoders_cannot_be_told_apart(space):
    rows = encoders(1)["net/0"]
    fill(space, {"net/0": rows, "net/1": rows + 1e-3})
    assert analyses.run("quality", space, **QUICK).headline.startswith("Cannot tell")


def test_rows_that_are_not_finite_are_reported(space):
    rows = encoders(1)["net/0"]
    result = score_record(
        np.vstack([rows[:200], np.full((1, 24), np.nan)]),
        np.r_[Y[:200], 0],
        rows[200:],
        Y[200:N],
        n_boot=100,
        n_draws=0,
    )
    assert result.n_dropped == 1
    assert "nonfinite_rows" in result.metrics["rankme"].flags
    with pytest.raises(BadInput, match="finite"):
        score_record(rows * np.nan, Y[:N], rows, Y[:N])


@pytest.mark.parametrize(
    ("params", "kind"),
    [
        ({"dataset": "absent"}, NotFound),
        ({"models": ["net/9"]}, NotFound),
        ({"layers": {"net/0": "block99"}}, NotFound),
        ({"label": "colour"}, BadInput),
        ({"cluster": "colour"}, BadInput),
        ({"n_boot": 10}, BadInput),
        ({"ridge": -1}, BadInput),
        ({"unknown": 1}, BadInput),
    ],
)
def test_bad_parameters(three, params, kind):
    with pytest.raises(kind):
        analyses.resolve("quality", three, **{**QUICK, **params})


def test_no_features_says_what_to_run(space):
    fill(space, {})
    with pytest.raises(NotFound, match="extract"):
        analyses.resolve("quality", space, **QUICK)


def test_cancel_stops_it(three):
    def stop(fraction, message):
        raise Cancelled("Stopped.")

    with pytest.raises(Cancelled):
        analyses.run("quality", three, progress=stop, **QUICK)


def test_text_encoders_are_not_asked_about_pictures():
    facts = analysis.encoder_facts("demo/minilm-l6")
    assert facts["modality"] == "text"
    assert analysis.encoder_facts("open_clip/RN50:openai/text")["modality"] == "text"
    assert analysis.encoder_facts("timm/resnet18.a1_in1k")["family"] == "timm/resnet18.a1_in1k"


def test_figures(three):
    result = analyses.run("quality", three, **QUICK)
    for fig in (
        figures.accuracies(result),
        figures.metric_scatter(result, "rankme", pinned="net/0"),
        figures.metric_scatter(result, "twonn", accuracy="knn"),
        figures.spectrum(result, "net/0"),
        figures.twonn(result, "net/1"),
        figures.ridge_sweep(result),
        figures.conditioning(result),
        figures.small(result),
    ):
        assert isinstance(fig, go.Figure)
        assert fig.data
    slope = figures.twonn(result, "net/1").data[-1]
    metrics = result.tables["metrics"].set_index(["model", "metric"])["value"]
    assert slope.y[1] / slope.x[1] == pytest.approx(metrics[("net/1", "twonn")])
    table = figures.metric_table(result)
    assert len(table) == 3
    assert table["RankMe"].iloc[0] == pytest.approx(metrics[("net/0", "rankme")], rel=1e-3)


def test_a_metric_that_is_missing_everywhere_says_so(three):
    result = analyses.run("quality", three, **QUICK)
    metrics = result.tables["metrics"]
    metrics.loc[metrics["metric"] == "alpha_req", "value"] = math.nan
    fig = figures.metric_scatter(result, "alpha_req")
    assert "could not be computed" in fig.layout.annotations[0].text


@pytest.mark.parametrize("protocol", ["finetuned_head", "linear", "zero_shot"])
def test_published_figures(protocol):
    cells = published_cells()[protocol]
    population = "all" if protocol == "zero_shot" else "core260"
    panel = published_panel(cells, population=population, n_boot=200)
    single = published_figures.scatter(panel, cells[:1], pinned=panel.table["id"].iloc[0])
    assert "not computed here" in single.layout.title.text
    assert sum(len(t.x) for t in single.data if t.customdata is not None) == len(panel.table)
    many = published_figures.scatter(panel, cells, ranks=True)
    assert len([t for t in many.data if t.customdata is not None]) == len(cells)
    heat = published_figures.heatmap(panel, cells)
    assert heat.data[0].z.shape == (panel.correlations["stratum"].nunique(), len(cells))
    words = published_figures.rho_text(panel.correlations.iloc[0])
    assert words.startswith("rho ")


def test_published_panel_filters_and_refuses():
    cells = ["linear|imagenet-1k"]
    some = published_panel(cells, architectures=("ViT",), n_boot=100)
    assert set(some.table["arch_class"]) == {"ViT"}
    assert some.n_hidden == 160
    none = published_panel(cells, architectures=(), n_boot=100)
    assert none.table.empty
    assert none.correlations["status"].tolist() == ["n/a"]
    other = published_panel(cells, x="knn|imagenet-1k", population="all", n_boot=100)
    assert other.correlations["rho"].iloc[0] == pytest.approx(0.962, abs=6e-4)
    with pytest.raises(BadInput):
        published_panel(cells, x="licence")
    with pytest.raises(BadInput):
        published_panel(cells, clusters="arch_class")


def test_the_interpolation_peak_does_not_judge():
    import pandas as pd

    from core.quality.analysis import judging_probe

    wide = pd.DataFrame({"title": ["A (x)", "B"], "rows_per_feature": [3.3, 0.998]})
    probe, reason = judging_probe(wide)
    assert probe == "knn"
    assert "B has about as many features" in reason
    assert judging_probe(wide.iloc[:1]) == ("linear", "")
    few_rows = wide.assign(rows_per_feature=[0.3, 12.0])
    assert judging_probe(few_rows)[0] == "linear"
