"""The registry of pretrained models and their published accuracies.

554 checkpoints (``core260``: a balanced subset of 260), and 2,466 published numbers under
four protocols. A protocol is a different task: a fine-tuned head, a linear probe, nearest
neighbours and zero-shot accuracies are never mixed in one correlation.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from core.errors import BadInput, NotFound
from core.paths import app_root

PROTOCOLS: dict[str, str] = {
    "finetuned_head": "fine-tuned head",
    "linear": "linear probe",
    "knn": "nearest neighbours",
    "zero_shot": "zero-shot",
}
TEST_SETS: dict[str, str] = {
    "imagenet-1k": "ImageNet-1k",
    "imagenet-real": "ImageNet ReaL",
    "imagenet-v2": "ImageNet-V2",
    "imagenet-sketch": "ImageNet-Sketch",
    "imagenet-a": "ImageNet-A",
    "imagenet-r": "ImageNet-R",
    "caltech101": "Caltech-101",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "dtd": "DTD textures",
    "eurosat": "EuroSAT",
    "fgvc_aircraft": "FGVC Aircraft",
    "flowers102": "Flowers-102",
    "food101": "Food-101",
    "oxford_pets": "Oxford Pets",
    "resisc45": "RESISC45",
    "stanford_cars": "Stanford Cars",
    "stl10": "STL-10",
    "sun397": "SUN397",
}
ARCHITECTURES = ("ViT", "ResNet", "ConvNeXt", "RegNet", "other")
OBJECTIVES: dict[str, str] = {
    "supervised": "supervised",
    "ssl": "self-supervised",
    "vision_language": "vision-language",
}
#: Columns of the registry a model can be placed by, with the words of the axis.
AXES: dict[str, str] = {
    "params_M": "parameters, millions",
    "embed_dim": "feature width",
    "input_size_extract": "input size, pixels",
}
POPULATIONS: dict[str, str] = {"core260": "260 models", "all": "554 models"}


@cache
def _read(name: str) -> pd.DataFrame:
    path = app_root() / "assets" / "registry" / name
    if not path.is_file():
        raise NotFound(
            f"The model registry's file {name} is missing from {path.parent}.",
            "Install the package again.",
        )
    return pd.read_csv(path)


def model_registry(population: str = "all") -> pd.DataFrame:
    """Return the registry, one row a checkpoint.

    Parameters
    ----------
    population : {"all", "core260"}
        Every row (554), or the balanced subset of 260.

    Raises
    ------
    BadInput
        Another population was asked for.
    NotFound
        The registry's file is not installed.

    Examples
    --------
    >>> len(model_registry()), len(model_registry("core260"))
    (554, 260)
    """
    if population not in POPULATIONS:
        raise BadInput(
            f"population={population!r} is unknown.", f"Choose one of: {', '.join(POPULATIONS)}."
        )
    table = _read("model_registry.csv")
    chosen = table if population == "all" else table[table["core260"] == 1]
    return chosen.reset_index(drop=True).copy()


def published_accuracy(protocol: str | None = None) -> pd.DataFrame:
    """Return published accuracies, long: id, dataset, protocol, value (percent), source.

    Parameters
    ----------
    protocol : str, optional
        One of :data:`PROTOCOLS`.

    Raises
    ------
    BadInput
        The protocol is unknown.
    """
    if protocol is not None and protocol not in PROTOCOLS:
        raise BadInput(
            f"protocol={protocol!r} is unknown.", f"Choose one of: {', '.join(PROTOCOLS)}."
        )
    table = _read("published_accuracy.csv")
    chosen = table if protocol is None else table[table["protocol"] == protocol]
    return chosen.reset_index(drop=True).copy()


def cell_name(protocol: str, dataset: str) -> str:
    """Return the column name of one protocol on one test set, ``"protocol|dataset"``."""
    return f"{protocol}|{dataset}"


def cell_title(cell: str) -> str:
    """Return the words for a cell, as ``"ImageNet-A, fine-tuned head"``."""
    protocol, _, dataset = cell.partition("|")
    return f"{TEST_SETS.get(dataset, dataset)}, {PROTOCOLS.get(protocol, protocol)}"


def published_cells() -> dict[str, list[str]]:
    """Return the cells there are numbers for: protocol to its columns, in reading order."""
    present = published_accuracy()[["protocol", "dataset"]].drop_duplicates()
    found = set(map(tuple, present.to_numpy()))
    return {
        protocol: [cell_name(protocol, d) for d in TEST_SETS if (protocol, d) in found]
        for protocol in PROTOCOLS
    }


def published_table(population: str = "core260") -> pd.DataFrame:
    """Return the registry with one column a published cell, in percent, NaN where unpublished.

    Two checkpoints never share a number, and no cell mixes protocols.
    """
    table = model_registry(population)
    long = published_accuracy()
    long = long.assign(cell=long["protocol"] + "|" + long["dataset"])
    wide = long.pivot(index="id", columns="cell", values="value")
    return table.join(wide, on="id")


def strata(table: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the one-way strata as masks: all, each architecture class, each objective group."""
    out = {"All": np.ones(len(table), dtype=bool)}
    for name in ARCHITECTURES[:4]:
        out[name] = (table["arch_class"] == name).to_numpy()
    for key, title in OBJECTIVES.items():
        mask = (table["objective_group"] == key).to_numpy()
        if mask.any():
            out[title] = mask
    return out
