"""The tables of a contrast result: directions, members, neighbours, paths, comparison."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from core.contrast.baseline import spec_dense
from core.contrast.clusters import coherence, neighbours_of_set, quotient
from core.contrast.columns import solve_columns
from core.contrast.inputs import lapack_thread
from core.contrast.types import Cluster, KodaResult, ScalePoint
from core.contrast.words import Vocabulary, distinct, group_columns, purity
from core.linalg.kernels import DENSE_LIMIT, Kernel
from core.linalg.lanczos import random_block

_NEIGHBOURS = 24
_BINS = np.linspace(-0.5, 1.0, 31)
_KNN = 10
STYLE_PURITY, SUBGROUP_PURITY = 0.8, 0.6


def cosine_view(kernel: Kernel) -> Kernel:
    """Return the cosine kernel of the first modality: how alike two samples are, -1 to 1."""
    return Kernel(kernel.parts[:1], "cosine", (1.0,), 1.0, kernel.names[:1])


def directions_table(
    result: KodaResult, clusters: list[Cluster], kernels: tuple[Kernel, Kernel], items: pd.DataFrame
) -> pd.DataFrame:
    """Return one row a direction: certificate, set-level scores, words, purities."""
    by_number = {c.direction: c for c in clusters}
    vocabulary = Vocabulary(items["caption"].astype(str).tolist())
    views = tuple(cosine_view(k) for k in kernels)
    records = []
    for k, status in enumerate(result.status):
        record = _certificate(result, k, status)
        if k in by_number:
            cluster = by_number[k]
            record |= _scores(cluster, result.n, kernels, views)
            record |= _names(cluster, vocabulary, items)
        records.append(record)
    return pd.DataFrame(records)


def _certificate(result: KodaResult, k: int, status: str) -> dict[str, object]:
    return {
        "direction": k,
        "objective": result.objective[k],
        "constraint": result.constraint[k],
        "epsilon": result.epsilon,
        "multiplier": result.multiplier[k],
        "dual_bound": result.dual_bound[k],
        "gap": result.gap[k],
        "rel_gap": result.relative_gap[k],
        "status": status,
        "certificate": result.certificate[k],
        "range_mass": result.range_mass[k],
    }


def _scores(
    cluster: Cluster, n: int, kernels: tuple[Kernel, Kernel], views: tuple[Kernel, ...]
) -> dict[str, object]:
    rows = cluster.rows
    record: dict[str, object] = {
        "n_members": len(rows),
        "size": cluster.size,
        "k_a": cluster.coherence_a,
        "k_b": cluster.coherence_b,
        "cos_a": coherence(views[0], rows),
        "cos_b": coherence(views[1], rows),
        "quotient": cluster.quotient,
        "z_a": cluster.z_a,
        "z_b": cluster.z_b,
        "band_a": cluster.band_a,
        "knn_a": neighbour_purity(views[0], rows),
        "knn_b": neighbour_purity(views[1], rows),
        "other_energy": cluster.other_energy,
        "is_group": cluster.is_group(n),
    }
    for number, modality in enumerate(kernels[0].names[1:], start=1):
        part = Kernel(kernels[0].parts[number : number + 1], "cosine", (1.0,), 1.0, (modality,))
        record[f"cos_{modality}"] = coherence(part, rows)
    return record


def neighbour_purity(view: Kernel, rows: np.ndarray) -> float:
    """Return the share of the members' ten nearest neighbours that are members (0 to 1)."""
    near = view.block(rows, slice(None))
    inside = torch.arange(len(rows))
    near[inside, torch.from_numpy(np.asarray(rows))] = -np.inf
    count = min(_KNN, len(rows) - 1, view.n - 1)
    if count < 1:
        return float("nan")
    top = torch.topk(near, count, dim=1).indices.cpu().numpy()
    return float(np.isin(top, rows).mean())


def _names(cluster: Cluster, vocabulary: Vocabulary, items: pd.DataFrame) -> dict[str, object]:
    record: dict[str, object] = {}
    shares = {}
    for column in group_columns(items):
        value, share = purity(items[column], cluster.rows)
        record[column], record[f"{column}_share"] = value, share
        shares[column] = (value, share)
    style, style_share = shares.get("domain", ("", 0.0))
    label, label_share = shares.get("label", ("", 0.0))
    finer = [v for c, v in shares.items() if c not in ("domain", "label")]
    record["named"] = bool(
        max(style_share, label_share) >= STYLE_PURITY
        or any(share >= SUBGROUP_PURITY for _, share in finer)
    )
    words = _words(cluster.rows, vocabulary, items, label if label_share >= 0.5 else "")
    record["words"] = ", ".join(words)
    group = next((value for value, share in finer if share >= SUBGROUP_PURITY), "")
    title = title_of(words, group or (label if label_share >= 0.5 else ""), finer=bool(group))
    record["title"] = f"{title} of {style}" if style and style_share >= STYLE_PURITY else title
    return record


def title_of(words: list[str], group: str, *, finer: bool) -> str:
    """Return what a set is called: its finer group with the words that add to it, else words.

    Examples
    --------
    >>> title_of(["frown", "face"], "face-concerned", finer=True)
    'face concerned: frown'
    >>> title_of([], "Animals", finer=False), title_of([], "", finer=False)
    ('Animals', 'mixed')
    """
    if not finer:
        return ", ".join(words) or group or "mixed"
    named = group.replace("-", " ").replace("_", " ")
    more = [w for w in words if w.rstrip("s") not in named.lower()]
    return f"{named}: {', '.join(more)}" if more else named


def _words(rows: np.ndarray, vocabulary: Vocabulary, items: pd.DataFrame, label: str) -> list[str]:
    """Two words that set the rows apart within their own label, then one from all others."""
    close: list[str] = []
    if label:
        among = np.flatnonzero((items["label"].astype(str) == label).to_numpy())
        close = vocabulary.describe(rows, 2, among=among)
    return distinct([*close, *vocabulary.describe(rows, 3)], 3)


def members_table(clusters: list[Cluster], ids: np.ndarray) -> pd.DataFrame:
    """Return direction, rank, id, score and pole (1 the cluster, -1 the other pole)."""
    frames = []
    for c in clusters:
        for pole, rows, scores in ((1, c.rows, c.scores), (-1, c.other_rows, c.other_scores)):
            frames.append(
                pd.DataFrame(
                    {
                        "direction": c.direction,
                        "rank": np.arange(1, len(rows) + 1),
                        "id": ids[rows],
                        "score": scores,
                        "pole": pole,
                    }
                )
            )
    empty = pd.DataFrame(columns=["direction", "rank", "id", "score", "pole"])
    return pd.concat(frames, ignore_index=True) if frames else empty


def neighbours_table(
    clusters: list[Cluster], views: tuple[Kernel, Kernel], ids: np.ndarray
) -> pd.DataFrame:
    """Return what the reference mixes each set with: the outsiders most similar to it under B."""
    frames = []
    for c in clusters:
        rows, under_b = neighbours_of_set(views[1], c.rows, _NEIGHBOURS)
        under_a = views[0].block(rows, c.rows).mean(dim=1).cpu().numpy()
        frames.append(
            pd.DataFrame(
                {
                    "direction": c.direction,
                    "rank": np.arange(1, len(rows) + 1),
                    "id": ids[rows],
                    "similarity_b": under_b,
                    "similarity_a": under_a,
                }
            )
        )
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def similarities_table(
    clusters: list[Cluster], views: tuple[Kernel, Kernel], *, seed: int
) -> pd.DataFrame:
    """Return histograms of cosine similarity inside each set, and of random pairs (direction -1).

    Columns ``a`` and ``b`` are shares of pairs; each sums to 1 within a direction.
    """
    rng = np.random.default_rng(seed)
    n = views[0].n
    random = np.sort(rng.choice(n, min(n, 400), replace=False))
    frames = []
    for number, rows in [(-1, random), *((c.direction, c.rows) for c in clusters)]:
        upper = np.triu_indices(len(rows), 1)
        shares = []
        for view in views:
            values = view.block(rows, rows).cpu().numpy()[upper]
            counts = np.histogram(np.clip(values, _BINS[0], _BINS[-1]), bins=_BINS)[0]
            shares.append(counts / max(counts.sum(), 1))
        frames.append(
            pd.DataFrame(
                {
                    "direction": number,
                    "low": _BINS[:-1],
                    "high": _BINS[1:],
                    "a": shares[0],
                    "b": shares[1],
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def scale_table(path: tuple[ScalePoint, ...], chosen: float) -> pd.DataFrame:
    """Return one row a group size of the automatic search."""
    return pd.DataFrame(
        [
            {
                "group_size": p.group_size,
                "median_size": float(np.median(p.sizes)) if p.sizes else np.nan,
                "k_a": float(np.mean(p.coherence_a)) if p.coherence_a else np.nan,
                "k_b": float(np.mean(p.coherence_b)) if p.coherence_b else np.nan,
                "passed": p.passed,
                "of": len(p.sizes),
                "chosen": bool(np.isclose(p.group_size, chosen, rtol=1e-3)),
            }
            for p in path
        ]
    )


def epsilon_table(
    a: Kernel, b: Kernel, epsilon: float, *, seed: int, points: int = 12
) -> pd.DataFrame:
    """Return p*(eps) and lambda of the first direction over ``points`` values, and SPEC's point.

    Empty above 3,000 samples, where no matrix is held.
    """
    if a.n > DENSE_LIMIT:
        return pd.DataFrame()
    A, B = a.dense(), b.dense()
    with lapack_thread():
        baseline = spec_dense(A, B, n_directions=1, seed=seed)
        highest = float(spec_dense(B, B, eta=0.0, n_directions=1, seed=seed).objective[0])
        grid = np.geomspace(min(1.1, 0.5 * epsilon), 1.02 * highest, points)
        at_spec = float(baseline.constraint[0])
        wanted = sorted([*((e, "path") for e in grid), (epsilon, "chosen"), (at_spec, "spec")])
        basis = random_block(a.n, 2, seed=seed, device=A.device)
        records = []
        for eps, role in wanted:
            step = solve_columns(A, B, eps, basis, tol=1e-7, seed=seed, certify=False)
            basis, s = step.basis, step.solution
            records.append(
                {
                    "epsilon": eps,
                    "role": role,
                    "objective": s.objective,
                    "constraint": s.constraint,
                    "multiplier": s.multiplier,
                    "quotient": s.objective / s.constraint if s.constraint > 0 else np.nan,
                    "status": s.status,
                }
            )
    return pd.DataFrame(records)


def comparison_table(sets: dict[str, list[np.ndarray]], a: Kernel, b: Kernel) -> pd.DataFrame:
    """Return KODA beside simpler answers: means over their first sets.

    Parameters
    ----------
    sets : dict
        From :func:`core.contrast.agreement.baseline_sets`.
    a, b : Kernel

    Returns
    -------
    DataFrame
        Columns ``method``, ``k_a``, ``k_b``, ``quotient``, ``median_size``, ``groups`` (sets
        that read as groups: at most a tenth of the samples, coherence of at least 0.12 under
        A) and ``sets``.
    """
    columns = ["method", "k_a", "k_b", "quotient", "median_size", "groups", "sets"]
    return pd.DataFrame([_summary(m, rows, a, b) for m, rows in sets.items()], columns=columns)


def _summary(name: str, sets: list[np.ndarray], a: Kernel, b: Kernel) -> list[object]:
    sizes = [len(rows) for rows in sets]
    k_a, k_b = [coherence(a, r) for r in sets], [coherence(b, r) for r in sets]
    ratios = [quotient(*one) for one in zip(sizes, k_a, k_b, strict=True)]
    most = max(a.n / 10, 8.0)
    return [
        name,
        float(np.mean(k_a)),
        float(np.mean(k_b)),
        float(np.mean(ratios)),
        float(np.median(sizes)),
        sum(s <= most and k >= 0.12 for s, k in zip(sizes, k_a, strict=True)),
        len(sets),
    ]
