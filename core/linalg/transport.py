"""Optimal transport between clouds: along a line, sliced, entropic, and between Gaussians.

Sliced Wasserstein after Bonneel, Rabin, Peyré, Pfister (2015); debiased Sinkhorn divergence
after Feydy, Séjourné, Vialard, Amari, Trouvé, Peyré, "Interpolating between Optimal Transport
and MMD using Sinkhorn Divergences", AISTATS 2019, Eq. 3; Bures-Wasserstein after Dowson and
Landau (1982).

Axes: n, m points, d features, L projections.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from core.errors import BadInput

# Projections a block: 64 sorted lines of 10,000 points in float64 are 5 MB.
_LINES = 64


def quantile_plan(n: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the optimal plan between n and m sorted points of equal weight on a line.

    Returns
    -------
    rows, columns : ndarray of int64, shape (k,)
        Ranks that are matched, k <= n + m - 1.
    mass : ndarray of float64, shape (k,)
        Positive, sum 1. The same for every pair of clouds of these sizes.

    Examples
    --------
    >>> [part.tolist() for part in quantile_plan(1, 2)]
    [[0, 0], [0, 1], [0.5, 0.5]]
    """
    # Steps of both ladders in units of 1 / (n m): integers, so equal steps are equal.
    steps = np.union1d(np.arange(1, n + 1, dtype=np.int64) * m, np.arange(1, m + 1) * n)
    before = np.concatenate([[0], steps[:-1]])
    return before // m, before // n, (steps - before) / (n * m)


def wasserstein_1d(a: np.ndarray, b: np.ndarray, *, p: float = 2.0) -> np.ndarray:
    """Return the p-th power of the p-Wasserstein distance along each line.

    Parameters
    ----------
    a, b : ndarray, shape (L, n) and (L, m)
        Points of equal weight on each of L lines, in any order.
    p : float
        At least 1.

    Returns
    -------
    ndarray of float64, shape (L,)

    Raises
    ------
    BadInput
        ``p`` below 1, an empty cloud, or numbers of lines that differ.

    Examples
    --------
    >>> import numpy as np
    >>> wasserstein_1d(np.array([[0.0, 1.0]]), np.array([[3.0, 2.0]]))
    array([4.])
    """
    if p < 1:
        raise BadInput(f"p={p}, expected at least 1.")
    if len(a) != len(b) or 0 in a.shape or 0 in b.shape:
        raise BadInput(f"a has shape {a.shape}, b {b.shape}: expected (L, n) and (L, m).")
    left, right = np.sort(a, axis=1), np.sort(b, axis=1)
    if left.shape[1] == right.shape[1]:
        return _mean_power(left - right, p)
    rows, columns, mass = quantile_plan(left.shape[1], right.shape[1])
    return np.asarray((np.abs(left[:, rows] - right[:, columns]) ** p) @ mass)


def _mean_power(gap: np.ndarray, p: float) -> np.ndarray:
    if p == 2.0:
        return np.asarray(np.einsum("ij,ij->i", gap, gap) / gap.shape[1])
    return np.asarray((np.abs(gap) ** p).mean(1))


def directions(d: int, n_projections: int, seed: int) -> np.ndarray:
    """Return unit vectors (L, d), uniform on the sphere; the same seed gives the same ones."""
    drawn = np.random.default_rng(np.random.SeedSequence([seed, d])).standard_normal(
        (n_projections, d)
    )
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def line_blocks(n_projections: int) -> Iterator[slice]:
    """Yield the projections a few at a time, so that memory does not grow with them."""
    for first in range(0, n_projections, _LINES):
        yield slice(first, first + _LINES)


def sliced_wasserstein(
    a: np.ndarray,
    b: np.ndarray,
    *,
    n_projections: int = 500,
    p: float = 2.0,
    seed: int = 0,
    projections: np.ndarray | None = None,
) -> float:
    """Return the sliced p-Wasserstein distance of two clouds.

    ``(mean over directions u of W_p(u.a, u.b)^p) ^ (1 / p)``.

    Parameters
    ----------
    a, b : ndarray, shape (n, d) and (m, d)
        Points of equal weight.
    n_projections : int
    p : float
        At least 1.
    seed : int
        Draws the directions; two calls with one seed share them, so that differences between
        clouds are not differences between directions.
    projections : ndarray, shape (L, d), optional
        Use these directions instead.

    Returns
    -------
    float
        At least 0, in units of the points; 0 for equal clouds.

    Raises
    ------
    BadInput
        Widths that differ, an empty cloud, or ``p`` below 1.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.zeros((4, 1))
    >>> sliced_wasserstein(x, x + 3)
    3.0
    """
    check_clouds(a, b)
    lines = directions(a.shape[1], n_projections, seed) if projections is None else projections
    # One type for product and sort: float32 clouds keep their speed, sums are in float64.
    kind = np.result_type(a, b, np.float32)
    lines, total = lines.astype(kind), 0.0
    for block in line_blocks(len(lines)):
        total += float(wasserstein_1d(lines[block] @ a.T, lines[block] @ b.T, p=p).sum())
    return (total / len(lines)) ** (1.0 / p)


def check_clouds(a: np.ndarray, b: np.ndarray) -> None:
    """Refuse clouds that are empty or of unequal width.

    Raises
    ------
    BadInput
    """
    if a.ndim != 2 or b.ndim != 2 or 0 in a.shape or 0 in b.shape:
        raise BadInput(f"a has shape {a.shape}, b {b.shape}: expected (n, d) and (m, d).")
    if a.shape[1] != b.shape[1]:
        raise BadInput(
            f"a has {a.shape[1]} features, b {b.shape[1]}.",
            "Take both from the same encoder and layer.",
        )


def bures(mean_p: np.ndarray, cov_p: np.ndarray, mean_q: np.ndarray, cov_q: np.ndarray) -> float:
    """Return the squared 2-Wasserstein distance of two Gaussians.

    Parameters
    ----------
    mean_p, mean_q : ndarray, shape (d,)
    cov_p, cov_q : ndarray, shape (d, d)
        Positive semi-definite.

    Returns
    -------
    float
        At least 0 (rounding is clamped).

    Examples
    --------
    >>> import numpy as np
    >>> round(bures(np.zeros(1), np.eye(1), np.full(1, 3.0), 4 * np.eye(1)), 9)
    10.0
    """
    values, vectors = np.linalg.eigh(np.asarray(cov_p, dtype=np.float64))
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    cross = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ cov_q @ root), 0.0)).sum()
    shift = np.asarray(mean_p, dtype=np.float64) - mean_q
    distance = shift @ shift + np.trace(cov_p) + np.trace(cov_q) - 2.0 * cross
    return float(max(distance, 0.0))
