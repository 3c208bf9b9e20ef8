"""A workspace with one data set, as far as the stitching analyses read it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from core.errors import NotFound
from core.types import Features

MODELS = ["net/a", "net/b", "net/c"]


@dataclass
class FakeDataset:
    """A dataset as far as the analysis reads it."""

    items: pd.DataFrame
    name: str = "digits"
    kind: str = "image"
    title: str = "Digits"
    digest: str = "d"

    @property
    def n(self) -> int:
        """Return the number of items."""
        return len(self.items)


@dataclass
class FakeWorkspace:
    """A workspace with one dataset and its features."""

    data: FakeDataset
    store: dict[str, Features]
    features: FakeWorkspace = field(init=False)

    def __post_init__(self) -> None:
        self.features = self

    def dataset_names(self) -> list[str]:
        """Return the names of the data sets."""
        return [self.data.name]

    def dataset(self, name: str) -> FakeDataset:
        """Return the one dataset."""
        if name != self.data.name:
            raise NotFound(f"no dataset {name}")
        return self.data

    def get(self, dataset: str, model: str) -> Features:
        """Return the features of one model."""
        if model not in self.store:
            raise NotFound(f"no features of {model}")
        return self.store[model]

    def list(self) -> list[dict[str, str]]:
        """Return the entries of the store."""
        return [{"dataset": "digits", "model": m} for m in self.store]
