"""The rows a transfer analysis may use: by domain, with features, without leaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import BadInput
from core.radar.types import Domain
from core.types import LeftOut

if TYPE_CHECKING:
    import pandas as pd

    from core.types import Features
    from core.workspace import Workspace


class DomainRows:
    """Rows of the dataset that have features, by domain; training rows where a split is known.

    Test items never enter a score, and no source item may show a concept of the test set:
    the same concept drawn in another style is a leak.

    Parameters
    ----------
    workspace : Workspace
    params : dict
        Resolved parameters of the analysis.
    """

    def __init__(self, workspace: Workspace, params: dict[str, Any]) -> None:
        self.features: Features = workspace.features.get(params["dataset"], params["model"])
        items = workspace.dataset(params["dataset"]).items
        have = items["id"].isin(self.features.ids)
        self.items = items[have & items["domain"].isin([params["target"], *params["sources"]])]
        self.left_out: list[LeftOut] = []
        if not have.all():
            self.left_out.append(LeftOut("items", "no features of this model", int((~have).sum())))
        self.has_split = {"train", "test"} <= set(self.items["split"])
        self.has_labels = bool((self.items["label"] != "").all())
        self.rows_note = "all items"
        if self.has_split:
            self.rows_note = "training split only"
            self._drop_leaks(params["target"])

    def _drop_leaks(self, target: str) -> None:
        if "concept" not in self.items.columns:
            return
        test = (self.items["domain"] == target) & (self.items["split"] == "test")
        held = set(self.items.loc[test, "concept"])
        leak = (self.items["split"] == "train") & self.items["concept"].isin(held)
        if leak.any():
            reason = "shows a concept of the target's test items"
            self.left_out.append(LeftOut("training items", reason, int(leak.sum())))
            self.items = self.items[~leak]

    def rows(self, domain: str, split: str = "train") -> pd.DataFrame:
        """Items of a domain, in the order of their ids; of all splits where there is none."""
        mine = self.items[self.items["domain"] == domain]
        if self.has_split:
            mine = mine[mine["split"] == split]
        return mine.sort_values("id")

    def domain(self, name: str) -> Domain:
        """Features and labels of a domain as RADAR takes them."""
        rows = self.rows(name)
        if len(rows) < 2:
            raise BadInput(
                f"Domain {name!r} has {len(rows)} usable items.", "A pair needs at least two."
            )
        taken = self.features.take(rows["id"])
        labels = rows["label"].to_numpy(dtype=str) if self.has_labels else None
        return Domain(tuple(taken.arrays.values()), labels, name, self.features.layers)

    def labelled(self, domain: str, split: str = "train") -> tuple[np.ndarray, np.ndarray]:
        """Default-layer features and labels."""
        rows = self.rows(domain, split)
        at = self.features.rows_of(rows["id"].to_numpy())
        return np.asarray(self.features.layer())[at], rows["label"].to_numpy(dtype=str)
