"""One tower of any open_clip model: ``open_clip/ARCH:TAG/image`` or ``/text``.

TAG is one of open_clip's pretrained tags, found in the local caches, or a checkpoint file.
``open_clip/local-dir:FOLDER/image`` reads a folder with ``open_clip_config.json`` and weights.

Axis letters: b batch, t tokens, d width. Layers: ``blockNN`` after each transformer block
where the tower has them, and ``joint``, the vector in the shared space (not normalised).
"""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.encoders.base import TorchEncoder, stack, tensors_digest, with_layers
from core.encoders.checkpoints import (
    does_not_fit,
    hub_file,
    quiet,
    read_state,
    revision_of,
    safe_first,
)
from core.encoders.demo_text import as_text
from core.encoders.timm_adapter import _widths
from core.encoders.transforms import LibraryTransform, of_library
from core.errors import BadInput, NeedsWeights, NotFound
from core.types import EncoderInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

FILES = ("open_clip_model.safetensors", "open_clip_pytorch_model.safetensors",
         "open_clip_pytorch_model.bin", "model.safetensors")  # fmt: skip


def load(info: EncoderInfo, name: str, device: torch.device) -> TorchEncoder:
    """Load one tower; see the module's text for ``name``.

    Raises
    ------
    NotFound
        open_clip has no such architecture or tag; close names are listed.
    NeedsWeights
        The checkpoint, or the text tower's tokenizer, is not on this machine.
    BadInput
        The id names no tower, or the checkpoint does not fit.
    """
    body, _, side = name.rpartition("/")
    if side not in ("image", "text") or ":" not in body:
        raise BadInput(
            f"model={info.id!r} does not name a tower.",
            "Write open_clip/ARCH:TAG/image or open_clip/ARCH:TAG/text.",
        )
    arch, _, tag = body.partition(":")
    with quiet():
        module, preprocess, source = _model(arch, tag, info.id)
        module = module.eval().to(device)
        info = replace(info, modality=side, pair=f"open_clip/{body}")
        if side == "image":
            return _image(info, module, preprocess, device, revision_of(source))
        named = f"local-dir:{tag}" if arch == "local-dir" else arch
        return _text(info, module, named, device, revision_of(source))


def _model(arch: str, tag: str, model: str) -> tuple[Any, dict[str, Any], Path]:
    import open_clip

    config: dict[str, Any] = {}
    if arch == "local-dir":
        folder = Path(tag)
        if not (folder / "open_clip_config.json").is_file():
            raise NeedsWeights(
                f"{model}: looked for {folder / 'open_clip_config.json'}.",
                "Name a folder saved by open_clip.",
            )
        source, pretrained, path = f"local-dir:{tag}", None, folder
    else:
        path, config = _checkpoint(open_clip, arch, tag, model)
        source, pretrained = arch, str(path)
    options: dict[str, Any] = {"require_pretrained": True} if pretrained is None else {}
    try:
        module = open_clip.create_model(
            source, pretrained=pretrained, precision="fp32", weights_only=True,
            force_quick_gelu=bool(config.get("quick_gelu")), pretrained_text=False, **options,
        )  # fmt: skip
    except (RuntimeError, ValueError, FileNotFoundError) as err:
        raise does_not_fit(model, pretrained or tag, err) from err
    known = dict(getattr(module.visual, "preprocess_cfg", {}) or {})
    known.update({k: config[k] for k in ("mean", "std", "interpolation", "resize_mode")
                  if k in config})  # fmt: skip
    return module, known, path


def _checkpoint(open_clip: Any, arch: str, tag: str, model: str) -> tuple[Path, dict[str, Any]]:
    known = open_clip.list_models()
    if arch not in known:
        near = difflib.get_close_matches(arch, known, n=3, cutoff=0.4)
        raise NotFound(
            f"open_clip has no architecture {arch!r}.",
            f"Did you mean {', '.join(near)}?" if near else "See open_clip.list_models().",
        )
    if "/" in tag or Path(tag).suffix:
        path = Path(tag)
        read_state(path, model)  # refuses what is missing or not safe, by name
        return path, {}
    config = open_clip.pretrained.get_pretrained_cfg(arch, tag)
    if not config:
        tags = open_clip.list_pretrained_tags_by_model(arch)
        raise NotFound(
            f"open_clip has no weights {tag!r} for {arch}.",
            f"Choose from: {', '.join(tags)}." if tags else "Name a checkpoint file.",
        )
    hub = str(config.get("hf_hub", ""))
    if hub:
        hub_id, _, file = hub.rpartition("/")
        return hub_file(hub_id, safe_first(file) if file else FILES, model), config
    path = Path("~/.cache/clip").expanduser() / str(config["url"]).rpartition("/")[2]
    if not path.is_file():
        raise NeedsWeights(
            f"The weights of {model} are not on this machine: looked for {path}.",
            "Download them with open_clip on a machine with a network, and copy the file here.",
        )
    return path, config


def _activation(tower: Any) -> dict[str, str]:
    """Return which GELU a tower runs: OpenAI's weights were trained with the quick one."""
    kinds = {type(part).__name__ for part in tower.modules()}
    found = sorted(kinds & {"QuickGELU", "GELU"})
    return {"activation": " and ".join(found)} if found else {}


def _image(
    info: EncoderInfo,
    module: Any,
    preprocess: dict[str, Any],
    device: torch.device,
    revision: str,
) -> TorchEncoder:
    transform = _transform(module, preprocess, info.id)
    blocks = hasattr(module.visual, "transformer") and hasattr(module, "forward_intermediates")

    def forward(prepared: list[Any], pooling: str) -> dict[str, torch.Tensor]:
        x = stack(prepared, device)
        if not blocks:
            return {"joint": module.encode_image(x)}
        out = module.forward_intermediates(
            image=x, normalize=False, image_output_fmt="NLC", image_output_extra_tokens=True
        )
        pairs = zip(out["image_intermediates"], out["image_intermediates_prefix"], strict=True)
        found = {
            f"block{number:02d}": prefix[:, 0] if pooling == "cls" else patches.mean(dim=1)
            for number, (patches, prefix) in enumerate(pairs, start=1)  # (b, t, d)
        }
        return {**found, "joint": out["image_features"]}

    return TorchEncoder(
        with_layers(info, _widths(forward, transform, "cls"), "joint"),
        forward,
        prepare=transform,
        transform={**transform.describe(), **_activation(module.visual)},
        revision=revision,
        weights_digest=tensors_digest(module.state_dict()),
        poolings=("cls", "mean") if blocks else ("joint",),
        device=device,
    )


def _transform(module: Any, preprocess: dict[str, Any], model: str) -> LibraryTransform:
    from open_clip.transform import PreprocessCfg, image_transform_v2

    known = {k: v for k, v in preprocess.items() if k in PreprocessCfg.__dataclass_fields__}
    known.setdefault("size", module.visual.image_size)
    config = PreprocessCfg(**known)
    settings = {key: getattr(config, key) for key in PreprocessCfg.__dataclass_fields__}
    return of_library(
        image_transform_v2(config, is_train=False), "open_clip_torch", settings, model
    )


def _text(
    info: EncoderInfo, module: Any, source: str, device: torch.device, revision: str
) -> TorchEncoder:
    import open_clip
    import torch

    try:
        tokenizer = open_clip.get_tokenizer(source)
    except (OSError, ValueError) as err:
        raise NeedsWeights(
            f"The tokenizer of {info.id} is not on this machine "
            f"({str(err).splitlines()[0][:160]}).",
            "Load the model once on a machine with a network, and copy the cache folder here.",
        ) from err
    # The end of the text is the highest token id only in CLIP's own tokenizer.
    blocks = hasattr(module, "token_embedding") and hasattr(module, "forward_intermediates")

    def forward(prepared: list[Any], pooling: str) -> dict[str, torch.Tensor]:
        tokens = tokenizer(prepared).to(device)  # (b, t)
        if not blocks:
            return {"joint": module.encode_text(tokens)}
        out = module.forward_intermediates(text=tokens, normalize=False)
        end = tokens.argmax(dim=-1)
        kept = torch.arange(tokens.shape[1], device=device)[None, :] <= end[:, None]  # (b, t)
        weight = kept.unsqueeze(-1).float()
        found = {
            f"block{number:02d}": state[range(len(end)), end]
            if pooling == "end"
            else (state * weight).sum(dim=1) / weight.sum(dim=1)
            for number, state in enumerate(out["text_intermediates"], start=1)  # (b, t, d)
        }
        return {**found, "joint": out["text_features"]}

    with torch.inference_mode():
        widths = {name: int(rows.shape[1]) for name, rows in forward(["a"], "end").items()}
    return TorchEncoder(
        with_layers(info, widths, "joint"),
        forward,
        prepare=as_text,
        transform={"tokenizer": type(tokenizer).__name__,
                   "max_tokens": int(getattr(tokenizer, "context_length", 0) or 0),
                   **_activation(getattr(module, "transformer", module))},
        revision=revision,
        weights_digest=tensors_digest(module.state_dict()),
        poolings=("end", "mean") if blocks else ("joint",),
        device=device,
        length=_length(tokenizer),
    )  # fmt: skip


def _length(tokenizer: Any) -> Callable[[str], tuple[int, int]] | None:
    """Return how long a text is and what fits, where the tokenizer can say so."""
    limit = int(getattr(tokenizer, "context_length", 0) or 0)
    inner = getattr(tokenizer, "tokenizer", None)  # of transformers, with its own framing
    if limit and inner is not None:
        return lambda text: (
            len(inner(tokenizer.clean_fn(text), verbose=False)["input_ids"]),
            limit,
        )
    if not limit or not hasattr(tokenizer, "encode"):
        return None
    # CLIP's tokenizer frames a text by a start and an end.
    return lambda text: (len(tokenizer.encode(text)) + 2, limit)
