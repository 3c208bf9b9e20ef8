"""The Quality methods against numpy, the n x n definitions, scikit-dimension and pandas.

Run: ``python tests/benchmarks/bench_quality.py [--quick]``. Agreement first, then CPU seconds
of one thread, best of interleaved repeats. The ratios are floors in ``test_speed_of_quality``.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable

import faiss
import numpy as np
import pandas as pd
import scipy.stats
import skdim
import torch

import core.quality as quality
from core.linalg.spectra import spectrum
from core.quality import stored
from core.quality.base import metric_specs
from core.quality.metrics.self_cluster import clustering
from core.quality.metrics.twonn import dimension
from core.quality.population import select, study_table, zoo
from core.quality.sample import Sample
from core.stats.bootstrap import bootstrap_ranks, cluster_weights
from core.stats.matrix import spearman_matrix
from core.stats.ranks import row_products

SEVEN = [name for name, spec in metric_specs().items() if spec.study]


def power_law_features(n: int, d: int, *, seed: int = 0) -> np.ndarray:
    """Rotated float32 rows whose covariance eigenvalues fall as 1/i."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) * np.arange(1, d + 1) ** -0.5
    return (x @ np.linalg.qr(rng.standard_normal((d, d)))[0]).astype(np.float32)


def best_of(cases: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Interleave the cases; the least CPU time of each."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(repeats):
        for name, work in cases.items():
            start = time.process_time()
            work()
            times[name].append(time.process_time() - start)
    return {name: min(t) for name, t in times.items()}


def spectrum_case(n: int, d: int, *, repeats: int = 2) -> dict[str, float]:
    """Centred and raw singular values together against one np.linalg.svd of each."""
    x = power_law_features(n, d)
    rows = torch.from_numpy(x)
    wide = x.astype(np.float64)

    def peer() -> tuple[np.ndarray, np.ndarray]:
        return (
            np.linalg.svd(wide - wide.mean(0), compute_uv=False),
            np.linalg.svd(wide, compute_uv=False),
        )

    found, want = spectrum(rows), peer()
    np.testing.assert_allclose(found.centered.numpy(), want[0], rtol=1e-8)
    np.testing.assert_allclose(found.raw.numpy(), want[1], rtol=1e-8)
    return best_of({"ours": lambda: spectrum(rows), "numpy svd": peer}, repeats)


def self_cluster_case(n: int, d: int, *, repeats: int = 2) -> dict[str, float]:
    """The d x d form against the n x n definition."""
    x = power_law_features(n, d)

    def ours() -> float:
        sample = Sample(x)
        return clustering(sample.unit_purity, n, d)

    def peer() -> float:
        unit = x.astype(np.float64)
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        return clustering(float(np.square(unit @ unit.T).sum()), n, d)

    np.testing.assert_allclose(ours(), peer(), rtol=1e-10)
    return best_of({"ours": ours, "n x n": peer}, repeats)


def twonn_case(n: int, d: int, *, repeats: int = 1) -> dict[str, float]:
    """Exact certified neighbours against scikit-dimension's TwoNN and a flat FAISS index."""
    x = power_law_features(n, d)
    faiss.omp_set_num_threads(1)

    def peer() -> float:
        return float(skdim.id.TwoNN().fit(x).dimension_)

    def flat() -> float:
        index = faiss.IndexFlatL2(d)
        index.add(x)
        squares = index.search(x, 3)[0]  # the row itself, then its two neighbours
        return dimension(np.sort(np.sqrt(squares[:, 2] / squares[:, 1]).astype(np.float64)))

    np.testing.assert_allclose(quality.twonn(x), peer(), rtol=1e-4)
    np.testing.assert_allclose(quality.twonn(x), flat(), rtol=1e-3)
    return best_of(
        {"ours": lambda: quality.twonn(x), "scikit-dimension": peer, "faiss flat": flat}, repeats
    )


def bootstrap_case(
    n: int = 260, n_boot: int = 500, pairs: tuple[int, int] = (7, 6), *, repeats: int = 1
) -> dict[str, float]:
    """All metric by accuracy cells of one stratum against loops over resamples."""
    rng = np.random.default_rng(0)
    left = rng.standard_normal((pairs[0], n)).round(1)
    right = rng.standard_normal((pairs[1], n)).round(1)
    families = np.arange(n) // 4
    weights = cluster_weights(families, n_boot, 0)
    rows = [np.repeat(np.arange(n), w.astype(int)) for w in weights]
    table = np.vstack([left, right]).T

    def ours() -> np.ndarray:
        a = [bootstrap_ranks(v, weights) for v in left]
        b = [bootstrap_ranks(v, weights) for v in right]
        return np.array([[row_products(p, q) for q in b] for p in a])

    def with_pandas() -> np.ndarray:
        cut = pairs[0]
        out = [pd.DataFrame(table[at]).corr("spearman").to_numpy()[:cut, cut:] for at in rows]
        return np.moveaxis(np.array(out), 0, -1)

    def with_scipy() -> np.ndarray:
        # A tenth of the resamples, one cell after the other: the loop people write.
        return np.array(
            [
                [
                    [scipy.stats.spearmanr(p[at], q[at]).statistic for at in rows[: n_boot // 10]]
                    for q in right
                ]
                for p in left
            ]
        )

    mine = ours()
    np.testing.assert_allclose(mine, with_pandas(), atol=1e-12)
    np.testing.assert_allclose(mine[..., : n_boot // 10], with_scipy(), atol=1e-12)
    seconds = best_of({"ours": ours, "pandas": with_pandas, "scipy loop": with_scipy}, repeats)
    seconds["scipy loop"] *= 10
    return seconds


def matrix_case(n: int = 260, n_boot: int = 300, *, repeats: int = 2) -> dict[str, float]:
    """Seven metrics and six accuracies over families, as the page has them, against pandas."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((n, 13)).round(1)
    families = np.arange(n) // 4
    weights = cluster_weights(families, n_boot, 0)
    rows = [np.repeat(np.arange(n), w.astype(int)) for w in weights]

    def peer() -> np.ndarray:
        return np.array([pd.DataFrame(table[at]).corr("spearman").to_numpy() for at in rows])

    def ours() -> np.ndarray:
        return spearman_matrix(table, families, n_boot=n_boot, seed=0).draws

    np.testing.assert_allclose(ours(), peer(), atol=2e-6)
    return best_of({"ours": ours, "pandas": peer}, repeats)


def redraw_case(repeats: int = 2) -> dict[str, float]:
    """A filter of the study looked up, against the same table resampled as often."""
    keep = {"architectures": ("ViT", "ResNet"), "groups": ("supervised", "ssl")}
    population = select(zoo(), **keep)
    stored.zoo_cells("knn", **keep)
    cases: dict[str, Callable[[], object]] = {
        "ours": lambda: stored.zoo_cells("knn", **keep),
        "resampled": lambda: study_table(population, n_boot=2000),
    }
    return best_of(cases, repeats)


def all_seven(n: int, d: int) -> dict[str, float]:
    """Seconds of the study's seven metrics, all and one after the other, and peak memory."""
    x = power_law_features(n, d)
    start, clock = time.process_time(), time.perf_counter()
    quality.label_free_metrics(x, names=SEVEN, max_rows=n)
    out = {"cpu": time.process_time() - start, "wall": time.perf_counter() - clock}
    out["peak_gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return out


def main() -> None:
    """Print every case as JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, under a minute")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    n, d = (3000, 256) if quick else (10_000, 768)
    cases: dict[str, Callable[[], dict[str, float]]] = {
        f"spectrum {n} x {d}": lambda: spectrum_case(n, d),
        f"self-cluster {n} x {d}": lambda: self_cluster_case(n, d),
        f"twonn {n} x {d}": lambda: twonn_case(n, d),
        "bootstrap 260 x 7 x 6": lambda: bootstrap_case(n_boot=200 if quick else 1000),
        "bootstrap matrix 260 x 13": lambda: matrix_case(n_boot=200 if quick else 1000),
        "a filter redrawn": redraw_case,
        f"all seven {n} x {d}": lambda: all_seven(n, d),
    }
    for name, case in cases.items():
        seconds = case()
        ratios = {
            f"over {peer}": round(t / seconds["ours"], 2)
            for peer, t in seconds.items()
            if "ours" in seconds and peer != "ours"
        }
        rounded = {key: round(value, 4) for key, value in seconds.items()}
        print(json.dumps({"case": name, **rounded, **ratios}), flush=True)


if __name__ == "__main__":
    main()
