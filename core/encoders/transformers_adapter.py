"""Vision, text and dual encoders of transformers: ``transformers/FOLDER_OR_HUB_ID``.

A dual encoder (CLIP, SigLIP and the like) is read one tower at a time: the id ends in
``/image`` or ``/text``. Files come from the folder or the local hub cache, as safetensors, or
as a PyTorch file of tensors only where there is none; no code of a repository is ever run.

Axis letters: b batch, c channels, h and w, t tokens, d width. Layers: ``block00`` before the
first block and ``blockNN`` after each (convolutional stages: ``stageN``, averaged), and for
a dual encoder ``joint``.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.encoders import sentence, transformers_image, transformers_text
from core.encoders.base import TorchEncoder
from core.encoders.checkpoints import HUB_HINT, does_not_fit, hub_file, quiet
from core.errors import BadInput, NeedsWeights
from core.types import EncoderInfo

if TYPE_CHECKING:
    import torch

# The first that is there is read; each may be cut into shards that an index names.
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_PARTS = {"image": ("vision_model", "get_image_features"),
          "text": ("text_model", "get_text_features"), "": ()}  # fmt: skip


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
        config, module, absent = _model(folder, info.id)
        module = module.eval().to(device)
        dual = hasattr(config, "text_config") and hasattr(config, "vision_config")
        if dual and not side:
            raise BadInput(
                f"{info.id} is a dual encoder.", f"Write {info.id}/image or {info.id}/text."
            )
        if dual and not all(hasattr(module, part) for part in _PARTS[side]):
            raise BadInput(
                f"{info.id} ({config.model_type}) has no {side} tower of its own to read.",
                "CLIP, SigLIP and models built like them are read by tower.",
            )
        vision = side == "image" or (not dual and getattr(config, "image_size", None) is not None)
        vision = vision or (not dual and getattr(config, "num_channels", None) is not None)
        info = replace(info, modality="image" if vision else "text",
                       pair=f"transformers/{source}" if dual else "")  # fmt: skip
        if vision:
            return transformers_image.encoder(
                info, module, config, folder, device, dual=dual, pooled=not absent
            )
        return transformers_text.encoder(
            info, module, config, folder, device, dual=dual, outer=outer
        )


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


def _model(folder: Path, model: str) -> tuple[Any, Any, list[str]]:
    """Return config, model in float32, and the names of pooling weights that were not saved."""
    import torch
    from transformers import AutoConfig, AutoModel

    safe = _weights(folder, model).startswith("model.safetensors")
    options = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = AutoConfig.from_pretrained(folder, **options)
        module, about = AutoModel.from_pretrained(
            folder, config=config, use_safetensors=safe, weights_only=True, dtype=torch.float32,
            output_loading_info=True, **options,
        )  # fmt: skip
    except (RuntimeError, ValueError, KeyError, OSError, pickle.UnpicklingError) as err:
        raise does_not_fit(model, folder, err) from err
    # A pooler that was never saved is not read; anything else missing would be random.
    absent = [name for name in about["missing_keys"] if "pooler" not in name]
    if absent:
        raise does_not_fit(model, folder, RuntimeError(f"missing {', '.join(absent[:4])}"))
    return config, module, sorted(about["missing_keys"])


def _weights(folder: Path, model: str) -> str:
    """Return the file of weights, or of their index, with every shard seen to be there.

    A PyTorch file is taken only where there is no safetensors, and read as tensors only.
    """
    looked = WEIGHTS[0]
    for name in WEIGHTS:
        if (folder / name).is_file():
            return name
        index = folder / f"{name}.index.json"
        if not index.is_file():
            continue
        try:
            shards = sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))
        except (ValueError, KeyError, AttributeError) as err:
            raise BadInput(f"{index} cannot be read ({err!r}).", "Copy it again.") from err
        lacking = [shard for shard in shards if not (folder / str(shard)).is_file()]
        if not lacking:
            return index.name
        looked = f"{lacking[0]} ({len(lacking)} of {len(shards)} shards are missing)"
        break
    raise NeedsWeights(
        f"The weights of {model} are not on this machine: looked for {looked} in {folder}.",
        HUB_HINT.format(hub_id=model.removeprefix("transformers/")),
    )
