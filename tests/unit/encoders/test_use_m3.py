"""The multilingual sentence encoder: its tokenizer's file and its windows."""

import struct

import numpy as np
import pytest

from core.encoders.use_m3 import _fields, _layer_norm, _windows, sentencepiece_tokenizer
from core.errors import WorkspaceError


def field(number, body):
    return bytes([number << 3 | 2]) + varint(len(body)) + body


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def piece(text, score):
    return field(1, text.encode()) + bytes([2 << 3 | 5]) + struct.pack("<f", score)


def test_the_message_reader():
    data = field(1, b"ab") + bytes([4 << 3]) + varint(300) + bytes([5 << 3 | 1]) + b"8 bytes!"
    found = [(number, bytes(body)) for number, body in _fields(data)]
    assert found == [(1, b"ab"), (4, varint(300)), (5, b"8 bytes!")]
    with pytest.raises(ValueError, match="cut short"):
        list(_fields(data[:-1]))


def test_a_file_that_is_no_model(tmp_path):
    with pytest.raises(WorkspaceError, match="SentencePiece"):
        sentencepiece_tokenizer(tmp_path / "none")
    (tmp_path / "sp.model").write_bytes(field(1, piece("a", -1.0)))
    with pytest.raises(WorkspaceError, match="SentencePiece"):
        sentencepiece_tokenizer(tmp_path / "sp.model")


def test_windows_stop_at_the_ends_of_the_text():
    x = np.array([[1.0], [2.0], [3.0]])
    assert _windows(x, 2, 0).tolist() == [[1, 2], [2, 3], [3, 0]]
    assert _windows(x, 3, 1).tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 0]]
    assert _windows(x[:1], 5, 2).tolist() == [[0, 0, 1, 0, 0]]


def test_layer_norm_agrees_with_torch():
    import torch

    x = np.random.default_rng(0).normal(size=(4, 7)).astype(np.float32)
    gain, bias = np.linspace(1, 2, 7, dtype=np.float32), np.ones(7, np.float32)
    expected = torch.nn.functional.layer_norm(
        torch.from_numpy(x), (7,), torch.from_numpy(gain), torch.from_numpy(bias), 1e-6
    )
    assert np.allclose(_layer_norm(x, gain, bias, 1e-6), expected.numpy(), atol=1e-5)
