"""What a picture is, and what is read otherwise than it stands in the file.

The whole picture is decoded once, so that a file cut short is found now and not in the
middle of an extraction. The bytes are kept as they came.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.data.images import BROKEN, FORMATS, decode
from core.data.importers.limits import ImportLimits
from core.errors import BadInput

if TYPE_CHECKING:
    from PIL import Image

_ENDINGS = {
    "JPEG": {".jpg", ".jpeg", ".jfif", ".mpo"}, "PNG": {".png"}, "WEBP": {".webp"},
    "GIF": {".gif"}, "BMP": {".bmp"}, "TIFF": {".tif", ".tiff"}, "AVIF": {".avif"},
    "PPM": {".ppm", ".pgm", ".pnm"}, "MPO": {".jpg", ".jpeg", ".mpo"},
}  # fmt: skip
# Modes whose pixels are shown as they are.
_PLAIN = {"RGB", "L", "P", "1"}


@dataclass(frozen=True)
class PictureFacts:
    """What was found in a picture: its size, and what is read otherwise than given."""

    width: int
    height: int
    repairs: tuple[str, ...]


def inspect(
    data: bytes, limits: ImportLimits, *, ending: str = "", first_frame: bool = False
) -> PictureFacts:
    """Decode a picture and say what it is.

    Parameters
    ----------
    data : bytes
        The encoded file.
    limits : ImportLimits
        Pixels at most and at least.
    ending : str
        The file's ending, to say when it is another format.
    first_frame : bool
        Take the first frame of an animation instead of leaving it out.

    Raises
    ------
    BadInput
        No picture, broken, too large, too small or animated; the reason is the message.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            width, height = image.size
            _check_size(width, height, limits)
            repairs = _animation(image, first_frame)
            repairs += _said(image, ending)
            if image.format == "JPEG" and image.mode in {"RGB", "L"}:
                # Decodes every block but keeps one pixel of 64: as strict, several times faster.
                image.draft(image.mode, (width // 8 or 1, height // 8 or 1))
                image.load()
            else:
                image.load()
                if image.mode not in _PLAIN:
                    decode(image)
    except BadInput:
        raise
    except UnidentifiedImageError as err:
        raise BadInput("it is no picture by its content") from err
    except BROKEN as err:
        raise BadInput(f"it cannot be decoded: {str(err)[:120] or type(err).__name__}") from err
    return PictureFacts(width, height, tuple(repairs))


def _check_size(width: int, height: int, limits: ImportLimits) -> None:
    if width * height > limits.pixels:
        raise BadInput(f"{width:,} x {height:,} pixels, at most {limits.pixels:,} are read")
    if min(width, height) < limits.min_side:
        raise BadInput(f"{width} x {height} pixels: too small to show anything")


def _animation(image: Image.Image, first_frame: bool) -> list[str]:
    frames = int(getattr(image, "n_frames", 1))
    if frames < 2 or image.format == "MPO":
        return []
    pages = "pages" if image.format == "TIFF" else "frames"
    if not first_frame:
        raise BadInput(f"{frames} {pages}: a single picture was expected")
    return [f"only the first of several {pages} is read"]


def _said(image: Image.Image, ending: str) -> list[str]:
    """Say what is read otherwise than it stands in the file."""
    said = []
    known = _ENDINGS.get(image.format or "", set())
    if ending and known and ending not in known:
        said.append(f"it is {image.format} by its content, not {ending}")
    if image.getexif().get(0x0112, 1) not in {0, 1}:
        said.append("turned upright as its EXIF tag says")
    mode = image.mode
    if mode in {"CMYK", "YCbCr", "LAB", "HSV"}:
        said.append(f"converted from {mode} to RGB")
    elif mode.startswith("I") or mode == "F":
        said.append("more than 8 bits a channel, scaled to 8")
    elif mode in {"RGBA", "LA", "PA", "RGBa", "La"} or "transparency" in image.info:
        said.append("transparent parts are laid on white")
    return said
