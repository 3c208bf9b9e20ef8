"""safetensors files: what the reference library reads, and what is refused."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from safetensors.numpy import load, save_file

from core.errors import WorkspaceError
from core.workspace.tensors import open_tensors, write_tensors

ARRAYS = {
    "f64": np.arange(6.0).reshape(2, 3),
    "f32": np.float32([[1.5], [2.5]]),
    "f16": np.float16([1, 2, 3]),
    "i64": np.array([-(2**60), 5]),
    "i32": np.int32([7]),
    "bool": np.array([True, False, True]),
    "scalar": np.array(2.5),
    "empty": np.empty((0, 4), np.float32),
    "strided": np.arange(12.0).reshape(3, 4)[:, ::2],
}


def encoded(arrays):
    out = io.BytesIO()
    write_tensors(out, arrays)
    return out.getvalue()


def same(found, expected):
    assert set(found) == set(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert np.array_equal(found[name], array)


def test_written_file_is_read_by_the_reference_library():
    same(load(encoded(ARRAYS)), ARRAYS)


def test_own_reader(tmp_path):
    (tmp_path / "f").write_bytes(encoded(ARRAYS))
    found = open_tensors(tmp_path / "f")
    same(found, ARRAYS)
    assert all(not a.flags.writeable for n, a in found.items() if n != "empty")
    assert all(array.flags.aligned for array in found.values())


def test_file_of_the_reference_library_is_read(tmp_path):
    plain = {name: np.ascontiguousarray(a) for name, a in ARRAYS.items() if name != "scalar"}
    save_file(plain, tmp_path / "f", metadata={"a": "b"})
    same(open_tensors(tmp_path / "f"), plain)


def test_same_arrays_same_bytes():
    assert encoded(ARRAYS) == encoded(dict(reversed(ARRAYS.items())))


def test_only_empty_tensors(tmp_path):
    (tmp_path / "f").write_bytes(encoded({"e": np.empty((0, 3))}))
    assert open_tensors(tmp_path / "f")["e"].shape == (0, 3)


def spoilt():
    good = encoded({"a": np.arange(4.0)})
    header = {"a": {"dtype": "F64", "shape": [9], "data_offsets": [0, 32]}}
    text = json.dumps(header).encode()
    yield b""
    yield b"short"
    yield good[:-1]
    yield good + b"x"
    yield (2**62).to_bytes(8, "little") + good[8:]
    yield good[:8] + b"x" * (len(good) - 8)
    yield len(text).to_bytes(8, "little") + text + bytes(32)
    yield len(b"[1,2]").to_bytes(8, "little") + b"[1,2]"
    yield good.replace(b"F64", b"F99")


@pytest.mark.parametrize("data", list(spoilt()))
def test_damaged_file_is_refused(tmp_path, data):
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(WorkspaceError, match="damaged"):
        open_tensors(tmp_path / "f")


def test_missing_file(tmp_path):
    with pytest.raises(WorkspaceError, match="missing"):
        open_tensors(tmp_path / "f")
