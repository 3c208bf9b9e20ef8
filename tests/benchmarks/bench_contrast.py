"""KODA and SPEC against dense eigenproblems and SPEC's covariance form by scipy.

Run: ``python -m tests.benchmarks.bench_contrast [--quick | --full]``. Agreement first, then CPU
seconds of one thread, best of interleaved repeats. The ratios are floors in
``test_speed_of_contrast``. ``--full`` is n = 100,000 with 512 + 512 and 1,024 + 1,024 features.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.linalg
import torch

from core.contrast import koda_features, spec_features
from core.contrast.methods import lapack_thread
from core.data.memory import peak_mb, reset_peak
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


def resident_mb() -> float:
    """Return the memory this process holds now, in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def spec_by_covariance(a: np.ndarray, b: np.ndarray, k: int, how: str) -> np.ndarray:
    """SPEC's covariance form, "cholesky", by scipy or torch in float64: k lifted directions."""
    n, d = a.shape
    both = np.concatenate([a, b], axis=1).astype(np.float64)
    signs = np.r_[np.ones(d), -np.ones(d)]
    if how == "scipy":
        Z = scipy.linalg.cholesky(both.T @ both / n + 1e-7 * np.eye(2 * d))
        vectors = scipy.linalg.eigh((Z * signs) @ Z.T)[1][:, -k:]
        return both @ (signs[:, None] * (Z.T @ vectors))
    phi, D = torch.from_numpy(both), torch.from_numpy(signs)
    C = phi.T @ phi / n + 1e-7 * torch.eye(2 * d, dtype=torch.float64)
    Z_t = torch.linalg.cholesky(C, upper=True)
    found = torch.linalg.eigh((Z_t * D) @ Z_t.T)[1][:, -k:]
    return (phi @ (D[:, None] * (Z_t.T @ found))).numpy()


def versus_covariance(n: int, d: int, k: int) -> dict[str, float]:
    """SPEC by scipy, torch and ours, and KODA with its certificates, on the same features."""
    a, b = planted_features(n, d, seed=1), planted_features(n, d, seed=2)
    cases: dict[str, Callable[[], object]] = {
        "spec_scipy": lambda: spec_by_covariance(a, b, k, "scipy"),
        "spec_torch": lambda: spec_by_covariance(a, b, k, "torch"),
        "spec_ours": lambda: spec_features(a, b, n_directions=k),
        "koda_ours": lambda: koda_features(a, b, epsilon=_binding(a, b), n_directions=k),
    }
    with lapack_thread():
        return {name: round(v, 3) for name, v in best_of(cases, 1).items()}


def versus_dense(n: int, d: int, k: int) -> dict[str, float]:
    """One eigenproblem of n x n, as a dense search makes at every lambda, against all of KODA."""
    a, b = planted_features(n, d, seed=1), planted_features(n, d, seed=2)
    eps = _binding(a, b)
    with lapack_thread():
        ours, result = cpu(lambda: koda_features(a, b, epsilon=eps, n_directions=k))
        lam = float(result.multiplier[0])

        def dense() -> float:
            left, right = a.astype(np.float64), b.astype(np.float64)
            matrix = left @ left.T - lam * (right @ right.T)
            return float(scipy.linalg.eigh(matrix, subset_by_index=(n - 1, n - 1))[0][0])

        once, top = cpu(dense)
    bound = top + lam * eps  # the dual bound from the dense eigenvalue
    worst = abs(bound - float(result.objective[0])) / float(result.scale[0])
    return {"dense_one_lambda": round(once, 2), "koda_all": round(ours, 2), "rel_gap_dense": worst}


def features_case(n: int, d: int, r: int) -> dict[str, float]:
    """Random Fourier features by blocks: seconds, memory beyond the result, error."""
    from core.linalg.kernels import make_kernel
    from core.linalg.random_features import fourier_features

    kernel = make_kernel(planted_features(n, d, seed=1)).with_factor(0.7)
    before = resident_mb()
    seconds, phi = cpu(lambda: fourier_features(kernel, r))
    extra = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    rows = slice(0, 400)
    error = float((phi[rows].double() @ phi[rows].double().T - kernel.block(rows, rows)).std())
    own = n * 2 * r * 4 / 2**20
    return {"n": n, "cpu_s": round(seconds, 2), "beyond_mb": round(max(extra - own, 0.0)),
            "error_sd": error, "one_over_sqrt_2r": (2 * r) ** -0.5}  # fmt: skip


def _binding(a: np.ndarray, b: np.ndarray) -> float:
    """Half of what the unconstrained optimum costs under B, from a tenth of the rows."""
    part = slice(0, max(len(a) // 10, 2))
    return 5.0 * float(
        koda_features(a[part], b[part], epsilon=len(a), n_directions=1).constraint[0]
    )


def koda_case(n: int, d: int, directions: int) -> dict[str, object]:
    """KODA on n samples: CPU and wall seconds, widest relative gap, memory beyond the features."""
    a, b = planted_features(n, d, seed=1), planted_features(n, d, seed=2)
    tight = _binding(a, b)
    # Making the data took more than the method does: the peak is counted from here.
    reset_peak()
    held = resident_mb()
    wall = time.perf_counter()
    with lapack_thread():
        seconds, result = cpu(lambda: koda_features(a, b, epsilon=tight, n_directions=directions))
    peak = peak_mb()
    return {
        "n": n,
        "columns": 2 * d,
        "directions": directions,
        "cpu_s": round(seconds, 2),
        "wall_s": round(time.perf_counter() - wall, 2),
        "widest_rel_gap": float(result.relative_gap.max()),
        "status": sorted(set(result.status)),
        "peak_gb": round(peak / 1024, 2),
        "beyond_features_mb": round(max(peak - held, 0.0)),
    }


def main() -> None:
    """Print one JSON line a case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--full", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    unit_rows(np.eye(3))
    if given.full:
        full()
        return
    print(json.dumps({"spec n=2000": spec_case(2000, 256)}))
    print(json.dumps(koda_case(20_000 if given.quick else 100_000, 512, 10)))
    if not given.quick:
        print(json.dumps({"spec n=4000": spec_case(4000, 512, repeats=1)}))
        print(json.dumps(koda_case(100_000, 1024, 5)))


def full() -> None:
    """The sizes of the issue; memory of n = 25,000 first, so that the peak is its own."""
    work: tuple[tuple[str, Callable[[], object]], ...] = (
        ("koda n=25,000 512+512", lambda: koda_case(25_000, 512, 10)),
        ("koda n=100,000 512+512", lambda: koda_case(100_000, 512, 10)),
        ("random features n=100,000", lambda: features_case(100_000, 256, 256)),
        ("spec and koda n=100,000 512+512", lambda: versus_covariance(100_000, 512, 10)),
        ("dense n=5,000 512+512", lambda: versus_dense(5_000, 512, 10)),
        ("koda n=100,000 1024+1024", lambda: koda_case(100_000, 1024, 5)),
    )
    for name, case in work:
        print(json.dumps({name: case()}), flush=True)


if __name__ == "__main__":
    main()
