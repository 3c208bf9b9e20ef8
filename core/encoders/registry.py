"""Models by id: list them, describe one, load one.

An id is ``library/name``:

- ``demo/NAME``: packaged encoders (``demo/vit-s14``).
- ``timm/NAME``, ``torchvision/NAME``: by the library's own name, weights from its cache;
  ``timm/NAME@FILE`` reads a checkpoint file (safetensors, or a state dict).
- ``open_clip/ARCH:TAG/image`` and ``.../text``: one tower of a dual encoder; TAG may be a
  file, and ``open_clip/local-dir:FOLDER/image`` reads a saved folder.
- ``transformers/FOLDER_OR_HUB_ID``; dual encoders end in ``/image`` or ``/text``; a folder
  of sentence-transformers is read with its pooling and dense modules.
- ``onnx/FILE.onnx``: an image model, each named output a layer.
- ``own/package.module:Class``: a class of one's own, where the administrator allows code.
"""

from __future__ import annotations

import difflib
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from core.encoders.catalogue import DEMO
from core.errors import NotFound
from core.types import EncoderInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.encoders.base import Encoder
    from core.workspace import Workspace

LIBRARIES = ("demo", "timm", "torchvision", "open_clip", "transformers", "onnx", "own")


def list_models(workspace: Workspace | None = None) -> list[EncoderInfo]:
    """Return every encoder known here: the packaged ones, then the registry of vision models.

    Parameters
    ----------
    workspace : Workspace, optional
        Where fetched weights are looked for; the default workspace when None.

    Returns
    -------
    list of EncoderInfo
        ``status`` is "ready", "needs-weights" or "not-loadable"; ``reason`` says what is
        missing and where it was looked for. No weight is read and no library imported.
    """
    from core.encoders import vision_registry

    return [_with_status(info, workspace) for info in DEMO.values()] + vision_registry.infos()


def describe(model_id: str, workspace: Workspace | None = None) -> EncoderInfo:
    """Return what is known of one model before it is loaded.

    Raises
    ------
    NotFound
        The id is of no library here; close names are listed.
    """
    if model_id in DEMO:
        return _with_status(DEMO[model_id], workspace)
    for info in _registry():
        if info.id == model_id:
            return info
    library, _, name = model_id.partition("/")
    if library in LIBRARIES[1:] and name:
        modality = "text" if name.endswith("/text") else "image"
        return EncoderInfo(id=model_id, title=name, library=library, modality=modality)
    raise _unknown(model_id)


def load(model_id: str, device: str | None = None, workspace: Workspace | None = None) -> Encoder:
    """Load an encoder; nothing is ever downloaded here.

    Parameters
    ----------
    model_id : str
        See the module's text for the forms.
    device : str, optional
        "auto", "cpu" or "cuda"; see :func:`core.device.pick_device`.
    workspace : Workspace, optional
        Where fetched weights are looked for.

    Raises
    ------
    NotFound
        No such model; close names are listed.
    NeedsWeights
        The weights are not on this machine: which file, looked for where, and what to run.
    BadInput
        The checkpoint cannot be loaded safely or does not fit the model.
    """
    from core.device import pick_device

    library, _, name = model_id.partition("/")
    if library == "demo" and model_id not in DEMO:
        raise _unknown(model_id)
    info = describe(model_id, workspace)
    where = pick_device(device)
    if library == "demo":
        from core.encoders import demo

        return demo.load(model_id, where, workspace)
    return _adapter(library)(info, name, where)


def _adapter(library: str) -> Callable[[EncoderInfo, str, Any], Encoder]:
    import importlib

    name = "own" if library == "own" else f"{library}_adapter"
    module = importlib.import_module(f"core.encoders.{name}")
    loader: Callable[[EncoderInfo, str, Any], Encoder] = module.load
    return loader


@cache
def _registry() -> list[EncoderInfo]:
    from core.encoders import vision_registry

    return vision_registry.infos()


def _with_status(info: EncoderInfo, workspace: Workspace | None) -> EncoderInfo:
    from core.encoders import demo
    from core.encoders.weights import FETCH, sources

    lacking = demo.missing(info.id, workspace)
    if lacking:
        packages = sources()["packages"]
        size = sum(float(packages[name]["megabytes"]) for name in lacking)
        reason = (
            f"Needs {', '.join(packages[name]['package'] for name in lacking)} ({size:.0f} MB). "
            f"Run `{FETCH} {info.id.removeprefix('demo/')}`."
        )
        return replace(info, status="needs-weights", reason=reason)
    if info.pair and not demo.projection(info.pair.removeprefix("demo/")).is_file():
        reason = "Its projections are missing. Run `python -m core.encoders.lit`."
        return replace(info, status="needs-weights", reason=reason)
    return info


def _unknown(model_id: str) -> NotFound:
    known = [*DEMO, *(info.id for info in _registry())]
    near = difflib.get_close_matches(model_id, known, n=3, cutoff=0.4)
    tails = {name.rpartition("/")[2]: name for name in known}
    near += [tails[t] for t in difflib.get_close_matches(model_id, list(tails), n=2, cutoff=0.6)]
    hint = f"Did you mean {' or '.join(dict.fromkeys(near))}? " if near else ""
    return NotFound(
        f"model={model_id!r} is not a model known here.",
        f"{hint}List them with `theodolite models`; ids look like timm/resnet18.a1_in1k.",
    )
