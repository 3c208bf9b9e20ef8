"""Decoding pictures of every mode to RGB."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from core.data import images
from core.errors import BadInput


def encoded(image, format="PNG", **options):
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def test_opaque_picture_is_unchanged():
    pixels = np.random.default_rng(0).integers(0, 256, (9, 7, 3), dtype=np.uint8)
    back = images.open_rgb(encoded(Image.fromarray(pixels)), "x")
    assert np.array_equal(np.asarray(back), pixels)


def test_half_transparent_red_on_white():
    back = images.open_rgb(encoded(Image.new("RGBA", (2, 2), (255, 0, 0, 128))), "x")
    assert back.mode == "RGB"
    assert back.getpixel((0, 0)) == (255, 127, 127)


def test_palette_with_transparent_entry():
    image = Image.new("P", (2, 2), 0)
    image.putpalette([0, 0, 0, 200, 0, 0])
    image.putpixel((1, 1), 1)
    back = images.open_rgb(encoded(image, transparency=0), "x")
    assert back.getpixel((0, 0)) == (255, 255, 255)
    assert back.getpixel((1, 1)) == (200, 0, 0)


def test_grey_with_alpha_and_cmyk_and_bilevel():
    grey = images.open_rgb(encoded(Image.new("LA", (2, 2), (0, 0))), "x")
    assert grey.getpixel((0, 0)) == (255, 255, 255)
    bilevel = images.open_rgb(encoded(Image.new("1", (2, 2), 1)), "x")
    assert bilevel.getpixel((0, 0)) == (255, 255, 255)
    cmyk = images.open_rgb(encoded(Image.new("CMYK", (8, 8), (0, 0, 0, 0)), "JPEG"), "x")
    assert cmyk.mode == "RGB"


def test_sixteen_bits_are_scaled_not_cut():
    pixels = np.array([[0, 32768, 65535]], dtype=np.uint16)
    back = images.open_rgb(encoded(Image.fromarray(pixels)), "x")
    assert [back.getpixel((i, 0))[0] for i in range(3)] == [0, 127, 255]


def test_orientation_is_applied():
    image = Image.new("RGB", (4, 2))
    exif = Image.Exif()
    exif[0x0112] = 6
    assert images.open_rgb(encoded(image, "JPEG", exif=exif), "x").size == (2, 4)


def test_too_many_pixels_are_refused_before_decoding(monkeypatch):
    monkeypatch.setattr(images, "MAX_PIXELS", 10)
    with pytest.raises(BadInput, match="4 x 4 pixels"):
        images.open_rgb(encoded(Image.new("RGB", (4, 4))), "big.png")


@pytest.mark.parametrize("data", [b"", b"GIF89a", b"\x89PNG\r\n\x1a\n" + b"\0" * 40])
def test_broken_file_is_named(data):
    with pytest.raises(BadInput, match=r"cat\.png cannot be read as a picture"):
        images.open_rgb(data, "cat.png")


def test_thumbnail_keeps_the_shape_of_small_pictures():
    data = images.thumbnail_bytes(encoded(Image.new("RGB", (20, 10))), "x")
    with Image.open(io.BytesIO(data)) as thumb:
        assert thumb.size == (20, 10)
