"""Features of other tools: every format, joined by id, refused with the rows named."""

from __future__ import annotations

import io
import os
import pickle
import resource
import zipfile

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

from core import analyses
from core.data.feature_files import open_features
from core.data.feature_import import import_features, preview_features
from core.errors import BadInput, NotFound

N = 40
X = np.random.default_rng(0).standard_normal((N, 6)).astype(np.float32)
IDS = np.arange(N) * 3 + 5
FILES = [f"cats/{i:03d}.png" for i in range(N)]
SHUFFLED = np.random.default_rng(1).permutation(N)


@pytest.fixture
def own(space):
    """A text dataset of forty items whose ids are not their positions."""
    rng = np.random.default_rng(0)
    items = pd.DataFrame(
        {"id": IDS, "caption": [f"text {i}" for i in range(N)], "file": FILES,
         "label": np.where(np.arange(N) % 2, "odd", "even"),
         "domain": np.where(np.arange(N) < 20, "a", "b"),
         "split": np.where(rng.random(N) < 0.7, "train", "test")}
    )  # fmt: skip
    space.add_dataset("own", "Own", "text", items)
    return space


def write(path, kind, arrays):
    """Write arrays by name in one of the formats."""
    if kind == "npz":
        np.savez(path, **arrays)
    elif kind == "safetensors":
        save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, path)
    elif kind == "h5":
        with h5py.File(path, "w") as file:
            for name, value in arrays.items():
                file[name] = value.astype("S") if value.dtype.kind == "U" else value
    else:
        columns = {k: list(v) if v.ndim == 2 else v for k, v in arrays.items()}
        pq.write_table(pa.table(columns), path, row_group_size=11)
    return path


@pytest.mark.parametrize("kind", ["npz", "safetensors", "h5", "parquet"])
def test_ids_decide_the_order_in_every_format(own, tmp_path, kind):
    """Bank 8, permuted order: rows are joined by id, whatever their order."""
    arrays = {"early": X[SHUFFLED, :3], "late": X[SHUFFLED], "ids": IDS[SHUFFLED]}
    found = import_features(own, dataset="own", path=write(tmp_path / f"f.{kind}", kind, arrays),
                            name="mine")  # fmt: skip
    assert found.model == "imported/mine"
    assert found.layers == ("early", "late")
    assert np.array_equal(found.ids, IDS)
    assert np.array_equal(found.layer("late"), X)
    assert np.array_equal(found.layer("early"), X[:, :3])
    assert found.meta["joined_by"] == "ids"
    assert found.meta["left_out"] == []


@pytest.mark.parametrize("kind", ["npz", "h5", "parquet"])
def test_file_names_are_ids_too_whole_or_bare(own, tmp_path, kind):
    for at, names in enumerate((FILES, [f"/data/x/{f.split('/')[1]}" for f in FILES])):
        arrays = {"features": X[SHUFFLED], "file_names": np.array(names)[SHUFFLED]}
        path = write(tmp_path / f"g{at}.{kind}", kind, arrays)
        found = import_features(own, dataset="own", path=path, name=f"n{at}")
        assert np.array_equal(found.layer(), X)


def test_without_ids_the_user_must_say_that_the_order_is_the_datasets(own, tmp_path):
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(BadInput, match="carries no ids"):
        import_features(own, dataset="own", path=tmp_path / "x.npy", name="x")
    found = import_features(own, dataset="own", path=tmp_path / "x.npy", name="x", in_order=True)
    assert np.array_equal(found.layer(), X)
    assert "as the user said" in found.meta["joined_by"]
    np.save(tmp_path / "y.npy", X[:-1])
    with pytest.raises(BadInput, match="39 rows; 'own' has 40 items"):
        import_features(own, dataset="own", path=tmp_path / "y.npy", name="y", in_order=True)


def test_thingsvisions_hdf5_holds_one_matrix_and_no_ids(own, tmp_path):
    with h5py.File(tmp_path / "features.h5", "w") as file:
        file.create_dataset("features", data=X)
    found = import_features(own, dataset="own", path=tmp_path / "features.h5", name="tv",
                            in_order=True)  # fmt: skip
    assert found.layers == ("features",)
    assert np.array_equal(found.layer(), X)


def test_doubled_unknown_and_too_few_ids_are_refused_with_their_rows(own, tmp_path):
    """Bank 8: duplicate ids, wrong counts, another dataset's file."""
    twice = IDS.copy()
    twice[7] = twice[3]
    for name, ids, words in (
        ("twice", twice, "more than once.*rows 3, 7"),
        ("other", IDS + 1000, "40 of 40 ids are not items.*row 0"),
    ):
        path = write(tmp_path / f"{name}.npz", "npz", {"x": X, "ids": ids})
        with pytest.raises(BadInput, match=words):
            import_features(own, dataset="own", path=path, name=name)
    path = write(tmp_path / "short.npz", "npz", {"x": X, "ids": IDS[:-2]})
    with pytest.raises(BadInput, match="38 ids in 'ids' for 40 rows"):
        import_features(own, dataset="own", path=path, name="short")


def test_a_part_is_joined_only_when_it_is_asked_for(own, tmp_path):
    path = write(tmp_path / "p.npz", "npz", {"x": X[:30], "ids": np.r_[IDS[:28], 9001, 9002]})
    with pytest.raises(
        BadInput, match=r"2 of 30 ids.*'9001' in row 28.*12 of 40 items have no row"
    ):
        import_features(own, dataset="own", path=path, name="part")
    found = import_features(own, dataset="own", path=path, name="part", partial=True)
    assert np.array_equal(found.ids, IDS[:28])
    lines = {line["what"]: line for line in found.meta["left_out"]}
    assert "9001" in lines["row 28"]["reason"]
    assert lines[f"item {IDS[28]}"]["reason"] == "the file has no row for it"
    assert lines["further items"]["count"] == 12 - 8


def test_rows_that_are_not_finite_are_left_out_and_named(own, tmp_path):
    """Bank 12: NaN and infinite rows."""
    x = X.copy()
    x[3, 2], x[9] = np.nan, np.inf
    path = write(tmp_path / "n.npz", "npz", {"x": x, "ids": IDS})
    found = import_features(own, dataset="own", path=path, name="nan")
    assert len(found) == 38
    words = {line["what"]: line["reason"] for line in found.meta["left_out"]}
    assert words[f"item {IDS[3]}"] == "row 3, layer x: NaN or infinite"
    assert f"item {IDS[9]}" in words


def test_a_file_of_nothing_but_nan_leaves_nothing_and_says_so(own, tmp_path):
    path = write(tmp_path / "e.npz", "npz", {"x": np.full_like(X, np.nan), "ids": IDS})
    with pytest.raises(BadInput, match=r"No row of e\.npz.*row 0, layer x: NaN"):
        import_features(own, dataset="own", path=path, name="none")


@pytest.mark.parametrize(
    ("name", "array", "tolerance"),
    [
        ("float16", X.astype(np.float16), 1e-3),
        ("float64", X.astype(np.float64), 0),
        ("int8", (X * 20).astype(np.int8), None),
        ("big-endian", X.astype(">f4"), 0),
        ("fortran", np.asfortranarray(X), 0),
    ],
)
def test_every_kind_of_number_is_read_as_it_is(own, tmp_path, name, array, tolerance):
    """Bank 13: dtypes, byte order and memory order."""
    np.save(tmp_path / "a.npy", array)
    found = import_features(own, dataset="own", path=tmp_path / "a.npy", name=name, in_order=True)
    want = np.asarray(array, dtype=np.float32)
    assert found.layer().dtype == np.float32
    assert np.array_equal(found.layer(), want)
    if tolerance is not None:
        assert np.allclose(found.layer(), X, atol=tolerance)


@pytest.mark.parametrize("array", [X[0], X[None, None], np.empty((0, 4)), np.array(["a", "b"])])
def test_other_shapes_are_refused_in_words(own, tmp_path, array):
    """Bank 13: ragged, four-dimensional, empty, text."""
    np.save(tmp_path / "b.npy", array)
    with pytest.raises(BadInput):
        import_features(own, dataset="own", path=tmp_path / "b.npy", name="b", in_order=True)


def test_ragged_and_missing_rows_of_a_parquet_column_are_named(own, tmp_path):
    rows = [list(map(float, r)) for r in X]
    for name, bad, words in (
        ("ragged", [1.0], "row 13 has 1 numbers"),
        ("null", None, "row 13 is missing"),
    ):
        column = [*rows]
        column[13] = bad
        pq.write_table(
            pa.table({"id": IDS, "vec": column}), tmp_path / f"{name}.parquet", row_group_size=10
        )
        with pytest.raises(BadInput, match=words):
            import_features(own, dataset="own", path=tmp_path / f"{name}.parquet", name=name)


class _Trap:
    def __reduce__(self):
        return os.mkdir, ("trap-was-sprung",)


def test_pickles_are_never_loaded(own, tmp_path, monkeypatch):
    """Bank 15: objects in npy, npz and files that are pickles by nature."""
    monkeypatch.chdir(tmp_path)
    np.save("o.npy", np.array([_Trap()], dtype=object), allow_pickle=True)
    np.savez("o.npz", x=np.array([_Trap()], dtype=object))
    (tmp_path / "o.pt").write_bytes(pickle.dumps(_Trap()))
    (tmp_path / "p.npy").write_bytes(pickle.dumps(_Trap()))
    for name in ("o.npy", "o.npz", "o.pt", "p.npy"):
        with pytest.raises(BadInput):
            import_features(own, dataset="own", path=tmp_path / name, name="o", in_order=True)
    assert not (tmp_path / "trap-was-sprung").exists()


def test_lying_headers_and_bombs_are_refused_before_memory_is_taken(own, tmp_path):
    """Bank 15: npz bomb, safetensors with a lying or overflowing header, cut files."""
    raw = io.BytesIO()
    np.lib.format.write_array(raw, np.zeros((1, 8), np.float32))
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", b"\0" * 200_000_000)
    header = b'{"x":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,64]}}'
    (tmp_path / "lie.safetensors").write_bytes(
        len(header).to_bytes(8, "little") + header + b"0" * 64
    )
    (tmp_path / "long.safetensors").write_bytes((2**60).to_bytes(8, "little") + b"{}")
    good = tmp_path / "cut.npy"
    np.save(good, X)
    good.write_bytes(good.read_bytes()[:-100])
    (tmp_path / "empty.parquet").write_bytes(b"")
    (tmp_path / "text.h5").write_text("not a file of that kind")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name in (
        "bomb.npz",
        "lie.safetensors",
        "long.safetensors",
        "cut.npy",
        "empty.parquet",
        "text.h5",
    ):
        with pytest.raises(BadInput, match=name.replace(".", r"\.")):
            import_features(own, dataset="own", path=tmp_path / name, name="h", in_order=True)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150_000  # KiB


def test_hdf5_may_not_point_into_other_files(own, tmp_path):
    secret = tmp_path / "secret.bin"
    secret.write_bytes(X.tobytes())
    with h5py.File(tmp_path / "ext.h5", "w") as file:
        file.create_dataset("features", (N, 6), "f4", external=[(str(secret), 0, X.nbytes)])
    with pytest.raises(BadInput, match="another file"):
        import_features(own, dataset="own", path=tmp_path / "ext.h5", name="e", in_order=True)


def test_layers_of_unequal_rows_and_unknown_names_are_refused(own, tmp_path):
    path = write(tmp_path / "u.npz", "npz", {"a": X, "b": X[:-1], "ids": IDS})
    with pytest.raises(BadInput, match="a 40, b 39"):
        import_features(own, dataset="own", path=path, name="u")
    path = write(tmp_path / "v.npz", "npz", {"a": X, "ids": IDS})
    with pytest.raises(BadInput, match="default_layer='z'"):
        import_features(own, dataset="own", path=path, name="v", default_layer="z")
    for name in (
        "",
        "../up",
        "a b",
        "x" * 99,
        "a/b",
        "m/text",
        ".hidden",
        "timm/text",
        "timm/a/text",
        "timm/.x",
        "timm/",
    ):
        with pytest.raises(BadInput, match="name"):
            import_features(own, dataset="own", path=path, name=name)
    with pytest.raises(NotFound):
        import_features(own, dataset="own", path=tmp_path / "none.npy", name="v")


def test_the_preview_counts_without_storing(own, tmp_path):
    path = write(
        tmp_path / "w.npz", "npz", {"a": X, "note": np.zeros(3), "ids": np.r_[IDS[:-1], 7]}
    )
    found = preview_features(own, "own", path)
    assert (found.n, found.n_matched, found.id_name) == (40, 39, "ids")
    assert found.layers == {"a": (6, "float32")}
    assert "note" in found.skipped
    assert own.features.find("own", "imported/w") is None


def test_the_same_file_is_imported_once(own, tmp_path):
    path = write(tmp_path / "s.npz", "npz", {"a": X, "ids": IDS})
    one = import_features(own, dataset="own", path=path, name="s")
    two = import_features(own, dataset="own", path=path, name="s")
    assert one.key == two.key


def test_reading_rows_far_apart_gives_the_same_rows(own, tmp_path):
    """A permuted file is read in runs; the block size changes nothing."""
    with h5py.File(tmp_path / "far.h5", "w") as file:
        file["x"], file["ids"] = X[SHUFFLED], IDS[SHUFFLED]
    with open_features(tmp_path / "far.h5") as opened:
        from core.data.feature_rows import block

        at = np.array([39, 0, 20, 3])
        assert np.array_equal(block(opened.layers["x"], at), X[SHUFFLED][at])


def test_imported_features_are_analysed_like_any_model(own, tmp_path):
    for at in range(2):
        rng = np.random.default_rng(at)
        path = write(
            tmp_path / f"m{at}.npz",
            "npz",
            {"x": X + 0.1 * rng.standard_normal(X.shape), "ids": IDS},
        )
        import_features(own, dataset="own", path=path, name=f"m{at}")
    found = analyses.run("quality", own, dataset="own", n_boot=100, n_draws=0)
    assert set(found.tables["models"]["model"]) == {"imported/m0", "imported/m1"}
