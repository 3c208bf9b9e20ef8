"""Hard vectors: degenerate rows, every kind of number and shape, and memory that stays flat."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

from core import analyses
from core.compare.search import nearest_rows
from core.data.feature_files import open_features
from core.data.feature_import import import_features, preview_features
from core.errors import BadInput

N = 40
X = np.random.default_rng(0).standard_normal((N, 6)).astype(np.float32)


def dataset(space, n=N):
    """Texts with two classes and two domains, so that every analysis has its groups."""
    at = np.arange(n)
    items = pd.DataFrame(
        {"id": at, "caption": [f"text {i}" for i in at], "label": np.where(at % 2, "odd", "even"),
         "domain": np.where(at < n / 2, "a", "b"), "split": np.where(at % 3, "train", "test")}
    )  # fmt: skip
    space.add_dataset("own", "Own", "text", items)
    return space


@pytest.fixture
def own(space):
    return dataset(space)


def taken(space, path, name="m", **options):
    options = {"in_order": True, **options}
    return import_features(space, dataset="own", path=path, name=name, **options)


def words_of(found):
    return {line["what"]: line["reason"] for line in found.meta["left_out"]}


def test_rows_that_say_nothing_are_left_out_named_and_counted(own, tmp_path):
    """Bank 12: a zero row or a row of one value is what tools write where they failed."""
    x = X.copy()
    x[3], x[4], x[20:32] = 0, 2.5, 0
    np.save(tmp_path / "z.npy", x)
    found = taken(own, tmp_path / "z.npy")
    assert len(found) == N - 14
    assert not set(found.ids) & {3, 4, *range(20, 32)}
    words = words_of(found)
    assert words["item 3"] == "row 3, layer features: all zero"
    assert words["item 4"] == "row 4, layer features: all values the same"
    assert sum(line["count"] for line in found.meta["left_out"]) == 14
    kept = taken(own, tmp_path / "z.npy", name="kept", keep_flat=True)
    assert np.array_equal(kept.layer(), x)
    assert "kept as asked" in words_of(kept)["item 3"]
    np.save(tmp_path / "all.npy", np.zeros((N, 6)))
    with pytest.raises(BadInput, match=r"No row of all\.npy.*item 0: row 0.*all zero"):
        taken(own, tmp_path / "all.npy", name="all")


def test_a_row_that_one_layer_cannot_give_is_left_out_of_all(own, tmp_path):
    """Bank 12: layers keep the same rows, and the row is named once."""
    a, b = X.copy(), X.copy()
    a[5, 1], b[5], b[6] = np.nan, 0, np.inf
    np.savez(tmp_path / "l.npz", a=a, b=b)
    found = taken(own, tmp_path / "l.npz")
    assert len(found) == N - 2
    assert found.layers == ("a", "b")
    assert [line["what"] for line in found.meta["left_out"]] == ["item 5", "item 6"]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("d", [1, 5, 50])
def test_few_rows_and_odd_widths_are_taken_as_they_are(space, tmp_path, n, d):
    """Bank 12: n = 1, 2, 3; d = 1; d > n."""
    dataset(space, n)
    x = np.random.default_rng(0).standard_normal((n, d))
    np.save(tmp_path / "s.npy", x)
    found = taken(space, tmp_path / "s.npy")
    assert np.array_equal(found.layer(), x.astype(np.float32))


@pytest.mark.parametrize("kind", ["constant column", "duplicated rows", "rank one"])
def test_degenerate_matrices_are_answered_without_nan(own, tmp_path, kind):
    """Bank 12: imported and analysed, or refused in words; never NaN in a table unsaid."""
    x = X.copy()
    if kind == "constant column":
        x[:, 2] = 7
    elif kind == "duplicated rows":
        x[1::2] = x[::2]
    else:
        x = np.outer(np.linspace(1, 2, N), X[0]).astype(np.float32)
    np.save(tmp_path / "d.npy", x)
    assert len(taken(own, tmp_path / "d.npy")) == N
    found = analyses.run("quality", own, dataset="own", n_boot=100, n_draws=0)
    values = found.tables["values"] if "values" in found.tables else found.tables["models"]
    numbers = values.select_dtypes("number").to_numpy(dtype=float)
    assert not np.isinf(numbers).any()


def test_no_neighbour_is_the_last_item_by_mistake():
    """Bank 14: faiss answers -1 for NaN and for k > n, which numpy reads as the last row."""
    order = np.eye(3, dtype=np.float32)
    with pytest.raises(BadInput):
        nearest_rows(order, np.full((1, 3), np.nan, np.float32), k=2)
    rows, _ = nearest_rows(order, order[:1], k=99)
    assert sorted(rows[0].tolist()) == [0, 1, 2]


@pytest.mark.parametrize("kind", ["npz", "h5", "parquet", "safetensors"])
def test_bfloat16_and_half_are_read_as_the_numbers_they_are(own, tmp_path, kind):
    """Bank 13: bfloat16 of safetensors, float16 elsewhere."""
    path = tmp_path / f"h.{kind}"
    want = X.astype(np.float16).astype(np.float32)
    if kind == "safetensors":
        tensor = torch.from_numpy(X).bfloat16()
        want = tensor.float().numpy()
        save_file({"x": tensor, "ids": torch.arange(N)}, path)
    elif kind == "npz":
        np.savez_compressed(path, x=X.astype(np.float16))
    elif kind == "h5":
        with h5py.File(path, "w") as file:
            file["x"] = X.astype(np.float16)
    else:
        pq.write_table(pa.table({"x": list(X.astype(np.float16))}), path)
    found = taken(own, path)
    assert np.array_equal(found.layer(), want)
    stored = "bfloat16" if kind == "safetensors" else "float16"
    assert found.meta["dtypes"] == {"x": stored}
    assert preview_features(own, "own", path).layers == {"x": (6, stored)}


@pytest.mark.parametrize("dtype", ["i2", "u2", "u4", "u8", "i1"])
def test_whole_numbers_of_every_width_in_safetensors(own, tmp_path, dtype):
    """Bank 13."""
    x = np.arange(N * 3).reshape(N, 3).astype(dtype)
    from safetensors.numpy import save_file as save

    save({"x": x}, tmp_path / "w.safetensors")
    assert np.array_equal(taken(own, tmp_path / "w.safetensors").layer(), x.astype(np.float32))


def test_numbers_beyond_float32_are_called_that(own, tmp_path):
    """Bank 13: float64 overflow is no NaN."""
    x = X.astype(np.float64)
    x[7, 2], x[9] = 1e300, 1e-300
    np.save(tmp_path / "o.npy", x)
    words = words_of(taken(own, tmp_path / "o.npy"))
    assert words["item 7"] == "row 7, layer features: a value beyond float32 (3.4e38)"
    assert "all zero" in words["item 9"]


def test_true_and_false_are_no_features(own, tmp_path):
    """Bank 13."""
    np.savez(tmp_path / "b.npz", seen=X > 0)
    with pytest.raises(BadInput, match=r"seen: .*true and false are not features"):
        taken(own, tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", seen=X > 0, x=X)
    found = taken(own, tmp_path / "c.npz")
    assert found.layers == ("x",)
    assert "true and false" in found.meta["skipped"]["seen"]


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("kind", ["npy", "npz", "h5", "safetensors"])
def test_three_axes_are_layers_and_it_is_said_which(own, tmp_path, axis, kind):
    """Bank 13: (n, L, d), (L, n, d) and (n, d, L)."""
    cube = np.random.default_rng(0).standard_normal((N, 3, 6)).astype(np.float32)
    given = np.ascontiguousarray(
        {0: cube.transpose(1, 0, 2), 1: cube, 2: cube.transpose(0, 2, 1)}[axis]
    )
    path = tmp_path / f"c.{kind}"
    if kind == "npy":
        np.save(path, given)
    elif kind == "npz":
        np.savez(path, features=given)
    elif kind == "h5":
        with h5py.File(path, "w") as file:
            file["features"] = given
    else:
        save_file({"features": torch.from_numpy(given)}, path)
    # The first two are told apart by the count of the items; the third has to be said.
    chosen = {"layer_axis": axis} if axis == 2 else {}
    found = taken(own, path, **chosen)
    assert found.layers == ("features.0", "features.1", "features.2")
    for at, name in enumerate(found.layers):
        assert np.array_equal(found.layer(name), cube[:, at])
    assert f"3 layers on axis {axis}" in found.meta["layered"]["features"]
    shown = preview_features(own, "own", path, **chosen)
    assert shown.layered == found.meta["layered"]


def test_tokens_are_not_taken_for_layers(own, tmp_path):
    """Bank 13: a thousand "layers" are tokens or pixels."""
    np.save(tmp_path / "t.npy", np.zeros((2, 1000, 3), np.float32))
    with pytest.raises(BadInput, match=r"1,000 layers on axis 1.*pool tokens"):
        taken(own, tmp_path / "t.npy")


def test_number_columns_beside_an_id_are_one_matrix(own, tmp_path):
    """Bank 13: a table of one column a dimension; a missing number is named."""
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(6)])
    frame.insert(0, "id", np.arange(N))
    frame.loc[4, "f2"] = None
    frame.to_parquet(tmp_path / "w.parquet", row_group_size=7)
    found = taken(own, tmp_path / "w.parquet")
    assert np.array_equal(found.layer(), np.delete(X, 4, axis=0))
    assert words_of(found) == {"item 4": "row 4, layer features: NaN or infinite"}


def test_lists_that_are_not_numbers_do_not_hinder(own, tmp_path):
    """Bank 13: tags, pictures and words beside the vectors."""
    word = pa.array(["x"] * N).dictionary_encode()
    table = pa.table(
        {"id": np.arange(N), "tags": [["a"]] * N, "vec": list(X), "raw": [b"\xff"] * N, "w": word}
    )
    pq.write_table(table, tmp_path / "t.parquet")
    found = taken(own, tmp_path / "t.parquet")
    assert found.layers == ("vec",)
    assert np.array_equal(found.layer(), X)


def test_entries_that_lie_about_their_packing_are_refused(own, tmp_path):
    """Bank 15: an entry of an .npz that says it is LZMA, one twice, one that is cut."""
    np.savez_compressed(tmp_path / "ok.npz", x=X)
    raw = (tmp_path / "ok.npz").read_bytes()
    lying = raw.replace(b"PK\x03\x04\x2d\x00\x00\x00\x08", b"PK\x03\x04\x2d\x00\x00\x00\x0e")
    central = lying.index(b"PK\x01\x02")
    lying = lying[: central + 10] + b"\x0e" + lying[central + 11 :]
    (tmp_path / "lzma.npz").write_bytes(lying)
    with zipfile.ZipFile(tmp_path / "ok.npz") as archive, \
            zipfile.ZipFile(tmp_path / "twice.npz", "w") as out:  # fmt: skip
        out.writestr("x.npy", archive.read("x.npy"))
        with pytest.warns(UserWarning, match="Duplicate"):
            out.writestr("x.npy", archive.read("x.npy"))
    for name, words in (("lzma.npz", "cannot be read"), ("twice.npz", "'x' twice")):
        with pytest.raises(BadInput, match=words):
            taken(own, tmp_path / name)


_MEASURE = """
import sys
from pathlib import Path
import numpy as np
import pyarrow.parquet
from core.data.feature_rows import Tally, read_rows
from core.data.feature_files import open_features

def held():
    # Resident pages that no file backs: mapped ones are the cache's, and go when asked for.
    _, resident, shared, *_ = map(int, open("/proc/self/statm").read().split())
    return (resident - shared) * 4 // 1024

before = most = held()
with open_features(Path(sys.argv[1]), scratch=Path(sys.argv[2])) as file:
    for start in range(0, file.n, 4096):
        at = np.arange(start, min(start + 4096, file.n))
        arrays, good = read_rows(file.layers, at, at, Tally())
        assert good.all()
        most = max(most, held())
print(most - before, file.n)
"""


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_packed_files_are_read_from_the_disk_and_not_held(tmp_path, kind):
    """Bank 15: members of .npz and Parquet columns are unpacked to the disk, block by block."""
    n, d = 60_000, 512
    x = np.random.default_rng(0).standard_normal((n, d)).astype(np.float32)
    path = tmp_path / f"big.{kind}"
    if kind == "npz":
        np.savez(path, x=x)
    else:
        flat = pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), d)
        pq.write_table(pa.table({"x": flat}), path, use_dictionary=False)
    del x
    run = subprocess.run([sys.executable, "-c", _MEASURE, str(path), str(tmp_path)],
                         capture_output=True, text=True, check=True)  # fmt: skip
    held, rows = map(int, run.stdout.split())
    assert rows == n
    assert held < 100, f"{held} MiB held of a matrix of 117"
    assert not list(tmp_path.glob(".tmp-*"))


def test_what_was_unpacked_is_gone_afterwards(own, tmp_path):
    np.savez(tmp_path / "x.npz", x=X)
    with open_features(tmp_path / "x.npz", scratch=tmp_path) as file:
        assert np.array_equal(file.layers["x"][0:3], X[:3])
        assert list(tmp_path.glob(".tmp-*"))
    assert not list(tmp_path.glob(".tmp-*"))
