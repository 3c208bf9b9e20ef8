"""The six data sets the zoo is measured on, all from ``assets``, at 32 x 32 pixels.

Networks are trained on the emoji's training concepts only. Each set is split so that what is
tested was not seen under another guise: emoji by concept, letters by font face, the others
by a stratified draw (seed 0).
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from core.data.demo import demo_dir
from core.quality.zoo.nets import SIDE

TITLES = {
    "emoji-groups": "Emoji, 7 groups",
    "emoji-subgroups": "Emoji, subgroups (fine-grained)",
    "clipart": "Clip art, folders",
    "mnist": "MNIST digits",
    "digits": "Digits of scikit-learn",
    "letters": "Letters A to Z in open fonts",
}


@dataclass(frozen=True)
class StudySet:
    """One labelled image set.

    Attributes
    ----------
    name : str
        Key of :data:`TITLES`.
    images : ndarray, shape (n, 32, 32, 3), uint8
    labels : ndarray, shape (n,), int64
    train : ndarray, shape (n,), bool
        Rows the metrics and the probes' training use; the others are tested.
    pixels : str
        Which pictures: sets with the same pictures share features.
    """

    name: str
    images: np.ndarray
    labels: np.ndarray
    train: np.ndarray
    pixels: str


def study_dir() -> Path:
    """Return the folder with the study's table and small image sets."""
    return demo_dir().parent / "study"


def _picture(data: bytes) -> np.ndarray:
    from PIL import Image

    image = Image.open(io.BytesIO(data)).convert("RGBA")
    white = Image.new("RGBA", image.size, "white")
    flat = Image.alpha_composite(white, image).convert("RGB")
    return np.asarray(flat.resize((SIDE, SIDE), Image.Resampling.BOX))


def _demo(name: str) -> tuple[np.ndarray, pd.DataFrame]:
    folder = demo_dir() / name
    stored = pd.read_parquet(folder / "images.parquet").set_index("id")["bytes"]
    items = pd.read_parquet(folder / "items.parquet")
    return np.stack([_picture(stored[i]) for i in items["id"]]), items


def _grey(images: np.ndarray) -> np.ndarray:
    """Return white-ground RGB of white-on-black grey pictures, as the emoji have it."""
    from PIL import Image

    out = []
    for image in images:
        flipped = Image.fromarray(255 - image).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        out.append(np.asarray(flipped.convert("RGB")))
    return np.stack(out)


def _stratified(labels: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return which rows train: four of five in each class."""
    rng = np.random.default_rng(seed)
    train = np.ones(len(labels), dtype=bool)
    for value in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == value))
        train[rows[: max(1, len(rows) // 5)]] = False
    return train


def training_set() -> tuple[np.ndarray, np.ndarray]:
    """Return the pictures every network is trained on and their subgroup labels.

    Returns
    -------
    images : ndarray, shape (1278, 32, 32, 3), uint8
    labels : ndarray, shape (1278,), int64
        Subgroup codes, used by the supervised objective only.
    """
    images, items = _demo("emoji")
    train = (items["split"] == "train").to_numpy()
    codes = np.unique(items["subgroup"][train], return_inverse=True)[1]
    return images[train], codes.astype(np.int64)


@dataclass(frozen=True)
class StudyItems:
    """Which items of a demo dataset a set uses, without their pictures.

    Attributes
    ----------
    name, pixels : str
        As in :class:`StudySet`.
    rows : ndarray of int64
        Rows of the dataset's items, ascending.
    labels, train : ndarray
        Of these rows.
    """

    name: str
    rows: np.ndarray
    labels: np.ndarray
    train: np.ndarray
    pixels: str


def demo_items(dataset: str, items: pd.DataFrame) -> list[StudyItems]:
    """Return the sets made of a demo dataset's items; none for any other dataset.

    Parameters
    ----------
    dataset : str
        "emoji" or "clipart".
    items : DataFrame
        In the shipped order, with label, split and subgroup.
    """
    if dataset == "clipart":
        folders = np.unique(items["label"].to_numpy(dtype=str), return_inverse=True)[1]
        every = np.arange(len(items))
        return [StudyItems("clipart", every, folders, _stratified(folders), "clipart")]
    if dataset != "emoji":
        return []
    train = (items["split"] == "train").to_numpy()
    sets = []
    for name, column in (("emoji-groups", "label"), ("emoji-subgroups", "subgroup")):
        values = items[column].to_numpy(dtype=str)
        # A subgroup with concepts on one side only can be neither learnt nor tested.
        both = np.isin(values, np.intersect1d(values[train], values[~train]))
        codes = np.unique(values[both], return_inverse=True)[1]
        pixels = "emoji" if both.all() else "emoji-both-sides"
        sets.append(StudyItems(name, np.flatnonzero(both), codes, train[both], pixels))
    return sets


def study_sets() -> list[StudySet]:
    """Return the six sets in the order of :data:`TITLES`."""
    from sklearn.datasets import load_digits

    sets = []
    for dataset in ("emoji", "clipart"):
        images, items = _demo(dataset)
        sets += [
            StudySet(part.name, images[part.rows], part.labels, part.train, part.pixels)
            for part in demo_items(dataset, items)
        ]
    with np.load(study_dir() / "mnist.npz") as pack:
        labels = pack["labels"]
        sets.append(StudySet("mnist", _grey(pack["images"]), labels, _stratified(labels), "mnist"))
    digits = load_digits()
    drawn = np.round(digits.images * (255 / 16)).astype(np.uint8)
    labels = digits.target.astype(np.int64)
    sets.append(StudySet("digits", _grey(drawn), labels, _stratified(labels), "digits"))
    with np.load(study_dir() / "letters.npz") as pack:
        held = _stratified(np.zeros(pack["faces"].max() + 1))[pack["faces"]]
        sets.append(StudySet("letters", _grey(pack["images"]), pack["labels"], held, "letters"))
    return sets
