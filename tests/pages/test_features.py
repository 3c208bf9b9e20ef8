"""Features of another tool on the Models page: joined by id, or with a dataset of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from page_kit import Open, assert_sound, html_of

from core.data.feature_import import run_feature_import
from core.workspace import Workspace, open_workspace
from pages._shell.features_view import two_of

N = 30
X = np.random.default_rng(0).standard_normal((N, 5)).astype(np.float32)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the server that pages may import from."""
    monkeypatch.setenv("THEODOLITE_IMPORT_DIRS", str(tmp_path))
    return tmp_path


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    ws = open_workspace(tmp_path / "home")
    items = pd.DataFrame({"id": range(N), "caption": [f"text {i}" for i in range(N)]})
    ws.add_dataset("own", "Own texts", "text", items)
    return ws


def shown(open_page: Open, space: Workspace, path: Path, table: Path | None = None):
    """Open the page and name the file on it."""
    at = open_page("models", space.root)
    at.text_input(key="features_path").set_value(str(path)).run()
    if table is not None:
        at.text_input(key="features_table").set_value(str(table)).run()
    assert_sound(at)
    return at


def done(at, space: Workspace):
    """Press the button, do the job here and return the page as it is then."""
    at.button(key="features_go").click().run()
    assert_sound(at)
    job = space.jobs.list()[0]
    run_feature_import(space, **job.params)
    return job.params


def test_a_part_is_joined_only_after_a_tick(open_page: Open, space: Workspace, folder: Path):
    np.savez(folder / "half.npz", x=X, ids=np.arange(10, 10 + N))
    at = shown(open_page, space, folder / "half.npz")
    assert "10 of 30 ids are not items" in html_of(at)
    assert at.button(key="features_go").disabled
    at.checkbox(key="features_partial").check().run()
    assert not at.button(key="features_go").disabled
    params = done(at, space)
    assert params["partial"] is True
    assert len(space.features.get("own", "imported/half")) == 20


def test_shifted_ids_are_refused_on_the_page(open_page: Open, space: Workspace, folder: Path):
    np.savez(folder / "one.npz", x=X, ids=np.arange(1, N + 1))
    at = shown(open_page, space, folder / "one.npz")
    assert "shifted by one" in html_of(at)
    assert at.button(key="features_go").disabled
    assert not [box for box in at.checkbox if box.key == "features_partial"]


def test_layers_are_shown_and_chosen(open_page: Open, space: Workspace, folder: Path):
    np.save(folder / "cube.npy", np.stack([X, X + 1, X + 2], axis=1))
    at = shown(open_page, space, folder / "cube.npy")
    assert any("3 layers on axis 1" in caption.value for caption in at.caption)
    at.multiselect(key="features_layers").set_value(["features.0", "features.1"]).run()
    at.checkbox(key="features_order").check().run()
    done(at, space)
    found = space.features.get("own", "imported/cube")
    assert found.layers == ("features.0", "features.1")
    assert found.default_layer == "features.1"
    assert np.array_equal(found.layer(), X + 1)


def test_another_file_starts_anew(open_page: Open, space: Workspace, folder: Path):
    """The name and the layers of the file before are not those of this one."""
    np.savez(folder / "one.npz", a=X, b=X, ids=np.arange(N))
    np.savez(folder / "two.npz", c=X, d=X, ids=np.arange(N))
    at = shown(open_page, space, folder / "one.npz")
    at.multiselect(key="features_layers").set_value(["a"]).run()
    at.text_input(key="features_path").set_value(str(folder / "two.npz")).run()
    assert at.text_input(key="features_name").value == "two"
    assert at.multiselect(key="features_layers").value == ["c", "d"]


def test_a_name_that_is_taken_needs_a_word(open_page: Open, space: Workspace, folder: Path):
    np.savez(folder / "m.npz", x=X, ids=np.arange(N))
    done(shown(open_page, space, folder / "m.npz"), space)
    np.savez(folder / "m.npz", x=X + 1, ids=np.arange(N))
    at = shown(open_page, space, folder / "m.npz")
    at.checkbox(key="features_replace").check().run()
    done(at, space)
    assert np.array_equal(space.features.get("own", "imported/m").layer(), X + 1)


def test_a_matrix_and_a_table_make_a_dataset(open_page: Open, space: Workspace, folder: Path):
    np.save(folder / "clip.npy", X)
    about = pd.DataFrame({"kind": ["a", "b"] * 15, "site": ["x"] * 15 + ["y"] * 15})
    about.to_csv(folder / "about.csv", index=False)
    at = shown(open_page, space, folder / "clip.npy", folder / "about.csv")
    assert at.selectbox(key="features_role_domain").value == "site"
    at.selectbox(key="features_role_label").set_value("kind").run()
    assert at.button(key="features_go").disabled
    at.checkbox(key="features_same_order").check().run()
    at.text_input(key="features_title").set_value("My matrix").run()
    assert_sound(at)
    params = done(at, space)
    assert params["plan"]["name"] == "my-matrix"
    items = space.dataset("my-matrix").items
    assert list(items["label"][:2]) == ["a", "b"]
    assert set(items["domain"]) == {"x", "y"}
    assert np.array_equal(space.features.get("my-matrix", "imported/clip").layer(), X)


def test_the_feature_file_is_told_from_the_table(tmp_path: Path):
    for name in ("x.npy", "t.parquet"):
        (tmp_path / name).write_bytes(b"")
    assert [path.name for path in two_of(tmp_path)] == ["x.npy", "t.parquet"]
    (tmp_path / "more.txt").write_bytes(b"")
    with pytest.raises(ValueError, match="3 files were uploaded"):
        two_of(tmp_path)
