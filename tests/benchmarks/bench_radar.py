"""RADAR against straightforward peers in the same process: agreement first, then ratios.

``python -m pytest tests/benchmarks/bench_radar.py -s -m slow`` prints the table. CPU seconds of
one thread, the least of interleaved repeats; never an absolute floor.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import pytest
import torch
from sklearn.mixture import GaussianMixture

from core.device import one_thread
from core.linalg.gmm import MixtureBatch, fit_mixtures
from core.radar.triplets import PairSpace, triplet_descriptors

pytestmark = pytest.mark.slow

PAIRS, LAYERS, WIDTH = 1_000, 12, 768


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    began = time.process_time()
    work()
    return time.process_time() - began


def race(ours: Callable[[], object], peer: Callable[[], object], repeats: int = 3) -> float:
    """Return peer time over our time, each the least of interleaved repeats."""
    mine, theirs = [], []
    with one_thread():
        for _ in range(repeats):
            mine.append(cpu(ours))
            theirs.append(cpu(peer))
    return min(theirs) / min(mine)


def numpy_loop(anchors: list[np.ndarray], partners: list[np.ndarray]) -> np.ndarray:
    """Theta and d by the equations, pair by pair, (n, L, 2) in float64."""
    n, steps = len(anchors[0]), len(anchors) - 1
    out = np.empty((n, steps, 2))
    for i in range(n):
        for layer in range(steps):
            x, z, y = (
                h.astype(np.float64)
                for h in (anchors[layer][i], partners[layer][i], anchors[layer + 1][i])
            )
            sep, detour, traj = z - x, y - z, y - x
            a, b, c = (np.linalg.norm(v) for v in (sep, detour, traj))
            out[i, layer] = math.acos(max(-1, min(1, sep @ detour / (a * b)))), (a + b - c) / c
    return out


def stream(n: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    h = rng.standard_normal((LAYERS + 1, n, WIDTH)).cumsum(0)
    return list(h.astype(np.float32))


def test_descriptors_of_given_pairs():
    a, z = stream(PAIRS, 0), stream(PAIRS, 1)
    ours, peer = triplet_descriptors(a, z), numpy_loop(a, z)
    assert np.allclose(ours.theta, peer[..., 0], atol=1e-7)
    assert np.allclose(ours.d, peer[..., 1], atol=1e-9)
    ratio = race(lambda: triplet_descriptors(a, z), lambda: numpy_loop(a, z))
    print(f"\ndescriptors {LAYERS} x {PAIRS} x {WIDTH}: {ratio:.1f}x a numpy loop")
    assert ratio > 1.0


def test_descriptors_of_repeated_draws_from_small_domains():
    a, z = stream(213, 0), stream(213, 1)
    rng = np.random.default_rng(2)
    i, j = rng.integers(213, size=(2, 10_000))
    steps = [(layer, layer + 1) for layer in range(LAYERS)]

    def ours() -> np.ndarray:
        return PairSpace(a, z, steps, n_expected=10_000).at(i, j).theta

    some = slice(0, 300)
    peer_a, peer_z = [h[i[some]] for h in a], [h[j[some]] for h in z]
    assert np.allclose(ours()[some], numpy_loop(peer_a, peer_z)[..., 0], atol=1e-7)
    # The loop is timed on 300 of the 10,000 pairs: its cost is proportional.
    ratio = race(ours, lambda: numpy_loop(peer_a, peer_z)) * 10_000 / 300
    print(f"\n10,000 pairs among 213 x 213 items: {ratio:.0f}x a numpy loop")
    assert ratio > 10


@pytest.mark.parametrize(("dim", "floor"), [(2, 1.2), (24, 0.8)])
def test_batched_em_against_scikit_learn(dim: int, floor: float):
    rng = np.random.default_rng(0)
    batch, n, k = (12, 4_000, 3) if dim == 2 else (1, 4_000, 3)
    centres = rng.normal(0, 2, (batch, k, dim))
    z = centres[:, rng.integers(k, size=n)] + rng.standard_normal((batch, n, dim))
    means = z[:, ::1_000][:, :k]
    cov = np.stack([np.cov(one.T) for one in z])
    start = MixtureBatch(
        torch.full((batch, k), 1 / k, dtype=torch.float64),
        torch.as_tensor(means),
        torch.as_tensor(np.repeat(cov[:, None], k, axis=1)),
        *(torch.zeros(batch),) * 3,
    )

    def peer() -> list[float]:
        found = []
        for one, mean, spread in zip(z, means, cov, strict=True):
            model = GaussianMixture(
                k, tol=1e-6, max_iter=500, means_init=mean, weights_init=np.full(k, 1 / k),
                precisions_init=np.repeat(np.linalg.inv(spread)[None], k, axis=0),
            )  # fmt: skip
            found.append(model.fit(one).score(one))
        return found

    def ours() -> MixtureBatch:
        return fit_mixtures(z, k, start=start, tol=1e-6, max_iter=500)

    assert np.allclose(ours().log_likelihood, peer(), atol=1e-4)
    ratio = race(ours, peer, repeats=2)
    print(f"\nEM of {batch} x {n} points in {dim} dimensions, K = {k}: {ratio:.1f}x scikit-learn")
    assert ratio > floor
