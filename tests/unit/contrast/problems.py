"""Random, degenerate and planted problems shared by the contrast tests."""

from __future__ import annotations

import numpy as np


def gaussian(x: np.ndarray, sigma: float) -> np.ndarray:
    square = (x * x).sum(1)
    return np.exp(-np.maximum(square[:, None] + square[None] - 2 * x @ x.T, 0) / (2 * sigma**2))


def random_psd(rng: np.random.Generator, n: int) -> np.ndarray:
    x = rng.standard_normal((n, int(rng.integers(1, n + 1))))
    return x @ x.T / n


def degenerate_pairs() -> list[tuple[str, np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(5)
    n = 8
    A, B = random_psd(rng, n), random_psd(rng, n)
    u, v = rng.standard_normal(n), rng.standard_normal(n)
    q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    commuting = (q * np.arange(n)) @ q.T
    doubled = np.kron(random_psd(rng, 4), np.eye(2)), np.kron(random_psd(rng, 4), np.eye(2))
    return [
        ("A identity", np.eye(n), B),
        ("B identity", A, np.eye(n)),
        ("A equals B", A, A),
        ("A zero", np.zeros((n, n)), B),
        ("B zero", A, np.zeros((n, n))),
        ("rank one", np.outer(u, u), np.outer(v, v)),
        ("commuting", commuting, (q * np.arange(n)[::-1]) @ q.T),
        ("doubled spectra", *doubled),
        ("B near A", A, A + 1e-9 * B),
        ("one row", np.array([[2.0]]), np.array([[1.0]])),
    ]


def planted(n: int = 700, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Five clusters tight in A and spread in B; four larger ones tight in A, looser in B.

    Gaussian kernels, sigma 0.5. Returns K_A, K_B and the rows of the five.
    """
    rng = np.random.default_rng(seed)
    d = 24

    def spread(count: int) -> np.ndarray:
        z = rng.standard_normal((count, d))
        return z / np.linalg.norm(z, axis=1, keepdims=True)

    a, b = spread(n), spread(n)
    wanted = []
    at = 0
    for size in (24, 22, 20, 18, 16):
        rows = np.arange(at, at + size)
        a[rows] = spread(1) + 0.03 * rng.standard_normal((size, d))
        wanted.append(rows)
        at += size
    for size in (70, 65, 60, 55):
        rows = np.arange(at, at + size)
        centre_a, centre_b = spread(1), spread(1)
        a[rows] = centre_a + 0.03 * rng.standard_normal((size, d))
        b[rows] = centre_b + 0.085 * rng.standard_normal((size, d))
        at += size
    return gaussian(a, 0.5), gaussian(b, 0.5), wanted


def recall(directions: np.ndarray, wanted: list[np.ndarray]) -> list[float]:
    """Best recall@k of each planted cluster over the directions."""
    out = []
    for rows in wanted:
        best = 0.0
        for x in directions:
            top = np.argsort(-x)[: len(rows)]
            best = max(best, len(np.intersect1d(top, rows)) / len(rows))
        out.append(best)
    return out
