"""Vision, text and dual encoders of transformers: ``transformers/FOLDER_OR_HUB_ID``.

A dual encoder (CLIP, SigLIP and the like) is read one tower at a time: the id ends in
``/image`` or ``/text``. Files come from the folder or the local hub cache, as safetensors;
no code of a repository is ever run.

Axis letters: b batch, c channels, h and w, t tokens, d width. Layers: ``block00`` before the
first block and ``blockNN`` after each (convolutional stages: ``stageN``, averaged), and for
a dual encoder ``joint``.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.encoders import sentence
from core.encoders.base import ImageTransform, TorchEncoder, stack, tensors_digest, with_layers
from core.encoders.checkpoints import HUB_HINT, does_not_fit, hub_file, quiet
from core.encoders.demo_image import IMAGENET_MEAN, IMAGENET_STD, of_255
from core.encoders.demo_text import as_text, pool_tokens
from core.encoders.timm_adapter import _widths
from core.errors import BadInput, NeedsWeights
from core.types import EncoderInfo

if TYPE_CHECKING:
    import torch

TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "tokenizer.model", "spiece.model",
              "sentencepiece.bpe.model")  # fmt: skip
# Longer texts are cut; the model's own limit counts when it is smaller.
MAX_TOKENS = 512


def load(info: EncoderInfo, name: str, device: torch.device) -> TorchEncoder:
    """Load a transformers model; see the module's text for ``name``.

    Raises
    ------
    NeedsWeights
        Config, weights, or tokenizer are not on this machine: which file, and where.
    BadInput
        The architecture needs code of its own, or a dual encoder's tower is not named.
    """
    side = name.rpartition("/")[2] if name.endswith(("/image", "/text")) else ""
    source = name.removesuffix(f"/{side}") if side else name
    outer = _folder(source, info.id)
    folder = sentence.transformer_folder(outer)
    with quiet():
        config, module = _model(folder, info.id)
        module = module.eval().to(device)
        dual = hasattr(config, "text_config") and hasattr(config, "vision_config")
        if dual and not side:
            raise BadInput(
                f"{info.id} is a dual encoder.", f"Write {info.id}/image or {info.id}/text."
            )
        vision = side == "image" or (not dual and getattr(config, "image_size", None) is not None)
        vision = vision or (not dual and getattr(config, "num_channels", None) is not None)
        info = replace(info, modality="image" if vision else "text",
                       pair=f"transformers/{source}" if dual else "")  # fmt: skip
        if vision:
            return _image(info, module, config, folder, device, dual=dual)
        return _text(info, module, config, folder, device, dual=dual, outer=outer)


def _folder(source: str, model: str) -> Path:
    folder = Path(source).expanduser()
    if folder.is_dir():
        if not (sentence.transformer_folder(folder) / "config.json").is_file():
            raise NeedsWeights(
                f"{model}: looked for {folder / 'config.json'}.", "Save it with save_pretrained()."
            )
        return folder
    if source.startswith(("/", ".", "~")):
        raise NeedsWeights(f"{model}: there is no folder {folder}.", "Check the path.")
    return hub_file(source, ["config.json"], model).parent


def _model(folder: Path, model: str) -> tuple[Any, Any]:
    import torch
    from transformers import AutoConfig, AutoModel

    if not any(folder.glob("*.safetensors")):
        raise NeedsWeights(
            f"The weights of {model} are not on this machine: looked for model.safetensors in "
            f"{folder}.",
            HUB_HINT.format(hub_id=model.removeprefix("transformers/")),
        )
    options = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = AutoConfig.from_pretrained(folder, **options)
        module, about = AutoModel.from_pretrained(
            folder, config=config, use_safetensors=True, dtype=torch.float32,
            output_loading_info=True, **options,
        )  # fmt: skip
    except (RuntimeError, ValueError, KeyError, OSError) as err:
        raise does_not_fit(model, folder, err) from err
    # A pooler that was never saved is not read here; anything else missing would be random.
    absent = [name for name in about["missing_keys"] if "pooler" not in name]
    if absent:
        raise does_not_fit(model, folder, RuntimeError(f"missing {', '.join(absent[:4])}"))
    return config, module


def _image(
    info: EncoderInfo, module: Any, config: Any, folder: Path, device: torch.device, *, dual: bool
) -> TorchEncoder:
    own = config.vision_config if dual else config
    transform = _transform(folder, own)
    tower = module.vision_model if dual else module

    def forward(prepared: list[Any], pooling: str) -> dict[str, torch.Tensor]:
        x = stack(prepared, device)
        out = tower(pixel_values=x, output_hidden_states=True)
        found = {}
        for number, state in enumerate(out.hidden_states):
            if state.ndim == 4:
                found[f"stage{number}"] = state.mean(dim=(2, 3))  # (b, c)
            else:
                skip = 1 + int(getattr(own, "num_register_tokens", 0) or 0)
                cls = pooling == "cls"
                found[f"block{number:02d}"] = state[:, 0] if cls else state[:, skip:].mean(dim=1)
        if dual:
            found["joint"] = _tensor(module.get_image_features(pixel_values=x))
        return found

    grid = hasattr(own, "hidden_sizes") or hasattr(own, "depths")
    poolings = ("mean",) if grid else ("cls", "mean")
    widths = _widths(forward, transform, poolings[0])
    return TorchEncoder(
        with_layers(info, widths, "joint" if dual else None),
        forward,
        prepare=transform,
        transform=transform.describe(),
        revision=folder.name,
        weights_digest=tensors_digest(module.state_dict()),
        poolings=poolings,
        device=device,
    )


def _tensor(out: Any) -> torch.Tensor:
    # transformers 5 wraps the projected vector in its output class.
    return out if hasattr(out, "ndim") else out.pooler_output


def _transform(folder: Path, config: Any) -> ImageTransform:
    path = folder / "preprocessor_config.json"
    held = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    size = held.get("crop_size") if held.get("do_center_crop") else held.get("size")
    side = _side(size) or _side(getattr(config, "image_size", None)) or 224
    crop = bool(held.get("do_center_crop"))
    return ImageTransform(
        size=side,
        resize=(_side(held.get("size")) or side) if crop else 0,
        mean=of_255(tuple(held.get("image_mean", IMAGENET_MEAN))),
        std=of_255(tuple(held.get("image_std", IMAGENET_STD))),
        interpolation="bilinear" if held.get("resample") == 2 else "bicubic",
    )


def _side(size: Any) -> int:
    if isinstance(size, dict):
        size = size.get("shortest_edge") or size.get("height")
    if isinstance(size, tuple | list):
        size = size[0]
    return int(size or 0)


def _text(
    info: EncoderInfo,
    module: Any,
    config: Any,
    folder: Path,
    device: torch.device,
    *,
    dual: bool,
    outer: Path,
) -> TorchEncoder:
    import torch
    from transformers import AutoTokenizer

    missing = NeedsWeights(
        f"The tokenizer of {info.id} is not on this machine: looked for "
        f"{TOKENIZERS[0]} in {folder}.",
        "Save it beside the weights with tokenizer.save_pretrained().",
    )
    # Without its files transformers makes up an empty tokenizer of the right class.
    if not any((folder / file).is_file() for file in TOKENIZERS):
        raise missing
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as err:
        raise missing from err
    own = config.text_config if dual else config
    limit = min(MAX_TOKENS, int(getattr(own, "max_position_embeddings", MAX_TOKENS)))
    tower = module.text_model if dual else module
    if getattr(config, "is_encoder_decoder", False):
        tower = module.get_encoder()
    after = None if dual else sentence.read(outer, info.id)

    def forward(prepared: list[Any], pooling: str) -> dict[str, torch.Tensor]:
        tokens = tokenizer(
            prepared, padding=True, truncation=True, max_length=limit, return_tensors="pt"
        ).to(device)
        mask = tokens.get("attention_mask")
        if mask is None:
            mask = torch.ones_like(tokens["input_ids"])
        states = tower(**tokens, output_hidden_states=True).hidden_states
        found = {
            f"block{number:02d}": pool_tokens(state, mask, pooling)
            for number, state in enumerate(states)  # (b, t, d)
        }
        if dual:
            found["joint"] = _tensor(module.get_text_features(**tokens))
        if after is not None:
            found["sentence"] = after.after(pool_tokens(states[-1], mask, after.pooling))
        return found

    with torch.inference_mode():
        widths = {name: int(rows.shape[1]) for name, rows in forward(["a"], "mean").items()}
    last = "joint" if dual else "sentence" if after is not None else None
    about = {"tokenizer": type(tokenizer).__name__, "max_tokens": limit}
    if after is not None:
        about["modules"] = list(after.steps)
    return TorchEncoder(
        with_layers(info, widths, last),
        forward,
        prepare=as_text,
        transform=about,
        revision=outer.name,
        weights_digest=tensors_digest(module.state_dict()),
        poolings=("mean", "cls", "last"),
        device=device,
        length=lambda text: (len(tokenizer(text)["input_ids"]), limit),
    )
