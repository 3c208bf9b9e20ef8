"""A population with planted correlations: cells, verdicts, claims, the chooser, sensitivity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import false_discovery_control, spearmanr

from core.errors import BadInput, NotFound
from core.quality import chooser, claims
from core.quality.metrics.alpha_req import power_law
from core.quality.population import (
    METRICS,
    STUDY,
    Correlations,
    agreement,
    from_table,
    select,
    strata,
    study_table,
    zoo,
)  # fmt: skip
from core.quality.sensitivity import (
    CURVES,
    elasticity,
    exact_curves,
    power_law_metrics,
    sampled_curve,
)
from core.quality.stored import zoo_cells
from core.stats import spearman, spearman_cluster_bootstrap

SETS = {"one": "First", "two": "Second"}


def planted(n=120, seed=0):
    """Models whose quality drives NESum; TwoNN turns round between two classes."""
    rng = np.random.default_rng(seed)
    kinds = np.array(["ViT", "ResNet"])[np.arange(n) % 2]
    rows = []
    for name in SETS:
        quality = rng.standard_normal(n)
        noise = rng.standard_normal((n, len(METRICS)))
        frame = pd.DataFrame({m: noise[:, at] for at, m in enumerate(METRICS) if m != "clid"})
        frame["ne_sum"] = quality + 0.3 * rng.standard_normal(n)
        shift = np.where(kinds == "ViT", -4.0, 4.0)
        frame["twonn"] = -quality + shift + 0.2 * rng.standard_normal(n)
        frame["condition_number"] = rng.standard_normal(n)
        spectra = [np.arange(1, 61) ** -a for a in 1 + 0.1 * rng.random(n)]
        frame = frame.rename(columns=lambda c: c if c == "d" else f"metric.{c}").assign(
            model=[f"m{i}" for i in range(n)], family=[f"f{i % 20}" for i in range(n)],
            architecture=kinds, objective=np.where(np.arange(n) % 4 < 2, "supervised", "dino"),
            dataset=name, failed="", knn=quality + 0.5 * shift, linear=quality,
            n_params=1000, eigenvalues=spectra,
        )  # fmt: skip
        frame["linear.0"] = quality + frame["metric.condition_number"]
        rows.append(frame)
    table = pd.concat(rows, ignore_index=True)
    table.loc[3, "metric.alpha_req"] = np.nan
    table.loc[len(table)] = table.iloc[0]
    table.loc[len(table) - 1, ["model", "failed"]] = ["broken", "out of memory"]
    return from_table(table, title="planted", datasets=SETS, about={})


POPULATION = planted()
CELLS = study_table(POPULATION, n_boot=300)


def cell(stratum, metric, dataset="one", cells=CELLS):
    rows = cells[(cells.stratum == stratum) & (cells.metric == metric) & (cells.dataset == dataset)]
    return rows.iloc[0]


def test_what_failed_is_not_a_model():
    assert POPULATION.n_models == 120
    assert "broken" not in set(POPULATION.table["model"])


def test_cells_are_the_single_bootstrap_and_scipys_q():
    rows = POPULATION.table[POPULATION.table["dataset"] == "one"]
    want = spearman_cluster_bootstrap(rows["ne_sum"], rows["knn"], rows["family"], n_boot=300)
    got = cell("All", "ne_sum")
    assert got["rho"] == pytest.approx(want.rho, abs=1e-9)
    assert got["lo"] == pytest.approx(want.lo, abs=1e-5)
    assert got["n_clusters"] == 20
    inside = CELLS[CELLS.stratum == "All"]
    assert len(inside) == len(STUDY) * len(SETS)
    assert np.allclose(inside["q"], false_discovery_control(inside["p"]), atol=1e-12)


def test_a_missing_value_leaves_one_model_out_of_that_cell_only():
    assert cell("All", "alpha_req")["n"] == 119
    assert cell("All", "alpha_req", "two")["n"] == 120
    assert cell("All", "rankme")["n"] == 120
    rows = POPULATION.table[POPULATION.table["dataset"] == "one"].dropna(subset=["alpha_req"])
    want = spearman(rows["alpha_req"].to_numpy(), rows["knn"].to_numpy())
    assert cell("All", "alpha_req")["rho"] == pytest.approx(want, abs=1e-9)


def test_too_few_families_have_no_number():
    few = select(POPULATION, architectures=["ViT"])
    few.table["family"] = np.where(np.arange(len(few.table)) % 2, "a", "b")
    assert set(study_table(few, n_boot=50)["status"]) == {"n/a"}


def test_a_filter_keeps_what_it_names():
    shown = select(POPULATION, architectures=["ViT"], groups=["supervised"])
    assert set(shown.table["architecture"]) == {"ViT"}
    assert set(shown.table["group"]) == {"supervised"}
    assert list(strata(POPULATION.table))[:3] == ["All", "ViT", "ResNet"]


def test_the_planted_metric_is_trusted_and_simpsons_is_refused():
    judged = {t.metric: t for t in claims.trust(CELLS, "ViT", STUDY)}
    assert judged["ne_sum"].verdict == "trust"
    assert judged["twonn"].verdict == "trust"
    assert judged["rankme"].verdict in ("cannot tell", "not here")
    pooled = cell("All", "twonn")["rho"]
    assert pooled > 0.3  # against the sign within each class
    choice = chooser.choose_metric(CELLS, "ViT")
    assert choice.metric in ("ne_sum", "twonn")
    assert choice.lo > 0
    across = chooser.choose_metric(CELLS, "All", metrics=["twonn"])
    assert across.metric == ""
    assert "different classes" in across.reason


def test_nothing_is_chosen_where_nothing_is_clear():
    choice = chooser.choose_metric(CELLS, "ViT", metrics=["rankme", "alpha_req"])
    assert choice.metric == ""
    assert "label" in choice.reason
    with pytest.raises(BadInput):
        chooser.choose_metric(CELLS, "Swin")


def test_ranking_says_who_cannot_be_told_from_the_first():
    values = pd.DataFrame(
        {"model": ["a", "b", "c", "d"], "value": [1.0, 5.0, 4.9, np.nan],
         "lo": [0.9, 4.7, np.nan, np.nan], "hi": [1.1, 5.2, np.nan, np.nan]}
    )  # fmt: skip
    up = chooser.rank_by(values, 1)
    assert list(up["model"]) == ["b", "c", "a", "d"]
    assert list(up["tied"].fillna(False)[:3]) == [True, True, False]
    assert np.isnan(up["place"].iloc[3])
    assert chooser.rank_by(values, -1)["model"].iloc[0] == "a"


def test_partial_rho_given_the_width_of_a_width_driven_metric_vanishes():
    table = POPULATION.table.copy()
    rng = np.random.default_rng(0)
    table["d"] = table["knn"] + rng.standard_normal(len(table))
    table["rankme"] = table["d"] + 0.1 * rng.standard_normal(len(table))
    widened = type(POPULATION)("w", table, SETS)
    found = Correlations(widened, "one", metrics=["rankme"], probes=["knn"], n_boot=100)
    assert found.cell("All", "rankme", "knn").rho > 0.3
    assert abs(found.partial("All", "rankme", "knn").rho) < 0.2


def test_the_ridge_panel_finds_the_planted_artefact():
    panel = claims.ridge_panel(POPULATION)
    mean = panel.groupby("probe")["rho"].mean()
    assert mean["linear.0"] > 0.4
    assert abs(mean["linear"]) < 0.2


def test_alpha_over_a_range_is_the_metrics_own_fit():
    found = claims.alpha_rho(POPULATION, (5, 40)).set_index("dataset")
    rows = POPULATION.table[POPULATION.table["dataset"] == "two"]
    alpha = [power_law(np.asarray(v), (5, 40)).alpha for v in rows["eigenvalues"]]
    want = spearman(np.array(alpha), rows["knn"].to_numpy())
    assert found.loc["two", "rho"] == pytest.approx(want, abs=1e-12)
    assert claims.alpha_rho(POPULATION, (58, 60))["n"].sum() == 0


def test_claims_of_the_planted_population_are_judged_by_its_numbers():
    found = claims.claims(POPULATION, CELLS)
    assert len(found) == 7
    assert {c.held for c in found} <= {"held", "partly", "did not hold", "cannot tell"}
    first = found[0]
    assert first.held == "did not hold"  # positive over all, negative in two strata of five
    flipped = CELLS.assign(rho=-CELLS["rho"])
    assert claims.claims(POPULATION, flipped)[0].held == "partly"  # negative in three
    down = CELLS.assign(rho=-CELLS["rho"].abs() - 0.01)
    assert claims.claims(POPULATION, down)[0].held == "held"


def test_agreement_is_scipys_over_the_models_that_have_both():
    rows = POPULATION.table[POPULATION.table["dataset"] == "one"].copy()
    rows.loc[rows.index[:5], "twonn"] = np.nan
    rows["flat"] = 1.0
    holed = replace(POPULATION, table=rows)
    names = ["twonn", "rankme", "flat"]
    found = agreement(holed, "one", names)
    both = rows.dropna(subset=["twonn"])
    assert found[0, 1] == pytest.approx(spearmanr(both["twonn"], both["rankme"])[0], abs=1e-12)
    assert np.array_equal(found[:2, :2], found[:2, :2].T)
    assert np.isnan(found[2]).all()
    few = agreement(replace(POPULATION, table=rows.iloc[:7]), "one", names)
    assert np.isnan(few).all()


def test_unknown_names_are_refused():
    with pytest.raises(BadInput):
        study_table(POPULATION, probe="f1")
    with pytest.raises(BadInput):
        study_table(POPULATION, metrics=["beauty"])
    with pytest.raises(BadInput):
        Correlations(POPULATION, "three")


def test_a_missing_table_is_said(tmp_path):
    with pytest.raises(NotFound):
        zoo(tmp_path / "none.parquet")
    with pytest.raises(NotFound):
        zoo_cells("knn", path=tmp_path / "none.parquet")


@pytest.mark.parametrize(
    ("d", "alpha", "rankme", "ne_sum", "kappa", "ratio"),
    [
        (64, 0, 64, 64, 1, 64),
        (64, 2, 29.1179, 1.6294, 64, 2.4531),
        (256, 0.5, 246.4239, 30.5709, 4, 152.6007),
        (256, 1, 209.0328, 6.1243, 16, 22.8561),
        (768, 1.5, 371.5071, 2.5402, 145.8885, 5.3681),
        (768, 3, 17.9209, 1.2021, 21283.44, 1.4203),
    ],
)
def test_power_law_curves_are_the_specifications(d, alpha, rankme, ne_sum, kappa, ratio):
    found = power_law_metrics(d, alpha)
    assert found["rankme"] == pytest.approx(rankme, abs=1e-4)
    assert found["ne_sum"] == pytest.approx(ne_sum, abs=1e-4)
    assert found["condition_number"] == pytest.approx(kappa, rel=1e-6)
    assert found["participation_ratio"] == pytest.approx(ratio, abs=1e-4)


def test_curves_fall_with_alpha_and_a_large_sample_meets_them():
    curves = exact_curves(widths=[64])
    assert (np.diff(curves["rankme"]) < 0).all()
    assert (np.diff(curves["condition_number"]) > 0).all()
    sample = sampled_curve(32, 6000, alphas=[1.0], repeats=1).iloc[0]
    exact = power_law_metrics(32, 1.0)
    for name in CURVES:
        assert sample[name] == pytest.approx(exact[name], rel=0.1), name
    with pytest.raises(BadInput):
        power_law_metrics(0, 1.0)
    with pytest.raises(BadInput):
        sampled_curve(8, 1)


def test_elasticity_is_the_growth_with_the_width():
    curves = exact_curves(alphas=[0.0, 1.0, 3.0], widths=[64, 128, 256])
    rank = elasticity(curves, "rankme").set_index("alpha")["elasticity"]
    assert np.allclose(rank.loc[0.0], 1.0)  # the whole width
    assert (rank.loc[3.0].to_numpy() < rank.loc[1.0].to_numpy()).all()
    nesum = elasticity(curves, "ne_sum").set_index("alpha")["elasticity"]
    assert (nesum.loc[3.0] < 1e-3).all()  # none of it above alpha 1
    kappa = elasticity(curves, "condition_number").set_index("alpha")["elasticity"]
    assert np.allclose(kappa.loc[1.0], 0.5)  # d^(alpha / 2)
    with pytest.raises(BadInput):
        elasticity(curves[curves["d"] == 64], "rankme")
    with pytest.raises(BadInput):
        elasticity(curves, "beauty")


def test_the_figures_of_the_curves_and_of_the_gain_draw_what_they_are_given():
    from core.figures import sensitivity as figures

    curves = exact_curves(widths=[64, 128])
    assert len(figures.over_width(curves, "ne_sum", per_width=True).data) == 6
    wide = figures.over_width(curves, "ne_sum", per_width=False).data[0]
    assert np.allclose(wide.y, [64, 128])
    assert len(figures.elasticity(elasticity(curves, "rankme"), "rankme").data) == 1
    table = POPULATION.table.copy()
    table["condition_number"] = table["condition_number"].abs() + 1
    table["linear.0.01"], table["n_train"] = table["linear.0"] + 0.1, 80
    fig = figures.ridge_gain(type(POPULATION)("p", table, SETS), "one")
    assert {trace.name for trace in fig.data} == {"ViT", "ResNet"}
    assert np.allclose(np.concatenate([trace.y for trace in fig.data]), 10.0)
