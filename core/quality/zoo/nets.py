"""The four architecture classes at small width, depth and input: timm's own classes.

Input is ``(n, 3, 32, 32)``; features are the class token (ViT) or the pooled last stage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.errors import NotFound

if TYPE_CHECKING:
    import torch
    from torch import nn

SIDE = 32
PATCH = 8
_REGNET = {0.5: (8, 12, 1.7), 1.0: (8, 24, 1.7), 1.5: (16, 24, 1.7), 2.0: (16, 32, 1.7)}


def _eight(value: float) -> int:
    return max(8, 8 * round(value / 8))


def _vit(width: float) -> nn.Module:
    from timm.models.vision_transformer import VisionTransformer

    dim = 4 * _eight(16 * width)
    return VisionTransformer(
        img_size=SIDE, patch_size=PATCH, embed_dim=dim, depth=4, num_heads=4, num_classes=0
    )


def _resnet(width: float) -> nn.Module:
    from timm.models.resnet import BasicBlock, ResNet

    channels = tuple(_eight(c * width) for c in (24, 40, 64, 96))
    block: Any = BasicBlock  # timm's annotation asks for an instance and means the class
    return ResNet(block, (1, 1, 1, 1), channels=channels, stem_width=16, num_classes=0)


def _convnext(width: float) -> nn.Module:
    from timm.models.convnext import ConvNeXt

    dims = tuple(_eight(c * width) for c in (16, 32, 64, 96))
    return ConvNeXt(depths=(1, 1, 2, 1), dims=dims, patch_size=2, num_classes=0)


def _regnet(width: float) -> nn.Module:
    from timm.models.regnet import RegNet, RegNetCfg

    # (w0, wa, wm) of which RegNet's own width rule makes exactly four stages in five blocks.
    w0, wa, wm = _REGNET[width]
    config = RegNetCfg(w0=w0, wa=wa, wm=wm, depth=5, group_size=8, stem_width=16, se_ratio=0.25)
    # Five halvings would leave one place of a 32-pixel picture; dilation keeps four by four.
    return RegNet(config, num_classes=0, output_stride=8)


_BUILDERS = {"ViT": _vit, "ResNet": _resnet, "ConvNeXt": _convnext, "RegNet": _regnet}


def build(architecture: str, width: float) -> nn.Module:
    """Return an untrained network without a head; ``num_features`` is its feature width.

    Raises
    ------
    NotFound
        The architecture class is not one of the four.
    """
    if architecture not in _BUILDERS:
        raise NotFound(
            f"There is no architecture class {architecture!r}.",
            f"Choose one of: {', '.join(_BUILDERS)}.",
        )
    return _BUILDERS[architecture](width)


def feature_map(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Return the unpooled output: tokens (ViT) or the last stage's map."""
    out: torch.Tensor = net.forward_features(x)  # type: ignore[operator]
    return out


def features(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Return ``(n, d)``: the class token, or the mean over the last stage's places."""
    out = feature_map(net, x)
    return out[:, 0] if out.ndim == 3 else out.mean((2, 3))


def count_macs(net: nn.Module) -> int:
    """Return the multiply-adds of linear and convolution layers for one picture.

    The products of attention itself are left out: under 3 % at 17 tokens.
    """
    import torch
    from torch import nn

    total = 0

    def note(module: nn.Module, args: tuple[torch.Tensor, ...], out: torch.Tensor) -> None:
        nonlocal total
        weight: torch.Tensor = module.weight  # type: ignore[assignment]
        if isinstance(module, nn.Conv2d):
            total += weight.numel() * out.shape[2] * out.shape[3]
        else:
            total += weight.numel() * (out.numel() // out.shape[-1])

    handles = [
        m.register_forward_hook(note) for m in net.modules() if isinstance(m, nn.Conv2d | nn.Linear)
    ]
    was = net.training
    net.eval()
    with torch.inference_mode():
        features(net, torch.zeros(1, 3, SIDE, SIDE, device=next(net.parameters()).device))
    net.train(was)
    for handle in handles:
        handle.remove()
    return total
