"""A library's own preparation of pictures, run as the library runs it.

Resizing and cropping differ between libraries in rounding, filter and proportions; a model is
given what its own library gives it, and the record says which library and which settings.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from core.data.images import to_rgb
from core.errors import BadInput

if TYPE_CHECKING:
    from PIL import Image


@dataclass(frozen=True)
class LibraryTransform:
    """A function of a library from a picture to what its model reads.

    Attributes
    ----------
    call : callable
        RGB picture to an array or tensor of shape (3, h, w).
    shape : tuple of int
        (3, h, w), the same for every picture.
    about : dict
        Library, version and settings, in plain JSON types.
    """

    call: Callable[[Image.Image], Any]
    shape: tuple[int, int, int]
    about: dict[str, Any]

    def __call__(self, image: Image.Image) -> np.ndarray:
        """Return float32, shape (3, h, w).

        Raises
        ------
        BadInput
            The library gave this picture another shape.
        """
        rgb = image if image.mode == "RGB" else to_rgb(image)
        x: np.ndarray = np.ascontiguousarray(np.asarray(self.call(rgb), dtype=np.float32))
        if x.shape != self.shape:
            raise BadInput(
                f"A picture of {image.width} x {image.height} was prepared as {x.shape}; "
                f"{self.shape} was expected.",
                "Scale the picture to the usual proportions first.",
            )
        return x

    def describe(self) -> dict[str, Any]:
        """Return the transform in plain JSON types, for the recipe of the features."""
        return dict(self.about)


def of_library(
    call: Callable[[Image.Image], Any], package: str, settings: Mapping[str, Any], model: str
) -> LibraryTransform:
    """Return a library's preparation, tried on a wide and on a high picture.

    Parameters
    ----------
    call : callable
        Takes an RGB picture.
    package : str
        The distribution whose code runs; its version is kept.
    settings : mapping
        What ``call`` was made with, for the record.
    model : str
        For messages.

    Raises
    ------
    BadInput
        It does not give three channels of one size, whatever the picture's proportions.
    """
    from PIL import Image

    # Sizes, not contents, decide the shape.
    shapes = {
        tuple(np.asarray(call(Image.new("RGB", size))).shape) for size in ((64, 40), (40, 64))
    }
    shape = shapes.pop()
    if shapes or len(shape) != 3 or shape[0] != 3:
        raise BadInput(
            f"{model} prepares pictures as {', '.join(map(str, [shape, *shapes]))}; three channels "
            "of one size were expected.",
            "Save a preprocessor that scales every picture to one size.",
        )
    about = {"by": f"{package} {version(package)}", "input": [int(n) for n in shape]}
    return LibraryTransform(call, (3, int(shape[1]), int(shape[2])), {**plain(settings), **about})


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as JSON holds them; what it cannot hold is kept as its name.

    Examples
    --------
    >>> plain({"size": (3, 4), "kind": int})
    {'size': [3, 4], 'kind': "<class 'int'>"}
    """
    return dict(json.loads(json.dumps(dict(settings), default=str)))
