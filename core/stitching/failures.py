"""What sets two encoders apart on the samples that fail when a head is swapped between them.

KODA (arXiv 2606.04180) restricted to those samples: groups that the features' own encoder holds
together and the head's encoder scatters. Run as a job of its own from the page.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from core.errors import BadInput
from core.results import Result
from core.stitching.spaces import split_space

if TYPE_CHECKING:
    from core.workspace import Workspace

KIND = "stitching-failures"
LEAST = 16  # below this a group of alike samples cannot be told from chance
DIRECTIONS = 6

Progress = Callable[[float, str], None]


def failing_ids(result: Result, method: str, i: str, j: str) -> np.ndarray:
    """Return the ids that fail under the head of i on features of j, most often first."""
    table = result.tables["failures"]
    mine = (table["method"] == method) & (table["i"] == i) & (table["j"] == j)
    return np.asarray(table.loc[mine, "id"].to_numpy(np.int64))


def params_of(result: Result, method: str, i: str, j: str) -> dict[str, Any]:
    """Return the parameters of the comparison of one cell; they name its stored result."""
    return {"stitching": result.key, "dataset": result.params["dataset"], "method": method,
            "i": i, "j": j, "seed": result.params["seed"]}  # fmt: skip


def find(workspace: Workspace, params: dict[str, Any]) -> Result | None:
    """Return the stored comparison of one cell, or None."""
    return workspace.results.find(KIND, params, {"stitching": params["stitching"]})


def run_contrast(
    workspace: Workspace,
    *,
    stitching: str,
    dataset: str,
    method: str,
    i: str,
    j: str,
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    """Find the groups of failing samples that j holds together and i scatters, and store them.

    Parameters
    ----------
    workspace : Workspace
    stitching : str
        Key of the stitching result.
    dataset, method, i, j : str
        The cell: head of i, features of j.
    seed : int
    progress : callable, optional

    Returns
    -------
    Result
        Tables ``groups`` (direction, size, coherence under j and i, gap, certificate) and
        ``members`` (direction, rank, id, score).

    Raises
    ------
    BadInput
        The same encoder twice, or fewer than 16 failing samples.
    NotFound
        The stitching result is gone.
    """
    from core.contrast import koda

    source = workspace.results.get(stitching)
    params = params_of(source, method, i, j)
    stored = find(workspace, params)
    if stored is not None:
        return stored
    ids = failing_ids(source, method, i, j)
    if split_space(i)[0] == split_space(j)[0] or len(ids) < LEAST:
        raise BadInput(
            f"The cell has {len(ids)} failing samples of {i} and {j}; two encoders and at least "
            f"{LEAST} samples are needed.",
            "Open another cell.",
        )
    own, other = (
        np.asarray(f.layer()[f.rows_of(ids)], dtype=np.float64)
        for f in (workspace.features.get(dataset, split_space(m)[0]) for m in (j, i))
    )
    found = koda(
        own, other, n_directions=min(DIRECTIONS, len(ids) - 1), seed=seed, progress=progress
    )
    groups, members = _tables(found, ids, seed)
    n_groups = int(groups["is_group"].sum()) if len(groups) else 0
    words = f"{n_groups} of {len(groups)} directions are groups among {len(ids)} failing samples."
    result = Result(
        KIND, params, {"headline": words, "n": len(ids), "n_groups": n_groups},
        {"groups": groups, "members": members},
    )  # fmt: skip
    return workspace.results.put(result, {"stitching": stitching})


def _tables(found: Any, ids: np.ndarray, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    groups, members = [], []
    for c in found.clusters(seed=seed):
        groups.append({
            "direction": c.direction, "size": float(c.size), "own": float(c.coherence_a),
            "other": float(c.coherence_b), "quotient": float(c.quotient),
            "is_group": bool(c.is_group(found.n)),
            "relative_gap": float(found.relative_gap[c.direction]),
            "certificate": found.certificate[c.direction],
        })  # fmt: skip
        members += [
            {"direction": c.direction, "rank": rank, "id": int(ids[row]), "score": float(score)}
            for rank, (row, score) in enumerate(zip(c.rows, c.scores, strict=True))
        ]
    columns = ["direction", "rank", "id", "score"]
    return pd.DataFrame(groups), pd.DataFrame(members, columns=columns)
