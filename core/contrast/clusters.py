"""From a direction to a set of samples, with scores that say how honest the set is.

A direction is a relaxed indicator: its sign is arbitrary and its tail long. The set is the
positive pole, cut at its participation ratio; what counts afterwards is the set's own
coherence under both kernels (KODA specification, section 3).

Axes: n samples, k directions, N samples of a set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.contrast.types import Cluster, Similarity

LEAST, MOST = 8, 200  # sizes of a set, unless asked otherwise
_POOL = 3000  # rows from which random sets are drawn
_RANDOM_SETS = 500
# Above so many samples the rows outside a set are compared by blocks.
_ONE_BLOCK, _NEAR_ROWS = 10_000, 8192


def orient(directions: np.ndarray) -> np.ndarray:
    """Flip rows so that the positive entries hold at least half of the energy.

    Examples
    --------
    >>> orient(np.array([[-0.8, 0.6]])).tolist()
    [[0.8, -0.6]]
    """
    positive = np.square(np.maximum(directions, 0.0)).sum(axis=1)
    flip = np.where(positive >= 0.5 * np.square(directions).sum(axis=1), 1.0, -1.0)
    return directions * flip[:, None]


def varimax(directions: np.ndarray, *, steps: int = 200, tol: float = 1e-10) -> np.ndarray:
    """Rotate directions inside their span so that each weighs few samples (Kaiser 1958).

    Groups of nearly equal strength mix in the directions that solve the problem in turn; the
    rotation takes them apart. It keeps the span and the lengths; a certificate speaks of the
    unrotated directions only.

    Parameters
    ----------
    directions : ndarray, shape (k, n)
        Orthonormal rows.
    steps : int
        Most steps.
    tol : float
        Relative growth of the criterion at which it stops.

    Returns
    -------
    ndarray, shape (k, n)

    Examples
    --------
    >>> mixed = np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0]]) / np.sqrt(2)
    >>> sorted(np.abs(varimax(mixed)).round(3).tolist())
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    x = np.asarray(directions, dtype=np.float64).T
    n, k = x.shape
    if k < 2:
        return directions
    # At a saddle, as two groups in equal parts are, the gradient is zero: begin a little off it.
    start = np.linalg.qr(np.eye(k) + 0.05 * np.random.default_rng(0).standard_normal((k, k)))[0]
    turn, before = start * np.sign(np.diag(start)), 0.0
    for _ in range(steps):
        y = x @ turn
        u, values, vt = np.linalg.svd(x.T @ (y**3 - y * (y**2).sum(axis=0) / n))
        turn, now = u @ vt, float(values.sum())
        if now <= before * (1.0 + tol):
            break
        before = now
    return orient((x @ turn).T)


def participation_ratio(direction: np.ndarray) -> float:
    """Return 1 / sum x_i^4 of the normalised positive part: how many samples share it.

    From 1 (one sample) to n (all alike); 0 when no entry is positive.

    Examples
    --------
    >>> participation_ratio(np.array([1.0, 1.0, 1.0, -1.0]))
    3.0
    """
    square = np.square(np.maximum(direction, 0.0))
    total = square.sum()
    return float(total**2 / np.square(square).sum()) if total > 0.0 else 0.0


def set_size(ratio: float, n: int) -> int:
    """Return how many samples a set of this participation ratio shows."""
    return int(min(max(round(ratio), LEAST), MOST, n))


def coherence(similarity: Similarity, rows: np.ndarray) -> float:
    """Return the mean off-diagonal kernel value among rows (nan for fewer than two)."""
    count = len(rows)
    if count < 2:
        return float("nan")
    block = np.asarray(similarity.block(rows, rows), dtype=np.float64)
    return float((block.sum() - np.trace(block)) / (count * (count - 1)))


def quotient(size: int, coherence_a: float, coherence_b: float) -> float:
    """Return (1 + (N - 1) s_A) / (1 + (N - 1) s_B): the sets' Rayleigh quotient."""
    below = 1.0 + (size - 1) * coherence_b
    return (1.0 + (size - 1) * coherence_a) / below if below > 0.0 else float("inf")


@dataclass
class RandomSets:
    """Coherence of random sets of one size, drawn once a size."""

    similarity: Similarity
    seed: int = 0

    def __post_init__(self) -> None:
        n = self.similarity.n
        rng = np.random.default_rng(self.seed)
        pool = np.arange(n) if n <= _POOL else np.sort(rng.choice(n, _POOL, replace=False))
        self._matrix = np.asarray(self.similarity.block(pool, pool)).astype(np.float32)
        np.fill_diagonal(self._matrix, 0.0)
        self._known: dict[int, np.ndarray] = {}

    def coherences(self, size: int) -> np.ndarray:
        """Return the coherence of 500 random sets of ``size`` rows."""
        if size not in self._known:
            rng = np.random.default_rng([self.seed, size])
            m = len(self._matrix)
            chosen = np.zeros((_RANDOM_SETS, m), dtype=np.float32)
            for row in chosen:
                row[rng.choice(m, min(size, m), replace=False)] = 1.0
            sums = np.einsum("sm,sm->s", chosen @ self._matrix, chosen, dtype=np.float64)
            self._known[size] = sums / max(size * (size - 1), 1)
        return self._known[size]

    def z(self, size: int, value: float) -> float:
        """Return ``value`` in standard deviations from the random mean."""
        random = self.coherences(size)
        return float((value - random.mean()) / max(random.std(), 1e-12))

    def band(self, size: int) -> float:
        """Return the 99th percentile of the random coherences."""
        return float(np.quantile(self.coherences(size), 0.99))


def extract_clusters(
    directions: np.ndarray,
    similarity_a: Similarity,
    similarity_b: Similarity,
    size: int | None = None,
    *,
    seed: int = 0,
) -> list[Cluster]:
    """Return the cluster of each direction.

    Parameters
    ----------
    directions : ndarray, shape (k, n)
        Oriented or not.
    similarity_a, similarity_b : Similarity
        Kernels of the target and the reference.
    size : int, optional
        Samples a cluster; by default from the participation ratio, 8 to 200.
    seed : int
        Seed of the random sets.
    """
    random_a, random_b = RandomSets(similarity_a, seed), RandomSets(similarity_b, seed)
    return [
        _cluster(number, x, random_a, random_b, size) for number, x in enumerate(orient(directions))
    ]


def _cluster(
    number: int, x: np.ndarray, random_a: RandomSets, random_b: RandomSets, size: int | None
) -> Cluster:
    n = len(x)
    ratio = participation_ratio(x)
    count = set_size(ratio, n) if size is None else max(1, min(size, n))
    rows = np.argsort(-x, kind="stable")[:count]
    energy = float(np.square(np.minimum(x, 0.0)).sum() / max(np.square(x).sum(), 1e-300))
    other = np.empty(0, dtype=np.int64)
    if energy > 0.25:
        wanted = set_size(participation_ratio(-x), n) if size is None else count
        other = np.argsort(x, kind="stable")[:wanted]
        other = other[x[other] < 0.0]
    a, b = coherence(random_a.similarity, rows), coherence(random_b.similarity, rows)
    return Cluster(
        direction=number,
        rows=rows,
        scores=x[rows],
        size=ratio,
        other_rows=other,
        other_scores=x[other],
        other_energy=energy,
        coherence_a=a,
        coherence_b=b,
        quotient=quotient(count, a, b),
        z_a=random_a.z(count, a),
        z_b=random_b.z(count, b),
        band_a=random_a.band(count),
        band_b=random_b.band(count),
    )


def neighbours_of_set(
    similarity: Similarity, rows: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples outside a set that are most similar to it, and their mean similarity.

    With the reference's kernel: what the reference mixes the set with.
    """
    outside = np.setdiff1d(np.arange(similarity.n), rows)
    # Of few samples one block, whose bits stored results hold; of many the rows' copy is large.
    step = len(outside) if similarity.n <= _ONE_BLOCK else _NEAR_ROWS
    mean = np.concatenate(
        [
            np.asarray(similarity.block(outside[at : at + step], rows), dtype=np.float64).mean(
                axis=1
            )
            for at in range(0, len(outside), max(step, 1))
        ]
        or [np.empty(0)]
    )
    order = np.argsort(-mean, kind="stable")[:count]
    return outside[order], mean[order]
