"""A stranger with a matrix and a table: their own dataset, by API, job and command line."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from core import analyses
from core.cli import main
from core.contrast.analysis import read_inputs, resolve
from core.data.feature_dataset import import_feature_dataset, preview_feature_dataset
from core.data.feature_import import import_features, run_feature_import
from core.data.importers.inbox import Inbox
from core.data.importers.limits import ImportLimits
from core.errors import BadInput

N = 60
X = np.random.default_rng(0).standard_normal((N, 3, 6)).astype(np.float32)
ROWS = np.arange(N)


@pytest.fixture
def table(tmp_path):
    """A CSV with a class, a domain, a caption that is sometimes empty, and an id a row."""
    path = tmp_path / "about.csv"
    pd.DataFrame(
        {"id": [f"k{i}" for i in ROWS], "label": np.where(ROWS % 2, "odd", "even"),
         "domain": np.where(ROWS < 30, "a", "b"), "path": [f"{i}.png" for i in ROWS],
         "caption": [f"text {i}" if i % 3 else "" for i in ROWS],
         "split": np.where(ROWS % 4, "train", "test")}
    ).to_csv(path, index=False)  # fmt: skip
    return path


def test_a_matrix_and_a_table_become_a_dataset_with_features(space, tmp_path, table):
    np.save(tmp_path / "clip.npy", X)
    found = preview_feature_dataset(tmp_path / "clip.npy", table)
    assert found.plan.roles == {"id": "id", "label": "label", "domain": "domain", "path": "keep",
                                "caption": "caption", "split": "split"}  # fmt: skip
    given = {"path": tmp_path / "clip.npy", "table": table, "plan": found.plan, "name": "clip"}
    with pytest.raises(BadInput, match=r"clip\.npy carries no ids.*about\.csv"):
        import_feature_dataset(space, **given)
    assert space.dataset_names() == []
    features = import_feature_dataset(space, **given, in_order=True)
    data = space.dataset("clip")
    assert (data.kind, data.n, features.dataset) == ("text", N, "clip")
    assert list(data.items["label"][:2]) == ["even", "odd"]
    assert list(data.items["caption"][:2]) == ["row 0", "text 1"]
    assert list(data.items["source_id"][:2]) == ["k0", "k1"]
    assert np.array_equal(features.layer("features.1"), X[:, 1])
    report = space.datasets.report("clip")
    assert report.taken == N
    assert "the row's name stands for it" in " ".join(report.notes)


def test_ids_join_a_permuted_file_to_its_table(space, tmp_path, table):
    """Bank 8: the table's order is not the features'."""
    order = np.random.default_rng(1).permutation(N)
    ids = np.array([f"k{i}" for i in order])
    np.savez(tmp_path / "p.npz", x=X[order, 0], ids=ids)
    plan = preview_feature_dataset(tmp_path / "p.npz", table).plan
    found = import_feature_dataset(space, path=tmp_path / "p.npz", table=table, plan=plan, name="m")
    assert np.array_equal(found.layer(), X[:, 0])
    ids[5] = "no"
    np.savez(tmp_path / "q.npz", x=X[order, 0], ids=ids)
    plan = preview_feature_dataset(tmp_path / "q.npz", table).plan
    with pytest.raises(BadInput, match="'no' in row 5"):
        import_feature_dataset(space, path=tmp_path / "q.npz", table=table, plan=plan, name="m")
    assert space.dataset_names() == ["p"]


def test_a_table_of_another_length_is_refused_and_nothing_is_kept(space, tmp_path, table):
    """Bank 8: row count and vector count differ."""
    np.save(tmp_path / "s.npy", X[:-1, 0])
    np.save(tmp_path / "ok.npy", X[:, 0])
    plan = preview_feature_dataset(tmp_path / "ok.npy", table).plan
    with pytest.raises(BadInput, match=r"s\.npy has 59 rows; about\.csv has 60"):
        import_feature_dataset(space, path=tmp_path / "s.npy", table=table, plan=plan, name="m",
                               in_order=True)  # fmt: skip
    assert space.dataset_names() == []


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_the_files_own_columns_describe_its_rows(space, tmp_path, kind):
    path = tmp_path / f"own.{kind}"
    about = {"labels": np.where(ROWS % 2, "odd", "even"), "domains": np.where(ROWS < 30, "a", "b")}
    if kind == "npz":
        np.savez(path, features=X[:, 0], **about)
    else:
        pd.DataFrame({"features": X[:, 0].tolist(), **about}).to_parquet(path)
    plan = preview_feature_dataset(path).plan
    assert plan.roles == {"labels": "label", "domains": "domain"}
    found = import_feature_dataset(space, path=path, plan=plan, name="m")
    assert np.array_equal(found.layer(), X[:, 0])
    items = space.dataset("own").items
    assert list(items["label"]) == about["labels"].tolist()
    assert list(items["domain"]) == about["domains"].tolist()


def test_a_matrix_alone_is_enough_to_look_at(space, tmp_path):
    np.save(tmp_path / "Only One.npy", X[:, 0])
    plan = preview_feature_dataset(tmp_path / "Only One.npy").plan
    found = import_feature_dataset(space, path=tmp_path / "Only One.npy", plan=plan, name="m")
    assert found.dataset == "only-one"
    assert np.array_equal(found.layer(), X[:, 0])
    with pytest.raises(BadInput, match="There is a dataset named 'only-one' already"):
        import_feature_dataset(space, path=tmp_path / "Only One.npy", plan=plan, name="m")
    assert len(space.dataset("only-one").items) == N


def test_as_a_job_the_upload_is_removed_when_all_is_stored(space, table):
    inbox = Inbox.new(space.root, ImportLimits())
    np.save(inbox.place("clip.npy"), X)
    inbox.place("about.csv").write_bytes(table.read_bytes())
    path, beside = inbox.folder / "clip.npy", inbox.folder / "about.csv"
    plan = preview_feature_dataset(path, beside).plan
    run_feature_import(space, path=str(path), table=str(beside), plan=plan.as_dict(), name="m",
                       in_order=True)  # fmt: skip
    assert space.features.find("clip", "imported/m") is not None
    assert not inbox.folder.exists()
    assert not list(space.root.glob(".tmp-*"))


def test_the_command_line_does_the_same(space, tmp_path, table, capsys):
    np.save(tmp_path / "clip.npy", X)
    run = ["import-features", "--workspace", str(space.root), str(tmp_path / "clip.npy"),
           "--new-dataset", "mine", "--table", str(table), "--caption", "none"]  # fmt: skip
    assert main([*run, "--preview"]) == 0
    assert "label" in capsys.readouterr().out
    assert main(run) == 2
    assert "same order" in capsys.readouterr().err
    assert main([*run, "--in-order", "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert (body["model"], body["dataset"], body["n"]) == ("imported/clip", "mine", N)
    assert list(space.dataset("mine").items["caption"][:2]) == ["row 0", "row 1"]
    order = ["import-features", "--workspace", str(space.root), str(tmp_path / "shift.npz"),
             "--dataset", "mine"]  # fmt: skip
    np.savez(tmp_path / "shift.npz", x=X[:, 0], ids=ROWS + 1)
    assert main([*order, "--preview"]) == 0
    assert "shifted by one" in capsys.readouterr().out
    assert main([*order, "--partial"]) == 2
    assert "shifted by one" in capsys.readouterr().err
    np.savez(tmp_path / "shift.npz", x=X[:, 0], ids=ROWS, other=X[:, 1])
    assert main([*order, "--layers", "other"]) == 0
    assert space.features.get("mine", "imported/shift").layers == ("other",)


def test_the_same_caption_does_not_make_two_rows_the_same(space, tmp_path):
    """Contrast leaves repeated texts out; here the text was never read."""
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", X[:, 0] if name == "a" else X[:, 1])
    pd.DataFrame({"caption": ["a cat", "a dog"] * 30}).to_csv(tmp_path / "t.csv", index=False)
    plan = preview_feature_dataset(tmp_path / "a.npy", tmp_path / "t.csv").plan
    import_feature_dataset(space, path=tmp_path / "a.npy", table=tmp_path / "t.csv", plan=plan,
                           name="a", in_order=True)  # fmt: skip
    import_features(space, dataset="a", path=tmp_path / "b.npy", name="b", in_order=True)
    params = resolve(space, {"dataset": "a", "target": "imported/a", "reference": "imported/b"})
    items, tables, left_out = read_inputs(space, params)
    assert len(items) == N
    assert left_out == []
    assert np.array_equal(tables[0]["text"], X[:, 0])


def test_every_analysis_without_pictures_runs_on_it(space, tmp_path, table):
    """The point of it all: a matrix and a table are enough for all four."""
    centre = np.where(ROWS % 2, 1.0, -1.0)[:, None, None]
    for name, noise in (("a", 1.0), ("b", 1.5)):
        x = centre + noise * np.random.default_rng(len(name)).standard_normal((N, 3, 6))
        np.savez(tmp_path / f"{name}.npz", x=x, ids=np.array([f"k{i}" for i in ROWS]))
    plan = preview_feature_dataset(tmp_path / "a.npz", table).plan
    import_feature_dataset(space, path=tmp_path / "a.npz", table=table, plan=plan, name="a")
    import_features(space, dataset="a", path=tmp_path / "b.npz", name="b")
    for kind, params in (
        ("quality", {"n_boot": 100, "n_draws": 0}),
        ("contrast", {"target": "imported/a", "reference": "imported/b"}),
        ("transfer", {"model": "imported/a", "target": "a"}),
        (
            "stitching",
            {"models": ["imported/a", "imported/b"], "steps": 20, "seeds": 1, "methods": ["ridge"]},
        ),
        ("explore", {"model": "imported/a"}),
    ):
        assert analyses.run(kind, space, dataset="a", **params).headline
