"""Reading pictures: any mode to RGB, and broken ones refused by name."""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING

from PIL.Image import DecompressionBombError

from core.errors import BadInput

if TYPE_CHECKING:
    from PIL import Image

THUMB_SIZE = 160
# 50 megapixels: larger than any camera frame an encoder is given, small enough for memory.
MAX_PIXELS = 50_000_000
# Other decoders of Pillow start programs (EPS) or are seldom tested: a stranger's file does
# not reach them.
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "PPM")
# Pillow's decoders raise all of these on a file that is cut short or made up.
BROKEN = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    struct.error,
    IndexError,
    KeyError,
    TypeError,
    OverflowError,
    ZeroDivisionError,
    RuntimeError,
    MemoryError,
    DecompressionBombError,
)


def open_rgb(data: bytes, name: str) -> Image.Image:
    """Decode a picture to RGB, upright, transparent parts on white.

    Parameters
    ----------
    data : bytes
        The encoded file.
    name : str
        What to call it in an error: file name, item id.

    Raises
    ------
    BadInput
        Not a picture, cut short, or more than 50 megapixels.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            width, height = image.size
            if width * height > MAX_PIXELS:
                raise BadInput(
                    f"{name} has {width} x {height} pixels; at most {MAX_PIXELS:,} are read.",
                    "Scale it down first.",
                )
            image.load()
            return decode(image)
    except BadInput:
        raise
    except BROKEN as err:
        unknown = isinstance(err, UnidentifiedImageError)
        why = "not a known format" if unknown else str(err)
        raise BadInput(
            f"{name} cannot be read as a picture ({why}).",
            "Replace the file, or leave the item out and import again.",
        ) from err


def decode(image: Image.Image) -> Image.Image:
    """Return an opened picture as RGB, upright."""
    from PIL import ImageOps

    return to_rgb(ImageOps.exif_transpose(image))


def to_rgb(image: Image.Image) -> Image.Image:
    """Return ``image`` in RGB: alpha composited on white, 16 bits scaled to 8."""
    from PIL import Image

    if image.mode == "RGB" and "transparency" not in image.info:
        return image.copy()
    if image.mode.startswith("I") or image.mode == "F":
        return _scaled(image)
    if image.mode in {"RGBA", "LA", "PA", "RGBa", "La"} or "transparency" in image.info:
        layered = image.convert("RGBA")
        paper = Image.new("RGBA", layered.size, (255, 255, 255, 255))
        paper.alpha_composite(layered)
        return paper.convert("RGB")
    return image.convert("RGB")


def _scaled(image: Image.Image) -> Image.Image:
    """Scale 16 or 32 bits, or floating-point values, to 8 bits: brighter stays brighter."""
    import numpy as np
    from PIL import Image

    values = np.asarray(image).astype(np.float64)
    if not np.isfinite(values).all():
        raise BadInput("The picture holds values that are no numbers.", "Replace them first.")
    low, top = 0.0, float(values.max(initial=0.0))
    if image.mode == "F" and (values.min(initial=0.0) < 0 or top > 65535.0):
        low = float(values.min())
    elif image.mode.startswith("I;16"):
        top = 65535.0
    else:
        # The file does not say what is white: the smallest usual range that holds its values.
        ranges = (1.0, 255.0, 65535.0) if image.mode == "F" else (255.0, 65535.0)
        top = next((r for r in ranges if top <= r), top)
    span = top - low or 1.0
    eight = np.clip((values - low) / span * 255.0, 0, 255).astype(np.uint8)
    return Image.fromarray(eight).convert("RGB")


def thumbnail_bytes(data: bytes, name: str, size: int = THUMB_SIZE) -> bytes:
    """Return a WebP of ``data`` whose longer side is at most ``size`` pixels.

    Raises
    ------
    BadInput
        As :func:`open_rgb`.
    """
    image = open_rgb(data, name)
    image.thumbnail((size, size))
    out = io.BytesIO()
    image.save(out, "WEBP", quality=82, method=4)
    return out.getvalue()
