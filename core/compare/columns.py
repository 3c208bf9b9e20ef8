"""What a map can be coloured by beyond the dataset's own columns: scores and clusters.

Each is a column by item id, from a stored result of the same dataset; nothing is computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from core.results import Result
    from core.workspace import Workspace

OVERLAP = "neighbours shared by A and B"
DISPLACEMENT = "displacement from A to B"
VERDICT = "kept or moved from A to B"
CLUSTERS = "contrast clusters"


def change_columns(changed: Result) -> dict[str, pd.Series]:
    """Return what changed between A and B as columns by id: a share, a distance, a word."""
    table = changed.tables["changed"].set_index("id")
    return {
        OVERLAP: table["overlap"],
        DISPLACEMENT: table["displacement"],
        VERDICT: table["verdict"],
    }


def cluster_column(workspace: Workspace, dataset: str, *models: str) -> pd.Series | None:
    """Return the contrastive cluster of each item, by id, or None when none is stored.

    Parameters
    ----------
    workspace : Workspace
    dataset : str
        Name of the dataset.
    *models : str
        Of several stored results, the newest between two of these models is taken, else the
        newest of the dataset.

    Returns
    -------
    Series of str or None
        "cluster 1" and so on; an item of several clusters is in the one that ranks it highest.
        Items of none are left out.
    """
    stored = [i for i in workspace.results.list("contrast") if i.params.get("dataset") == dataset]
    fits = [i for i in stored if {i.params.get("target"), i.params.get("reference")} <= {*models}]
    for info in (fits or stored)[:1]:
        members = workspace.results.get(info.key).tables["members"]
        first = members[members["pole"] == 1].sort_values(["rank", "direction"])
        first = first.drop_duplicates("id").set_index("id")
        if len(first):
            # Numbered as on the Contrast page.
            return ("cluster " + (first["direction"].astype(int) + 1).astype(str)).rename(CLUSTERS)
    return None


def with_columns(items: pd.DataFrame, columns: dict[str, pd.Series]) -> pd.DataFrame:
    """Return the items with further columns, joined by id; the table itself is not changed."""
    if not columns:
        return items
    return items.assign(**{name: items["id"].map(values) for name, values in columns.items()})
