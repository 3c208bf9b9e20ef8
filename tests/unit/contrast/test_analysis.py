"""The stored analysis: parameters, duplicates, tables, and figures drawn from it."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import core.analyses as analyses
from core.errors import BadInput, NotFound
from core.figures import contrast as figures
from core.workspace import open_workspace

N = 240


def _put(space, dataset, model, layers, ids=None):
    ids = np.arange(N) if ids is None else ids
    recipe = {"dataset_digest": dataset.digest, "model": model}
    writer = space.features.writer(
        recipe, dataset=dataset.name, model=model, default_layer=next(iter(layers)), n=len(ids)
    )
    writer.write_shard(0, ids, {k: v[ids].astype(np.float32) for k, v in layers.items()})
    writer.finish()


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    """Pictures whose first thirty form three groups of ten that only encoder A holds together."""
    space = open_workspace(tmp_path_factory.mktemp("contrast"))
    rng = np.random.default_rng(0)
    shas = []
    for i in range(N):
        buffer = io.BytesIO()
        Image.new("RGB", (4, 4), (i, 2 * i % 256, 9)).save(buffer, "PNG")
        shas.append(space.blobs.put(buffer.getvalue()))
    shas[239] = shas[238]  # an exact duplicate
    groups = ["hearts", "clocks", "cars", "rest"]
    label = [groups[min(i // 10, 3)] for i in range(N)]
    items = pd.DataFrame(
        {
            "id": range(N),
            "sha256": shas,
            "label": label,
            "domain": ["one", "two"] * (N // 2),
            "caption": [f"{label[i]} picture {i}" for i in range(N)],
        }
    )
    dataset = space.add_dataset("tiny", "Tiny", "image", items)
    a, b, t = (rng.standard_normal((N, 8)) for _ in range(3))
    for g in range(3):
        rows = slice(10 * g, 10 * g + 10)
        a[rows] = 2 * rng.standard_normal(8) + 0.2 * rng.standard_normal((10, 8))
    _put(space, dataset, "x/a", {"out": a, "early": rng.standard_normal((N, 8))})
    _put(space, dataset, "x/b", {"out": b}, np.delete(np.arange(N), 50))
    _put(space, dataset, "x/t", {"out": t})
    return space


@pytest.fixture(scope="module")
def result(space):
    return analyses.run(
        "contrast", space, dataset="tiny", target="x/a", reference="x/b", n_directions=4
    )


def test_groups_are_found_and_named(result):
    table = result.tables["directions"]
    first = table[table["is_group"]]
    assert len(first) >= 2
    assert {"hearts", "clocks", "cars"} & set(" ".join(first["words"]).replace(",", "").split())
    assert first["label_share"].max() >= 0.8
    assert table["rel_gap"].max() <= 1e-6
    assert result.headline.split(";")[0].endswith("groups")
    assert "A 0." in result.headline
    assert result.summary["n"] == N - 2


def test_what_was_left_out_is_said(result):
    reasons = {line.reason: line.count for line in result.left_out}
    assert reasons["the same as an earlier item, bit for bit"] == 1
    assert reasons["no features for these items"] == 1


def test_tables_hang_together(result):
    members = result.tables["members"]
    ids = result.arrays["ids"]
    assert set(members["id"]) <= set(ids)
    x = result.arrays["directions"]
    top = members[(members["direction"] == 0) & (members["pole"] == 1)].sort_values("rank")
    rows = [int(np.flatnonzero(ids == i)[0]) for i in top["id"]]
    assert np.allclose(x[0][rows], top["score"], atol=1e-6)
    near = result.tables["neighbours"]
    assert not set(near[near["direction"] == 0]["id"]) & set(top["id"])
    path = result.tables["epsilon_path"].sort_values("epsilon")
    feasible = path[path["status"] != "infeasible"]
    assert np.all(np.diff(feasible["objective"]) >= -1e-6)
    spec = path[path["role"] == "spec"].iloc[0]
    assert spec["multiplier"] == pytest.approx(1.0, abs=0.02)
    shares = result.tables["similarities"].groupby("direction")[["a", "b"]].sum()
    assert np.allclose(shares, 1.0)
    assert list(result.tables["comparison"]["method"]) == [
        "KODA",
        "SPEC",
        "Kernel PCA of A",
        "SPEC, covariance form",
        "k-means of A",
        "Random groups",
    ]
    assert len(result.tables["agreement"]) == 2 * len(result.tables["comparison"])
    assert result.tables["directions"]["stability"].between(0.0, 1.0).all()
    assert len(result.tables["overlaps"]) == len(result.tables["directions"]) ** 2
    assert result.summary["resolution_a"] >= 1.0
    assert result.tables["scale_path"]["chosen"].sum() == 1
    assert result.arrays["map_a"].shape == (len(ids), 2)
    assert result.arrays["spectrum_a"][0] == pytest.approx(result.summary["group_size"], rel=1e-3)


def test_stored_result_is_found_again(space, result):
    again = analyses.find(
        "contrast", space, dataset="tiny", target="x/a", reference="x/b", n_directions=4
    )
    assert again is not None
    assert again.key == result.key


def test_joint_kernel_takes_the_captions(space):
    joint = analyses.run(
        "contrast",
        space,
        dataset="tiny",
        target="x/a",
        reference="x/b",
        modality="image+text",
        text_model="x/t",
        group_size=6,
        n_directions=2,
    )
    assert "cos_text" in joint.tables["directions"]
    assert set(joint.summary["bandwidths"]["target"]) == {"image", "text"}
    assert joint.tables["scale_path"].empty


def test_infeasible_epsilon_is_an_answer(space):
    tight = analyses.run(
        "contrast",
        space,
        dataset="tiny",
        target="x/a",
        reference="x/b",
        group_size=3,
        epsilon=1e-6,
        n_directions=2,
    )
    assert "least that can be met" in tight.headline
    assert tight.summary["n_groups"] == 0
    for draw in (figures.small, figures.epsilon_path, figures.scale_path, figures.spectra):
        assert draw(tight).layout.height


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"reference": "x/a"}, BadInput, "the same"),
        ({"target_layer": "deep"}, NotFound, "deep"),
        ({"modality": "text"}, BadInput, "does not fit"),
        ({"kernel": "poly"}, BadInput, "not known"),
        ({"epsilon": 0}, BadInput, "above 0"),
        ({"group_size": 1}, BadInput, "above 1"),
        ({"n_directions": 0}, BadInput, "whole number"),
        ({"target": "x/none"}, NotFound, "x/none"),
    ],
)
def test_bad_parameters_are_named(space, change, error, words):
    full = {"dataset": "tiny", "target": "x/a", "reference": "x/b", **change}
    with pytest.raises(error, match=words):
        analyses.resolve("contrast", space, **full)


def test_two_layers_of_one_encoder(space):
    full = analyses.resolve(
        "contrast", space, dataset="tiny", target="x/a", reference="x/a", reference_layer="early"
    )
    assert (full["target_layer"], full["reference_layer"]) == ("out", "early")


def test_progress_runs_to_the_end_and_can_stop(space):
    from core.contrast.analysis import compute
    from core.errors import Cancelled

    seen = []
    params = analyses.resolve(
        "contrast", space, dataset="tiny", target="x/a", reference="x/b", n_directions=2
    )
    compute(space, params, lambda f, text: seen.append(f))
    assert seen == sorted(seen)
    assert seen[0] >= 0.0
    assert seen[-1] <= 1.0

    def stop(fraction, text):
        raise Cancelled("stopped")

    with pytest.raises(Cancelled):
        compute(space, params, stop)


@pytest.mark.parametrize("side", ["a", "b"])
def test_maps_light_the_set(result, side):
    fig = figures.maps(result, 0, side, names={0: "zero"})
    members = result.tables["members"]
    wanted = set(members[(members["direction"] == 0) & (members["pole"] == 1)]["id"])
    assert set(fig.data[1].customdata) == wanted
    assert len(fig.data[0].x) + len(fig.data[1].x) == result.summary["n"]


def test_figures_draw_what_is_stored(result):
    bars = figures.coherence(result)
    table = figures.shown_directions(result)
    assert list(bars.data[1].x) == table["k_a"].tolist()
    assert figures.small(result).layout.showlegend is False
    path = figures.epsilon_path(result)
    assert {t.name for t in path.data} >= {"SPEC (lambda = 1)", "chosen epsilon"}
    assert len(figures.scale_path(result).data[0].x) == len(result.tables["scale_path"])
    assert len(figures.similarities(result, 0).data) == 4
    assert figures.similarities(result, 99).layout.annotations[0].text == "No set to show"
    assert len(figures.spectra(result).data) == 2
    assert len(figures.shares(["x", "x", "y"], everything=["x", "y"]).data) == 2
