"""Universal Sentence Encoder, multilingual v3: a deep averaging network over word n-grams.

The architecture follows the exported graph of the published model (Yang et al. 2019,
"Multilingual Universal Sentence Encoder for Semantic Retrieval", the convolutional variant);
its weights lie quantised to 8 bits in the package named in ``assets/encoders/sources.json``
and are read as data.

Axis letters: t tokens of one text, d = 512 width, k n-gram order. One text at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from core.encoders.base import tensors_digest
from core.encoders.demo_text import OneByOne
from core.encoders.weights import read_tensors
from core.errors import WorkspaceError
from core.types import EncoderInfo

# n-gram order, and how many tokens before the present one its window reaches.
ORDERS = ((2, 0), (3, 1), (5, 2))
BEGIN, END = 1, 2


class UseM3(OneByOne):
    """The multilingual sentence encoder; unit vectors of 512.

    Parameters
    ----------
    folder : Path
        Holds ``model.safetensors`` and ``sp.model``.
    """

    def __init__(self, info: EncoderInfo, folder: Path, revision: str) -> None:
        weights = read_tensors(folder / "model.safetensors")
        super().__init__(
            info,
            revision=revision,
            weights_digest=tensors_digest(weights),
            transform={"tokenizer": "sentencepiece unigram", "max_tokens": 0},
        )
        self._w = weights
        self._tokenizer = sentencepiece_tokenizer(folder / "sp.model")

    def tokens(self, text: str) -> list[int]:
        """Return the token ids of a text, with begin and end."""
        return [BEGIN, *(self._tokenizer.encode(text).ids or [0]), END]

    def _join(self, name: str, axis: int = 0) -> np.ndarray:
        return np.concatenate([self._w[name.format(order)] for order, _ in ORDERS], axis=axis)

    def _one(self, text: str) -> np.ndarray:
        w = self._w
        eps = float(w["eps"][0])
        ids = np.asarray(self.tokens(text))
        part = ids % len(w["lo"])
        x = w["table"][ids].astype(np.float32) * w["scale"][part, None] + w["lo"][part, None]
        branches = [x]  # (t, 512)
        # The three projections share one normalisation over their joint width.
        start = _layer_norm(
            x @ self._join("proj{}", axis=1) + self._join("proj_b{}"),
            self._join("ln_g{}"), self._join("ln_b{}"), eps,
        )  # (t, 3 * 256)  # fmt: skip
        for (order, left), h in zip(ORDERS, np.split(start, len(ORDERS), axis=1), strict=True):
            for step in ("1", "2"):
                near = _windows(h, order, left)  # (t, k * 256)
                h = h + np.maximum(near @ w[f"w{step}_{order}"] + w[f"b{step}_{order}"], 0)
            branches.append(h)
        joined = _layer_norm(np.concatenate(branches, axis=1), w["ln_g"], w["ln_b"], eps)
        # The sum over tokens, divided by the root of their number (reduce_sqrt_n).
        y = (joined @ w["cnn_W"] + w["cnn_b"]).sum(axis=0) / np.sqrt(np.float32(len(ids)))
        y1 = np.maximum(y @ w["p1"] + np.maximum(y @ w["d0"], 0) @ w["d1"], 0)
        z = np.tanh(y1 @ w["p3"] + np.maximum(y1 @ w["d2"], 0) @ w["d3"])  # (512,)
        return np.asarray(z / np.sqrt(max(float(z @ z), eps)), dtype=np.float32)


def _layer_norm(x: np.ndarray, gain: np.ndarray, bias: np.ndarray, eps: float) -> np.ndarray:
    x = x - x.mean(axis=-1, keepdims=True)
    spread = np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + np.float32(eps))
    return np.asarray(x / spread * gain + bias)


def _windows(x: np.ndarray, order: int, left: int) -> np.ndarray:
    """Return for each token the tokens of its n-gram side by side, zeros beyond the text."""
    padded = np.pad(x, ((left, order - 1 - left), (0, 0)))
    near = [padded[shift : shift + len(x)] for shift in range(order)]
    return np.concatenate(near, axis=1)


def sentencepiece_tokenizer(path: Path) -> Any:
    """Return a ``tokenizers.Tokenizer`` for a SentencePiece unigram model file.

    Raises
    ------
    WorkspaceError
        The file is missing, or not a unigram model.
    """
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    try:
        data = path.read_bytes()
        pieces = [_piece(body) for field, body in _fields(data) if field == 1]
        spec = next(body for field, body in _fields(data) if field == 3)
        charsmap = next(bytes(body) for field, body in _fields(spec) if field == 2)
        tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0))
        steps = [
            normalizers.Precompiled(charsmap),
            normalizers.Strip(),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    except (OSError, StopIteration, IndexError, ValueError) as err:
        raise WorkspaceError(
            f"{path} cannot be read as a SentencePiece model ({err}).",
            "Remove its folder and run `theodolite models fetch-demo use-m3`.",
        ) from err
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    return tokenizer


def _piece(body: memoryview) -> tuple[str, float]:
    text, score = "", 0.0
    for field, value in _fields(body):
        if field == 1:
            text = bytes(value).decode("utf-8")
        elif field == 2:
            score = float(np.frombuffer(value, "<f4")[0])
    return text, score


def _fields(data: bytes | memoryview) -> Iterator[tuple[int, memoryview]]:
    """Read the fields of one protocol-buffers message: number and raw value."""
    view = memoryview(data)
    at = 0
    while at < len(view):
        tag, at = _varint(view, at)
        field, wire = tag >> 3, tag & 7
        if wire == 0:
            start = at
            _, at = _varint(view, at)
        elif wire == 2:
            length, start = _varint(view, at)
            at = start + length
        elif wire in (1, 5):
            start, at = at, at + (8 if wire == 1 else 4)
        else:
            raise ValueError(f"wire type {wire}")
        if at > len(view):
            raise ValueError("cut short")
        yield field, view[start:at]


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
