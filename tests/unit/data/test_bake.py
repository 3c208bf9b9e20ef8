"""Recomputing the demo: from raw pictures to the report, and a changed number is found."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from core.data import bake, shipped
from core.data.demo import demo_dir, prepare
from core.data.demo_recipe import ANALYSES, FEATURES, AnalysisRecipe, FeatureRecipe
from core.errors import NeedsWeights, NotFound
from core.workspace import open_workspace

SQUEEZE = "demo/squeezenet1.1"


@pytest.fixture
def tiny(tmp_path, monkeypatch, doubler):
    """A demo of six emoji pictures under the real SqueezeNet, and one small analysis."""
    folder = tmp_path / "demo"
    source = demo_dir() / "emoji"
    (folder / "tiny").mkdir(parents=True)
    items = pd.read_parquet(source / "items.parquet").head(6)
    items.to_parquet(folder / "tiny" / "items.parquet", index=False)
    pq.write_table(pq.read_table(source / "images.parquet")[:6], folder / "tiny" / "images.parquet")
    about = json.loads((source / "dataset.json").read_text())
    (folder / "tiny" / "dataset.json").write_text(json.dumps({**about, "name": "tiny"}))
    params = {"dataset": "tiny", "model": SQUEEZE}
    monkeypatch.setattr(bake, "DATASETS", ("tiny",))
    recipe = AnalysisRecipe("sum", "explore", params, (SQUEEZE,))
    for module in (bake, shipped):
        monkeypatch.setattr(module, "FEATURES", (FeatureRecipe("tiny", SQUEEZE),))
        monkeypatch.setattr(module, "ANALYSES", (recipe,))
        monkeypatch.setattr(module, "demo_dir", lambda: folder)
    return folder


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    """A workspace with the demo laid ready."""
    space = open_workspace(tmp_path_factory.mktemp("ready"))
    prepare(space)
    return space


def steps(report):
    return {line["step"]: line for line in report["steps"]}


def test_with_nothing_shipped_there_is_nothing_to_compare(space, tiny):
    report = bake.recompute_demo(space, fetch=False)
    assert report["ok"]
    assert report["compared"] == 0
    assert report["peak_mb"] > 50
    assert list(steps(report)) == ["dataset tiny", f"features tiny {SQUEEZE}", "result sum"]


def test_what_was_written_is_what_is_recomputed(space, tiny, tmp_path):
    bake.recompute_demo(space, fetch=False)
    written = shipped.write_demo(space)
    assert written["features_mb"] >= 0
    told = []
    other = open_workspace(tmp_path / "other")
    report = bake.recompute_demo(other, fetch=False, progress=lambda f, m: told.append(f))
    assert report["ok"]
    assert report["compared"] == 2
    assert steps(report)["result sum"]["max_deviation"] == 0.0
    assert steps(report)[f"features tiny {SQUEEZE}"]["max_deviation"] < 1e-6
    assert told == sorted(told)
    assert told[-1] == 1.0
    fresh = open_workspace(tmp_path / "fresh")
    laid = prepare(fresh, folder=tiny)
    assert sorted(laid["done"]) == [
        "features/tiny--demo--squeezenet1.1",
        "result/sum",
    ]  # the third, the data set, is not among the names the program ships
    assert json.dumps(report)


def test_a_changed_shipped_number_is_found(space, tiny):
    bake.recompute_demo(space, fetch=False)
    shipped.write_demo(space)
    path = tiny / "results" / "sum" / "result.json"
    about = json.loads(path.read_text())
    about["summary"]["total"] *= 1.05
    path.write_text(json.dumps(about))
    report = bake.recompute_demo(space, fetch=False)
    line = steps(report)["result sum"]
    assert not report["ok"]
    assert not line["ok"]
    assert line["max_deviation"] == pytest.approx(0.05 / 1.05)
    assert line["note"] == "summary/total"


def test_another_picture_is_found(space, tiny, tmp_path):
    bake.recompute_demo(space, fetch=False)
    shipped.write_demo(space)
    items = pd.read_parquet(tiny / "tiny" / "items.parquet")
    items.loc[[0, 1], "sha256"] = items.loc[[1, 0], "sha256"].to_numpy()
    items.to_parquet(tiny / "tiny" / "items.parquet", index=False)
    report = bake.recompute_demo(open_workspace(tmp_path / "other"), fetch=False)
    line = steps(report)[f"features tiny {SQUEEZE}"]
    assert not line["ok"]
    assert line["max_deviation"] > 0.05
    assert "than shipped" in line["note"]


def test_in_a_workspace_that_holds_features_all_is_computed_anew_beside_it(space, tiny):
    bake.recompute_demo(space, fetch=False)
    shipped.write_demo(space)
    key = space.features.list()[0]["key"]
    space.features.path(key).write_bytes(b"not to be read")
    report = bake.recompute_demo(space, fetch=False)
    assert report["ok"]
    assert report["compared"] == 2
    assert not list(space.root.glob("demo-anew-*"))


def test_the_default_layer_of_a_wider_set_is_not_extracted_again(space, tiny, tmp_path):
    from core.extract import run_extract

    recipe = FeatureRecipe("tiny", SQUEEZE)
    bake.put_dataset(space, tiny / "tiny")
    wide = run_extract(space, "tiny", SQUEEZE)
    narrow = bake.extract(space, recipe)
    assert narrow.layers == (wide.default_layer,)
    assert np.array_equal(narrow.layer(), wide.layer())
    other = open_workspace(tmp_path / "other")
    bake.put_dataset(other, tiny / "tiny")
    direct = bake.extract(other, recipe)
    assert direct.key == narrow.key
    assert np.array_equal(direct.layer(), narrow.layer())


def test_without_weights_what_rests_on_them_is_left_out(space, tiny, monkeypatch):
    def no_weights(*args, **kwargs):
        raise NeedsWeights("No weights.", "Fetch them.")

    monkeypatch.setattr(bake, "extract", no_weights)
    report = bake.recompute_demo(space, fetch=False)
    assert [line["what"] for line in report["left_out"]] == [
        f"features tiny {SQUEEZE}",
        "result sum",
    ]
    assert report["ok"]


def test_writing_needs_every_result(space, tiny, monkeypatch):
    bake.recompute_demo(space, fetch=False)
    for info in space.results.list():
        space.results.remove(info.key)
    with pytest.raises(NotFound, match="no result 'sum'"):
        shipped.write_demo(space)
    assert not list(tiny.glob(".bake-*"))
    assert not (tiny / "results").exists()


def test_the_command_prints_the_report_and_writes(tmp_path, tiny, capsys):
    code = bake.main(["--workspace", str(tmp_path / "w"), "--no-fetch", "--write"])
    assert code == 0
    out = capsys.readouterr().out
    assert '"ok": true' in out
    assert '"results_mb"' in out
    assert (tiny / "results" / "sum" / "result.json").is_file()


def test_the_recipe_names_each_thing_once_and_only_what_it_extracts():
    names = [recipe.name for recipe in ANALYSES]
    assert len(set(names)) == len(names)
    pairs = [(recipe.dataset, recipe.model) for recipe in FEATURES]
    assert len(set(pairs)) == len(pairs)
    for recipe in ANALYSES:
        assert recipe.models
        for model in recipe.models:
            assert (recipe.params["dataset"], model) in pairs


def test_everything_in_the_recipe_is_shipped():
    assert [r for r in FEATURES if r.ship and shipped.shipped_features(r) is None] == []
    assert [r.name for r in ANALYSES if shipped.shipped_result(r) is None] == []


def test_shipped_features_follow_from_the_pictures(tmp_path):
    """The first 24 emoji and clip art pictures under SqueezeNet, whose weights are shipped."""
    from core.encoders import load

    space = open_workspace(tmp_path / "space")
    encoder = load(SQUEEZE, workspace=space)
    for name in ("emoji", "clipart"):
        packed = shipped.shipped_features(FeatureRecipe(name, SQUEEZE))
        assert packed is not None
        bake.put_dataset(space, demo_dir() / name)
        data = space.dataset(name)
        few = data.items.head(24)
        space.add_dataset(f"few-{name}", "Few", "image", few)
        found = bake.extract(space, FeatureRecipe(f"few-{name}", encoder.info.id))
        rows = np.asarray(packed.layer())[:24]
        scale = np.abs(rows).max()
        assert np.abs(found.layer() - rows).max() / scale < bake.FEATURE_TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["quality-emoji", "contrast-vit-over-squeezenet", "stitching-emoji", "transfer-noto"]
)
def test_shipped_results_follow_from_the_shipped_features(name, ready):
    recipe = next(recipe for recipe in ANALYSES if recipe.name == name)
    packed = shipped.shipped_result(recipe)
    assert packed is not None
    found = bake.analyse(ready, recipe)
    assert found.key == packed.key
    deviation, where = bake.result_deviation(found, packed)
    assert deviation <= bake.RESULT_TOLERANCE, where
