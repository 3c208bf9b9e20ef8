"""The transfer study on planted domains: pieces, tables, the reading, and no leak."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from scipy.stats import spearmanr
from toy import stream

from core import analyses
from core.errors import BadInput, NotFound
from core.figures import transfer_study as figures
from core.radar import study_tables as tables
from core.radar.rows import DomainRows
from core.radar.study import cases
from core.radar.study_reading import by_encoder, explain, piece_verdict, rank_agreement
from core.radar.truth import count_leaks
from core.workspace import open_workspace

SHIFTS = {"a": 0.0, "b": 0.5, "c": 3.0, "d": 12.0}
QUICK = {
    "datasets": ["toy", "few"], "configs": ["base", "late", "histogram"], "slow_models": [],
    "measures": ["leep", "size", "distance_of_means", "distance_of_class_means"],
    "n_pairs": 200, "gain_per_class": 1, "gain_seeds": 2, "n_projections": 10,
}  # fmt: skip


def add(space, dataset, shifts, models=("demo/deep", "demo/flat")):
    concepts = 90
    frames, states = [], []
    for index, (name, shift) in enumerate(shifts.items()):
        layers, y = stream(shift, n=concepts, seed=index)
        frames.append(pd.DataFrame({
            "id": np.arange(concepts) * len(shifts) + index, "domain": name,
            "caption": [f"thing {c}" for c in range(concepts)],
            "label": [f"class {c % 5}" for c in y],
            "split": ["test" if c % 3 == 0 else "train" for c in range(concepts)],
            "concept": [str(c) for c in range(concepts)],
        }))  # fmt: skip
        states.append(layers)
    items = pd.concat(frames, ignore_index=True)
    data = space.add_dataset(dataset, dataset.title(), "text", items)
    for model in models:
        flat = model == "demo/flat"
        writer = space.features.writer(
            {"dataset_digest": data.digest, "model": model}, dataset=dataset, model=model,
            default_layer="state 4", n=len(items), shard_size=4096,
        )  # fmt: skip
        arrays = {f"state {at}": np.concatenate([s[at] for s in states]) for at in range(5)}
        kept = {"state 4": arrays["state 4"]} if flat else arrays
        writer.write_shard(0, items["id"].to_numpy(), kept)
        writer.finish()


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    made = open_workspace(tmp_path_factory.mktemp("study") / "space")
    add(made, "toy", SHIFTS)
    add(made, "few", {"a": 0.0, "b": 1.0}, models=("demo/deep",))
    return made


@pytest.fixture(scope="module")
def study(space):
    return analyses.run("transfer-study", space, **QUICK)


def test_a_piece_is_an_encoder_and_a_target(space, study):
    params = analyses.resolve("transfer-study", space, **QUICK)
    todo = cases(space, params)
    assert {(c["model"], c["target"]) for c in todo} == {
        (m, t) for m in ("demo/deep", "demo/flat") for t in "abcd"
    }
    pieces = study.tables["pieces"]
    assert len(pieces) == 8
    assert (pieces["blends"] == 7).all()
    assert (pieces["leaks"] == 0).all()
    few = next(line for line in study.left_out if line.what == "few")
    assert "2 domains and 1 blend a target" in few.reason


def test_slow_measures_are_for_slow_models(space):
    params = analyses.resolve(
        "transfer-study",
        space,
        **{**QUICK, "slow_models": ["demo/deep"], "slow_measures": ["otdd"]},
    )
    for case in cases(space, params):
        slow = case["model"] == "demo/deep"
        assert ("otdd" in case["measures"]) == slow
        assert ("mixture" in case["configs"]) == slow


def test_a_measure_of_fewer_pieces_is_not_called_the_best(study):
    table = study.tables["configurations"].query("scope == 'demo/deep'")
    best = table[(table["family"] != "RADAR")]["rho"].idxmax()

    def said(frame):
        names = ("versus", "chosen", "why")
        rest = [study.tables[name] for name in names]
        return " ".join(explain(study.tables["pieces"], frame, *rest))

    name = table.loc[best, "measure"]
    assert f"the best other measure is {name} " in said(table)
    fewer = table.copy()
    fewer.loc[best, "pieces"] -= 1
    assert f"the best other measure is {name} " not in said(fewer)


def test_stored_pieces_are_not_computed_again(space, study, monkeypatch):
    def never(*_args, **_kw):
        raise AssertionError("a stored piece was computed again")

    monkeypatch.setattr("core.radar.study_pieces._compute", never)
    again = analyses.run("transfer-study", space, force=True, **QUICK)
    for name, table in study.tables.items():
        pd.testing.assert_frame_equal(table, again.tables[name])


def test_every_rho_is_that_of_its_columns(study):
    blends, rho = study.tables["blends"], study.tables["rho"]
    for _, line in rho[rho["rho"].notna()].iterrows():
        mine = blends.query("model == @line.model and target == @line.target")
        sign = -1 if line["better"] == "lower" else 1
        want = spearmanr(sign * mine[line["column"]], mine["gain"]).statistic
        assert abs(line["rho"] - want) < 0.04  # stored values are float32: ties may move
        assert line["exact"]
        assert line["n"] == 7
    flat = rho[rho["model"] == "demo/flat"]
    assert not (flat["family"] == "RADAR").any()


def test_an_encoder_of_one_layer_has_baselines_and_no_score(study):
    flat = study.tables["pieces"].query("model == 'demo/flat'")
    assert set(flat["verdict"]) == {"no score"}
    assert flat["rho"].isna().all()
    assert flat["rho_size"].notna().any() or flat["rho_distance_of_means"].notna().all()
    assert any("one stored layer" in line.reason for line in study.left_out)


def test_means_and_intervals_over_targets(study):
    rho, table = study.tables["rho"], study.tables["configurations"]
    for _, line in table.iterrows():
        mine = rho[(rho["dataset"] == line["dataset"]) & (rho["column"] == line["column"])]
        if line["scope"] in ("demo/deep", "demo/flat"):
            mine = mine[mine["model"] == line["scope"]]
        assert np.isclose(line["rho"], mine["rho"].mean())
        if np.isfinite(line["low"]):
            assert line["low"] <= line["rho"] + 1e-12
            assert line["rho"] <= line["high"] + 1e-12


def test_places_and_p_of_a_mean_by_hand():
    shares = {"radar: base: joint": 0.4, "radar: late: joint": 0.9, "size": 0.5, "leep": 0.1}
    rows = [
        {"dataset": "x", "model": "m", "target": t, "column": column, "measure": column,
         "family": tables.family(column), "rho": rho + 0.01 * at, "q": 0.5, "kendall": 0.0,
         "rho_within_size": 0.0, "n": 7, "seconds": 0.0, "deep": True}
        for at, t in enumerate("abcd") for column, rho in shares.items()
    ]  # fmt: skip
    out = tables.configurations(pd.DataFrame(rows), 0)
    place = out.set_index("column")["place"]
    assert place[["size", "radar: base: joint", "leep"]].tolist() == [1, 2, 3]
    assert np.isnan(place["radar: late: joint"])
    assert (out["p"] == 2 / 16).all()  # all four targets on one side: two of sixteen patterns
    assert (out["blends"] == 28).all()
    said = explain(pd.DataFrame({"dataset": []}), out, *[pd.DataFrame()] * 3)
    assert said == [
        "Of 1 configuration (an encoder on a data set) RADAR as the page sets it has the highest "
        "mean rho of all measures in 0 and one of the three highest in 1."
    ]
    assert set(by_encoder(out, "x")["column"]) == {"size", "radar: base: joint", "leep"}


def test_the_caution_is_set_against_what_happened():
    table = pd.DataFrame([{"dataset": "x", "scope": "m", "family": "RADAR", "column": "radar",
                           "place": 1.0, "rho": 0.4, "measure": "RADAR"}])  # fmt: skip
    nothing = pd.DataFrame(
        {name: [] for name in ("dataset", "scope", "verdict", "family", "low", "high")}
    )
    pieces = pd.DataFrame({
        "dataset": "x", "verdict": ["ranks", "inverts", "ranks", "ranks"],
        "nearest": [5.0, 4.0, 0.1, 0.2], "far": 1.0, "rho": [0.6, -0.4, 0.5, 0.7],
        "blends": 10, "helpful": [1, 2, 9, 9], "harmful": [3, 2, 0, 0],
    })  # fmt: skip

    def said(frame):
        return " ".join(explain(frame, table, nothing, nothing, nothing))

    words = said(pieces)
    assert "on 2 of 4 pairs every source is farther" in words
    assert "There RADAR ranks on 1 of 2 (mean rho +0.10); 15 % of the blends helped" in words
    assert "and 25 % harmed" in words
    assert "Elsewhere RADAR ranks on 2 of 2 (mean rho +0.60); 90 %" in words
    assert "all the same" not in words
    all_far = said(pieces.assign(nearest=5.0))
    assert "on 4 of 4 pairs" in all_far
    assert "Elsewhere" not in all_far
    assert "The order held there all the same" in all_far
    assert "cannot tell" not in said(pieces.assign(nearest=0.1))


def test_the_choice_never_sees_the_target_it_is_read_on():
    # Left alone, c3 is best on t0 only: chosen with t0 in sight it would win everywhere.
    rows = []
    for at, target in enumerate(("t0", "t1", "t2")):
        values = {
            "radar: base: joint": 0.2, "radar: late: joint": 0.3,
            "radar: theta: joint": 1.0 if at == 0 else 0.0, "size": 0.1,
        }  # fmt: skip
        rows += [
            {"dataset": "x", "model": "m", "target": target, "column": c, "rho": v}
            for c, v in values.items()
        ]
    out = tables.leave_one_out(pd.DataFrame(rows)).set_index("target")
    assert out.loc["t0", "chosen"] == "radar: late: joint"
    assert out.loc["t0", "rho"] == 0.3
    assert out.loc["t0", "best"] == 1.0
    assert out.loc["t1", "chosen"] == "radar: theta: joint"
    assert out.loc["t1", "rho"] == 0.0
    assert (out["other"] == "size").all()


def test_a_paired_difference_has_the_sign_of_the_advantage():
    rng = np.random.default_rng(0)
    rows = []
    for target in "abcdef":
        base = rng.uniform(0.4, 0.6)
        for column, value in (("radar: base: joint", base), ("size", base - 0.3),
                              ("leep", base + rng.normal(0, 0.3))):  # fmt: skip
            rows.append({"dataset": "x", "model": "m", "target": target, "column": column,
                         "measure": column, "rho": value, "deep": True})  # fmt: skip
    out = tables.versus(pd.DataFrame(rows), 0).set_index("other")
    assert out.loc["size", "verdict"] == "above"
    assert np.isclose(out.loc["size", "difference"], 0.3)
    assert out.loc["leep", "verdict"] == "cannot tell"


def test_the_verdict_of_a_piece():
    row = {"rho": 0.8, "p": 0.01, "nearest": 0.1, "far": 1.0, "reliability": 0.9,
           "rho_size": 0.1, "rho_distance_of_means": 0.3}  # fmt: skip
    assert piece_verdict(row) == ("ranks", "")
    assert piece_verdict({**row, "rho": -0.8})[0] == "inverts"
    word, why = piece_verdict({**row, "p": 0.4, "nearest": 5.0, "reliability": 0.2})
    assert word == "says nothing"
    assert "farther than the target's own classes" in why
    assert "seeds do not agree" in why


def test_the_reading_rests_on_the_tables(study):
    said = " ".join(study.summary["explained"])
    base = study.tables["configurations"].query(
        "scope == 'demo/deep' and column == 'radar: base: joint'"
    )
    assert f"{base['rho'].iloc[0]:+.2f}" in said
    assert ("chosen on the other targets" in said) == bool(len(study.tables["chosen"]))
    assert study.headline.startswith("RADAR ranks the blends on")


def test_no_source_shows_a_test_concept(space):
    params = analyses.resolve("transfer-study", space, **QUICK)
    for case in cases(space, params):
        data = DomainRows(space, case)
        assert count_leaks(data, case["target"], case["sources"]) == 0
        held = set(data.rows(case["target"], "test")["concept"])
        assert held
        leaky = data.items["split"].mask(data.items["concept"].isin(held), "train")
        data.items = data.items.assign(split=leaky.where(data.items["domain"] != case["target"],
                                                         data.items["split"]))  # fmt: skip
        items = space.dataset(case["dataset"]).items
        data.items = pd.concat([
            data.items, items[items["concept"].isin(held) & (items["domain"] != case["target"])]
            .assign(split="train"),
        ])  # fmt: skip
        assert count_leaks(data, case["target"], case["sources"]) == len(held)


def test_bad_parameters_are_named(space):
    for change, words in (
        ({"configs": ["base", "nonsense"]}, "configs holds 'nonsense'"),
        ({"configs": ["late"]}, "lacks 'base'"),
        ({"measures": ["nonsense"]}, "not a measure"),
        ({"slow_measures": ["nonsense"]}, "not a measure"),
        ({"gain_seeds": 0}, "gain_seeds must be"),
    ):
        with pytest.raises(BadInput, match=words):
            analyses.resolve("transfer-study", space, **{**QUICK, **change})
    with pytest.raises(NotFound, match="No data set here"):
        analyses.resolve("transfer-study", space, **{**QUICK, "datasets": ["few"]})


def test_agreement_of_rankings():
    frame = pd.DataFrame({"a": [1, 2, 3, 4.0], "b": [4, 3, 2, 1.0], "c": [1, 2, np.nan, np.nan]})
    out = rank_agreement(frame)
    assert out.loc["a", "b"] == -1.0
    assert out.loc["a", "a"] == 1.0
    assert np.isnan(out.loc["a", "c"])


def test_every_figure_can_be_drawn(study):
    for fig in (
        figures.configurations(study, "toy", "demo/deep"),
        figures.pieces(study, "toy", "radar: base: joint"),
        figures.pieces(study, "toy", "size"),
        figures.held_out(study, "toy"),
        figures.scatter(study, "toy", "demo/deep", "a", "radar: base: joint"),
        figures.scatter(study, "toy", "demo/flat", "a", "radar: base: joint"),
        figures.distance(study, "toy"),
    ):
        assert isinstance(fig, go.Figure)
        assert "NaN" not in fig.to_json().replace('"NaN', "")
