"""The two things every method takes: a table of items and their features.

Row identity is one integer ``id`` from import to export. Features carry it; a selection is
a set of ids; nothing is ever joined by position.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from core.errors import BadInput, NotFound


@dataclass(frozen=True)
class LeftOut:
    """One line of an outcome report: what was left out, and why.

    Attributes
    ----------
    what : str
        File, row id or column.
    reason : str
        One sentence a person understands.
    count : int
        How many items the line stands for.
    """

    what: str
    reason: str
    count: int = 1

    def as_dict(self) -> dict[str, Any]:
        """Return the line as plain JSON types."""
        return {"what": self.what, "reason": self.reason, "count": self.count}


@dataclass(frozen=True)
class Features:
    """Layerwise features of one dataset under one encoder.

    Attributes
    ----------
    ids : ndarray of int64, shape (n,)
        Item ids, in the order of the rows.
    arrays : mapping of str to ndarray of float32, shape (n, d_l)
        One array a layer, in layer order; usually memory-mapped.
    dataset, model : str
        Names of the dataset and of the encoder.
    default_layer : str
        The layer a method takes when none is named.
    key : str
        Content key of the extraction recipe.
    meta : dict
        Pooling, revision, weights digest, left-out items and the like.
    """

    ids: np.ndarray
    arrays: Mapping[str, np.ndarray]
    dataset: str
    model: str
    default_layer: str
    key: str = ""
    meta: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def layers(self) -> tuple[str, ...]:
        """Layer names, from input to output."""
        return tuple(self.arrays)

    def layer(self, name: str | None = None) -> np.ndarray:
        """Return one layer, shape (n, d); the default layer when ``name`` is None."""
        name = name or self.default_layer
        if name not in self.arrays:
            raise NotFound(
                f"layer={name!r} is not among the layers of {self.model} on {self.dataset}.",
                f"Choose one of: {', '.join(self.layers)}.",
            )
        return self.arrays[name]

    def take(self, ids: Iterable[int]) -> Features:
        """Return the rows of ``ids``, in that order.

        Raises
        ------
        BadInput
            An id has no row here; the first few are named.
        """
        wanted = np.asarray(list(ids), dtype=np.int64)
        rows = self.rows_of(wanted)
        picked = {name: np.asarray(array)[rows] for name, array in self.arrays.items()}
        return Features(
            wanted, picked, self.dataset, self.model, self.default_layer, self.key, self.meta
        )

    def rows_of(self, ids: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the row numbers of ``ids`` (int64, same order)."""
        wanted = np.asarray(ids, dtype=np.int64)
        order = np.argsort(self.ids, kind="stable")
        at = np.searchsorted(self.ids, wanted, sorter=order)
        at = np.minimum(at, len(self.ids) - 1)
        rows = order[at]
        missing = wanted[self.ids[rows] != wanted]
        if len(missing):
            shown = ", ".join(map(str, missing[:5]))
            raise BadInput(
                f"{len(missing)} ids have no features of {self.model} on {self.dataset}: {shown}.",
                "Extract again, or leave these items out.",
            )
        return rows


@dataclass(frozen=True)
class EncoderInfo:
    """What is known of an encoder before its weights are read.

    Attributes
    ----------
    id : str
        ``library/name``, for instance ``"demo/vit-s14"`` or ``"timm/resnet18.a1_in1k"``.
    title : str
        The name people read.
    library : str
        demo, timm, open_clip, transformers, torchvision.
    modality : {"image", "text"}
        What it reads. A dual encoder has one entry a tower, with the same ``pair``.
    family, arch_class, objective : str
        Recipe family; ViT, ResNet, CNN, transformer ...; supervised, ssl, vision-language ...
    dim : int
        Width of the default layer (0 when unknown before loading).
    params_m : float
        Parameters, in millions.
    licence, source : str
        Licence and where the weights come from.
    layers : tuple of str
        Layer names from input to output (empty when unknown before loading).
    default_layer : str
        The layer a method takes when none is named.
    pair : str
        Id shared by the towers of a dual encoder, else empty.
    note : str
        One sentence worth knowing.
    status : {"ready", "needs-weights", "not-loadable"}
        Whether it can run on this machine now.
    reason : str
        What is missing and what to do, when it cannot.
    poolings : tuple of str
        How tokens can become one vector, its default first (empty when unknown before loading).
    """

    id: str
    title: str
    library: str
    modality: str
    family: str = ""
    arch_class: str = ""
    objective: str = ""
    dim: int = 0
    params_m: float = 0.0
    licence: str = ""
    source: str = ""
    layers: tuple[str, ...] = ()
    default_layer: str = ""
    pair: str = ""
    note: str = ""
    status: str = "ready"
    reason: str = ""
    poolings: tuple[str, ...] = ()
