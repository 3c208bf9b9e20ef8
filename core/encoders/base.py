"""What an encoder is, and the parts the adapters share.

Axis letters: b batch, c channels, h and w height and width, t tokens, d width of a layer.

An encoder turns a batch of pictures or texts into one float32 matrix a layer, shape (b, d).
It runs in evaluation mode, in float32 with full-precision products, so that a row does not
depend on the other rows of its batch beyond the rounding of the library's kernels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from core.data.images import to_rgb
from core.errors import BadInput, NotFound
from core.types import EncoderInfo

if TYPE_CHECKING:
    import torch
    from PIL import Image

Layers = str | Sequence[str]


@runtime_checkable
class Encoder(Protocol):
    """What extraction asks of an encoder; a class of one's own needs no base class.

    Attributes
    ----------
    info : EncoderInfo
        With ``layers`` and ``default_layer`` filled in.
    revision : str
        Version of the weights' source.
    weights_digest : str
        SHA-256 (hex) of the weights' names, shapes and values.
    poolings : tuple of str
        How tokens become one vector; the first is the default.
    transform : dict
        What happens to an item before the first layer, in plain JSON types.
    """

    info: EncoderInfo
    revision: str
    weights_digest: str
    poolings: tuple[str, ...]
    transform: dict[str, Any]

    def prepare(self, item: Any) -> Any:
        """Turn one picture or text into what ``run`` stacks; called from several threads."""

    def run(
        self, prepared: Sequence[Any], *, layers: Layers = "all", pooling: str | None = None
    ) -> dict[str, np.ndarray]:
        """Return float32 features (b, d) by layer for prepared items."""

    def encode(
        self, batch: Sequence[Any], *, layers: Layers = "all", pooling: str | None = None
    ) -> dict[str, np.ndarray]:
        """Return float32 features (b, d) by layer for pictures (RGB) or texts."""


@dataclass(frozen=True)
class ImageTransform:
    """Resize, crop and scale a picture.

    Attributes
    ----------
    size : int
        Side of the square that goes in.
    resize : int
        The shorter side is scaled to this, then the centre is cut out. 0: both sides are
        scaled to ``size``, whatever the picture's proportions.
    mean, std : tuple of float
        Subtracted and divided by, on the scale of 0..255, in the order of the channels.
    bgr : bool
        Blue first, as in networks trained with Caffe.
    interpolation : {"bicubic", "bilinear"}
        Pillow's filter (with antialiasing).
    """

    size: int
    resize: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    bgr: bool = False
    interpolation: str = "bicubic"

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of a prepared picture, (3, h, w)."""
        return (3, self.size, self.size)

    def __call__(self, image: Image.Image) -> np.ndarray:
        """Return float32, shape (3, size, size)."""
        from PIL import Image as Pillow

        kind = Pillow.Resampling[self.interpolation.upper()]
        image = image if image.mode == "RGB" else to_rgb(image)
        width, height = image.size
        if self.resize:
            scale = self.resize / min(width, height)
            wide, high = max(1, round(width * scale)), max(1, round(height * scale))
        else:
            wide, high = self.size, self.size
        if (wide, high) != (width, height):
            image = image.resize((wide, high), kind)
        left, top = (wide - self.size) // 2, (high - self.size) // 2
        if (wide, high) != (self.size, self.size):
            image = image.crop((left, top, left + self.size, top + self.size))
        x: np.ndarray = np.asarray(image, dtype=np.float32)  # (h, w, c)
        if self.bgr:
            x = x[:, :, ::-1]
        x = (x - np.array(self.mean, np.float32)) / np.array(self.std, np.float32)
        return np.ascontiguousarray(x.transpose(2, 0, 1))  # (c, h, w)

    def describe(self) -> dict[str, Any]:
        """Return the transform in plain JSON types, for the recipe of the features."""
        return {
            "size": self.size,
            "resize": self.resize,
            "mean": list(self.mean),
            "std": list(self.std),
            "bgr": self.bgr,
            "interpolation": self.interpolation,
        }


# What a module gives back: one matrix (b, d) a layer, in layer order.
Forward = Callable[[list[Any], str], "dict[str, torch.Tensor]"]


class TorchEncoder:
    """An encoder around a function that runs a torch model.

    Parameters
    ----------
    info : EncoderInfo
        ``layers`` names what ``forward`` gives, from input to output.
    forward : callable
        ``forward(prepared, pooling) -> {layer: tensor (b, d)}``.
    prepare : callable
        Runs on one item, in any thread.
    transform : dict
        What ``prepare`` does, in plain JSON types.
    device : torch.device, optional
        For messages; ``forward`` moves its own inputs.
    length : callable, optional
        ``length(text) -> (tokens, limit)`` of a text encoder that cuts what is longer.
    """

    def __init__(
        self,
        info: EncoderInfo,
        forward: Forward,
        *,
        prepare: Callable[[Any], Any],
        transform: dict[str, Any],
        revision: str,
        weights_digest: str,
        poolings: tuple[str, ...] = ("mean",),
        device: torch.device | None = None,
        length: Callable[[str], tuple[int, int]] | None = None,
    ) -> None:
        self.length = length
        self.info = info
        self.prepare = prepare
        self.transform = transform
        self.revision = revision
        self.weights_digest = weights_digest
        self.poolings = poolings
        self.device = device
        self._forward = forward

    def run(
        self, prepared: Sequence[Any], *, layers: Layers = "all", pooling: str | None = None
    ) -> dict[str, np.ndarray]:
        """Return float32 features (b, d) by layer for prepared items.

        Raises
        ------
        NotFound
            A layer this encoder does not have.
        BadInput
            A pooling it does not offer.
        """
        import torch

        names = choose_layers(self.info, layers)
        how = choose_pooling(self, pooling)
        if not prepared:
            raise BadInput("The batch is empty.", "Give at least one picture or text.")
        with torch.inference_mode(), full_precision():
            found = self._forward(list(prepared), how)
        return {
            name: np.ascontiguousarray(found[name].float().cpu().numpy().astype(np.float32))
            for name in names
        }

    def encode(
        self, batch: Sequence[Any], *, layers: Layers = "all", pooling: str | None = None
    ) -> dict[str, np.ndarray]:
        """Return float32 features (b, d) by layer for pictures (RGB) or texts.

        Raises
        ------
        NotFound, BadInput
            As :meth:`run`.
        """
        return self.run([self.prepare(item) for item in batch], layers=layers, pooling=pooling)


def full_precision() -> Any:
    """Return a context in which products are taken in float32, not TF32."""
    import torch

    torch.set_float32_matmul_precision("highest")
    if not torch.cuda.is_available():
        return nullcontext()
    return torch.backends.cudnn.flags(
        enabled=True, benchmark=False, deterministic=True, allow_tf32=False
    )


def choose_layers(info: EncoderInfo, layers: Layers) -> tuple[str, ...]:
    """Return layer names in layer order.

    Parameters
    ----------
    layers : "all", "default", or a list of names
        A single other name is taken as a list of one.

    Raises
    ------
    NotFound
        A name the encoder does not have.
    """
    if layers == "all":
        return info.layers
    if layers == "default":
        return (info.default_layer,)
    wanted = [layers] if isinstance(layers, str) else list(layers)
    strange = [name for name in wanted if name not in info.layers]
    if strange or not wanted:
        raise NotFound(
            f"layers={', '.join(strange) or 'none'}: {info.id} has no such layer.",
            f"Choose from: {', '.join(info.layers)}.",
        )
    return tuple(name for name in info.layers if name in wanted)


def choose_pooling(encoder: Encoder, pooling: str | None) -> str:
    """Return the pooling to use, the encoder's default when None.

    Raises
    ------
    BadInput
        The encoder does not offer it.
    """
    if pooling is None:
        return encoder.poolings[0]
    if pooling not in encoder.poolings:
        why = " (it has no class token to read)" if pooling == "cls" else ""
        raise BadInput(
            f"pooling={pooling!r} is not offered by {encoder.info.id}{why}.",
            f"Choose from: {', '.join(encoder.poolings)}.",
        )
    return pooling


def tensors_digest(tensors: Mapping[str, Any]) -> str:
    """Return the SHA-256 (hex) of tensors by name: names, types, shapes and bytes.

    It does not depend on the container, so that a converted file and its original agree.

    Examples
    --------
    >>> a, b = np.zeros(2, np.float32), np.ones(3, np.float32)
    >>> tensors_digest({"a": a, "b": b}) == tensors_digest({"b": b, "a": a})
    True
    """
    digest = hashlib.sha256()
    for name in sorted(tensors):
        array = as_numpy(tensors[name])
        digest.update(f"{name}\0{array.dtype.str}{array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def as_numpy(tensor: Any) -> np.ndarray:
    """Return a tensor's values; bfloat16, which numpy lacks, as its 16 bits."""
    if isinstance(tensor, np.ndarray):
        return tensor
    import torch

    held = tensor.detach().cpu().contiguous()
    if held.dtype == torch.bfloat16:
        held = held.view(torch.int16)
    return np.asarray(held.numpy())


def stack(prepared: list[Any], device: torch.device) -> torch.Tensor:
    """Return prepared pictures as one float32 tensor, shape (b, c, h, w), on the device."""
    import torch

    return torch.from_numpy(np.stack(prepared)).to(device)


def with_layers(
    info: EncoderInfo, widths: Mapping[str, int], default_layer: str | None = None
) -> EncoderInfo:
    """Return ``info`` with its layers, default layer and dim filled in from layer widths."""
    names = tuple(widths)
    default = default_layer or info.default_layer or names[-1]
    return replace(info, layers=names, default_layer=default, dim=int(widths[default]))
