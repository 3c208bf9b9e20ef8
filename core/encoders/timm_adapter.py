"""Any model of timm: ``timm/NAME`` from the local cache, ``timm/NAME@FILE`` from a file.

Axis letters: b batch, c channels, h and w, t tokens, d width.

Layers: ``blockNN`` after each transformer block, or ``stageN`` after each stage, and ``pool``,
what the model gives to its classifier. The transform is the one in the model's own config.
"""

from __future__ import annotations

import difflib
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.encoders.base import (
    ImageTransform,
    TorchEncoder,
    stack,
    tensors_digest,
    with_layers,
)
from core.encoders.checkpoints import (
    does_not_fit,
    hub_file,
    quiet,
    read_state,
    revision_of,
    safe_first,
)
from core.encoders.transforms import LibraryTransform, of_library
from core.errors import NotFound
from core.types import EncoderInfo

if TYPE_CHECKING:
    import torch

FILES = ("model.safetensors", "pytorch_model.bin")


def load(info: EncoderInfo, name: str, device: torch.device) -> TorchEncoder:
    """Load a timm model; see the module's text for ``name``.

    Raises
    ------
    NotFound
        timm has no such model; close names are listed.
    NeedsWeights
        No weights in the cache or at the path.
    BadInput
        The checkpoint cannot be read safely or does not fit.
    """
    import timm
    from timm.data import resolve_model_data_config

    arch, _, file = name.partition("@")
    with quiet():
        path = Path(file) if file else _cached(arch)
        module = _filled(timm, arch, path)
    module = module.eval().to(device)
    config = resolve_model_data_config(module)
    transform = _transform(config, info.id)
    poolings = _poolings(module)

    def forward(prepared: list[Any], pooling: str) -> dict[str, torch.Tensor]:
        return _layers(module, stack(prepared, device), pooling)

    return TorchEncoder(
        with_layers(info, _widths(forward, transform, poolings[0])),
        forward,
        prepare=transform,
        transform=transform.describe(),
        revision=revision_of(path),
        weights_digest=tensors_digest(module.state_dict()),
        poolings=poolings,
        device=device,
    )


def _cached(arch: str) -> Path:
    import timm

    config = timm.get_pretrained_cfg(arch)
    if config is None or not timm.is_model(arch):
        known = timm.list_models() + timm.list_pretrained()
        near = difflib.get_close_matches(arch, known, n=3, cutoff=0.5)
        raise NotFound(
            f"timm has no model {arch!r}.",
            f"Did you mean {', '.join(near)}?"
            if near
            else "List them with timm.list_pretrained().",
        )
    hub_id = config.hf_hub_id
    if not hub_id:
        raise NotFound(
            f"timm publishes no weights for {arch!r}.", f"Name a file: timm/{arch}@FILE."
        )
    own = config.hf_hub_filename
    # A repository of several checkpoints names its own: no other of them will do.
    return hub_file(hub_id, safe_first(own) if own else FILES, f"timm/{arch}")


def _filled(timm: Any, arch: str, path: Path) -> Any:
    state = read_state(path, f"timm/{arch}")
    if not timm.is_model(arch):
        raise NotFound(f"timm has no model {arch!r}.", "List them with timm.list_models().")
    config = timm.get_pretrained_cfg(arch)
    head = getattr(config, "classifier", None)
    head = head[0] if isinstance(head, tuple | list) else head
    weight = state.get(f"{head}.weight")
    # The head is kept as it was saved, so that the whole state has to match, name by name.
    classes = 0 if weight is None else int(weight.shape[0])
    overlay = {"state_dict": state, "num_classes": classes}
    try:
        return timm.create_model(
            arch, pretrained=True, num_classes=classes, pretrained_cfg_overlay=overlay
        )
    except (RuntimeError, KeyError, AttributeError) as err:
        raise does_not_fit(f"timm/{arch}", path, err) from err


def _transform(config: dict[str, Any], model: str) -> LibraryTransform:
    from timm.data import create_transform

    return of_library(create_transform(**config, is_training=False), "timm", config, model)


def _poolings(module: Any) -> tuple[str, ...]:
    if not _has_tokens(module):
        return ("mean",)
    # Register tokens stand before the patches too: only a class token can be read as one.
    return ("cls", "mean") if getattr(module, "cls_token", None) is not None else ("mean",)


def _has_tokens(module: Any) -> bool:
    """Whether the model gives its tokens apart from its patches, block by block."""
    if not hasattr(module, "num_prefix_tokens") or not hasattr(module, "forward_intermediates"):
        return False
    return "return_prefix_tokens" in inspect.signature(module.forward_intermediates).parameters


def _layers(module: Any, x: torch.Tensor, pooling: str) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    if not hasattr(module, "forward_intermediates"):
        final = module.forward_features(x)
    elif _has_tokens(module):
        # Asked for tokens it does not have, one family of timm fails.
        final, states = module.forward_intermediates(
            x, output_fmt="NLC", return_prefix_tokens=module.num_prefix_tokens > 0, norm=False
        )
        for number, state in enumerate(states, start=1):
            patches, prefix = state if isinstance(state, tuple) else (state, None)
            alone = pooling == "mean" or prefix is None or not prefix.shape[1]
            found[f"block{number:02d}"] = patches.mean(dim=1) if alone else prefix[:, 0]
    else:
        final, states = module.forward_intermediates(x)
        for number, state in enumerate(states, start=1):
            found[f"stage{number}"] = state.mean(dim=(2, 3))  # (b, c)
    found["pool"] = module.forward_head(final, pre_logits=True)  # (b, d)
    return found


def _widths(
    forward: Any, transform: ImageTransform | LibraryTransform, pooling: str
) -> dict[str, int]:
    import torch

    blank = np.zeros(transform.shape, np.float32)
    with torch.inference_mode():
        return {name: int(rows.shape[1]) for name, rows in forward([blank], pooling).items()}
