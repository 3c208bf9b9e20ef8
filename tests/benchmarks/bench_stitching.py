"""Stitching against straightforward code: whiten-then-multiply, whiten in the loop, n x n CKA.

Run: ``python -m tests.benchmarks.bench_stitching`` (``--full`` for the real sizes: 8 encoders,
5 seeds, 4 methods, n = 10,000, 512 anchors; 1,000 PARAM steps). Agreement first, then CPU seconds
of one thread, best of interleaved repeats. The floors are in ``test_speed_of_stitching``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

from core.compare import linear_cka
from core.device import one_thread
from core.linalg.whitening import Whitening, whitening_stats
from core.stitching import losses, relative


def best(works: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the least CPU seconds of each piece of work, run in turns."""
    seconds = dict.fromkeys(works, float("inf"))
    for _ in range(repeats):
        for name, work in works.items():
            begun = time.process_time()
            work()
            seconds[name] = min(seconds[name], time.process_time() - begun)
    return seconds


def features(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Return rows with a decaying, rotated spectrum."""
    rng = np.random.default_rng(seed)
    scales = np.arange(1, d + 1) ** -0.5
    return (rng.normal(size=(n, d)) * scales) @ np.linalg.qr(rng.normal(size=(d, d)))[0] + 1.0


def wip_case(n: int = 6000, d: int = 768, k: int = 128, repeats: int = 3) -> dict[str, float]:
    """Whitening folded into the anchors against whitening every sample."""
    x = features(n, d)
    stats = whitening_stats(x, shrinkage=0.1)
    anchors, L = x[:k], stats.matrix

    def plain() -> np.ndarray:
        z = ((x - stats.mean) / stats.scale) @ L
        return z @ (((anchors - stats.mean) / stats.scale) @ L).T

    def folded() -> np.ndarray:
        return relative(x, anchors, similarity="wip", stats=stats)

    np.testing.assert_allclose(folded(), plain(), atol=1e-7)
    return best({"plain": plain, "ours": folded}, repeats)


def _loss(z: list[torch.Tensor], subs: list[torch.Tensor], P: torch.Tensor) -> torch.Tensor:
    anchors = [P @ s for s in subs]
    rel = [a @ b.T for a, b in zip(z, anchors, strict=True)]
    cover = losses.coverage(z[0], anchors[0], rel=rel[0])
    return cover + losses.symmetric_nce(rel[0], rel[1])


def _white(x: torch.Tensor, w: Whitening, L: torch.Tensor) -> torch.Tensor:
    mean, scale = (torch.as_tensor(v, dtype=x.dtype) for v in (w.mean, w.scale))
    return ((x - mean) / scale) @ L


def param_case(
    k: int = 256, m: int = 1024, batch: int = 384, d: int = 768, repeats: int = 3
) -> dict[str, float]:
    """One PARAM step on rows whitened once against whitening batch and anchors in the loop."""
    raw = [features(m, d, seed) for seed in (0, 1)]
    stats = [whitening_stats(x, shrinkage=0.3) for x in raw]
    maps = [torch.as_tensor(w.matrix, dtype=torch.float32) for w in stats]
    rows = [torch.as_tensor(x, dtype=torch.float32) for x in raw]
    once = [_white(x, w, L) for x, w, L in zip(rows, stats, maps, strict=True)]
    Q = torch.randn(k, m, generator=torch.Generator().manual_seed(0), requires_grad=True)

    def step(whiten_in_loop: bool) -> tuple[float, torch.Tensor]:
        P = torch.softmax(Q, 1)
        if whiten_in_loop:
            z = [_white(x[:batch], w, L) for x, w, L in zip(rows, stats, maps, strict=True)]
            anchors = [_white(P @ x, w, L) for x, w, L in zip(rows, stats, maps, strict=True)]
            rel = [a @ b.T for a, b in zip(z, anchors, strict=True)]
            loss = losses.coverage(z[0], anchors[0], rel=rel[0])
            loss = loss + losses.symmetric_nce(rel[0], rel[1])
        else:
            loss = _loss([x[:batch] for x in once], once, P)
        (grad,) = torch.autograd.grad(loss, Q)
        return float(loss.detach()), grad

    with one_thread():
        (a, ga), (b, gb) = step(True), step(False)
        assert abs(a - b) <= 1e-4 * abs(a), (a, b)
        assert float((ga - gb).norm() / ga.norm()) < 1e-2
        return best({"plain": lambda: step(True), "ours": lambda: step(False)}, repeats)


def cka_case(n: int = 4000, d: int = 384, repeats: int = 2) -> dict[str, float]:
    """CKA by d x d products against centred n x n Gram matrices."""
    a, b = features(n, d), features(n, d, 1)

    def plain() -> float:
        K, H = (x @ x.T for x in (a - a.mean(0), b - b.mean(0)))
        return float((K * H).sum() / (np.linalg.norm(K) * np.linalg.norm(H)))

    assert abs(plain() - linear_cka(a, b)) < 1e-9
    return best({"plain": plain, "ours": lambda: linear_cka(a, b)}, repeats)


def main() -> None:
    """Print the ratios."""
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import bench_stitching_matrix as large

    full = "--full" in sys.argv[1:]
    cases = {
        "wip": wip_case, "param step": param_case, "cka": cka_case,
        "matrix": partial(large.matrix_case, large.FULL if full else None),
        "param training": partial(large.training_case, 128, 800, 512, 1000)
        if full else large.training_case,
    }  # fmt: skip
    for name, case in cases.items():
        seconds = case()
        ratio = seconds["plain"] / seconds["ours"]
        words = json.dumps({k: round(v, 4) for k, v in seconds.items()})
        print(name, words, f"{ratio:.2f}x", flush=True)
    print("memory, MiB", json.dumps({k: round(v, 1) for k, v in large.memory_case().items()}))


if __name__ == "__main__":
    main()
