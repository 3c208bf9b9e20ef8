"""Questions a search is asked: words, a picture, or an item; each becomes a row of a layer.

Words can be asked of an image encoder that has a text tower in the same space (``pair``). A
picture can be asked of any image encoder that can run here, at every layer its stored
features have. The encoder is loaded once and kept: the first question takes some seconds.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from core.data.images import open_rgb
from core.encoders import registry
from core.errors import BadInput, NotFound
from core.types import Features

if TYPE_CHECKING:
    from pathlib import Path

    from core.encoders.base import Encoder
    from core.workspace import Workspace

MAX_WORDS = 500  # characters of a question in words
MAX_PICTURE = 20_000_000  # bytes of a picture


def text_tower(model: str, workspace: Workspace | None = None) -> str:
    """Return the text encoder that shares an encoder's space, or "" when there is none.

    Examples
    --------
    >>> text_tower("open_clip/RN50:openai/image"), text_tower("demo/vit-s14")
    ('open_clip/RN50:openai/text', '')
    """
    base, _, tower = model.rpartition("/")
    if tower != "image":
        return ""
    other = f"{base}/text"
    try:
        known = registry.describe(other, workspace)
    except NotFound:
        return ""
    return other if known.modality == "text" else ""


def words(workspace: Workspace, features: Features, text: str) -> np.ndarray:
    """Return words as a row of the joint layer of a dual encoder, float32, shape (d,).

    Raises
    ------
    BadInput
        No words, too many, or the encoder reads no words.
    NeedsWeights
        The text tower's weights are not on this machine.
    """
    asked = " ".join(text.split())
    if not asked or len(asked) > MAX_WORDS:
        raise BadInput(
            f"A question has 1 to {MAX_WORDS} characters, got {len(asked)}.", "Shorten it."
        )
    tower = text_tower(features.model, workspace)
    if not tower:
        raise BadInput(
            f"{features.model} reads no words.", "Choose the image tower of a dual encoder."
        )
    encoder = _loaded(tower, workspace.root)
    row = encoder.encode([asked], layers="default")[encoder.info.default_layer][0]
    return _fits(row, features, features.default_layer)


def picture(
    workspace: Workspace, features: Features, layer: str, data: bytes, name: str
) -> np.ndarray:
    """Return a picture as a row of a layer, float32, shape (d,).

    Parameters
    ----------
    data, name : bytes, str
        The encoded file, and what to call it in an error.

    Raises
    ------
    BadInput
        Not a picture, too large, or the encoder reads texts.
    NotFound, NeedsWeights
        The encoder cannot be loaded here, or has no such layer.
    """
    if len(data) > MAX_PICTURE:
        raise BadInput(
            f"{name} has {len(data):,} bytes; at most {MAX_PICTURE:,} are read.",
            "Save it smaller.",
        )
    image = open_rgb(data, name)
    encoder = _loaded(features.model, workspace.root)
    if encoder.info.modality != "image":
        raise BadInput(f"{features.model} reads texts.", "Choose an encoder of pictures.")
    pooling = features.meta.get("pooling")
    row = encoder.encode([image], layers=[layer], pooling=pooling or None)[layer][0]
    return _fits(row, features, layer)


def item(features: Features, layer: str, which: int) -> np.ndarray:
    """Return an item's own row of a layer, shape (d,).

    Raises
    ------
    BadInput, NotFound
        The item has no features here; there is no such layer.
    """
    row = int(features.rows_of([which])[0])
    return np.asarray(features.layer(layer)[row])


def can_run(model: str, workspace: Workspace) -> str:
    """Say why an encoder cannot be asked about new words or pictures here; "" when it can."""
    try:
        known = registry.describe(model, workspace)
    except NotFound as error:
        return f"{error.message} Its features were computed elsewhere."
    return "" if known.status == "ready" else known.reason


@lru_cache(maxsize=4)
def _loaded(model: str, root: Path) -> Encoder:
    from core.workspace import open_workspace

    return registry.load(model, workspace=open_workspace(root))


def _fits(row: np.ndarray, features: Features, layer: str) -> np.ndarray:
    width = int(features.layer(layer).shape[1])
    if row.shape != (width,):
        raise BadInput(
            f"{features.model} gives {row.shape[0]} numbers now; its stored layer {layer} holds "
            f"{width}.",
            "Extract the features again.",
        )
    return row
