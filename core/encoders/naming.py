"""Names people type: which part of a model id is a path, and whether a page may read it."""

from __future__ import annotations

from pathlib import Path

from core.data.importers.work import allowed_path
from core.encoders.registry import describe
from core.types import EncoderInfo


def path_in(model_id: str) -> str:
    """Return the part of a model id that is a path of this machine, or nothing.

    Examples
    --------
    >>> path_in("timm/resnet18@/models/w.safetensors")
    '/models/w.safetensors'
    >>> path_in("open_clip/local-dir:/models/clip/image")
    '/models/clip'
    >>> path_in("timm/resnet18.a1_in1k"), path_in("open_clip/ViT-B-32:openai/text")
    ('', '')
    """
    library, _, name = model_id.partition("/")
    if library == "onnx":
        return name
    if library in ("timm", "torchvision"):
        return name.partition("@")[2]
    if library == "open_clip":
        arch, _, tag = name.rpartition("/")[0].partition(":")
        return tag if arch == "local-dir" or "/" in tag or Path(tag).suffix else ""
    if library == "transformers":
        source = name
        if source.endswith(("/image", "/text")):
            source = source.rpartition("/")[0]
        here = source.startswith(("/", ".", "~")) or Path(source).expanduser().exists()
        return source if here else ""
    return ""


def named_by_visitor(model_id: str) -> EncoderInfo:
    """Return what is known of a model a visitor of the pages names.

    Parameters
    ----------
    model_id : str
        As :func:`core.encoders.load` takes it; a relative path is one below the first folder
        that the administrator allows.

    Raises
    ------
    NotFound
        No such library, or nothing at the path.
    BadInput
        The path lies outside the folders the administrator allows.
    """
    wanted = model_id.strip()
    path = path_in(wanted)
    if path:
        place = str(allowed_path(path))
        at = wanted.rindex(path)
        wanted = wanted[:at] + place + wanted[at + len(path) :]
    return describe(wanted)
