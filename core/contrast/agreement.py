"""Does an embedding keep the found sets apart? Agreement of k-means with the sets, by method.

KODA (arXiv 2606.04180) Section 6 and Fig. 9: k-means labels (k = number of sets, on the sets'
samples, in each embedding on its own) against the number of the set. Labels come from A, so
agreement under A is optimistic: the baselines beside it say what that is worth.

Axes: s samples of all sets, d features.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.contrast.baseline import feature_pair, spec_dense, spec_features
from core.contrast.clusters import LEAST, coherence, extract_clusters
from core.contrast.inputs import lapack_thread
from core.contrast.types import Cluster
from core.linalg.kernels import DENSE_LIMIT, Kernel

RUNS = 10
MEASURES = ("AMI", "NMI", "ARI", "silhouette")
_SPEC_FREQUENCIES = 256
_KMEANS_GROUPS = 60

Sets = dict[str, list[np.ndarray]]


def baseline_sets(
    clusters: list[Cluster], a: Kernel, b: Kernel, *, first: int, seed: int
) -> dict[str, list[np.ndarray]]:
    """Return the first sets of every method, as row numbers.

    KODA; SPEC on whole kernels and, in covariance form, on 256 random frequencies; kernel PCA
    of A; the k-means groups of A that differ most from B; random groups of KODA's sizes. Above
    3,000 samples no matrix is held, and the methods that need one are left out.

    Parameters
    ----------
    clusters : list of Cluster
        KODA's.
    a, b : Kernel
        At the chosen scale.
    first : int
        Sets a method.
    seed : int
    """
    found: Sets = {"KODA": [c.rows for c in clusters[:first]]}
    sizes = [len(rows) for rows in found["KODA"]]
    if not sizes:
        return {}
    if a.n <= DENSE_LIMIT:
        A, B = a.dense(), b.dense()
        for name, eta in (("SPEC", 1.0), ("Kernel PCA of A", 0.0)):
            with lapack_thread():
                x = spec_dense(A, B, eta=eta, n_directions=first, seed=seed).directions
            found[name] = [c.rows for c in extract_clusters(x, a, b, seed=seed)]
    wide = min(_SPEC_FREQUENCIES, max(a.n // 4, 1)) if a.kind == "rbf" else None
    with lapack_thread():
        x = spec_features(*feature_pair(a, b, wide, seed), n_directions=first).directions
    found["SPEC, covariance form"] = [c.rows for c in extract_clusters(x, a, b, seed=seed)]
    found["k-means of A"] = kmeans_difference(a, b, first=first, seed=seed)
    rng = np.random.default_rng(seed)
    found["Random groups"] = [rng.choice(a.n, size, replace=False) for size in sizes]
    return {name: rows for name, rows in found.items() if rows}


def kmeans_difference(a: Kernel, b: Kernel, *, first: int, seed: int) -> list[np.ndarray]:
    """Return the k-means groups of A whose coherence under A most exceeds that under B."""
    from sklearn.cluster import KMeans

    rows = a.parts[0].cpu().numpy()
    k = int(min(_KMEANS_GROUPS, max(a.n // LEAST, 1)))
    labels = KMeans(k, n_init=1, random_state=seed).fit_predict(rows)
    groups = [np.flatnonzero(labels == g) for g in range(k)]
    groups = [g for g in groups if len(g) >= LEAST] or groups[:1]
    lead = [coherence(a, g) - coherence(b, g) for g in groups]
    return [groups[i] for i in np.argsort(-np.nan_to_num(lead), kind="stable")[:first]]


def agreement_table(sets: Sets, a: Kernel, b: Kernel, *, seed: int) -> pd.DataFrame:
    """Return AMI, NMI, ARI and silhouette by method and embedding, means of ten k-means runs.

    A sample that several sets share counts for the first. ``spread`` is the standard deviation
    of AMI over the runs; nan where a method has one set only.

    Returns
    -------
    DataFrame
        Columns ``method``, ``embedding`` (A or B), AMI, NMI, ARI, silhouette, ``spread``,
        ``samples`` and ``sets``.
    """
    records = []
    for method, groups in sets.items():
        rows, labels = _labelled(groups)
        for side, kernel in (("A", a), ("B", b)):
            values = agreement(kernel.parts[0].cpu().numpy()[rows], labels, seed=seed)
            records.append(
                {
                    "method": method,
                    "embedding": side,
                    **values,
                    "samples": len(rows),
                    "sets": len(np.unique(labels)),
                }
            )
    return pd.DataFrame(records)


def _labelled(groups: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    first: dict[int, int] = {}
    for number, rows in enumerate(groups):
        for row in rows:
            first.setdefault(int(row), number)
    return np.array(list(first)), np.array(list(first.values()))


def agreement(
    x: np.ndarray, labels: np.ndarray, *, seed: int = 0, runs: int = RUNS
) -> dict[str, float]:
    """Return how well k-means on ``x`` finds the given groups.

    Parameters
    ----------
    x : ndarray, shape (s, d)
        Unit rows.
    labels : ndarray of int, shape (s,)
        Number of each sample's group.
    seed, runs : int
        k-means runs with seeds from ``seed`` on.

    Returns
    -------
    dict
        AMI, NMI (0 to 1), ARI (-0.5 to 1), silhouette of the given groups (-1 to 1), and
        ``spread``; nan for fewer than two groups or no more samples than groups.

    Examples
    --------
    >>> x = np.repeat(np.eye(3), 5, axis=0) + 1e-3 * np.arange(15)[:, None]
    >>> agreement(x, np.repeat([0, 1, 2], 5))["ARI"]
    1.0
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import (
        adjusted_mutual_info_score,
        adjusted_rand_score,
        normalized_mutual_info_score,
        silhouette_score,
    )

    k = len(np.unique(labels))
    if k < 2 or len(labels) <= k:
        return dict.fromkeys((*MEASURES, "spread"), float("nan"))
    scores = []
    for run in range(runs):
        got = KMeans(k, n_init=1, random_state=seed + run).fit_predict(x)
        scores.append(
            (
                adjusted_mutual_info_score(labels, got),
                normalized_mutual_info_score(labels, got),
                adjusted_rand_score(labels, got),
            )
        )
    mean, spread = np.mean(scores, axis=0), np.std(scores, axis=0)
    values = (*(float(v) for v in mean), float(silhouette_score(x, labels)), float(spread[0]))
    return dict(zip((*MEASURES, "spread"), values, strict=True))
