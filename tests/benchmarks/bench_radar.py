"""RADAR against straightforward peers in the same process: agreement first, then ratios.

``python -m pytest tests/benchmarks/bench_radar.py -s -m slow`` prints the table. CPU seconds of
one thread, the least of interleaved repeats; never an absolute floor.
"""

from __future__ import annotations

import math
import time
import tracemalloc
from collections.abc import Callable
from itertools import combinations

import numpy as np
import ot
import pytest
import torch
from sklearn.mixture import GaussianMixture

from core.device import one_thread
from core.linalg.gmm import MixtureBatch, fit_mixtures
from core.linalg.transport import sliced_wasserstein
from core.radar import Domain, radar_score, rank_blends
from core.radar.triplets import PairSpace, triplet_descriptors
from core.transferability import logme, transrate

pytestmark = pytest.mark.slow

PAIRS, LAYERS, WIDTH = 10_000, 12, 768
LOOP = 100  # pairs of the numpy loop: its cost is proportional


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
    h = rng.standard_normal((LAYERS + 1, n, WIDTH), dtype=np.float32)
    return list(h.cumsum(0, out=h))


def torch_batched(anchors: list[np.ndarray], partners: list[np.ndarray]) -> torch.Tensor:
    """Theta and d of all pairs at once by whole-array float32 operations, (2, L, n)."""
    out = []
    for layer in range(len(anchors) - 1):
        x, z, y = (
            torch.from_numpy(h) for h in (anchors[layer], partners[layer], anchors[layer + 1])
        )
        sep, detour = z - x, y - z
        a, b, c = sep.norm(dim=1), detour.norm(dim=1), (y - x).norm(dim=1)
        theta = torch.arccos(((sep * detour).sum(1) / (a * b)).clamp(-1, 1))
        out.append(torch.stack([theta, (a + b - c) / c]))
    return torch.stack(out, dim=1)


def test_descriptors_of_given_pairs():
    a, z = stream(PAIRS, 0), stream(PAIRS, 1)
    few = [h[:LOOP] for h in a], [h[:LOOP] for h in z]
    ours, peer = triplet_descriptors(a, z), numpy_loop(*few)
    assert np.allclose(ours.theta[:LOOP], peer[..., 0], atol=1e-7)
    assert np.allclose(ours.d[:LOOP], peer[..., 1], atol=1e-9)
    assert np.allclose(ours.theta.T, torch_batched(a, z)[0], atol=1e-3)
    loop = race(lambda: triplet_descriptors(a, z), lambda: numpy_loop(*few), 2) * PAIRS / LOOP
    whole = race(lambda: triplet_descriptors(a, z), lambda: torch_batched(a, z), 2)
    with one_thread():
        seconds = min(cpu(lambda: triplet_descriptors(a, z)) for _ in range(3))
        flat = np.concatenate([h.ravel() for h in a])
        read = flat.nbytes / min(cpu(flat.sum) for _ in range(3))
    roof = 2 * LAYERS * PAIRS * WIDTH * 4 / read  # two new rows a triangle
    print(
        f"\ndescriptors {LAYERS} x {PAIRS} x {WIDTH}: {seconds:.3f} CPU-s, {loop:.0f}x a numpy "
        f"loop, {whole:.1f}x torch float32, {100 * roof / seconds:.0f} % of memory bandwidth"
    )
    assert loop > 10
    assert whole > 3


def test_memory_is_flat_in_the_number_of_pairs():
    a, z = stream(200, 0), stream(200, 1)
    steps = [(layer, layer + 1) for layer in range(LAYERS)]
    space = PairSpace(a, z, steps, n_expected=1, geometry="euclidean")
    peaks = []
    space.at(*np.zeros((2, 20_000), dtype=np.int64))  # loads the kernel
    for n in (20_000, 80_000):
        i, j = np.random.default_rng(n).integers(200, size=(2, n))
        tracemalloc.start()
        out = space.at(i, j)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        result = sum(part.nbytes for part in (out.theta, out.d, out.mask, out.sides))
        peaks.append(peak / result)
    # What is held grows with the answer only; gathered rows would be 96 times that.
    assert max(peaks) < 4
    print(f"\npeak memory over the answer's size: {peaks[0]:.1f}, {peaks[1]:.1f}")


def test_sliced_distance_against_pot():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 10_000, WIDTH)).astype(np.float32)
    lines = rng.standard_normal((100, WIDTH))
    lines = (lines / np.linalg.norm(lines, axis=1, keepdims=True)).astype(np.float32)

    def peer() -> float:
        return float(ot.sliced_wasserstein_distance(a, b, projections=lines.T))

    def ours() -> float:
        return sliced_wasserstein(a, b, projections=lines)

    assert ours() == pytest.approx(peer(), rel=1e-4)
    ratio = race(ours, peer)
    print(f"\nsliced W2 of 10,000 x {WIDTH}, 100 lines: {ratio:.1f}x POT")
    assert ratio > 2


def test_measures_against_plain_implementations():
    rng = np.random.default_rng(0)
    y = rng.integers(100, size=10_000)
    x = rng.standard_normal((10_000, WIDTH)).astype(np.float32)
    x[np.arange(10_000), y] += 2

    def rates() -> float:
        z = x.astype(np.float64) - x.mean(0, dtype=np.float64)

        def rate(part: np.ndarray) -> float:
            return 0.5 * np.linalg.slogdet(np.eye(WIDTH) + part.T @ part / (len(part) * 1e-4))[1]

        return rate(z) - float(np.mean([rate(z[y == c]) for c in range(100)]))

    assert transrate(x, y) == pytest.approx(rates(), rel=1e-8)
    ratio = race(lambda: transrate(x, y), rates, repeats=1)

    def evidence() -> np.ndarray:
        return np.linalg.svd(x.astype(np.float64), full_matrices=False)[1]

    lower = race(lambda: logme(x, y), evidence, repeats=1)
    print(f"\nTransRate of 100 classes: {ratio:.1f}x plain; LogME: {lower:.1f}x its SVD alone")
    assert ratio > 4
    assert lower > 1.5


def test_all_blends_of_five_sources():
    rng = np.random.default_rng(0)
    names = "abcdef"
    parts = {
        name: [h + 0.2 * index for h in stream_of(rng, 213, 128)]
        for index, name in enumerate(names)
    }
    target = Domain(tuple(parts["a"]), None, "a")
    sources = [Domain(tuple(parts[name]), None, name) for name in names[1:]]
    options = {"density": "gaussian", "n_pairs": 500, "repeats": 1}

    def ours() -> int:
        return len(rank_blends(target, sources, **options).table)

    def anew() -> int:
        return sum(
            len(radar_score(target, list(members), **options).members)
            for size in range(1, 6)
            for members in combinations(sources, size)
        )

    assert ours() == 31
    ratio = race(ours, anew, repeats=1)
    print(f"\n31 blends of five sources: {ratio:.1f}x scoring each anew")
    assert ratio > 6


def stream_of(rng: np.random.Generator, n: int, width: int) -> list[np.ndarray]:
    h = rng.standard_normal((LAYERS + 1, n, width)).cumsum(0)
    return list(h.astype(np.float32))


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


@pytest.mark.parametrize(("dim", "floor"), [(2, 3.5), (24, 0.9)])
def test_batched_em_against_scikit_learn(dim: int, floor: float):
    rng = np.random.default_rng(0)
    batch, n, k = (6, 4_000, 3) if dim == 2 else (1, 4_000, 3)
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
    ratio = race(ours, peer, repeats=1)
    print(f"\nEM of {batch} x {n} points in {dim} dimensions, K = {k}: {ratio:.1f}x scikit-learn")
    assert ratio > floor
