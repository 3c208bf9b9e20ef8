"""Image towers of transformers: which tokens are patches, and what stands before them.

Axis letters: b batch, c channels, h and w, t tokens, d width.

A class token is one vector that stands before the patches (ViT, CLIP, DINOv2); register and
distillation tokens stand there too and are neither. SigLIP, Swin and others have none: for them
only the mean over all patches is offered, and ``pool``, what the model's own pooling head gives.
"""

from __future__ import annotations

import inspect
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.encoders.base import ImageTransform, TorchEncoder, stack, tensors_digest, with_layers
from core.encoders.demo_image import IMAGENET_MEAN, IMAGENET_STD, of_255
from core.encoders.transforms import LibraryTransform, of_library
from core.errors import BadInput
from core.types import EncoderInfo

if TYPE_CHECKING:
    import torch

_CLASS = ("cls_token", "class_embedding", "class_token")
_OTHER = ("distillation_token", "dist_token", "register_tokens")
_BAD_PREPROCESSOR = (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError)


def encoder(
    info: EncoderInfo,
    module: Any,
    config: Any,
    folder: Path,
    device: torch.device,
    *,
    dual: bool,
    pooled: bool,
) -> TorchEncoder:
    """Return the encoder around an image tower.

    Parameters
    ----------
    module, config : transformers model and its config
        A dual encoder's image side is taken.
    folder : Path
        Where the preprocessor's file lies.
    dual : bool
        Whether ``joint``, the vector in the shared space, is a layer.
    pooled : bool
        Whether the weights of the model's own pooling head were in the checkpoint.

    Raises
    ------
    BadInput
        Its preprocessor or its tokens cannot be told, or it draws at random.
    """
    own = config.vision_config if dual else config
    tower = module.vision_model if dual else module
    transform = _transform(folder, own, info.id)
    tokens = _tokens(tower, own)
    ask = _question(tower)

    def forward(prepared: list[Any], pooling: str) -> dict[str, torch.Tensor]:
        x = stack(prepared, device)
        out = tower(output_hidden_states=True, **ask(x))
        found = {}
        for number, state in enumerate(_states(out, info.id)):
            if state.ndim == 4:
                found[f"stage{number}"] = state.mean(dim=(2, 3))  # (b, c)
                continue
            skip = tokens.before(state.shape[1], (x.shape[2], x.shape[3]), info.id)
            cls = pooling == "cls"
            found[f"block{number:02d}"] = state[:, 0] if cls else state[:, skip:].mean(dim=1)
        if dual:
            found["joint"] = of_output(module.get_image_features(**ask(x)))
        elif pooled and not tokens.has_class and any(name.startswith("block") for name in found):
            head = getattr(out, "pooler_output", None)
            if head is not None:
                found["pool"] = head.flatten(1)  # (b, d)
        return found

    poolings = ("cls", "mean") if tokens.has_class else ("mean",)
    widths = _tried(forward, transform, poolings[0], info.id)
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


def of_output(out: Any) -> torch.Tensor:
    """Return the projected vector, which transformers 5 wraps in its output class."""
    vector: torch.Tensor = out if hasattr(out, "ndim") else out.pooler_output
    return vector


@dataclass(frozen=True)
class _Tokens:
    """What stands in a row of tokens: ``prefix`` tokens, the class token first, then patches."""

    has_class: bool
    prefix: int
    patch: tuple[int, int] | None

    def before(self, n: int, size: tuple[int, int], model: str) -> int:
        """Return how many of ``n`` tokens stand before the patches of a picture of ``size``."""
        for skip in dict.fromkeys((self.prefix, 0)):
            patches = n - skip
            if self.patch is not None:
                fits = patches == (size[0] // self.patch[0]) * (size[1] // self.patch[1])
            else:
                # The stages of a network that merges patches: a grid with the picture's sides.
                high = math.isqrt(max(0, patches * size[0] // size[1]))
                fits = patches > 0 and high * high * size[1] == patches * size[0]
            # A class token may come in late, but then it is never read as one.
            if fits and (skip == self.prefix or not self.has_class):
                return skip
        raise BadInput(
            f"{model} gives {n} tokens for a picture of {size[1]} x {size[0]}; which of them are "
            "patches cannot be told.",
            "Export the model to ONNX with the outputs you want, or bring its features as a file.",
        )


def _tokens(tower: Any, config: Any) -> _Tokens:
    first, others = 0, 0
    for name, values in tower.named_parameters():
        leaf = name.rpartition(".")[2]
        count = int(values.shape[-2]) if values.ndim > 1 else 1
        if leaf in _CLASS:
            first += count
        elif leaf in _OTHER:
            others += count
    merges = hasattr(config, "depths") or hasattr(config, "hidden_sizes")
    patch = getattr(config, "patch_size", None)
    if merges or patch is None:
        # Where stages merge patches, a class token belongs to the last one only.
        return _Tokens(False, first + others, None)
    sides = (patch, patch) if isinstance(patch, int) else (int(patch[0]), int(patch[1]))
    return _Tokens(first > 0, first + others, sides)


def _question(tower: Any) -> Any:
    """Return a function from pictures to the tower's arguments, the same every time.

    A masked autoencoder hides three quarters of the patches at random, in evaluation too: its
    mask is set to none, and the patches keep their order (He et al. 2022, section 3).
    """
    if "noise" not in inspect.signature(tower.forward).parameters:
        return lambda x: {"pixel_values": x}
    tower.config.mask_ratio = 0.0
    places = int(tower.embeddings.patch_embeddings.num_patches)

    def masked(x: torch.Tensor) -> dict[str, torch.Tensor]:
        import torch

        order = torch.arange(places, device=x.device, dtype=torch.float32)
        return {"pixel_values": x, "noise": order.expand(len(x), places)}

    return masked


def _states(out: Any, model: str) -> Any:
    states = getattr(out, "hidden_states", None)
    maps = getattr(out, "reshaped_hidden_states", None)
    if states is not None and states[0].ndim == 4 and maps is not None:
        return maps  # channels first
    if not states:
        raise BadInput(
            f"{model} does not give the states between its layers.",
            "Export it to ONNX with the outputs you want.",
        )
    return states


def _tried(
    forward: Any, transform: ImageTransform | LibraryTransform, pooling: str, model: str
) -> dict[str, int]:
    """Return the layers' widths from a trial of one picture, run twice to see chance."""
    import numpy as np
    import torch

    rng = np.random.default_rng(0)
    picture = [rng.standard_normal(transform.shape).astype(np.float32)]
    with torch.inference_mode():
        once, again = forward(picture, pooling), forward(picture, pooling)
    for name, rows in once.items():
        if not torch.allclose(rows, again[name], rtol=1e-3, atol=1e-3 * float(rows.abs().max())):
            raise BadInput(
                f"{model} gives two answers to one picture ({name}): it draws at random.",
                "Save the model without its masking or sampling.",
            )
    return {name: int(rows.shape[1]) for name, rows in once.items()}


def _transform(folder: Path, config: Any, model: str) -> ImageTransform | LibraryTransform:
    """Return the saved preprocessor of transformers; ImageNet's where none is saved."""
    held = _saved(folder)
    if held is None:
        size = getattr(config, "image_size", None) or 224
        size = int(size if isinstance(size, int) else size[0])
        return _Assumed(size, 0, of_255(IMAGENET_MEAN), of_255(IMAGENET_STD))
    from transformers import AutoImageProcessor

    try:
        processor = AutoImageProcessor.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )

        def call(image: Any) -> Any:
            return processor(images=image, return_tensors="pt")["pixel_values"][0]

        found = of_library(call, "transformers", held, model)
    except _BAD_PREPROCESSOR as err:
        raise BadInput(
            f"The preprocessor saved in {folder} cannot be used for {model} "
            f"({str(err).splitlines()[0][:200] if str(err) else type(err).__name__}).",
            "Save it again with processor.save_pretrained().",
        ) from err
    return replace(found, about={**found.about, "processor": type(processor).__name__})


def _saved(folder: Path) -> dict[str, Any] | None:
    for name in ("preprocessor_config.json", "processor_config.json"):
        path = folder / name
        if not path.is_file():
            continue
        try:
            held = json.loads(path.read_text("utf-8"))
        except ValueError as err:
            raise BadInput(f"{path} cannot be read ({err}).", "Save it again.") from err
        inner = held if name.startswith("pre") else held.get("image_processor")
        if inner:
            return dict(inner)
    return None


class _Assumed(ImageTransform):
    """ImageNet's mean and deviation, where the folder says nothing of its pictures."""

    def describe(self) -> dict[str, Any]:
        """Return the settings, and that they are assumed."""
        return {**super().describe(), "assumed": "no preprocessor was saved with the model"}
