"""Text towers of transformers: how far they read, what pads, and which token speaks for a text.

Axis letters: b batch, t tokens, d width.

Texts are padded to the longest of their batch and the padding is masked, so that a row does not
depend on its batch. SigLIP was trained on texts padded to its full length with the padding in
sight (Zhai et al. 2023), and is given that.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.encoders import sentence
from core.encoders.base import TorchEncoder, tensors_digest, with_layers
from core.encoders.demo_text import as_text, pool_tokens
from core.encoders.transformers_image import of_output
from core.errors import BadInput, NeedsWeights
from core.types import EncoderInfo

if TYPE_CHECKING:
    import torch

TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "tokenizer.model", "spiece.model",
              "sentencepiece.bpe.model")  # fmt: skip
# Longer texts are cut; the model's own limit counts when it is smaller.
MAX_TOKENS = 512


def encoder(
    info: EncoderInfo,
    module: Any,
    config: Any,
    folder: Path,
    device: torch.device,
    *,
    dual: bool,
    outer: Path,
) -> TorchEncoder:
    """Return the encoder around a text tower.

    Parameters
    ----------
    module, config : transformers model and its config
        A dual encoder's text side is taken.
    folder : Path
        Where the tokenizer's files lie.
    dual : bool
        Whether ``joint``, the vector in the shared space, is a layer.
    outer : Path
        The folder with ``modules.json``, where sentence-transformers wrote it.

    Raises
    ------
    NeedsWeights
        The tokenizer is not there.
    BadInput
        The model cannot read its tokenizer's tokens.
    """
    import torch

    own = config.text_config if dual else config
    tower = module.text_model if dual else module
    if getattr(config, "is_encoder_decoder", False):
        tower = module.get_encoder()
    tokenizer = _tokenizer(folder, info.id)
    fixed = str(getattr(own, "model_type", "")).startswith("siglip")
    limit = _limit(own, tower, tokenizer, folder)
    ask = _question(tokenizer, tower, limit, fixed=fixed, model=info.id)
    after = None if dual else sentence.read(outer, info.id)

    def forward(prepared: list[Any], pooling: str) -> dict[str, torch.Tensor]:
        given, mask = ask(prepared, device)
        states = tower(**given, output_hidden_states=True).hidden_states
        found = {}
        for number, state in enumerate(states):  # (b, t, d)
            # SigLIP's own head reads the last place, be it padding or not.
            last = fixed and pooling == "last"
            rows = state[:, -1] if last else pool_tokens(state, mask, pooling)
            found[f"block{number:02d}"] = rows
        if dual:
            found["joint"] = of_output(module.get_text_features(**given))
        if after is not None:
            found["sentence"] = after.after(pool_tokens(states[-1], mask, after.pooling))
        return found

    poolings = _poolings(tokenizer, fixed=fixed)
    with torch.inference_mode():
        widths = {name: int(rows.shape[1]) for name, rows in forward(["a"], poolings[0]).items()}
    last = "joint" if dual else "sentence" if after is not None else None
    about: dict[str, Any] = {"tokenizer": type(tokenizer).__name__, "max_tokens": limit,
                             "padding": "to the full length" if fixed else "masked"}  # fmt: skip
    if after is not None:
        about["modules"] = list(after.steps)
    return TorchEncoder(
        with_layers(info, widths, last),
        forward,
        prepare=as_text,
        transform=about,
        revision=outer.name,
        weights_digest=tensors_digest(module.state_dict()),
        poolings=poolings,
        device=device,
        length=lambda text: (len(tokenizer(text, verbose=False)["input_ids"]), limit),
    )


def _tokenizer(folder: Path, model: str) -> Any:
    from transformers import AutoTokenizer

    missing = NeedsWeights(
        f"The tokenizer of {model} is not on this machine: looked for {TOKENIZERS[0]} in {folder}.",
        "Save it beside the weights with tokenizer.save_pretrained().",
    )
    # Without its files transformers makes up an empty tokenizer of the right class.
    if not any((folder / file).is_file() for file in TOKENIZERS):
        raise missing
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError) as err:
        raise missing from err
    if tokenizer.pad_token is None:
        # The padding is masked: any token will do, as long as it is one the model knows.
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    return tokenizer


def _question(tokenizer: Any, tower: Any, limit: int, *, fixed: bool, model: str) -> Any:
    """Return a function from texts to the tower's arguments and the mask of their own tokens."""
    if not fixed:
        # Positions counted from the left are then the text's own, whatever its batch.
        tokenizer.padding_side = "right"
    takes = inspect.signature(tower.forward).parameters

    def ask(texts: list[str], device: torch.device) -> tuple[dict[str, Any], torch.Tensor]:
        tokens = tokenizer(
            texts, padding="max_length" if fixed else True, truncation=True, max_length=limit,
            return_tensors="pt", return_attention_mask=True,
        ).to(device)  # fmt: skip
        if not tokens["input_ids"].numel():
            raise BadInput(f"{model}: the tokenizer makes no token of {texts[0]!r}.", "Leave it.")
        mask: torch.Tensor = tokens["attention_mask"]
        given = {"input_ids": tokens["input_ids"]}
        if not fixed:
            given["attention_mask"] = mask
        if "token_type_ids" in tokens and "token_type_ids" in takes:
            given["token_type_ids"] = tokens["token_type_ids"]
        return given, mask

    return ask


def _poolings(tokenizer: Any, *, fixed: bool) -> tuple[str, ...]:
    """Return the readings that mean something: a class token only where one stands first."""
    if fixed:
        return ("last", "mean")
    ids = tokenizer("a")["input_ids"]
    first = tokenizer.cls_token_id
    if first is not None and ids and ids[0] == first:
        return ("mean", "cls", "last")
    return ("mean", "last")


def _limit(config: Any, tower: Any, tokenizer: Any, folder: Path) -> int:
    """Return how many tokens are read: the least of the model's, tokenizer's and our limits."""
    from torch import nn

    limits = [MAX_TOKENS, getattr(tokenizer, "model_max_length", None)]
    limits += [getattr(config, name, None) for name in ("max_position_embeddings", "n_positions")]
    for name, layer in tower.named_modules():
        places = name.endswith("position_embeddings") and isinstance(layer, nn.Embedding)
        if places and layer.padding_idx is not None:
            # As in RoBERTa, the first token's place is one after the padding's.
            limits.append(layer.num_embeddings - layer.padding_idx - 1)
    beside = folder / "sentence_bert_config.json"
    if beside.is_file():
        try:
            limits.append(json.loads(beside.read_text("utf-8")).get("max_seq_length"))
        except ValueError as err:
            raise BadInput(f"{beside} cannot be read ({err}).", "Save it again.") from err
    return min(int(n) for n in limits if n is not None and n > 0)
