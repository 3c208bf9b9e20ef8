"""Any classification model of torchvision: ``torchvision/NAME`` or ``torchvision/NAME.WEIGHTS``.

``torchvision/NAME@FILE`` reads a state dict from a file. Axis letters: b batch, c channels,
h and w, t tokens, d width.

Layers: the outputs of the network's stages, averaged over h and w (transformers: ``blockNN``,
class token or mean), and ``pool``, what goes into the last linear layer.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.encoders.base import TorchEncoder, stack, tensors_digest, with_layers
from core.encoders.checkpoints import does_not_fit, quiet, read_state
from core.encoders.timm_adapter import _widths
from core.encoders.transforms import LibraryTransform, of_library
from core.encoders.vision_registry import torch_checkpoints
from core.errors import BadInput, NotFound
from core.types import EncoderInfo

if TYPE_CHECKING:
    import torch


def load(info: EncoderInfo, name: str, device: torch.device) -> TorchEncoder:
    """Load a torchvision model; see the module's text for ``name``.

    Raises
    ------
    NotFound
        torchvision has no such model; close names are listed.
    NeedsWeights
        No weights in torch's cache or at the path.
    BadInput
        The checkpoint cannot be read safely or does not fit.
    """
    from torchvision import models

    plain, _, file = name.partition("@")
    arch, _, tag = plain.partition(".")
    if arch not in models.list_models(module=models):
        near = difflib.get_close_matches(arch, models.list_models(module=models), n=3, cutoff=0.4)
        raise NotFound(
            f"torchvision has no classification model {arch!r}.",
            f"Did you mean {', '.join(near)}?" if near else "See torchvision.models.list_models().",
        )
    weights = _weights(models, arch, tag)
    path = Path(file) if file else torch_checkpoints() / weights.url.rpartition("/")[2]
    with quiet():
        module = _filled(models, arch, path, info.id)
    module = module.eval().to(device)
    transform = _transform(weights, info.id)
    tokens = hasattr(getattr(module, "encoder", None), "layers")
    reader = _Reader(module, device, tokens=tokens)
    poolings = ("cls", "mean") if tokens else ("mean",)
    return TorchEncoder(
        with_layers(info, _widths(reader, transform, poolings[0])),
        reader,
        prepare=transform,
        transform=transform.describe(),
        revision=path.name,
        weights_digest=tensors_digest(module.state_dict()),
        poolings=poolings,
        device=device,
    )


def _weights(models: Any, arch: str, tag: str) -> Any:
    choices = models.get_model_weights(arch)
    if not tag:
        return choices.DEFAULT
    if tag not in choices.__members__:
        raise NotFound(
            f"torchvision has no weights {tag!r} for {arch}.",
            f"Choose from: {', '.join(choices.__members__)}.",
        )
    return choices[tag]


def _filled(models: Any, arch: str, path: Path, model: str) -> Any:
    state = read_state(path, model)
    # The last weight is the classifier's: as many classes as it was trained with.
    last = [value for name, value in state.items() if name.endswith("weight")][-1]
    options = {"init_weights": False} if arch in ("googlenet", "inception_v3") else {}
    try:
        module = models.get_model(arch, weights=None, num_classes=int(last.shape[0]), **options)
        module.load_state_dict(state)
    except (RuntimeError, ValueError) as err:
        raise does_not_fit(model, path, err) from err
    return module


def _transform(weights: Any, model: str) -> LibraryTransform:
    preset = weights.transforms()
    settings = {
        "resize": list(preset.resize_size),
        "mean": list(preset.mean),
        "std": list(preset.std),
        "interpolation": getattr(preset.interpolation, "value", str(preset.interpolation)),
    }
    return of_library(preset, "torchvision", settings, model)


class _Reader:
    """Runs the model with hooks that keep what its stages and its last linear layer see."""

    def __init__(self, module: Any, device: torch.device, *, tokens: bool) -> None:
        from torch import nn

        self._module = module
        self._device = device
        self._tokens = tokens
        self._last_channel = type(module).__name__ == "SwinTransformer"
        self._stages = self._find_stages()
        heads = [m for m in module.modules() if isinstance(m, nn.Linear)]
        # SqueezeNet classifies with a convolution: its input is pooled instead.
        convolutions = [m for m in module.modules() if isinstance(m, nn.Conv2d)]
        self._head = heads[-1] if heads else convolutions[-1]

    def _find_stages(self) -> dict[str, Any]:
        module = self._module
        if self._tokens:
            return {f"block{n:02d}": m for n, m in enumerate(module.encoder.layers, start=1)}
        if hasattr(module, "features"):
            return {f"stage{n}": m for n, m in enumerate(module.features, start=1)}
        named = [m for name, m in module.named_children() if name.startswith(("layer", "block"))]
        if not named and hasattr(module, "trunk_output"):
            named = list(module.trunk_output)
        return {f"stage{n}": m for n, m in enumerate(named, start=1)}

    def __call__(self, prepared: list[Any], pooling: str) -> dict[str, torch.Tensor]:
        import torch

        found: dict[str, torch.Tensor] = {}
        hooks = []

        def keep(name: str) -> Any:
            def hook(_module: Any, _inputs: Any, output: Any) -> None:
                if isinstance(output, torch.Tensor) and output.ndim in (3, 4):
                    found[name] = self._pooled(output, pooling)

            return hook

        def keep_input(_module: Any, inputs: Any) -> None:
            x = inputs[0]
            found["pool"] = x.mean(dim=(2, 3)) if x.ndim == 4 else x.flatten(1)

        try:
            hooks += [m.register_forward_hook(keep(name)) for name, m in self._stages.items()]
            hooks.append(self._head.register_forward_pre_hook(keep_input))
            self._module(stack(prepared, self._device))
        finally:
            for hook in hooks:
                hook.remove()
        if "pool" not in found:
            raise BadInput(
                f"{type(self._module).__name__} has no last linear layer to read.",
                "Load the model through timm instead.",
            )
        found["pool"] = found.pop("pool")  # last, as in the network
        return found

    def _pooled(self, x: torch.Tensor, pooling: str) -> torch.Tensor:
        if x.ndim == 3:  # (b, t, d), the class token first
            return x[:, 0] if pooling == "cls" else x[:, 1:].mean(dim=1)
        return x.mean(dim=(1, 2) if self._last_channel else (2, 3))
