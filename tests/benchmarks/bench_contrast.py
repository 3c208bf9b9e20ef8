"""KODA and SPEC against dense eigenproblems and SPEC's covariance form by scipy.

Run: ``python tests/benchmarks/bench_contrast.py [--quick]``. Agreement first, then CPU seconds
of one thread, best of interleaved repeats. The ratios are floors in ``test_speed_of_contrast``.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable

import numpy as np
import scipy.linalg
import torch

from core.contrast import koda_features, spec_features
from core.contrast.methods import lapack_thread
from core.linalg.kernels import unit_rows


def planted_features(n: int, d: int, *, seed: int, groups: int = 20) -> np.ndarray:
    """Unit float32 rows with a decaying spectrum and ``groups`` planted groups of 1 %.

    Every second group has the same rows whatever the seed, so that the constraint binds.
    """
    rng, shared = np.random.default_rng(seed), np.random.default_rng(99)
    x = rng.standard_normal((n, d)).astype(np.float32)
    x *= (np.arange(1, d + 1) ** -0.4).astype(np.float32)
    x = x @ np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32)
    for g in range(groups):
        rows = (shared if g % 2 else rng).choice(n, max(2, n // 100), replace=False)
        x[rows] += 0.8 * rng.standard_normal(d).astype(np.float32)
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def cpu(work: Callable[[], object]) -> tuple[float, object]:
    """Return the CPU seconds of one call and what it gave."""
    start = time.process_time()
    out = work()
    return time.process_time() - start, out


def best_of(cases: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Interleave the cases; the least CPU time of each."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(repeats):
        for name, work in cases.items():
            times[name].append(cpu(work)[0])
    return {name: min(t) for name, t in times.items()}


def spec_case(n: int, d: int, *, k: int = 20, repeats: int = 2) -> dict[str, float]:
    """Exact SPEC: ours against scipy.linalg.eigh of the n x n difference."""
    a, b = planted_features(n, d, seed=1), planted_features(n, d, seed=2)

    def dense() -> np.ndarray:
        left, right = a.astype(np.float64), b.astype(np.float64)
        difference = left @ left.T - right @ right.T
        return scipy.linalg.eigh(difference, subset_by_index=(n - k, n - 1))[0][::-1] / n

    def covariance() -> np.ndarray:
        # The repository's "cholesky" form, with scipy.
        both = np.concatenate([a, b], axis=1).astype(np.float64)
        C = both.T @ both / n + 1e-7 * np.eye(2 * d)
        Z = scipy.linalg.cholesky(C)
        D = np.r_[np.ones(d), -np.ones(d)]
        values, vectors = scipy.linalg.eigh((Z * D) @ Z.T)
        lifted = both @ (D[:, None] * (Z.T @ vectors[:, -k:]))
        return values[::-1][:k] + 0.0 * lifted[0, 0]

    def ours() -> np.ndarray:
        return spec_features(a, b, n_directions=k).eigenvalues

    worst = float(np.abs(ours() - dense()).max())
    assert worst < 1e-6, f"SPEC disagrees with the dense eigenproblem by {worst:.1e}"
    cases = {"dense": dense, "covariance": covariance, "ours": ours}
    with lapack_thread():
        return best_of(cases, repeats) | {"difference": worst}


def koda_case(n: int, d: int, directions: int) -> dict[str, object]:
    """KODA on n samples: CPU and wall seconds, widest relative gap, peak memory."""
    a, b = planted_features(n, d, seed=1), planted_features(n, d, seed=2)
    # Half of what the unconstrained optimum costs under B, on a tenth of the rows: it binds.
    part = slice(0, n // 10)
    tight = 5.0 * float(koda_features(a[part], b[part], epsilon=n, n_directions=1).constraint[0])
    wall = time.perf_counter()
    with lapack_thread():
        seconds, result = cpu(lambda: koda_features(a, b, epsilon=tight, n_directions=directions))
    return {
        "n": n,
        "columns": 2 * d,
        "directions": directions,
        "cpu_s": round(seconds, 2),
        "wall_s": round(time.perf_counter() - wall, 2),
        "widest_rel_gap": float(result.relative_gap.max()),
        "status": sorted(set(result.status)),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


def main() -> None:
    """Print one JSON line a case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    unit_rows(np.eye(3))
    print(json.dumps({"spec n=2000": spec_case(2000, 256)}))
    print(json.dumps(koda_case(20_000 if quick else 100_000, 512, 10)))
    if not quick:
        print(json.dumps({"spec n=4000": spec_case(4000, 512, repeats=1)}))
        print(json.dumps(koda_case(100_000, 1024, 5)))


if __name__ == "__main__":
    main()
