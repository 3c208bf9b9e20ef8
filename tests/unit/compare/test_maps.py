"""Maps: PCA against scikit-learn, invariances, UMAP's seed, what a map keeps, what moved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA

from core import analyses
from core.compare import maps, warm
from core.errors import BadInput, Cancelled, NotFound
from core.workspace import Workspace, open_workspace


def cloud(n: int = 60, d: int = 8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d)) * np.arange(d, 0, -1)


@pytest.mark.parametrize(("n", "d"), [(60, 8), (9, 20), (9000, 5)])
def test_pca_equals_scikit_learn(n: int, d: int) -> None:
    x = cloud(n, d)
    found, reference = maps.pca_map(x), PCA(2, svd_solver="full").fit(x)
    expected = reference.transform(x)
    signs = np.sign((found.xy * expected).sum(axis=0))
    np.testing.assert_allclose(found.xy, expected * signs, atol=1e-8)
    np.testing.assert_allclose(found.explained, reference.explained_variance_ratio_, atol=1e-10)


def test_pca_signs_are_fixed() -> None:
    x = cloud()
    axes = maps.pca_map(x).axes
    largest = np.abs(axes).argmax(axis=0)
    assert (axes[largest, [0, 1]] > 0).all()
    np.testing.assert_array_equal(maps.pca_map(x).xy, maps.pca_map(x.copy()).xy)


def test_pca_distances_do_not_change_under_rotation_and_shift() -> None:
    x = cloud(d=4)
    turn, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))
    a, b = maps.pca_map(x).xy, maps.pca_map(x @ turn + 7.0).xy
    np.testing.assert_allclose(np.abs(a), np.abs(b), atol=1e-8)


def test_a_constant_cloud_has_no_variance() -> None:
    found = maps.pca_map(np.ones((5, 3)))
    assert (found.explained == 0).all()
    assert (found.xy == 0).all()


def test_one_column_leaves_the_second_coordinate_empty() -> None:
    found = maps.pca_map(np.arange(6.0)[:, None])
    np.testing.assert_allclose(found.explained, [1.0, 0.0])
    assert (found.xy[:, 1] == 0).all()


@pytest.mark.parametrize("x", [np.ones(4), np.ones((1, 3)), np.full((4, 2), np.nan)])
def test_bad_rows_are_refused(x: np.ndarray) -> None:
    with pytest.raises(BadInput):
        maps.pca_map(x)


def test_a_faithful_map_keeps_every_neighbour_and_noise_keeps_chance() -> None:
    plane = np.random.default_rng(0).normal(size=(300, 2))
    assert maps.neighbours_kept(plane, plane, metric="euclidean") == 1.0
    noise = np.random.default_rng(1).normal(size=(300, 2))
    kept = maps.neighbours_kept(plane, noise, metric="euclidean")
    assert abs(kept - 10 / 299) < 0.02


def test_cosine_ignores_length() -> None:
    x = cloud()
    scale = np.random.default_rng(2).uniform(0.1, 9.0, size=(len(x), 1))
    np.testing.assert_allclose(maps.scaled(x, "cosine"), maps.scaled(scale * x, "cosine"))
    with pytest.raises(BadInput):
        maps.scaled(x, "manhattan")


def test_umap_refuses_parameters_out_of_range() -> None:
    with pytest.raises(BadInput):
        maps.umap_map(cloud(), n_neighbors=1)
    with pytest.raises(BadInput):
        maps.umap_map(cloud(), min_dist=1.0)
    with pytest.raises(BadInput):
        maps.umap_map(cloud(n=3))
    with pytest.raises(BadInput):
        maps.tsne_map(cloud(), perplexity=1.0)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Two models over 80 items: B is A but for a third of the items, which it shuffles."""
    ws = open_workspace(tmp_path_factory.mktemp("maps"))
    items = pd.DataFrame({"id": np.arange(100, 180), "caption": [f"item {i}" for i in range(80)]})
    data = ws.add_dataset("points", "Points", "text", items, {})
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(8, 60)) * 6.0
    a = centres[np.arange(80) // 10] + rng.normal(size=(80, 60))
    b = a.copy()
    b[:27] = a[rng.permutation(27)]
    for model, x in (("a", a), ("b", b)):
        writer = ws.features.writer(
            {"dataset_digest": data.digest, "model": model},
            dataset="points",
            model=model,
            default_layer="out",
            n=80,
        )
        writer.write_shard(0, data.ids, {"in": x[:, :4].astype("f4"), "out": x.astype("f4")})
        writer.finish()
    return ws


def test_a_pca_is_stored_and_found(workspace: Workspace) -> None:
    first = analyses.run("explore", workspace, model="a")
    again = analyses.run("explore", workspace, model="a", seed=5, n_neighbors=40)
    # A PCA reads neither a seed nor UMAP's neighbours: they do not make another map.
    assert again.key == first.key
    assert first.tables["map"]["id"].tolist() == list(range(100, 180))
    assert first.params["layer"] == "out"
    assert first.summary["kept"] > first.summary["chance"]
    other = analyses.run("explore", workspace, model="a", layer="in")
    assert other.key != first.key


def test_a_large_dataset_is_sampled_and_says_so(workspace: Workspace) -> None:
    result = analyses.run("explore", workspace, model="a", max_points=30)
    assert len(result.tables["map"]) == 30
    assert sum(line.count for line in result.left_out) == 50


def test_what_changed_is_what_was_shuffled(workspace: Workspace) -> None:
    result = analyses.run("explore", workspace, model="a", reference="b", method="changed", k=5)
    table = result.tables["changed"]
    assert table["overlap"].is_monotonic_increasing
    worst = set(table["id"].head(15))
    assert len(worst & set(range(100, 127))) >= 13
    assert result.summary["n"] == 80
    assert sum(result.summary["verdicts"].values()) == 80
    moved = set(table["id"][table["verdict"] == "moved"])
    assert len(moved & set(range(100, 127))) / max(len(moved), 1) > 0.8


def test_rows_without_a_partner_are_left_out_and_named(workspace: Workspace) -> None:
    rng = np.random.default_rng(9)
    x = rng.normal(size=(60, 8)).astype("f4")
    writer = workspace.features.writer(
        {"model": "short"}, dataset="points", model="short", default_layer="out", n=60
    )
    writer.write_shard(0, np.arange(100, 160), {"out": x})
    writer.finish()
    result = analyses.run("explore", workspace, model="a", reference="short", method="changed")
    assert result.summary["n"] == 60
    assert [line.count for line in result.left_out] == [20]
    assert all("short" in line.reason for line in result.left_out)


def test_neighbours_are_the_same_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    x, xy = cloud(500, 8), cloud(500, 2, seed=1)
    whole = maps.neighbours_kept(x, xy, k=7, sample=90)
    monkeypatch.setattr(maps, "_BASE", 64)
    assert maps.neighbours_kept(x, xy, k=7, sample=90) == whole
    x[17, 3] = np.inf
    assert np.flatnonzero(~maps.finite_rows(x)).tolist() == [17]


def test_tsne_keeps_groups_and_its_seed() -> None:
    rng = np.random.default_rng(0)
    group = np.arange(120) % 4
    x = rng.normal(size=(4, 60))[group] * 8 + rng.normal(size=(120, 60))
    xy = maps.tsne_map(x, perplexity=10, seed=1)
    np.testing.assert_array_equal(xy, maps.tsne_map(x, perplexity=10, seed=1))
    far = np.linalg.norm(xy[:, None] - xy[None], axis=2)
    np.fill_diagonal(far, np.inf)
    assert (group[far.argmin(axis=1)] == group).mean() > 0.98
    np.testing.assert_allclose(xy.mean(axis=0), 0, atol=1e-9)
    assert np.isfinite(maps.tsne_map(np.ones((6, 3)), perplexity=30)).all()


def test_tsne_is_an_analysis_and_places_a_sample(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maps, "TSNE_MOST", 40)
    result = analyses.run("explore", workspace, model="a", method="tsne", n_neighbors=5)
    assert result.params["max_points"] == 40
    assert len(result.tables["map"]) == 40
    assert sum(line.count for line in result.left_out) == 40


@pytest.mark.parametrize(
    "params",
    [
        {"method": "pacmap"},
        {"method": "changed"},
        {"metric": "manhattan"},
        {"seed": -1},
        {"k": 0},
        {"n_neighbors": 1.5},
        {"min_dist": 2.0},
        {"method": "changed", "reference": "b", "k": 90},
    ],
)
def test_wrong_parameters_say_what_to_do(workspace: Workspace, params: dict) -> None:
    with pytest.raises(BadInput) as caught:
        analyses.run("explore", workspace, **{"model": "a", **params})
    assert caught.value.message


def test_what_is_not_there_is_not_found(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        analyses.run("explore", workspace, model="nobody")
    with pytest.raises(NotFound):
        analyses.run("explore", workspace, model="a", layer="nowhere")
    with pytest.raises(NotFound):
        analyses.run("explore", open_workspace(tmp_path))


@pytest.mark.slow
def test_umap_is_the_same_warm_and_cold(workspace: Workspace) -> None:
    """One fit here and one in the warm process: the same seed gives the same map."""
    x = np.asarray(workspace.features.get("points", "a").layer())
    cold = maps.umap_map(x, seed=3)
    try:
        assert warm.start(workspace.root)
        warmed = maps.umap_map(x, seed=3, root=workspace.root)
        np.testing.assert_array_equal(cold, warmed)
        again = maps.run_map(workspace, dataset="points", model="a", method="umap", seed=3)
        np.testing.assert_allclose(again.tables["map"][["x", "y"]].to_numpy(), cold)

        def stop_at_once(_fraction: float, _message: str) -> None:
            raise Cancelled("Stopped.")

        with pytest.raises(Cancelled):
            warm.place(workspace.root, np.zeros((4000, 50)), {"random_state": 0}, stop_at_once)
        # A cancelled map ends the process: the next one would wait behind it.
        assert warm.place(workspace.root, np.zeros((8, 2)), {"random_state": 0}) is None
    finally:
        warm.stop(workspace.root)


def test_without_a_warm_process_there_is_no_answer(tmp_path: Path) -> None:
    assert warm.place(tmp_path, np.zeros((8, 2)), {}) is None
    warm.stop(tmp_path)
