"""How far a set can be trusted: does it come back, does it recur, what makes it alike.

KODA specification sections 3 and 5: stability under other samples, overlap of the sets, and
the share of picture, caption or both in what holds a set together.

Axes: n samples, k sets, p pairs of samples of one set.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.contrast.clusters import orient, participation_ratio, set_size
from core.contrast.inputs import lapack_thread
from core.contrast.sequence import solve_sequence
from core.contrast.types import Cluster
from core.linalg.kernels import DENSE_LIMIT, Kernel

RESAMPLES, SHARE = 3, 0.8
_ALIKE = 0.99  # a pair is alike above this quantile of random pairs
_RANDOM_PAIRS = 20_000


def overlaps_table(clusters: list[Cluster]) -> pd.DataFrame:
    """Return the Jaccard overlap of every two sets: columns ``direction``, ``other``, ``overlap``.

    Later directions are orthogonal to earlier ones, yet the same samples can come again.
    """
    records = [
        {"direction": c.direction, "other": d.direction, "overlap": jaccard(c.rows, d.rows)}
        for c in clusters
        for d in clusters
    ]
    return pd.DataFrame(records, columns=["direction", "other", "overlap"])


def jaccard(first: np.ndarray, second: np.ndarray) -> float:
    """Return the size of the intersection over that of the union (0 for two empty sets).

    Examples
    --------
    >>> jaccard(np.array([1, 2, 3]), np.array([2, 3, 4]))
    0.5
    """
    union = len(np.union1d(first, second))
    return len(np.intersect1d(first, second)) / union if union else 0.0


def stability(
    clusters: list[Cluster], a: Kernel, b: Kernel, epsilon: float, *, seed: int
) -> dict[int, float]:
    """Return by direction how far its set comes back on other samples (Jaccard, 0 to 1).

    Three times, four fifths of the samples are drawn and the directions found anew at the same
    bandwidths; each set, without the samples left out, is held against the best of the new
    ones. Empty above 3,000 samples, where no matrix is held.
    """
    if a.n > DENSE_LIMIT or not clusters:
        return {}
    rng = np.random.default_rng([seed, 17])
    scores: dict[int, list[float]] = {c.direction: [] for c in clusters}
    for _ in range(RESAMPLES):
        rows = np.sort(rng.choice(a.n, max(2, int(SHARE * a.n)), replace=False))
        with lapack_thread():
            found = solve_sequence(
                a.subset(rows).dense(), b.subset(rows).dense(), epsilon,
                max(c.direction for c in clusters) + 1, tol=1e-4, seed=seed, certify=False,
            )  # fmt: skip
        sets = [rows[_members(f.y)] for f in found if f.solution.status != "infeasible"]
        for c in clusters:
            kept = np.intersect1d(c.rows, rows)
            if len(kept):
                scores[c.direction].append(max((jaccard(kept, s) for s in sets), default=0.0))
    return {d: float(np.mean(v)) if v else float("nan") for d, v in scores.items()}


def _members(y: np.ndarray) -> np.ndarray:
    x = orient(y[None])[0]
    return np.argsort(-x, kind="stable")[: set_size(participation_ratio(x), len(x))]


def attribution_table(
    clusters: list[Cluster], kernels: tuple[Kernel, Kernel], *, seed: int
) -> pd.DataFrame:
    """Return what makes the pairs of a set alike: one modality only, both, or neither.

    A pair is alike in a modality when its cosine there is above the 99th percentile of random
    pairs; under A and under B. Shares of a set's pairs; a row sums to 1. Empty for kernels of
    one modality.

    Returns
    -------
    DataFrame
        Columns ``direction``, ``side`` (A or B), ``first_only``, ``second_only``, ``both``,
        ``neither`` and ``pairs``.
    """
    columns = ["direction", "side", "first_only", "second_only", "both", "neither", "pairs"]
    records: list[dict[str, object]] = []
    for side, kernel in zip("AB", kernels, strict=True):
        if len(kernel.parts) != 2:
            return pd.DataFrame(columns=columns)
        parts = [p.cpu().numpy() for p in kernel.parts]
        limits = [_limit(p, seed) for p in parts]
        for c in clusters:
            i, j = np.triu_indices(len(c.rows), 1)
            alike = [
                np.einsum("pd,pd->p", p[c.rows[i]], p[c.rows[j]]) > limit
                for p, limit in zip(parts, limits, strict=True)
            ]
            records.append({"direction": c.direction, "side": side, **_shares(*alike)})
    return pd.DataFrame(records, columns=columns)


def _limit(rows: np.ndarray, seed: int) -> float:
    rng = np.random.default_rng(seed)
    i, j = rng.integers(0, len(rows), (2, _RANDOM_PAIRS))
    apart = i != j
    return float(np.quantile(np.einsum("pd,pd->p", rows[i[apart]], rows[j[apart]]), _ALIKE))


def _shares(first: np.ndarray, second: np.ndarray) -> dict[str, float | int]:
    count = max(len(first), 1)
    return {
        "first_only": float((first & ~second).sum() / count),
        "second_only": float((~first & second).sum() / count),
        "both": float((first & second).sum() / count),
        "neither": float((~first & ~second).sum() / count),
        "pairs": len(first),
    }


def resolution(kernel: Kernel) -> float:
    """Return the size below which groups cannot be told from the bulk: n / d_eff, in samples.

    d_eff = 1 / tr((K / n)^2), so this is tr(K^2) / n, raw: 1 for samples that are all apart.
    nan above 3,000 samples.

    Examples
    --------
    >>> from core.linalg.kernels import make_kernel
    >>> round(resolution(make_kernel(np.eye(4), kind="cosine", centered=False)), 12)
    1.0
    """
    if kernel.n > DENSE_LIMIT:
        return float("nan")
    return float((kernel.dense() ** 2).sum() / kernel.n)
