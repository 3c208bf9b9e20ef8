"""Which 260 networks: four architecture classes, five objectives, three augmentations.

A *family* is a recipe: class x objective x augmentation, 60 in all, four or five networks
each. Inside a family the width, the length of training and the seed differ, so that quality
spans from nearly untrained to as good as this size gets.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from core.errors import BadInput

ARCHITECTURES = ("ViT", "ResNet", "ConvNeXt", "RegNet")
OBJECTIVES = ("supervised", "simclr", "barlow", "dino", "mae")
AUGMENTATIONS = ("weak", "medium", "strong")
WIDTHS = (0.5, 1.0, 1.5, 2.0)
N_MODELS = 260
PER_FAMILY = 4
FEWEST_STEPS = 4
MOST_STEPS = 700

TITLES = {
    "supervised": "supervised (subgroup labels)",
    "simclr": "SimCLR",
    "barlow": "Barlow Twins",
    "dino": "DINO-like self-distillation",
    "mae": "masked patches (ViT: MAE; others: masked pixels)",
}


@dataclass(frozen=True)
class ModelSpec:
    """Everything that decides one network of the zoo.

    Attributes
    ----------
    index : int
        Position in the plan, 0 <= index < 260; also the seed's stream.
    architecture, objective, augmentation : str
        One of :data:`ARCHITECTURES`, :data:`OBJECTIVES`, :data:`AUGMENTATIONS`.
    width : float
        Factor on the class's channels.
    steps : int
        Optimiser steps of 96 pictures.
    seed : int
        Seed of the initialisation, the batches and the augmentation.
    """

    index: int
    architecture: str
    objective: str
    augmentation: str
    width: float
    steps: int
    seed: int

    @property
    def name(self) -> str:
        """Identifier of the network, unique in the plan."""
        return f"zoo/{self.index:03d}-{self.architecture.lower()}-{self.objective}"

    @property
    def family(self) -> str:
        """The recipe: what the cluster bootstrap resamples."""
        return f"{self.architecture} {self.objective} {self.augmentation}"

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return asdict(self)


def plan(n: int = N_MODELS, *, seed: int = 0) -> list[ModelSpec]:
    """Return the specifications, in an order of which every prefix is balanced.

    Parameters
    ----------
    n : int
        Networks, 1 <= n <= 300.
    seed : int
        Seed of the widths, lengths and the order.

    Returns
    -------
    list of ModelSpec
        Rounds over the 60 families; each round is shuffled.

    Raises
    ------
    BadInput
        ``n`` is out of range.

    Examples
    --------
    >>> specs = plan()
    >>> len(specs), len({s.family for s in specs}), len({s.name for s in specs})
    (260, 60, 260)
    """
    if not 1 <= n <= 300:
        raise BadInput(f"n={n} networks is out of range.", "Between 1 and 300; 260 is the study.")
    families = [(a, o, g) for a in ARCHITECTURES for o in OBJECTIVES for g in AUGMENTATIONS]
    rng = np.random.default_rng(seed)
    rounds = -(-n // len(families))
    # Every family meets each quarter of the lengths once, in its own order.
    quarter = np.stack([rng.permutation(rounds) for _ in families])
    specs: list[ModelSpec] = []
    for at in range(rounds):
        for which in rng.permutation(len(families)):
            architecture, objective, augmentation = families[which]
            place = (quarter[which, at] + rng.random()) / rounds
            steps = round(FEWEST_STEPS * (MOST_STEPS / FEWEST_STEPS) ** place)
            width = float(rng.choice(WIDTHS))
            model_seed = int(rng.integers(2**31))
            if len(specs) < n:
                specs.append(
                    ModelSpec(
                        len(specs), architecture, objective, augmentation, width, steps, model_seed
                    )
                )
    return specs
