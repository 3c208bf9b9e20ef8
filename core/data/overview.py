"""What a dataset holds, counted: classes by domains, captions, splits; and finding items in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from core.types import LeftOut

if TYPE_CHECKING:
    from core.data.dataset import Dataset

UNNAMED = "none"


@dataclass(frozen=True)
class Overview:
    """Counts of one dataset.

    Attributes
    ----------
    n : int
        Items.
    classes, domains, splits : Series of int
        Items of each, most frequent classes first; items without one count as ``"none"``.
    captioned, distinct_captions : int
        Items with a caption, and how many different captions there are.
    cells : DataFrame of int
        Classes (rows) by domains (columns).
    left_out : tuple of LeftOut
        What the import did not take, and why.
    """

    n: int
    classes: pd.Series
    domains: pd.Series
    splits: pd.Series
    captioned: int
    distinct_captions: int
    cells: pd.DataFrame
    left_out: tuple[LeftOut, ...]

    @property
    def n_left_out(self) -> int:
        """How many items were left out."""
        return sum(line.count for line in self.left_out)

    @property
    def headline(self) -> str:
        """One sentence: what is in here."""
        classes = _named(self.classes, "class", "classes")
        domains = _named(self.domains, "domain", "domains")
        within = f" of {classes}" if classes else ""
        across = f" in {domains}" if domains else ""
        share = self.captioned / self.n
        captions = (
            "all with a caption"
            if share == 1
            else "none with a caption"
            if share == 0
            else f"{self.captioned:,} with a caption"
        )
        return f"{self.n:,} items{within}{across}, {captions}."


def overview(dataset: Dataset) -> Overview:
    """Count what a dataset holds."""
    items = dataset.items
    label, domain = (items[c].replace("", UNNAMED) for c in ("label", "domain"))
    captions = items["caption"][items["caption"].str.strip() != ""]
    classes = label.value_counts().sort_index(kind="stable").sort_values(ascending=False)
    domains = domain.value_counts(sort=False)
    cells = pd.crosstab(label, domain).reindex(index=classes.index, columns=domains.index)
    return Overview(
        n=len(items),
        classes=classes,
        domains=domains,
        splits=items["split"].replace("", UNNAMED).value_counts(),
        captioned=len(captions),
        distinct_captions=int(captions.nunique()),
        cells=cells,
        left_out=tuple(LeftOut(**line) for line in dataset.meta.get("left_out", [])),
    )


def find_items(
    items: pd.DataFrame, text: str = "", *, label: str = "", domain: str = "", split: str = ""
) -> pd.DataFrame:
    """Return the items that hold every word of ``text`` in some text column.

    Parameters
    ----------
    items : DataFrame
        The items of a dataset.
    text : str
        Words, in any order and any case; a word may be part of a longer one. A whole number
        alone also finds the item of that id.
    label, domain, split : str
        Only these; "" for all, ``"none"`` for items without one.

    Returns
    -------
    DataFrame
        The rows, in the order of the items.

    Examples
    --------
    >>> items = pd.DataFrame({"id": [3, 4], "caption": ["a red car", "a dog"], "label": ["x", "y"]})
    >>> find_items(items, "CAR red")["id"].tolist(), find_items(items, "4")["id"].tolist()
    ([3], [4])
    """
    keep = np.ones(len(items), dtype=bool)
    for column, wanted in (("label", label), ("domain", domain), ("split", split)):
        if wanted:
            keep &= (items[column].replace("", UNNAMED) == wanted).to_numpy()
    words = text.casefold().split()
    if words:
        columns = [c for c in items.columns if c != "sha256" and items[c].dtype.kind not in "biuf"]
        joined = items[columns[0]].astype(str) if columns else pd.Series("", index=items.index)
        for column in columns[1:]:
            joined = joined + "\n" + items[column].astype(str)
        folded = joined.str.casefold()
        found = np.ones(len(items), dtype=bool)
        for word in words:
            found &= folded.str.contains(word, regex=False).to_numpy()
        if len(words) == 1 and words[0].isdecimal():
            found |= (items["id"] == int(words[0])).to_numpy()
        keep &= found
    return items[keep]


def examples(items: pd.DataFrame, label: str, domain: str, most: int) -> list[int]:
    """Return up to ``most`` ids of a class and a domain, spread over the items.

    Where the items say which concept they show, the same concepts are taken in every domain.
    """
    own = find_items(items, label=label, domain=domain)
    if not len(own):
        return []
    at = np.unique(np.linspace(0, len(own) - 1, min(most, len(own))).round().astype(int))
    return [int(i) for i in own["id"].iloc[at]]


def siblings(items: pd.DataFrame, item: int) -> list[int]:
    """Return the ids that share the item's concept (its other domains), itself left away."""
    if "concept" not in items.columns:
        return []
    concept = items.loc[items["id"] == item, "concept"]
    if concept.empty or not concept.iloc[0]:
        return []
    same = items.loc[(items["concept"] == concept.iloc[0]) & (items["id"] != item), "id"]
    return [int(i) for i in same]


def _named(counts: pd.Series, one: str, many: str) -> str:
    named = [name for name in counts.index if name != UNNAMED]
    return f"{len(named)} {one if len(named) == 1 else many}" if named else ""
