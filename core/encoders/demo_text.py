"""The packaged text encoders: MiniLM in float32 and in 8-bit integers, and a multilingual one.

Axis letters: b batch, t tokens, d width.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from core.digest import file_digest
from core.encoders.base import (
    Layers,
    TorchEncoder,
    choose_layers,
    choose_pooling,
    tensors_digest,
)
from core.encoders.checkpoints import quiet
from core.errors import BadInput, UserError
from core.types import EncoderInfo

if TYPE_CHECKING:
    from pathlib import Path

    import torch

# As the model was trained; longer texts are cut.
MAX_TOKENS = 256


def as_text(item: Any) -> str:
    """Return a text as it goes into a tokenizer; an empty one stays empty.

    Half of a surrogate pair, which no tokenizer can read, becomes the replacement character.

    Raises
    ------
    BadInput
        The item is not a string.
    """
    if not isinstance(item, str):
        raise BadInput(
            f"A text encoder reads text, got {type(item).__name__}.",
            "Choose an image encoder for pictures.",
        )
    if item.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in item):
        return item
    return item.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def load_minilm(
    info: EncoderInfo, folder: Path, device: torch.device, revision: str
) -> TorchEncoder:
    """Return MiniLM from its folder: the state before and after each block, mean of tokens."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    with quiet():
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        module = AutoModel.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, dtype=torch.float32,
            add_pooling_layer=False,
        )  # fmt: skip
    module = module.eval().to(device)

    def forward(prepared: list[Any], pooling: str) -> dict[str, torch.Tensor]:
        tokens = tokenizer(
            prepared, padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt"
        ).to(device)
        states = module(**tokens, output_hidden_states=True).hidden_states
        return {
            f"block{number:02d}": pool_tokens(state, tokens["attention_mask"], pooling)
            for number, state in enumerate(states)  # each (b, t, d)
        }

    return TorchEncoder(
        info,
        forward,
        prepare=as_text,
        transform={"tokenizer": "wordpiece", "max_tokens": MAX_TOKENS},
        revision=revision,
        weights_digest=tensors_digest(module.state_dict()),
        poolings=("mean", "cls"),
        device=device,
        length=lambda text: (len(tokenizer(text, verbose=False)["input_ids"]), MAX_TOKENS),
    )


def pool_tokens(state: torch.Tensor, mask: torch.Tensor, pooling: str) -> torch.Tensor:
    """Return one vector a text from token states (b, t, d) and their mask (b, t)."""
    if pooling == "cls":
        return state[:, 0]
    if pooling == "last":
        # The last token that is not padding, whichever side the padding is on.
        places = mask * (1 + mask.new_tensor(range(mask.shape[1])))
        last = places.argmax(dim=1)
        return state[range(len(state)), last]
    weight = mask.unsqueeze(-1).to(state.dtype)  # (b, t, 1)
    return (state * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1.0)


class OneByOne(ABC):
    """An encoder that reads one text at a time, so that its rows cannot depend on a batch.

    Sub-classes give ``_one(text) -> float32 (d,)`` and have one layer, ``final``.
    """

    poolings: tuple[str, ...] = ("mean",)

    def __init__(
        self, info: EncoderInfo, *, revision: str, weights_digest: str, transform: dict[str, Any]
    ) -> None:
        self.info = info
        self.revision = revision
        self.weights_digest = weights_digest
        self.transform = transform
        self.prepare = as_text

    def run(
        self, prepared: Sequence[Any], *, layers: Layers = "all", pooling: str | None = None
    ) -> dict[str, np.ndarray]:
        """Return float32 features (b, d) by layer.

        Raises
        ------
        NotFound, BadInput
            A layer or pooling this encoder does not have; an empty batch.
        """
        names = choose_layers(self.info, layers)
        choose_pooling(self, pooling)
        if not prepared:
            raise BadInput("The batch is empty.", "Give at least one text.")
        rows = np.stack([self._one(text) for text in prepared]).astype(np.float32)
        return dict.fromkeys(names, rows)

    def encode(
        self, batch: Sequence[Any], *, layers: Layers = "all", pooling: str | None = None
    ) -> dict[str, np.ndarray]:
        """Return float32 features (b, d) by layer for texts."""
        return self.run([self.prepare(t) for t in batch], layers=layers, pooling=pooling)

    @abstractmethod
    def _one(self, text: str) -> np.ndarray:
        """Return the features of one text, shape (d,)."""


class MiniLMInt8(OneByOne):
    """MiniLM with 8-bit weights and activations, run by onnxruntime.

    Activations are quantised with one scale a tensor, taken over everything that is run
    together: one text at a time is the only way to a result that depends on the text alone.
    """

    def __init__(self, info: EncoderInfo, model: Path, tokenizer: Path, revision: str) -> None:
        from transformers import AutoTokenizer

        super().__init__(
            info,
            revision=revision,
            weights_digest=file_digest(model),
            transform={"tokenizer": "wordpiece", "max_tokens": MAX_TOKENS},
        )
        self._tokenizer = AutoTokenizer.from_pretrained(tokenizer, local_files_only=True)
        self._session = _session(model)

    def length(self, text: str) -> tuple[int, int]:
        """Return how many tokens a text has and how many are read."""
        return len(self._tokenizer(text, verbose=False)["input_ids"]), MAX_TOKENS

    def _one(self, text: str) -> np.ndarray:
        tokens = self._tokenizer(
            [text], truncation=True, max_length=MAX_TOKENS, return_tensors="np"
        )
        names = ("input_ids", "attention_mask", "token_type_ids")
        feed = {name: tokens[name].astype(np.int64) for name in names}
        state = self._session.run(None, feed)[0]  # (1, t, d)
        return np.asarray(state[0].mean(axis=0))


def _session(model: Path) -> Any:
    try:
        import onnxruntime
    except ImportError as err:
        raise UserError(
            "The Python package onnxruntime is needed to run this encoder and is not installed.",
            "Install the demo extra: pip install 'theodolite[demo]'.",
        ) from err
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        str(model), sess_options=options, providers=["CPUExecutionProvider"]
    )
