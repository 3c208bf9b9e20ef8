"""The packaged image encoders: four small networks of four kinds, with real weights.

Axis letters: b batch, c channels, h and w height and width, t tokens, d width.

Convolutional stages are averaged over h and w. The vision transformer gives the state before
the first block (``block00``) and after each block, as its class token or the mean of its
patch tokens; the states are those of the residual stream, before the last normalisation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from core.encoders.base import ImageTransform, TorchEncoder, stack, tensors_digest
from core.encoders.weights import read_tensors
from core.types import EncoderInfo

if TYPE_CHECKING:
    from pathlib import Path

    import torch
    from torch import nn

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


def of_255(values: tuple[float, ...]) -> tuple[float, float, float]:
    """Return channel values given on 0..1 on the scale of 0..255."""
    red, green, blue = (255.0 * v for v in values)
    return red, green, blue


TRANSFORMS = {
    "squeezenet1.1": ImageTransform(227, 227, (104.0, 117.0, 123.0), (1.0, 1.0, 1.0), bgr=True),
    "efficientnet-lite0": ImageTransform(224, 224, (127.0,) * 3, (128.0,) * 3),
    "mobilenetv2": ImageTransform(224, 224, (127.5,) * 3, (127.5,) * 3),
    "vit-s14": ImageTransform(224, 224, of_255(IMAGENET_MEAN), of_255(IMAGENET_STD)),
}

# SqueezeNet 1.1: position in ``features`` after which a stage is read.
_SQUEEZE_STAGES = {1: "stage1", 4: "stage2", 7: "stage3", 10: "stage4", 12: "pool"}


def load(info: EncoderInfo, path: Path, device: torch.device, revision: str) -> TorchEncoder:
    """Return a packaged image encoder, its weights read from a safetensors file.

    Parameters
    ----------
    info : EncoderInfo
        One of the ``demo/`` image encoders.
    path : Path
        The safetensors file.

    Raises
    ------
    WorkspaceError
        The file is damaged.
    """
    name = info.id.removeprefix("demo/")
    tensors = read_tensors(path)
    module = _BUILDERS[name](tensors).eval().to(device)
    transform = TRANSFORMS[name]
    if name == "vit-s14":
        return _vit_encoder(info, module, tensors, device, revision)
    stages = _squeeze_stages if name == "squeezenet1.1" else _timm_stages

    def forward(prepared: list[Any], pooling: str) -> dict[str, torch.Tensor]:
        return stages(module, stack(prepared, device))

    return TorchEncoder(
        info,
        forward,
        prepare=transform,
        transform={**transform.describe(), "layers": "stages, mean over height and width"},
        revision=revision,
        weights_digest=tensors_digest(tensors),
        device=device,
    )


def _squeezenet(tensors: dict[str, np.ndarray]) -> nn.Module:
    from torchvision.models import squeezenet1_1

    return _filled(squeezenet1_1(weights=None), tensors)


def _efficientnet_lite0(tensors: dict[str, np.ndarray]) -> nn.Module:
    import timm

    return _filled(timm.create_model("tf_efficientnet_lite0", pretrained=False), tensors)


def _mobilenetv2(tensors: dict[str, np.ndarray]) -> nn.Module:
    import timm

    # Keras pads an even input by one row and column at the end only, as "same" does here,
    # and its normalisation adds 1e-3.
    module = timm.create_model(
        "mobilenetv2_100", pretrained=False, num_classes=0, pad_type="same", bn_eps=1e-3
    )
    return _filled(module, tensors)


def _vit_s14(tensors: dict[str, np.ndarray]) -> nn.Module:
    from transformers import Dinov2Config, Dinov2Model

    config = Dinov2Config(
        hidden_size=384,
        num_hidden_layers=12,
        num_attention_heads=6,
        image_size=518,
        patch_size=14,
    )
    return _filled(Dinov2Model(config), tensors)


_BUILDERS: dict[str, Callable[[dict[str, np.ndarray]], nn.Module]] = {
    "squeezenet1.1": _squeezenet,
    "efficientnet-lite0": _efficientnet_lite0,
    "mobilenetv2": _mobilenetv2,
    "vit-s14": _vit_s14,
}


def _filled(module: nn.Module, tensors: dict[str, np.ndarray]) -> nn.Module:
    import torch

    state = {name: torch.from_numpy(array) for name, array in tensors.items()}
    # Counters of seen batches are no weights; every other name has to match.
    for name, value in module.state_dict().items():
        if name.endswith("num_batches_tracked"):
            state[name] = value
    module.load_state_dict(state, strict=True)
    return module


def _squeeze_stages(module: Any, x: torch.Tensor) -> dict[str, torch.Tensor]:
    found = {}
    for place, part in enumerate(module.features):
        x = part(x)  # (b, c, h, w)
        if place in _SQUEEZE_STAGES:
            found[_SQUEEZE_STAGES[place]] = x.mean(dim=(2, 3))  # (b, c)
    return found


def _timm_stages(module: Any, x: torch.Tensor) -> dict[str, torch.Tensor]:
    x = module.bn1(module.conv_stem(x))
    found = {}
    for number, block in enumerate(module.blocks, start=1):
        x = block(x)  # (b, c, h, w)
        found[f"stage{number}"] = x.mean(dim=(2, 3))  # (b, c)
    x = module.bn2(module.conv_head(x))
    found["pool"] = x.mean(dim=(2, 3))  # (b, 1280)
    return found


def _vit_encoder(
    info: EncoderInfo,
    module: Any,
    tensors: dict[str, np.ndarray],
    device: torch.device,
    revision: str,
) -> TorchEncoder:
    transform = TRANSFORMS["vit-s14"]

    def forward(prepared: list[Any], pooling: str) -> dict[str, torch.Tensor]:
        out = module(stack(prepared, device), output_hidden_states=True)
        return {
            f"block{number:02d}": state[:, 0] if pooling == "cls" else state[:, 1:].mean(dim=1)
            for number, state in enumerate(out.hidden_states)  # each (b, t, d)
        }

    return TorchEncoder(
        info,
        forward,
        prepare=transform,
        transform={**transform.describe(), "layers": "residual stream before the last norm"},
        revision=revision,
        weights_digest=tensors_digest(tensors),
        poolings=("cls", "mean"),
        device=device,
    )
