"""An encoder class of the user's own, named by its import path: ``own/package.module:Class``.

Naming a class runs its code, so that an administrator has to allow it on this server:
``THEODOLITE_ALLOW_CODE=1``. The class takes a device and keeps
:class:`core.encoders.base.Encoder`.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

from core.encoders.base import Encoder
from core.errors import BadInput, NotFound
from core.types import EncoderInfo

if TYPE_CHECKING:
    import torch

SWITCH = "THEODOLITE_ALLOW_CODE"


def allowed() -> bool:
    """Return whether this server may import classes named by users."""
    return os.environ.get(SWITCH, "") == "1"


def load(info: EncoderInfo, name: str, device: torch.device) -> Encoder:
    """Import the class and make an encoder of it.

    Raises
    ------
    BadInput
        Code is not allowed here, or the class does not keep the contract.
    NotFound
        There is no such module or class.
    """
    if not allowed():
        raise BadInput(
            f"{info.id} would run code of its own, which this server does not allow.",
            f"An administrator can start it with {SWITCH}=1.",
        )
    module, _, attribute = name.partition(":")
    if not attribute.isidentifier() or not all(p.isidentifier() for p in module.split(".")):
        raise BadInput(f"model={info.id!r} names no class.", "Write own/package.module:Class.")
    try:
        made = getattr(importlib.import_module(module), attribute)
    except (ModuleNotFoundError, AttributeError) as err:
        raise NotFound(
            f"{info.id}: {err}.", "Install the package, or put its folder on PYTHONPATH."
        ) from err
    encoder = made(device)
    if not isinstance(encoder, Encoder):
        lacking = [n for n in ("info", "revision", "weights_digest", "poolings", "transform",
                               "prepare", "run", "encode") if not hasattr(encoder, n)]  # fmt: skip
        raise BadInput(
            f"{attribute} is not an Encoder: it lacks {', '.join(lacking)}.",
            "See core.encoders.base.Encoder.",
        )
    if not encoder.info.layers or encoder.info.default_layer not in encoder.info.layers:
        raise BadInput(f"{attribute}.info names no layers.", "Fill in layers and default_layer.")
    return encoder
