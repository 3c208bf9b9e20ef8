"""The analysis on a small workspace with planted domains, and its figures."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from toy import stream

from core import analyses
from core.errors import BadInput
from core.figures import transfer as figures
from core.radar.measures import correlate
from core.workspace import open_workspace

FAST = {"dataset": "toy", "model": "demo/none", "target": "t", "n_pairs": 600, "repeats": 4}


def fill(space, *, split=True, labels=True, domains=("t", "near", "far")):
    shifts = {"t": 0.0, "near": 0.0, "far": 12.0}
    concepts = 180
    frames, states = [], []
    for index, name in enumerate(domains):
        layers, y = stream(shifts[name], n=concepts, seed=index)
        ids = np.arange(concepts) * len(domains) + index
        frames.append(
            pd.DataFrame({
                "id": ids, "domain": name, "caption": [f"thing {c}" for c in range(concepts)],
                "label": [f"class {c % 5}" if labels else "" for c in y],
                "split": ["test" if c % 3 == 0 else "train" for c in range(concepts)]
                if split else "",
                "concept": [str(c) for c in range(concepts)],
            })
        )  # fmt: skip
        states.append(layers)
    items = pd.concat(frames, ignore_index=True)
    data = space.add_dataset("toy", "Toy", "text", items)
    writer = space.features.writer(
        {"dataset_digest": data.digest, "model": "demo/none"},
        dataset="toy", model="demo/none", default_layer="state 4", n=len(items), shard_size=4096,
    )  # fmt: skip
    arrays = {f"state {layer}": np.concatenate([s[layer] for s in states]) for layer in range(5)}
    writer.write_shard(0, items["id"].to_numpy(), arrays)
    writer.finish()
    return space


@pytest.fixture(scope="module")
def toys(tmp_path_factory):
    return fill(open_workspace(tmp_path_factory.mktemp("toys") / "space"))


@pytest.fixture(scope="module")
def result(toys):
    return analyses.run("transfer", toys, **FAST, gain_seeds=2)


def test_the_answer_in_words_and_numbers(result):
    facts = result.summary
    assert facts["headline"] == "Add near. Leave out far."
    assert facts["n"] == 120
    assert facts["rows"] == "training split only"
    assert facts["best_blend"] == "near"
    assert facts["gain"]
    assert facts["gain_n_test"] == 60
    assert list(result.tables["ranking"]["blend"]) == ["near", "far + near", "far"]
    assert {"gain", "gain_sd", "distance_of_means", "size"} <= set(result.tables["ranking"])
    assert len(result.tables["measures"]) == 6
    assert result.arrays["pair_sides"].shape == (2, 2, 200, 4, 3)


def test_stored_pairs_are_what_they_say(toys, result):
    items = toys.dataset("toy").items.set_index("id")
    for row, source in enumerate(result.params["sources"]):
        anchor, within, cross = np.asarray(result.arrays["pair_ids"])[row].T
        assert set(items.loc[anchor, "domain"]) == set(items.loc[within, "domain"]) == {source}
        assert set(items.loc[cross, "domain"]) == {"t"}
        assert set(items.loc[np.r_[anchor, within, cross], "split"]) == {"train"}


def test_what_was_computed_is_found_again(toys, result):
    found = analyses.find("transfer", toys, **FAST, gain_seeds=2)
    assert found is not None
    assert found.key == result.key
    assert np.array_equal(found.tables["ranking"]["score"], result.tables["ranking"]["score"])


def test_without_a_split_or_labels_there_is_no_gain_and_the_reason_is_given(space):
    fill(space, split=False, labels=False)
    out = analyses.run("transfer", space, **FAST)
    assert not out.summary["gain"]
    assert "no labels" in out.summary["gain_reason"]
    assert out.summary["rows"] == "all items"
    assert len(out.tables["measures"]) == 0
    assert isinstance(figures.gain_scatter(out), go.Figure)


def test_source_items_that_show_a_test_concept_are_left_out(space):
    fill(space)
    items = space.dataset("toy").items.copy()
    items.loc[(items["domain"] == "far") & (items["concept"] == "0"), "split"] = "train"
    data = space.add_dataset("toy", "Toy", "text", items, replace=True)
    writer = space.features.writer(
        {"dataset_digest": data.digest, "model": "demo/none"},
        dataset="toy", model="demo/none", default_layer="b", n=len(items), shard_size=4096,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    rows = {name: rng.standard_normal((len(items), 4)).astype(np.float32) for name in "ab"}
    writer.write_shard(0, items["id"].to_numpy(), rows)
    writer.finish()
    out = analyses.run("transfer", space, **FAST, gain=False)
    assert any("test items" in line.reason and line.count == 1 for line in out.left_out)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"target": "ghost"}, "'ghost' is not a domain"),
        ({"sources": ["t"]}, "also among the sources"),
        ({"geometry": "torus"}, "geometry='torus'"),
        ({"n_pairs": 3}, "n_pairs=3"),
    ],
)
def test_bad_parameters_are_named(toys, change, words):
    with pytest.raises(BadInput, match=words):
        analyses.resolve("transfer", toys, **{**FAST, **change})


def test_one_domain_is_refused(space):
    fill(space, domains=("t",))
    with pytest.raises(BadInput, match="1 domains"):
        analyses.resolve("transfer", space, dataset="toy", model="demo/none")


def test_sources_default_to_all_others(toys):
    full = analyses.resolve("transfer", toys, dataset="toy", model="demo/none")
    assert full["target"] == "far"
    assert full["sources"] == ["near", "t"]


def test_figures_draw_what_is_stored(result):
    strip = figures.layer_strip(result, chosen=1)
    clickable = [t for t in strip.data if t.customdata is not None]
    assert {t.name for t in clickable} == {"near", "far"}
    for descriptor in ("theta", "d"):
        assert len(figures.ridges(result, "far", descriptor, chosen=0).data) == 8
    for pair in (3, 1003):
        assert len(figures.plane(result, "far", 0, chosen=pair).data) >= 3
        assert len(figures.triangle(result, "far", 0, pair).data) == 4
    for reading in ("score", "excess", "joint", "per_layer"):
        assert len(figures.ranking(result, reading=reading).data) == 5
    for measure in ("score", "size", "distance_of_means"):
        assert figures.gain_scatter(result, measure).layout.yaxis.title.text
    assert len(figures.small(result).data) == 1


def test_the_triangle_has_the_stored_lengths(result):
    fig = figures.triangle(result, "far", 1, 1005)
    corners = fig.data[-1]
    x, y = np.array(corners.x), np.array(corners.y)
    sep, detour, traj = result.arrays["pair_sides"][0, 1, 5, 1]
    assert np.hypot(x[1] - x[0], y[1] - y[0]) == pytest.approx(float(sep), rel=1e-5)
    assert np.hypot(x[2] - x[1], y[2] - y[1]) == pytest.approx(float(detour), rel=1e-5)
    assert x[2] - x[0] == pytest.approx(float(traj), rel=1e-5)


def test_correlations_turn_signs_and_look_within_sizes():
    table = pd.DataFrame({
        "n_members": [1, 1, 1, 2, 2, 2], "size": [1, 1, 1, 2, 2, 2],
        "gain": [0.3, 0.2, 0.1, 0.6, 0.5, 0.4], "score": [4.0, 5, 6, 1, 2, 3],
        "joint": [4.0, 5, 6, 1, 2, 3], "per_layer": [1.0, 2, 3, 1, 2, 3],
        "distance_of_means": 1.0, "distance_of_class_means": [1.0, 2, 3, 3, 2, 1],
    })  # fmt: skip
    out = correlate(table).set_index("measure")
    assert out.loc["RADAR", "rho"] == pytest.approx(1.0)
    assert out.loc["RADAR", "rho_within_size"] == pytest.approx(1.0)
    assert np.isnan(out.loc["distance of means", "rho"])
    assert out.loc["distance of class means", "rho_within_size"] == pytest.approx(0.0)
    assert out.loc["RADAR", "p"] == pytest.approx(2 / 720, abs=1e-9)
