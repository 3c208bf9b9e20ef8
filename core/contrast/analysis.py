"""The contrast analysis: what a target encoder holds together and a reference scatters.

KODA (arXiv 2606.04180) on stored features, at a scale chosen by what it yields. ``compute``
reads datasets and features only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from core.contrast.types import EPSILON_MODES
from core.errors import BadInput, NotFound
from core.results import Result
from core.types import Features, LeftOut

if TYPE_CHECKING:
    from core.contrast.types import Cluster, KodaResult
    from core.linalg.kernels import Kernel
    from core.workspace import Workspace

KIND = "contrast"
MODALITIES = ("image", "image+text", "text")
DEFAULTS: dict[str, Any] = {
    "dataset": "emoji",
    "target": "demo/vit-s14",
    "reference": "demo/squeezenet1.1",
    "modality": None,
    "text_model": None,
    "target_layer": None,
    "reference_layer": None,
    "text_layer": None,
    "kernel": "rbf",
    "group_size": None,
    "epsilon": 2.0,
    "epsilon_mode": "floor",
    "n_features": None,
    "n_directions": 10,
    "orthogonal": False,
    "centered": True,
    "rotation": False,
    "seed": 0,
}
_TEXT_MODEL = "demo/minilm-l6"
_SPECTRUM = 24
_LEAST_ITEMS = 20
_MAP_ROWS = 8192  # rows of a map at once, where there are many

Progress = Callable[[float, str], None]


def resolve(workspace: Workspace, params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters checked, with layers and modality filled in.

    Raises
    ------
    NotFound
        A dataset, a model's features or a layer that is not there.
    BadInput
        A value out of range, or twice the same representation.
    """
    full = {**DEFAULTS, **params}
    dataset = workspace.dataset(full["dataset"])
    full["modality"] = full["modality"] or dataset.kind
    if full["modality"] not in MODALITIES or full["modality"].split("+")[0] != dataset.kind:
        raise BadInput(
            f"modality={full['modality']!r} does not fit {dataset.name!r}, a dataset of kind "
            f"{dataset.kind!r}.",
            "Use 'image' or 'image+text' for pictures, 'text' for texts.",
        )
    for role in ("target", "reference"):
        features = workspace.features.get(dataset.name, full[role])
        full[f"{role}_layer"] = _layer(features, full[f"{role}_layer"])
    pair = [(full[r], full[f"{r}_layer"]) for r in ("target", "reference")]
    if pair[0] == pair[1]:
        raise BadInput(
            f"target and reference are the same: {full['target']} at {full['target_layer']}.",
            "Choose another encoder, or another layer, for one of them.",
        )
    if full["modality"] == "image+text":
        full["text_model"] = full["text_model"] or _TEXT_MODEL
        features = workspace.features.get(dataset.name, full["text_model"])
        full["text_layer"] = _layer(features, full["text_layer"])
    else:
        full["text_model"] = full["text_layer"] = None
    _check_numbers(full)
    return full


def _layer(features: Any, name: str | None) -> str:
    chosen = name or features.default_layer
    if chosen not in features.layers:
        raise NotFound(
            f"layer={chosen!r} is not among the layers of {features.model}.",
            f"Choose one of: {', '.join(features.layers)}.",
        )
    return str(chosen)


def _check_numbers(full: dict[str, Any]) -> None:
    if full["kernel"] not in ("rbf", "cosine"):
        raise BadInput(f"kernel={full['kernel']!r} is not known.", "Use 'rbf' or 'cosine'.")
    for name, low, high in (("n_directions", 1, 50), ("seed", 0, 2**31)):
        if not isinstance(full[name], int) or not low <= full[name] <= high:
            raise BadInput(f"{name}={full[name]!r} must be a whole number, {low} to {high:,}.")
    _check_epsilon(full)
    for name in ("centered", "rotation", "orthogonal"):
        if not isinstance(full[name], bool):
            raise BadInput(f"{name}={full[name]!r} must be true or false.")
    if full["n_features"] is not None and (
        not isinstance(full["n_features"], int) or not 1 <= full["n_features"] <= 20_000
    ):
        raise BadInput(f"n_features={full['n_features']!r} must lie between 1 and 20,000.")
    if full["group_size"] is not None:
        full["group_size"] = float(full["group_size"])
        if full["group_size"] <= 1.0:
            raise BadInput(f"group_size={full['group_size']} must be above 1.", "3 is fine.")


def _check_epsilon(full: dict[str, Any]) -> None:
    if full["epsilon_mode"] not in EPSILON_MODES:
        raise BadInput(
            f"epsilon_mode={full['epsilon_mode']!r} is not known.",
            f"Use one of {', '.join(EPSILON_MODES)}.",
        )
    full["epsilon"] = float(full["epsilon"])
    if not full["epsilon"] > 0.0:
        raise BadInput(f"epsilon={full['epsilon']} must be above 0.", "The default is 2.")


def compute(
    workspace: Workspace, params: dict[str, Any], progress: Progress | None = None
) -> Result:
    """Find the contrastive clusters and everything the page shows of them.

    Parameters
    ----------
    workspace : Workspace
        Read only.
    params : dict
        From :func:`resolve`.
    progress : callable, optional
        Called with (share done, message).

    Returns
    -------
    Result
        Tables ``directions``, ``members``, ``neighbours``, ``similarities``, ``overlaps``,
        ``attribution`` (two modalities), ``scale_path``, ``epsilon_path``, ``comparison`` and
        ``agreement``; arrays ``ids``, ``directions``, ``map_a``, ``map_b``,
        ``spectrum_a`` and ``spectrum_b``.
    """
    from core.contrast import report
    from core.contrast.honesty import resolution, stability
    from core.contrast.methods import koda
    from core.linalg.kernels import Kernel

    items, tables, left_out = read_inputs(workspace, params)
    step = _steps(progress)
    result = koda(
        *tables,
        kernel=params["kernel"],
        group_size=params["group_size"],
        n_features=params["n_features"],
        orthogonal=params["orthogonal"],
        epsilon=params["epsilon"],
        epsilon_mode=params["epsilon_mode"],
        n_directions=min(params["n_directions"], len(items)),
        centered=params["centered"],
        seed=params["seed"],
        progress=step(0.0, 0.7),
    )
    a, b = (s for s in result.similarities if isinstance(s, Kernel))
    clusters = result.clusters(seed=params["seed"], rotate=params["rotation"])
    step(0.7, 0.1)(0.0, "scoring the sets")
    found = _tables(result, clusters, (a, b), items, params["seed"])
    step(0.8, 0.1)(0.0, "finding the sets again on other samples")
    again = stability(clusters, a, b, result.epsilon, seed=params["seed"])
    found["directions"]["stability"] = found["directions"]["direction"].map(again)
    step(0.9, 0.1)(0.0, "walking the epsilon path")
    found["epsilon_path"] = report.epsilon_table(a, b, result.epsilon, seed=params["seed"])
    ids = items["id"].to_numpy(dtype=np.int64)
    summary = _summary(params, result, found["directions"], clusters, len(items))
    summary |= {"resolution_a": _plain(resolution(a)), "resolution_b": _plain(resolution(b))}
    arrays = {"ids": ids, "directions": result.directions.astype(np.float32)}
    arrays |= _maps(a, b) | _spectra(a, b, params["seed"])
    return Result(KIND, params, summary, found, arrays, tuple(left_out))


def _tables(
    result: KodaResult,
    clusters: list[Cluster],
    kernels: tuple[Kernel, Kernel],
    items: pd.DataFrame,
    seed: int,
) -> dict[str, pd.DataFrame]:
    """Everything the page shows of the sets, as tables."""
    from core.contrast import report
    from core.contrast.agreement import agreement_table, baseline_sets
    from core.contrast.honesty import attribution_table, overlaps_table

    a, b = kernels
    views = (report.cosine_view(a), report.cosine_view(b))
    ids = items["id"].to_numpy(dtype=np.int64)
    chosen = next(
        (p.group_size for p in result.scale_path if np.isclose(p.factor_a, a.factor)),
        result.group_size,
    )
    sets = baseline_sets(clusters, a, b, first=5, seed=seed)
    return {
        "directions": report.directions_table(result, clusters, kernels, items),
        "members": report.members_table(clusters, ids),
        "neighbours": report.neighbours_table(clusters, views, ids),
        "similarities": report.similarities_table(clusters, views, seed=seed),
        "overlaps": overlaps_table(clusters),
        "attribution": attribution_table(clusters, kernels, seed=seed),
        "scale_path": report.scale_table(result.scale_path, chosen),
        "comparison": report.comparison_table(sets, a, b),
        "agreement": agreement_table(sets, a, b, seed=seed),
    }


def _plain(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _steps(progress: Progress | None) -> Callable[[float, float], Progress]:
    def part(begin: float, share: float) -> Progress:
        def report(fraction: float, message: str) -> None:
            if progress is not None:
                progress(begin + share * fraction, message)

        return report

    return part


def read_inputs(
    workspace: Workspace, params: dict[str, Any]
) -> tuple[pd.DataFrame, list[dict[str, np.ndarray]], list[LeftOut]]:
    """Items and both sides' features, aligned by id, without exact duplicates."""
    dataset = workspace.dataset(params["dataset"])
    left_out: list[LeftOut] = []
    items = dataset.items.reset_index(drop=True)
    repeats = _duplicates(items, params["modality"])
    # What is said of features twice does not make them the same.
    if repeats.any() and not dataset.of_features:
        left_out.append(
            LeftOut(dataset.name, "the same as an earlier item, bit for bit", int(repeats.sum()))
        )
        items = items[~repeats]
    sources = {r: workspace.features.get(dataset.name, params[r]) for r in ("target", "reference")}
    if params["text_model"]:
        sources["text"] = workspace.features.get(dataset.name, params["text_model"])
    for features in sources.values():
        there = items["id"].isin(features.ids)
        if not there.all():
            left_out.append(
                LeftOut(features.model, "no features for these items", int((~there).sum()))
            )
            items = items[there]
    arrays = {
        role: _aligned(features, params[f"{role}_layer"], items["id"].to_numpy())
        for role, features in sources.items()
    }
    if len(items) < _LEAST_ITEMS:
        raise BadInput(
            f"Only {len(items)} items of {dataset.name!r} have features of both encoders.",
            f"At least {_LEAST_ITEMS} are needed; extract the features first.",
        )
    items = items.reset_index(drop=True)
    tables = []
    for role in ("target", "reference"):
        side = {params["modality"].split("+")[0]: arrays[role]}
        if "text" in sources:
            side["text"] = arrays["text"]
        tables.append(side)
    return items, tables, left_out


def _aligned(features: Features, layer: str, ids: np.ndarray) -> np.ndarray:
    """Return the rows of ``ids``; the mapped table itself when they are all of it, in order."""
    table = np.asarray(features.layer(layer))
    if np.array_equal(features.ids, ids):
        return table
    return table[features.rows_of(ids)]


def _duplicates(items: pd.DataFrame, modality: str) -> pd.Series:
    keys = {"image": ["sha256"], "text": ["caption"], "image+text": ["sha256", "caption"]}[modality]
    known = (items[keys[0]].astype(str) != "").to_numpy()
    return items.duplicated(keys) & known


def _summary(
    params: dict[str, Any],
    result: KodaResult,
    directions: pd.DataFrame,
    clusters: list[Cluster],
    n: int,
) -> dict[str, Any]:
    groups = directions[directions["is_group"].fillna(False).astype(bool)] if clusters else None
    worst = float(np.nanmax(result.relative_gap)) if clusters else float("nan")
    headline = _headline(directions, groups)
    return {
        "headline": headline,
        "n": n,
        "n_directions": len(result.status),
        "n_groups": 0 if groups is None else len(groups),
        "n_named": int(directions.get("named", pd.Series(dtype=bool)).fillna(False).sum()),
        "group_size": float(result.group_size),
        "group_size_automatic": params["kernel"] == "rbf" and params["group_size"] is None,
        "epsilon": float(result.epsilon),
        "worst_rel_gap": worst if np.isfinite(worst) else None,
        "certified": all(s not in ("not certified", "infeasible") for s in result.status),
        "bandwidths": result.bandwidths,
        "notes": [*result.notes, *_rotated(params)],
        "modality": params["modality"],
    }


def _rotated(params: dict[str, Any]) -> list[str]:
    if not params["rotation"]:
        return []
    return [
        "The directions were rotated (varimax) before the sets were taken: the certificates speak "
        "of the unrotated directions."
    ]


def _headline(directions: pd.DataFrame, groups: pd.DataFrame | None) -> str:
    if groups is None:
        least = float(directions["constraint"].iloc[0])
        return f"No direction meets this epsilon; the least that can be met is {least:.3g}."
    if groups.empty:
        return "No clear group at this scale: the directions found are wide contrasts."
    # The clearest is the group with the widest difference of coherence that also has a name.
    ranked = groups.assign(lead=groups["k_a"] - groups["k_b"], sure=groups["named"].astype(bool))
    best = ranked.sort_values(["sure", "lead"], ascending=False).iloc[0]
    count = f"{len(groups)} groups" if len(groups) > 1 else "1 group"
    return f"{count}; the clearest: {best['title']} (A {best['k_a']:.2f}, B {best['k_b']:.2f})."


def _maps(a: Kernel, b: Kernel) -> dict[str, np.ndarray]:
    return {"map_a": _pca_map(a), "map_b": _pca_map(b)}


def _pca_map(kernel: Kernel) -> np.ndarray:
    """Two leading principal components of the joined unit rows, signs fixed."""
    from core.linalg.kernels import EXACT_LIMIT

    step = kernel.n if kernel.n <= EXACT_LIMIT else _MAP_ROWS
    blocks = [slice(at, at + step) for at in range(0, kernel.n, step)]
    # Of few rows this is one block, the table itself: the same bits as ever.
    total = np.sum([kernel.scaled(rows).cpu().numpy().sum(axis=0) for rows in blocks], axis=0)
    mean = total / kernel.n
    square = np.zeros((len(mean), len(mean)))
    for rows in _centred(kernel, blocks, mean):
        square += rows.T @ rows
    values, vectors = np.linalg.eigh(square)
    axes = vectors[:, np.argsort(values)[::-1][:2]]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    out = np.zeros((kernel.n, 2), dtype=np.float32)
    for at, rows in zip(blocks, _centred(kernel, blocks, mean), strict=True):
        out[at, : axes.shape[1]] = rows @ axes
    return out


def _centred(kernel: Kernel, blocks: list[slice], mean: np.ndarray) -> Iterator[np.ndarray]:
    for rows in blocks:
        yield kernel.scaled(rows).cpu().numpy() - mean


def _spectra(a: Kernel, b: Kernel, seed: int) -> dict[str, np.ndarray]:
    """Leading eigenvalues of both kernels, raw (only where the matrices are held)."""
    from core.linalg.kernels import DENSE_LIMIT
    from core.linalg.lanczos import random_block, top_eigenpairs

    if a.n > DENSE_LIMIT:
        return {}
    out = {}
    for name, kernel in (("spectrum_a", a), ("spectrum_b", b)):
        matrix = kernel.dense()
        start = random_block(kernel.n, 4, seed=seed, device=matrix.device)
        found = top_eigenpairs(
            matrix.__matmul__, start, k=min(_SPECTRUM, a.n), tol=1e-3, max_basis=96
        )
        out[name] = found.values
    return out
