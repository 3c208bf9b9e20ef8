"""Load a packaged encoder, and say what it still needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from core.encoders.catalogue import DEMO, LIT_PAIRS
from core.encoders.weights import (
    encoder_assets,
    need_folder,
    sources,
    weights_folder,
)
from core.errors import NeedsWeights

if TYPE_CHECKING:
    import torch

    from core.encoders.base import Encoder
    from core.types import EncoderInfo
    from core.workspace import Workspace


def parts(model_id: str) -> list[str]:
    """Return the names of the fetched weights an encoder rests on, in order.

    Examples
    --------
    >>> parts("demo/lit-cnn-minilm/image")
    ['mobilenetv2']
    >>> parts("demo/minilm-l6-int8")
    ['minilm-l6-int8', 'minilm-l6']
    """
    name = model_id.removeprefix("demo/")
    pair, _, tower = name.partition("/")
    if pair in LIT_PAIRS:
        towers = LIT_PAIRS[pair].towers(tower)
        return [part for model, _ in towers for part in parts(model)]
    package = sources()["packages"].get(name)
    return [] if package is None else [name, *package.get("needs", [])]


def missing(model_id: str, workspace: Workspace | None = None) -> list[str]:
    """Return the names of the weights of an encoder that are not on this machine."""
    return [name for name in parts(model_id) if weights_folder(name, workspace) is None]


def projection(pair: str) -> Path:
    """Return where the projections of a dual encoder lie, or would lie."""
    return encoder_assets() / f"{pair}.safetensors"


def load(model_id: str, device: torch.device, workspace: Workspace | None = None) -> Encoder:
    """Load a packaged encoder.

    Raises
    ------
    NeedsWeights
        Its weights have not been fetched; the command is named.
    """
    info = DEMO[model_id]
    name = model_id.removeprefix("demo/")
    if name.partition("/")[0] in LIT_PAIRS:
        from core.encoders.lit import load_tower

        return load_tower(info, device, workspace)
    if name in sources()["shipped"]:
        from core.encoders import demo_image

        about = sources()["shipped"][name]
        path = encoder_assets() / about["file"]
        if not path.is_file():
            raise NeedsWeights(f"{path} is missing.", "Install the program again.")
        return demo_image.load(info, path, device, about["version"])
    folders = [need_folder(part, workspace) for part in parts(model_id)]
    version = str(sources()["packages"][name]["version"])
    if info.modality == "image":
        from core.encoders import demo_image

        return demo_image.load(info, folders[0] / "model.safetensors", device, version)
    return _load_text(info, folders, device, version)


def _load_text(
    info: EncoderInfo, folders: list[Path], device: torch.device, version: str
) -> Encoder:
    from core.encoders.demo_text import MiniLMInt8, load_minilm

    if info.id == "demo/minilm-l6":
        return load_minilm(info, folders[0], device, version)
    if info.id == "demo/minilm-l6-int8":
        return MiniLMInt8(info, folders[0] / "model.onnx", folders[1], version)
    from core.encoders.use_m3 import UseM3

    return UseM3(info, folders[0], version)
