"""Truth, robustness, classes and advice of a ranking, on planted domains."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from scipy.stats import spearmanr, t
from test_analysis import FAST, fill

from core import analyses
from core.errors import BadInput
from core.figures import transfer_more as figures
from core.radar import classes, radar_score, robustness
from core.radar.advice import advise, confidence
from core.radar.rows import DomainRows
from core.radar.score import rank_blends, score_blends
from core.workspace import open_workspace


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    return fill(open_workspace(tmp_path_factory.mktemp("demand") / "space"))


@pytest.fixture(scope="module")
def ranked(space):
    return analyses.run("transfer", space, **FAST, gain_seeds=2)


@pytest.fixture(scope="module")
def truth(space):
    return analyses.run(
        "transfer-truth", space, **FAST, gain_per_class=1, gain_seeds=3, n_projections=20
    )


@pytest.fixture(scope="module")
def robust(space):
    return analyses.run(
        "transfer-robustness", space, **FAST, pair_counts=[200, 400], seeds=[1], slow=False
    )


@pytest.fixture(scope="module")
def by_class(space):
    return analyses.run("transfer-classes", space, dataset="toy", model="demo/none", target="t",
                        n_pairs=300, repeats=4)  # fmt: skip


def test_truth_has_every_measure_and_exact_p(truth):
    table, blends = truth.tables["measures"], truth.tables["blends"]
    assert {"RADAR", "LEEP", "NCE", "LogME", "TransRate", "s-OTDD", "blend size"} <= set(
        table["measure"]
    )
    assert table["exact"].all()
    assert truth.summary["leaks"] == 0
    known = table[table["rho"].notna()]
    for _, line in known.iterrows():
        sign = -1 if line["better"] == "lower" else 1
        want = spearmanr(sign * blends[line["column"]], blends["gain"]).statistic
        assert np.isclose(line["rho"], want)
    unknown = table[table["rho"].isna()]
    assert unknown["note"].str.startswith("n/a").all()
    assert known["rho"].is_monotonic_decreasing


def test_gains_are_those_of_the_ranking(space, ranked, truth):
    again = analyses.run("transfer-truth", space, **FAST, gain_seeds=2, measures=["size"]).tables[
        "blends"
    ]
    want = ranked.tables["ranking"].set_index("blend")["gain"]
    assert np.allclose(again.set_index("blend")["gain"].reindex(want.index), want)
    seeds = truth.tables["seeds"]
    mean = seeds.groupby("blend")["gain"].mean()
    stored = truth.tables["blends"].set_index("blend")["gain"]
    assert np.allclose(mean.reindex(stored.index), stored)


def test_truth_refuses_what_it_cannot_measure(space, tmp_path):
    with pytest.raises(BadInput, match="not a measure"):
        analyses.resolve("transfer-truth", space, **FAST, measures=["nonsense"])
    with pytest.raises(BadInput, match="gain_seeds"):
        analyses.resolve("transfer-truth", space, **FAST, gain_seeds=0)
    bare = fill(open_workspace(tmp_path / "bare"), split=False)
    with pytest.raises(BadInput, match="no train and test split"):
        analyses.run("transfer-truth", bare, **FAST)


def test_named_blends_score_as_in_the_ranking(space):
    data = DomainRows(space, {**FAST, "sources": ["near", "far"]})
    domains = {name: data.domain(name) for name in ("near", "far")}
    options = {"density": "gaussian", "n_pairs": 300, "repeats": 2}
    whole = rank_blends(data.domain("t"), domains, **options).table.set_index("blend")["score"]
    part = score_blends(data.domain("t"), domains, [("far",), ("far", "near")], **options)
    assert part.table.set_index("blend")["score"].to_dict() == {
        name: whole[name] for name in ("far", "far + near")
    }
    for wrong in ([], [()], [("absent",)]):
        with pytest.raises(BadInput, match="blends"):
            score_blends(data.domain("t"), domains, wrong, **options)


def test_variants_change_one_thing(space, robust):
    params = analyses.resolve("transfer-robustness", space, **FAST)
    names = robustness.variants(params)
    assert names["as shown"] == ("", {})
    assert "Euclidean" not in names  # it is what is shown
    assert {"sphere", "Poincaré", "late layers", "histogram", "mixture"} <= set(names)
    shown = robust.tables["variants"].set_index("variant")
    assert shown.loc["as shown", "agreement"] == 1.0
    assert (shown["agreement"].dropna() > 0.4).all()  # twelve standard deviations apart
    stability = robust.tables["stability"].set_index("source")
    assert stability.loc["far", "same"] == stability.loc["far", "of"] > 10


def test_the_shown_variant_is_the_shown_ranking(ranked, robust):
    mine = robust.tables["sources"].query("variant == 'as shown'").set_index("source")
    table = ranked.tables["ranking"].set_index("blend")
    for source in ("near", "far"):
        assert np.isclose(mine.loc[source, "score"], table.loc[source, "score"])
    advice = {d["source"]: d["decision"] for d in ranked.summary["decisions"]}
    assert mine["advice"].to_dict() == advice


def test_slow_densities_score_the_single_sources(space, monkeypatch):
    monkeypatch.setattr(robustness, "_QUICK", {})
    # One mixture stands for the three: they differ in a parameter that is tested elsewhere.
    for name in ("mixture, K = 1", "mixture, K = 3"):
        monkeypatch.delitem(robustness.SLOW, name)
    out = analyses.run("transfer-robustness", space, **{**FAST, "n_pairs": 200}, pair_counts=[],
                       seeds=[])  # fmt: skip
    table = out.tables["variants"].set_index("variant")
    assert table.loc["mixture", "blends"] == 2
    assert table.loc["sliced transport", "nearest"] == "near"
    with pytest.raises(BadInput, match="pair_counts"):
        analyses.resolve("transfer-robustness", space, **FAST, pair_counts=[10])


def test_a_class_is_scored_inside_itself(space, by_class):
    table = by_class.tables["classes"]
    data = DomainRows(space, by_class.params)
    target, far = data.domain("t"), data.domain("far")
    line = table.query("source == 'far' and label == 'class 1'").iloc[0]
    options = {"density": "gaussian", "label_mode": "any", "mode": "per_layer", "n_pairs": 300,
               "repeats": 4}  # fmt: skip
    want = radar_score(
        classes.of_class(target, "class 1"), classes.of_class(far, "class 1"), **options
    )
    assert np.isclose(line["score"], want.score)
    assert np.isclose(line["excess"], want.excess)
    steps = by_class.tables["steps"].query("source == 'far' and label == 'class 1'")
    assert np.isclose(steps["excess"].mean(), line["excess"])
    assert table.query("source == 'far'")["sure"].all()
    assert line["n_target"] == (target.labels == "class 1").sum()


def test_the_class_that_was_moved_is_found(space):
    rng = np.random.default_rng(0)
    rows = [
        {"source": "s", "label": f"c{k}", "excess": 0.1 + 0.9 * (k == 2), "excess_sd": 0.05}
        for k in range(5)
    ]
    found = classes.carriers(pd.DataFrame(rows)).iloc[0]
    assert found["label"] == "c2"
    assert found["stands_out"]
    assert np.isclose(found["times"], 10.0)
    noise = pd.DataFrame([{**r, "excess": rng.normal(0, 0.02)} for r in rows])
    quiet = classes.carriers(noise).iloc[0]
    assert not quiet["stands_out"]
    assert np.isnan(quiet["times"])


def test_small_classes_are_left_out(space):
    out = analyses.run("transfer-classes", space, dataset="toy", model="demo/none", target="t",
                       n_pairs=200, repeats=2, least=22)  # fmt: skip
    kept = out.tables["classes"][["n_target", "n_source"]].min(axis=1)
    assert (kept >= 22).all()
    assert any("fewer than 22" in line.reason for line in out.left_out)
    with pytest.raises(BadInput, match="least"):
        analyses.resolve("transfer-classes", space, **FAST, least=2)


def test_confidence_is_students(ranked):
    assert np.isclose(confidence(1.0, 0.2, 1.5, 5), t.cdf(2.5, 4))
    assert np.isclose(confidence(2.0, 0.2, 1.5, 5), t.cdf(2.5, 4))
    assert np.isnan(confidence(1.0, 0.0, 1.5, 5))
    assert np.isnan(confidence(1.0, 0.2, float("nan"), 5))
    for one in advise(ranked):
        assert 0.5 <= one.confidence < 1.0
        assert one.sentence.endswith(".")
        assert ": it differs" in one.sentence or ": it is" in one.sentence
        assert one.settles == ""
        assert ("Add near" in one.sentence) == (one.source == "near")


def test_what_would_settle_an_open_source(ranked):
    from dataclasses import replace

    table = ranked.tables["ranking"].copy()
    table["excess"], table["excess_sd"] = 1.2, 0.2
    decisions = [
        {"source": name, "decision": "cannot tell", "reason": "about as far as the yardstick",
         "pairs_needed": 4.0} for name in ("near", "far")
    ]  # fmt: skip
    open_one = replace(ranked, tables={**ranked.tables, "ranking": table},
                       summary={**ranked.summary, "decisions": decisions, "far": 1.0})  # fmt: skip
    said = advise(open_one)[0]
    # Two standard deviations are .4, the gap is .2: four times the items halve the spread.
    assert said.settles.startswith("About 4.0 times the items (480 target and 480 source items")
    lost = replace(open_one, summary={**open_one.summary, "far": 0.1})
    assert advise(lost)[0].settles.startswith("No sampling")
    on_it = replace(open_one, summary={**open_one.summary, "far": 1.2})
    assert "no affordable sample" in advise(on_it)[0].settles


def test_every_figure_can_be_drawn(ranked, truth, robust, by_class):
    for fig in (
        figures.ridge_grid(ranked, ["near", "far"], "theta", chosen=1),
        figures.ridge_grid(ranked, ["near"], "theta", whole=True),
        figures.ridge_grid(ranked, ["near", "far"], "d"),
        figures.advice_bars(advise(ranked)),
        figures.class_map(by_class),
        figures.class_steps(by_class, "far"),
        figures.against_pairs(robust),
        figures.agreement(robust),
        *(figures.truth(truth, c) for c in truth.tables["measures"]["column"]),
    ):
        assert isinstance(fig, go.Figure)
        assert fig.layout.title.text
    whole = figures.ridge_grid(ranked, ["near"], "theta", whole=True)
    assert list(whole.layout.xaxis.range) == [0.0, np.pi]
