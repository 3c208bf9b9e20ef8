"""The whole stitching matrix, and PARAM's training, against straightforward code.

The straightforward side does what a notebook does with latentis, torch and scikit-learn: each
method and seed whitens every space anew (covariance, eigh), whitens batch and anchors inside
PARAM's loop, fits ``make_pipeline(StandardScaler(), RidgeClassifier())``, ranks each ordered pair
by a similarity matrix of its own and compares spaces by n x n Gram matrices. Both give the same
numbers: that is asserted first.
"""

from __future__ import annotations

import time
import tracemalloc
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from core.device import single_threaded
from core.linalg.whitening import whitening_stats
from core.stitching import StitchOptions, learn_anchors, losses, prepare, run_method
from core.stitching.param import ParamOptions
from core.stitching.ranking import match_ranks

METHODS = ("cosine-random", "wip-random", "cosine-param", "wip-param")
LAMBDA = 0.3


@dataclass(frozen=True)
class Size:
    """How large a comparison is."""

    encoders: int = 3
    seeds: int = 1
    n_train: int = 900
    n_test: int = 300
    n_anchors: int = 64
    n_support: int = 200
    steps: int = 8
    classes: int = 10


FULL = Size(8, 5, 9000, 1000, 512, 800, 20, 20)


def spaces(size: Size, seed: int = 0) -> tuple[list[np.ndarray], np.ndarray]:
    """Return random networks of one source, and its labels."""
    rng = np.random.default_rng(seed)
    n = size.n_train + size.n_test
    y = rng.integers(0, size.classes, n)
    source = rng.normal(size=(size.classes, 64))[y] + rng.normal(size=(n, 64))
    out = []
    for i in range(size.encoders):
        wide = (128, 192, 256, 384)[i % 4] if size.encoders < 8 else (256, 384, 512, 768)[i % 4]
        mixed = source @ rng.normal(size=(64, wide)) / 8.0
        out.append(np.tanh(mixed) + 0.3 * rng.normal(size=(n, wide)))
    return out, y


def ours(data: list[np.ndarray], y: np.ndarray, size: Size) -> dict[str, np.ndarray]:
    """Return the mean matrices of all methods by this project."""
    cut = size.n_train
    options = StitchOptions(
        size.n_anchors, size.n_support, None, LAMBDA, tuple(range(size.seeds)), "ridge", size.steps
    )
    setting = prepare([x[:cut] for x in data], [x[cut:] for x in data], y[:cut], y[cut:], options)
    return {method: run_method(setting, method).mean for method in METHODS}


def _map(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mean, sd = x.mean(0), x.std(0, ddof=1)
    w, V = np.linalg.eigh(np.cov(((x - mean) / sd).T))
    w = (1 - LAMBDA) * w + LAMBDA * w.mean()
    return mean, sd, (V * w**-0.5) @ V.T


def naive_param(
    rows: list[np.ndarray], maps: list[tuple[np.ndarray, ...]], support: np.ndarray, k: int,
    steps: int, rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """Return the mixing matrix; batch and anchors are whitened in every step."""
    o = ParamOptions(steps=steps)
    x = [torch.as_tensor(r, dtype=torch.float32) for r in rows]
    stats = [[torch.as_tensor(p, dtype=torch.float32) for p in m] for m in maps]

    def white(t: torch.Tensor, at: int) -> torch.Tensor:
        mean, sd, L = stats[at]
        return ((t - mean) / sd) @ L

    start = rng.standard_normal((k, len(support)))
    Q = torch.tensor(start, dtype=torch.float32, requires_grad=True)
    at = torch.as_tensor(support)
    with torch.no_grad():
        P = torch.softmax(Q, 1)
        lengths = [white(P @ v[at], i).norm(dim=1).median() for i, v in enumerate(x)]
    optimiser = torch.optim.Adam([Q], lr=o.lr)
    pairs = [(i, j) for i in range(len(x)) for j in range(i + 1, len(x))]
    for _ in range(steps):
        batch = torch.as_tensor(rng.choice(len(x[0]), min(o.batch, len(x[0])), replace=False))
        picked = [pairs[p] for p in rng.permutation(len(pairs))[: o.pairs]]
        P = torch.softmax(Q, 1)
        z = [white(v[batch], i) for i, v in enumerate(x)]
        anchors = [white(P @ v[at], i) for i, v in enumerate(x)]
        rel = [b @ a.T for b, a in zip(z, anchors, strict=True)]
        total = sum(
            o.w_coverage * losses.coverage(b, a, o.tau_coverage)
            + o.w_correlation * losses.correlation(a) + o.w_length * losses.length(a, t)
            for b, a, t in zip(z, anchors, lengths, strict=True)
        ) / len(x)  # fmt: skip
        nce = [losses.symmetric_nce(rel[i], rel[j], o.tau_nce) for i, j in picked]
        total = total + torch.stack(nce).mean()
        optimiser.zero_grad()
        total.backward()
        optimiser.step()
    return torch.softmax(Q.detach().double(), 1).numpy()


def naive(data: list[np.ndarray], y: np.ndarray, size: Size) -> dict[str, np.ndarray]:
    """Return the mean matrices of all methods by straightforward code."""
    cut, N = size.n_train, len(data)
    out = {method: np.zeros((size.seeds, N, N)) for method in METHODS}
    for seed in range(size.seeds):
        rng = np.random.default_rng(np.random.SeedSequence([seed, 3]))
        rows = np.sort(rng.choice(cut, cut, replace=False))
        support = np.sort(rng.choice(cut, min(size.n_support, cut), replace=False))
        k = min(size.n_anchors, len(support))
        random = np.random.default_rng(seed).choice(len(support), k, replace=False)
        maps = [_map(x[:cut]) for x in data]
        mixing = naive_param(
            [x[rows] for x in data], maps, support, k, size.steps,
            np.random.default_rng(np.random.SeedSequence([seed, 1])),
        )  # fmt: skip
        for method in METHODS:
            rel = []
            for x in data:
                sub = x[rows][support]
                anchors = sub[random] if "random" in method else mixing @ sub
                if method.startswith("wip"):
                    mean, sd, L = _map(x[:cut])
                    rel.append((((x - mean) / sd) @ L) @ (((anchors - mean) / sd) @ L).T)
                else:
                    u = x / np.linalg.norm(x, axis=1, keepdims=True)
                    rel.append(u @ (anchors / np.linalg.norm(anchors, axis=1, keepdims=True)).T)
            _cells(rel, y, cut, out[method][seed])
    return {method: values.mean(axis=0) for method, values in out.items()}


def _cells(rel: list[np.ndarray], y: np.ndarray, cut: int, into: np.ndarray) -> None:
    for i, a in enumerate(rel):
        head = make_pipeline(StandardScaler(), RidgeClassifier(alpha=float(cut)))
        head.fit(a[:cut], y[:cut])
        for j, b in enumerate(rel):
            into[i, j] = (head.predict(b[cut:]) == y[cut:]).mean()
            if i != j:
                ua, ub = (v[cut:] / np.linalg.norm(v[cut:], axis=1, keepdims=True) for v in (a, b))
                scores = ua @ ub.T
                ((scores > np.diag(scores)[:, None]).sum(1) < 1).mean()
                ca, cb = (v[cut:] - v[cut:].mean(0) for v in (a, b))
                K, H = ca @ ca.T, cb @ cb.T
                (K * H).sum() / (np.linalg.norm(K) * np.linalg.norm(H))


def matrix_case(size: Size | None = None) -> dict[str, float]:
    """The full matrix: every encoder pair, seed and method, with retrieval and CKA."""
    size = size or Size()
    data, y = spaces(size)
    seconds = {}
    tiny = Size(2, 1, 200, 50, 10, 50, 2, 3)
    with single_threaded():
        for work in (ours, naive):  # what is imported on first use is not timed
            work(*spaces(tiny), tiny)
        found = {}
        for name, work in (("ours", ours), ("plain", naive)):
            begun = time.process_time()
            found[name] = work(data, y, size)
            seconds[name] = time.process_time() - begun
    for method in METHODS:
        apart = np.abs(found["ours"][method] - found["plain"][method]).max()
        assert apart <= 0.03, (method, apart)
    return seconds


def training_case(
    k: int = 64, m: int = 300, d: int = 256, steps: int = 60, n_spaces: int = 2
) -> dict[str, float]:
    """PARAM's training from the rows to the mixing matrix."""
    size = Size(n_spaces, 1, 2 * m, 10, k, m, steps)
    rng = np.random.default_rng(0)
    source = rng.normal(size=(2 * m, 48))
    data = [
        np.tanh(source @ rng.normal(size=(48, d)) / 7) + 0.3 * rng.normal(size=(2 * m, d))
        for _ in range(n_spaces)
    ]
    support = np.sort(rng.choice(2 * m, m, replace=False))
    seconds, found = {}, {}
    with single_threaded():
        learn_anchors([x[:60, :8] for x in data], 4, n_support=30, steps=2)  # imports
        begun = time.process_time()
        stats = [whitening_stats(x, shrinkage=LAMBDA) for x in data]
        found["ours"] = learn_anchors(
            data, k, stats=stats, support=support, steps=size.steps, seed=0
        ).mixing
        seconds["ours"] = time.process_time() - begun
        begun = time.process_time()
        rng = np.random.default_rng(np.random.SeedSequence([0, 1]))
        found["plain"] = naive_param(data, [_map(x) for x in data], support, k, steps, rng)
        seconds["plain"] = time.process_time() - begun
    apart = np.abs(found["ours"] - found["plain"]).sum(axis=1).mean() / 2  # total variation
    assert apart < 0.05, apart
    return seconds


def memory_case(small: int = 1500, times: int = 4) -> dict[str, float]:
    """Peak memory of ranking all pairs of n rows, beyond the rows themselves, in MiB."""
    found = {}
    for name, n in (("small", small), ("large", times * small)):
        a = np.random.default_rng(0).normal(size=(n, 16))
        tracemalloc.start()
        match_ranks(a, a)
        found[name] = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        found[f"{name}_n_by_n"] = n * n * 8 / 2**20
    return found
