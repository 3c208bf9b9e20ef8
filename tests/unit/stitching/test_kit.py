"""The kit: the same predictions in a fresh process, by three ways, and honest refusals."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from fakes import MODELS

from core.errors import BadInput, NotFound
from core.results import Result
from core.stitching import analysis, build_kit, load_kit, save_kit
from core.stitching.kit import Kit
from core.stitching.kit_files import kit_zip
from core.stitching.kit_use import classify


@pytest.fixture(scope="module")
def ws(small_space):
    return small_space


@pytest.fixture(scope="module")
def result(ws) -> Result:
    params = analysis.resolve(ws, {
        "dataset": "digits", "models": MODELS, "n_anchors": 20, "n_support": 120,
        "n_parallel": 150, "seeds": 1, "steps": 40, "shrink": 0.3,
        "methods": ["cosine-random", "wip-param", "scosine-random", "ridge"],
    })  # fmt: skip
    return replace(analysis.compute(ws, params), params=params)


@pytest.fixture(scope="module")
def kit(ws, result) -> Kit:
    return build_kit(ws, result, head_of="net/a", method="wip-param")


def test_the_kit_is_the_cell_of_the_matrix(kit, result):
    runs = result.tables["matrix"].set_index(["method", "i", "j"])["accuracy"]
    for model in MODELS:
        # The stored mixing is float32: a sample on a border may fall to the other side.
        assert abs(kit.encoders[model].accuracy - runs[("wip-param", "net/a", model)]) < 0.01


@pytest.mark.parametrize("name", ["kit", "kit.zip"])
def test_it_reads_back_bit_for_bit(kit, ws, tmp_path, name):
    again = load_kit(save_kit(kit, tmp_path / name))
    x = ws.get("digits", "net/b").layer()
    np.testing.assert_array_equal(again.scores("net/b", x), kit.scores("net/b", x))
    assert again.classes == kit.classes
    assert again.about == kit.about
    assert kit_zip(again) == kit_zip(kit)


@pytest.mark.parametrize("method", ["wip-param", "cosine-random", "scosine-random"])
def test_the_ten_lines_predict_the_same_in_a_fresh_process(ws, result, tmp_path, method):
    kit = build_kit(ws, result, head_of="net/a", method=method)
    save_kit(kit, tmp_path / "kit")
    code = (tmp_path / "kit" / "example.py").read_text()
    assert len(code.strip().splitlines()) == 10
    assert "theodolite" not in code
    assert "import core" not in code
    x = ws.get("digits", "net/c").layer()
    np.save(tmp_path / "x.npy", x)
    done = subprocess.run(
        [sys.executable, "example.py", str(tmp_path / "x.npy"), "net/c"],
        cwd=tmp_path / "kit", capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split("\n")[:-1] == kit.predict("net/c", x).tolist()


def test_an_encoder_that_joins_later_gets_the_same_place(kit, ws, result):
    alone = build_kit(ws, result, head_of="net/a", encoders=["net/a"], method="wip-param")
    assert list(alone.encoders) == ["net/a"]
    joined = alone.with_encoder("net/b", ws.get("digits", "net/b"))
    x = ws.get("digits", "net/b").layer()
    np.testing.assert_allclose(joined.scores("net/b", x), kit.scores("net/b", x), atol=1e-9)


def test_classify_counts_only_items_that_were_not_trained_on(kit, ws):
    found = classify(ws, kit, "net/b", "digits")
    assert not found.joined
    assert len(found.table) == len(ws.get("digits", "net/b"))
    labels = ws.data.items.set_index("id")["label"].loc[found.table["id"]]
    fresh = (labels != "").to_numpy() & ~found.table["id"].isin(kit.train_ids).to_numpy()
    assert found.n_labelled == fresh.sum() < 125
    assert abs(found.accuracy - kit.encoders["net/b"].accuracy) < 0.02
    assert (found.table["margin"] >= 0).all()


def test_bad_kits_are_named(kit, ws, result, tmp_path):
    with pytest.raises(NotFound, match="no kit at"):
        load_kit(tmp_path / "none")
    (tmp_path / "bad.zip").write_bytes(b"PK no zip")
    with pytest.raises(BadInput, match="cannot be read as a kit"):
        load_kit(tmp_path / "bad.zip")
    folder = save_kit(kit, tmp_path / "kit")
    about = json.loads((folder / "kit.json").read_text())
    (folder / "kit.json").write_text(json.dumps({**about, "version": 99}))
    with pytest.raises(BadInput, match="version 99"):
        load_kit(folder)
    (folder / "kit.json").write_text(json.dumps({"format": "else"}))
    with pytest.raises(BadInput, match="not a stitching kit"):
        load_kit(folder)
    with zipfile.ZipFile(tmp_path / "half.zip", "w") as out:
        out.writestr("kit.json", json.dumps(about))
    with pytest.raises(BadInput, match="cannot be read as a kit"):
        load_kit(tmp_path / "half.zip")
    with pytest.raises(BadInput, match="'ridge' cannot be taken along"):
        build_kit(ws, result, method="ridge")
    with pytest.raises(BadInput, match="'net/z' is not among"):
        build_kit(ws, result, head_of="net/z", method="wip-param")
    deep = replace(result, params={**result.params, "head": "tanh"})
    with pytest.raises(BadInput, match="linear head"):
        build_kit(ws, deep, method="wip-param")
    with pytest.raises(NotFound, match="not in this kit"):
        kit.predict("net/z", np.ones((1, 3)))
