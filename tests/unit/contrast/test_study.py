"""The study of every pair, and the alignment: on planted pictures, and against the shipped one."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import core.analyses as analyses
from core.contrast import study
from core.contrast.adapter import train
from core.contrast.alignment import recall_at_1, split_samples
from core.contrast.study_pieces import KIND, compute_piece, counts
from core.contrast.study_reading import pair_text
from core.errors import BadInput, NotFound
from core.figures import contrast_more as figures
from core.workspace import open_workspace

N = 200


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    """Four groups of ten that encoder A holds together and B does not; C is noise."""
    space = open_workspace(tmp_path_factory.mktemp("study"))
    shas = []
    for i in range(N):
        buffer = io.BytesIO()
        Image.new("RGB", (4, 4), (i, 7, 2 * i % 256)).save(buffer, "PNG")
        shas.append(space.blobs.put(buffer.getvalue()))
    label = [f"group{i // 10}" if i < 40 else f"rest{i % 7}" for i in range(N)]
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
    rng = np.random.default_rng(5)
    a, b, c = (rng.standard_normal((N, 10)) for _ in range(3))
    for g in range(4):
        rows = slice(10 * g, 10 * g + 10)
        a[rows] = 3 * rng.standard_normal(10) + 0.2 * rng.standard_normal((10, 10))
    for model, x in (("x/a", a), ("x/b", b), ("x/c", c)):
        recipe = {"dataset_digest": dataset.digest, "model": model}
        writer = space.features.writer(
            recipe, dataset="tiny", model=model, default_layer="out", n=N
        )
        writer.write_shard(0, np.arange(N), {"out": x.astype(np.float32)})
        writer.finish()
    return space


SMALL = {"datasets": ["tiny"], "modalities": ["image"], "group_sizes": [6.0], "n_directions": 4}


@pytest.fixture(scope="module")
def found(space):
    return analyses.run("contrast-study", space, **SMALL)


def test_every_ordered_pair_is_there_and_finds_what_was_planted(found):
    pairs = found.tables["pairs"].set_index(["target", "reference"])
    assert len(pairs) == 6
    assert pairs.loc[("x/a", "x/b"), "pure"] >= 3
    assert pairs.loc[("x/a", "x/b"), "groups"] >= 3
    assert pairs.loc[("x/b", "x/c"), "pure"] == 0
    assert pairs["worst_rel_gap"].max() <= 1e-6
    assert bool(pairs["certified"].all())
    assert found.summary["n_pairs"] == 6
    assert found.summary["n_passed"] == int(pairs["passed"].sum())
    keys = ["dataset", "modality", "target", "reference"]
    for name in ("directions", "members", "reading"):
        assert set(keys) <= set(found.tables[name].columns)


def test_the_reading_is_made_of_the_tables(found):
    text = found.tables["reading"]
    assert len(text) == 1 + 6
    first = text["text"].iloc[0]
    assert f"{int(found.tables['pairs']['groups'].sum())} of" in first
    failed = found.tables["pairs"].query("target == 'x/b' and reference == 'x/c'").iloc[0]
    sets = found.tables["directions"].query("target == 'x/b' and reference == 'x/c'")
    assert "The test is not passed: only 0 of" in pair_text(failed.to_dict(), sets)


def test_a_stopped_study_goes_on_where_it_was(space, found, monkeypatch):
    import core.contrast.study_pieces as pieces

    monkeypatch.setattr(pieces, "compute_piece", None)  # every piece must come from the store
    again = analyses.run("contrast-study", space, force=True, **SMALL)
    pd.testing.assert_frame_equal(again.tables["pairs"], found.tables["pairs"])
    assert len([r for r in space.results.list() if r.kind == KIND]) == 6


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"modalities": ["sound"]}, BadInput, "modalities holds"),
        ({"modalities": []}, BadInput, "modalities is empty"),
        ({"n_directions": 0}, BadInput, "n_directions"),
        ({"epsilon": 0.0}, BadInput, "epsilon"),
        ({"group_sizes": [0.5]}, BadInput, "group_sizes"),
        ({"models": ["x/a"]}, NotFound, "two image encoders"),
    ],
)
def test_bad_study_parameters_are_named(space, change, error, words):
    with pytest.raises(error, match=words):
        analyses.resolve("contrast-study", space, **{**SMALL, **change})


def test_an_epsilon_nobody_meets_counts_nothing():
    table = pd.DataFrame({"direction": [0], "status": ["infeasible"]})
    assert counts(table)["groups"] == 0


def test_the_matrix_shows_each_pair_once(found):
    fig = figures.study_matrix(found, "tiny", "image", "pure", str)
    assert len(fig.data[0].x) == 6
    assert list(fig.data[0].customdata[0][:2]) == ["tiny", "image"]
    assert figures.study_matrix(found, "none", "image", "pure", str).layout.annotations


def test_alignment_moves_the_reference_towards_the_target(space):
    result = analyses.run(
        "alignment", space, dataset="tiny", target="x/a", reference="x/b",
        n_directions=4, group_size=6.0, steps=150, keep=0.01, batch=64,
    )  # fmt: skip
    samples = result.tables["samples"]
    assert set(samples["split"]) == {"train", "held out"}
    assert not samples["id"].duplicated().any()
    halves = samples.groupby("direction")["split"].value_counts().unstack()
    assert (halves["train"] - halves["held out"]).abs().max() <= 1
    losses = result.tables["losses"]
    assert losses["align"].iloc[-10:].mean() < losses["align"].iloc[:10].mean()
    assert losses["stay"].iloc[0] == 0.0
    assert result.summary["ami_target"] > 0.9
    assert result.summary["ami_before"] < 0.3
    drift = result.tables["drift"]["mean"]
    assert (drift >= -1e-6).all()
    assert figures.aligned(result).data
    contrast = analyses.run(
        "contrast", space, dataset="tiny", target="x/a", reference="x/b", n_directions=4,
        group_size=6.0, modality="image",
    )  # fmt: skip
    with pytest.raises(BadInput, match="at least 2"):
        split_samples(contrast, [0], 0)


def test_the_adapter_begins_at_the_identity_and_is_seeded():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 8)).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    rows = np.arange(10)
    still = train(x, x, rows, steps=1, batch=16, weight=0.0, keep=1.0)
    assert np.allclose((still(x) * x).sum(axis=1), 1.0, atol=1e-3)
    first, second = (train(x, x[::-1], rows, steps=5, batch=16)(x) for _ in range(2))
    assert np.array_equal(first, second)
    assert np.isnan(recall_at_1(x[:2], x[:2]))


@pytest.mark.slow
def test_a_piece_of_the_shipped_study_follows_from_the_shipped_features(tmp_path):
    """One ordered pair of the emoji study, recomputed and held against the shipped table."""
    from core.data.demo import prepare

    ready = open_workspace(tmp_path / "home")
    prepare(ready)
    shipped = analyses.current("contrast-study", ready)
    assert shipped is not None
    pair = {
        "dataset": "emoji",
        "modality": "image",
        "target": "demo/mobilenetv2",
        "reference": "demo/squeezenet1.1",
    }
    case = next(
        c for c in study.cases(ready, shipped.params) if all(c[k] == v for k, v in pair.items())
    )
    again = compute_piece(ready, case)
    table = shipped.tables["pairs"]
    row = table[(table[list(pair)] == pd.Series(pair)).all(axis=1)].iloc[0]
    for name in ("k_a", "k_b", "cos_a", "group_size", "median_size"):
        assert again.summary[name] == pytest.approx(row[name], rel=1e-2)
    for name in ("groups", "named", "pure", "sets"):
        assert again.summary[name] == row[name]
