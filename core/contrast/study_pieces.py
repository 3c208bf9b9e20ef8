"""The pieces of the contrast study: one ordered pair of encoders, kept in the store.

A piece is found again by its parameters, so a study that was stopped goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from core.analyses import inputs
from core.contrast.analysis import read_inputs, resolve
from core.results import Result

if TYPE_CHECKING:
    from core.linalg.kernels import Kernel
    from core.workspace import Workspace

KIND = "contrast-study-piece"
PURE = 0.8  # share of one style or one label that makes a set nameable (section 9.5)
Progress = Callable[[float, str], None]


def piece(workspace: Workspace, params: dict[str, Any], progress: Progress | None = None) -> Result:
    """Return one ordered pair: the stored answer, else computed and stored.

    Parameters
    ----------
    params : dict
        ``dataset``, ``target``, ``reference``, ``modality``, ``text_model``, ``epsilon``,
        ``n_directions``, ``group_sizes`` and ``seed``.

    Returns
    -------
    Result
        Tables ``directions`` (certificates, set scores, names), ``members`` and
        ``scale_path``. The summary counts groups, named groups and sets with one style or one
        label in 80 % of their samples, under the automatic scale and under the median rule.
    """
    sources = inputs(workspace, params)
    stored = workspace.results.find(KIND, params, sources)
    if stored is not None:
        return stored
    return workspace.results.put(compute_piece(workspace, params, progress), sources)


def compute_piece(
    workspace: Workspace, params: dict[str, Any], progress: Progress | None = None
) -> Result:
    """Compute one ordered pair; reads the workspace only."""
    from core.contrast.inputs import lapack_thread
    from core.contrast.methods import koda_kernels
    from core.contrast.report import directions_table, members_table, scale_table
    from core.contrast.scale import automatic_scale
    from core.linalg.kernels import Kernel, make_kernel

    wanted = {k: params[k] for k in ("dataset", "target", "reference", "modality", "text_model")}
    items, tables, left_out = read_inputs(workspace, resolve(workspace, wanted))
    a, b = (make_kernel(table, name=name) for table, name in zip(tables, "AB", strict=True))
    with lapack_thread():
        scale = automatic_scale(
            a, b, params["epsilon"], group_sizes=tuple(params["group_sizes"]),
            whole_path=False, seed=params["seed"], progress=progress,
        )  # fmt: skip
    options = {"epsilon": params["epsilon"], "n_directions": params["n_directions"]}
    found = koda_kernels(scale.target, scale.reference, seed=params["seed"], **options)
    clusters = found.clusters(seed=params["seed"])
    pair = [s for s in found.similarities if isinstance(s, Kernel)]
    directions = directions_table(found, clusters, (pair[0], pair[1]), items)
    summary = {
        "n": len(items),
        "group_size": float(
            scale.group_size if np.isfinite(scale.group_size) else found.group_size
        ),
        "epsilon": float(found.epsilon),
        "worst_rel_gap": float(np.nanmax(found.relative_gap)),
        "certified": all(s not in ("not certified", "infeasible") for s in found.status),
        "note": scale.note,
        **counts(directions),
        "pure_by_median_rule": _median_rule(a, b, params, items),
    }
    summary["headline"] = f"{summary['groups']} groups, {summary['pure']} of one style or label."
    chosen = next((p.group_size for p in scale.path if p.factor_a == scale.target.factor), 0.0)
    out = {
        "directions": directions,
        "members": members_table(clusters, items["id"].to_numpy(dtype=np.int64)),
        "scale_path": scale_table(scale.path, chosen),
    }
    return Result(KIND, params, summary, out, left_out=tuple(left_out))


def counts(directions: pd.DataFrame) -> dict[str, Any]:
    """Return how many sets are groups, named, pure; and their mean scores."""
    if "k_a" not in directions:
        return {"sets": 0, "groups": 0, "named": 0, "pure": 0, "one_style": 0, "one_label": 0}
    sets = directions[directions["k_a"].notna()]
    nothing = pd.Series(0.0, index=sets.index)
    style = sets.get("domain_share", nothing) >= PURE
    label = sets.get("label_share", nothing) >= PURE
    return {
        "sets": len(sets),
        "groups": int(sets["is_group"].astype(bool).sum()),
        "named": int((sets["named"].astype(bool) & sets["is_group"].astype(bool)).sum()),
        "pure": int((style | label).sum()),
        "one_style": int(style.sum()),
        "one_label": int(label.sum()),
        **{name: float(sets[name].mean()) for name in ("k_a", "k_b", "cos_a", "cos_b", "z_a")},
        "median_size": float(sets["size"].median()),
        "lead": float((sets["k_a"] - sets["k_b"]).mean()),
    }


def _median_rule(a: Kernel, b: Kernel, params: dict[str, Any], items: pd.DataFrame) -> int:
    """Pure sets where both bandwidths are the median distances: what the automatic scale is for."""
    from core.contrast.clusters import extract_clusters
    from core.contrast.inputs import lapack_thread
    from core.contrast.sequence import solve_sequence
    from core.contrast.words import purity

    if a.n > 3000:
        return -1
    with lapack_thread():
        found = solve_sequence(
            a.dense(), b.dense(), params["epsilon"], params["n_directions"],
            tol=1e-4, seed=params["seed"], certify=False,
        )  # fmt: skip
    usable = [f.y for f in found if f.solution.status != "infeasible"]
    if not usable:
        return 0
    sets = extract_clusters(np.stack(usable), a, b, seed=params["seed"])
    columns = [items[c] for c in ("domain", "label") if c in items]
    return sum(max(purity(c, s.rows)[1] for c in columns) >= PURE for s in sets)


def with_head(head: dict[str, Any], table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with leading columns of one value each."""
    first = pd.DataFrame(head, index=table.index)
    return pd.concat([first, table], axis=1)


def anew(result: Result, **summary: Any) -> Result:
    """Return a result with other values in its summary."""
    return replace(result, summary={**result.summary, **summary})
