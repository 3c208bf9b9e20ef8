"""The analysis "similarity": what is compared, on which rows, planted truths, refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from core import analyses
from core.compare import linear_cka
from core.errors import BadInput, NotFound
from core.figures import similarity as figures
from core.workspace import Workspace, open_workspace

N = 90


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A with three layers, B a rotation of A's last, C noise; B lacks one item."""
    ws = open_workspace(tmp_path_factory.mktemp("similar"))
    items = pd.DataFrame(
        {"id": np.arange(N) + 10, "caption": "x", "concept": [f"c{i // 3}" for i in range(N)]}
    )
    data = ws.add_dataset("points", "Points", "text", items, {})
    rng = np.random.default_rng(0)
    a = rng.normal(size=(N, 6)) * np.arange(1, 7)
    turned = 2.0 * a @ np.linalg.qr(rng.normal(size=(6, 6)))[0] + 1.0
    spaces = {
        "a": {"in": np.ones((N, 3)), "mid": a + 3.0 * rng.normal(size=(N, 6)), "out": a},
        "b": {"out": turned},
        "c": {"out": rng.normal(size=(N, 40))},
    }
    for model, arrays in spaces.items():
        writer = ws.features.writer(
            {"dataset_digest": data.digest, "model": model},
            dataset="points", model=model, default_layer="out", n=N - (model == "b"),
        )  # fmt: skip
        kept = np.arange(N) != (5 if model == "b" else -1)
        writer.write_shard(0, data.ids[kept], {k: v[kept].astype("f4") for k, v in arrays.items()})
        writer.finish()
    return ws


def row(result: object, a: str, b: str) -> pd.Series:
    table = result.tables["pairs"]  # type: ignore[attr-defined]
    return table[(table["a"] == a) & (table["b"] == b)].iloc[0]


@pytest.mark.parametrize("measure", ["cka", "cka-rbf", "procrustes"])
def test_a_rotation_is_the_same_and_noise_is_chance(workspace: Workspace, measure: str) -> None:
    found = analyses.run("similarity", workspace, measure=measure, n_draws=20)
    assert len(found.tables["pairs"]) == 3
    assert np.isclose(row(found, "a", "b")["value"], 1.0, atol=1e-5)
    assert row(found, "a", "b")["q"] <= 0.05
    noise = row(found, "a", "c")
    assert noise["p"] > 0.05
    assert noise["low"] <= noise["value"] <= noise["high"]
    assert "a and b, 1.00" in found.headline
    # The item that one encoder lacks is left out under all.
    assert found.summary["n"] == N - 1
    assert sum(line.count for line in found.left_out) == 1
    assert found.summary["by"] == "concept"


def test_layers_against_layers(workspace: Workspace) -> None:
    own = analyses.run("similarity", workspace, method="layers", model="a", n_draws=5)
    table = own.tables["pairs"]
    assert list(zip(table["layer_a"], table["layer_b"], strict=True)) == [
        ("in", "mid"), ("in", "out"), ("mid", "out"),
    ]  # fmt: skip
    assert table["value"].isna().tolist() == [True, True, False]
    assert own.summary["flat"] == 2
    x = workspace.features.get("points", "a")
    assert np.isclose(table["value"][2], linear_cka(x.layer("mid"), x.layer("out"), debiased=True))
    two = analyses.run("similarity", workspace, method="layers", model="a", reference="c",
                       n_draws=5)  # fmt: skip
    assert len(two.tables["pairs"]) == 3
    assert two.summary["columns"] == [["c", "out"]]
    back = analyses.run("similarity", workspace, method="layers", model="c", reference="a",
                        n_draws=5)  # fmt: skip
    np.testing.assert_allclose(
        back.tables["pairs"]["value"], two.tables["pairs"]["value"], equal_nan=True
    )


def test_figures_hold_no_missing_number(workspace: Workspace) -> None:
    for params in ({}, {"method": "layers", "model": "a"}):
        found = analyses.run("similarity", workspace, n_draws=5, **params)
        for fig in (figures.matrix(found), figures.pairs(found)):
            assert "NaN" not in fig.to_json()
        grid = np.array(figures.matrix(found).data[0].z, dtype=float)
        np.testing.assert_array_equal(grid, grid.T)
        assert (np.diag(grid) == 1).all()


def test_what_is_not_read_makes_no_other_key(workspace: Workspace) -> None:
    one = analyses.run("similarity", workspace, n_draws=5)
    again = analyses.run("similarity", workspace, n_draws=5, k=3, model="a", models=["c", "b", "a"])
    assert again.key == one.key
    sampled = analyses.run("similarity", workspace, n_draws=5, max_rows=50)
    assert sampled.summary["n"] == 50
    assert sum(line.count for line in sampled.left_out) == N - 50


@pytest.mark.parametrize(
    "params",
    [
        {"method": "heads"},
        {"measure": "cca"},
        {"n_draws": 1},
        {"max_rows": 5},
        {"seed": -1},
        {"models": "a"},
        {"models": ["a"]},
        {"method": "layers", "model": "b"},
        {"measure": "knn", "k": 95},
    ],
)
def test_wrong_parameters_say_what_to_do(workspace: Workspace, params: dict) -> None:
    with pytest.raises(BadInput) as caught:
        analyses.run("similarity", workspace, **params)
    assert caught.value.message


def test_what_is_not_there_is_not_found(workspace: Workspace) -> None:
    with pytest.raises(NotFound):
        analyses.run("similarity", workspace, models=["a", "nobody"])
    with pytest.raises(NotFound):
        analyses.run("similarity", workspace, method="layers", model="nobody")
