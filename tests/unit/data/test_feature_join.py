"""Joined by id, never by luck: shifted, doubled, partial and ambiguous ids, names, versions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

from core.data.feature_import import import_features, preview_features
from core.errors import BadInput

N = 40
X = np.random.default_rng(0).standard_normal((N, 5)).astype(np.float32)


@pytest.fixture
def own(space):
    """Forty texts with ids from 0 and the ids of their source, which are other numbers."""
    items = pd.DataFrame(
        {"id": range(N), "caption": [f"text {i}" for i in range(N)],
         "source_id": [str(100 + i) for i in range(N)]}
    )  # fmt: skip
    space.add_dataset("own", "Own", "text", items)
    return space


def npz(path, **arrays):
    np.savez(path, **arrays)
    return path


def taken(space, path, name="m", **options):
    return import_features(space, dataset="own", path=path, name=name, **options)


def test_ids_that_count_from_one_are_refused_and_the_shift_is_named(own, tmp_path):
    """Bank 8: 39 of 40 rows would have gone to their neighbours."""
    path = npz(tmp_path / "one.npz", x=X, ids=np.arange(1, N + 1))
    for partial in (False, True):
        with pytest.raises(
            BadInput, match=r"'40' in row 39.*shifted by one: -1 would match them all"
        ):
            taken(own, path, partial=partial)
    assert own.features.find("own", "imported/m") is None


def test_unknown_ids_and_items_without_a_row_are_named_unless_a_part_is_asked_for(own, tmp_path):
    """Bank 8: half of the ids unknown, or a row too few."""
    half = npz(tmp_path / "half.npz", x=X, ids=np.arange(20, 20 + N))
    with pytest.raises(BadInput, match=r"20 of 40 ids.*'40' in row 20.*20 of 40 items.*\(0, 1"):
        taken(own, half)
    found = taken(own, half, partial=True)
    assert found.ids.tolist() == list(range(20, 40))
    assert np.array_equal(found.layer(), X[:20])
    short = npz(tmp_path / "short.npz", x=X[1:], ids=np.arange(1, N))
    with pytest.raises(BadInput, match=r"1 of 40 items have no row \(0\)"):
        taken(own, short, name="short")


def test_the_users_word_is_needed_for_a_column_named_index(own, tmp_path):
    """Bank 8: pandas writes its row numbers as "index"; they are no ids by themselves."""
    frame = pd.DataFrame({"index": range(N), "e": X[::-1].tolist()})
    frame.to_parquet(tmp_path / "i.parquet")
    with pytest.raises(BadInput, match="carries no ids"):
        taken(own, tmp_path / "i.parquet")
    assert preview_features(own, "own", tmp_path / "i.parquet").columns == ("index",)
    found = taken(own, tmp_path / "i.parquet", ids="index")
    assert np.array_equal(found.layer(), X[::-1])
    with pytest.raises(BadInput, match=r"ids='nope'.*index"):
        taken(own, tmp_path / "i.parquet", ids="nope")


def test_whole_numbers_are_looked_for_in_the_sources_ids_too(own, tmp_path):
    order = np.random.default_rng(1).permutation(N)
    path = npz(tmp_path / "s.npz", x=X[order], ids=100 + order)
    found = taken(own, path)
    assert found.meta["matched"] == "source_id"
    assert np.array_equal(found.layer(), X)
    assert preview_features(own, "own", path).matched_by == "source_id"


def test_ids_that_fit_two_columns_differently_need_the_users_word(space, tmp_path):
    items = pd.DataFrame({"id": range(N), "caption": ["x"] * N, "rank": range(N - 1, -1, -1)})
    space.add_dataset("own", "Own", "text", items)
    path = npz(tmp_path / "r.npz", x=X, ids=np.arange(N))
    with pytest.raises(BadInput, match="of 'id' and of 'rank', for different items"):
        taken(space, path)
    assert np.array_equal(taken(space, path, match="id").layer(), X)
    assert np.array_equal(taken(space, path, name="r", match="rank").layer(), X[::-1])
    with pytest.raises(BadInput, match=r"match='caption'.*1 different"):
        taken(space, path, match="caption")
    with pytest.raises(BadInput, match=r"match='none'.*Columns: id"):
        taken(space, path, match="none")


def test_numbers_beyond_int64_do_not_wrap(own, tmp_path):
    """Bank 13: uint64 ids; 2**63 became the negative of itself."""
    big = np.arange(N, dtype=np.uint64) + np.uint64(2**63)
    with pytest.raises(BadInput, match="'9223372036854775808' in row 0"):
        taken(own, npz(tmp_path / "u.npz", x=X, ids=big))
    items = own.dataset("own").items.assign(source_id=[str(v) for v in big])
    own.add_dataset("own", "Own", "text", items, replace=True)
    assert np.array_equal(taken(own, tmp_path / "u.npz").layer(), X)


def test_ids_as_floats_are_taken_when_they_are_whole(own, tmp_path):
    """Bank 8: pandas turns ids with a gap into floats; the row of the gap is named."""
    found = taken(own, npz(tmp_path / "f.npz", x=X, ids=np.arange(N) * 1.0))
    assert np.array_equal(found.layer(), X)
    ids = np.arange(N) * 1.0
    ids[7] = np.nan
    with pytest.raises(BadInput, match=r"'ids', row 7 holds nan.*1 such rows"):
        taken(own, npz(tmp_path / "g.npz", x=X, ids=ids), name="g")


def test_another_file_of_the_same_name_is_refused_or_replaces(own, tmp_path):
    """Neither the newest nor the oldest wins in silence."""
    one = npz(tmp_path / "one.npz", x=X, ids=np.arange(N))
    two = npz(tmp_path / "two.npz", x=X + 1, ids=np.arange(N))
    first = taken(own, one)
    with pytest.raises(BadInput, match=r"other features of 'own' already, from one\.npz"):
        taken(own, two)
    assert np.array_equal(own.features.find("own", "imported/m").layer(), X)
    assert taken(own, one).key == first.key
    second = taken(own, two, replace=True)
    assert own.features.find("own", "imported/m").key == second.key
    assert taken(own, one, replace=True).key == first.key
    assert np.array_equal(own.features.find("own", "imported/m").layer(), X)
    assert len(own.features.list()) == 1


def test_features_of_a_registered_model_may_bear_its_id(own, tmp_path):
    """A population study looks for them under that name."""
    path = npz(tmp_path / "r.npz", x=X, ids=np.arange(N))
    assert taken(own, path, name="timm/resnet18.a1_in1k").model == "imported/timm/resnet18.a1_in1k"


def test_another_default_layer_is_not_ignored(own, tmp_path):
    path = npz(tmp_path / "l.npz", a=X, b=X + 1, ids=np.arange(N))
    assert taken(own, path).default_layer == "b"
    assert taken(own, path, default_layer="a", replace=True).default_layer == "a"
    only = taken(own, path, layers=["a"], replace=True)
    assert only.layers == ("a",)
    with pytest.raises(BadInput, match=r"layers='c'.*It holds: a, b"):
        taken(own, path, layers=["c"])


def test_messages_hold_no_numpy_words_and_no_folder_of_the_server(own, tmp_path):
    """What a stranger reads: values as they wrote them, the file by its name alone."""
    (tmp_path / "cut.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00{'descr'")
    header = b'{"x":{"dtype":"F8_E4M3","shape":[1,4],"data_offsets":[0,4]}}'
    (tmp_path / "f8.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"0000")
    (tmp_path / "none.h5").write_bytes(b"")
    (tmp_path / "none.parquet").write_bytes(b"PAR1")
    (tmp_path / "none.npz").write_bytes(b"PK")
    npz(tmp_path / "u.npz", x=X, ids=np.arange(N) + 1000)
    npz(tmp_path / "t.npz", x=X, ids=np.array([f"n{i}" for i in range(N)]))
    save_file({"x": X, "ids": np.arange(N) + 900}, tmp_path / "s.safetensors")
    names = sorted(path.name for path in tmp_path.iterdir() if path.is_file())
    assert len(names) == 8
    for name in names:
        with pytest.raises(BadInput) as caught:
            taken(own, tmp_path / name)
        words = str(caught.value)
        assert name in words
        assert str(tmp_path) not in words
        assert "np." not in words
        assert "<class" not in words
    with pytest.raises(BadInput, match="holds F8_E4M3 numbers, which are not read"):
        taken(own, tmp_path / "f8.safetensors")


def test_the_preview_says_what_hinders_the_join(own, tmp_path):
    path = npz(tmp_path / "p.npz", x=X, ids=np.arange(1, N + 1))
    found = preview_features(own, "own", path)
    assert "shifted by one" in found.problem
    assert not found.partial
    path = npz(tmp_path / "q.npz", x=X, ids=np.arange(20, 20 + N))
    found = preview_features(own, "own", path)
    assert found.n_matched == 20
    assert found.partial
    assert "20 of 40" in found.problem
    path = npz(tmp_path / "w.npz", x=X, ids=np.arange(N))
    assert preview_features(own, "own", path).problem == ""
