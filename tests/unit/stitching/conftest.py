"""Encoders of scikit-learn's digits for the stitching tests: a linear one and two random nets."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

sys.path.insert(0, str(Path(__file__).resolve().parent))

from fakes import MODELS, FakeDataset, FakeWorkspace

from core.types import Features

N_TRAIN = 1200


@pytest.fixture(scope="session")
def digits() -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...], np.ndarray, np.ndarray]:
    """Return train spaces, test spaces, train labels, test labels (1,200 and 597 rows)."""
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    x, y = x[order] / 16.0, y[order]
    rng = np.random.default_rng(7)
    pca = PCA(32, random_state=0).fit(x[:N_TRAIN]).transform(x)
    omega = rng.normal(size=(64, 128)) * 0.3
    rff = np.cos(x @ omega + rng.uniform(0, 2 * np.pi, 128))
    relu = np.maximum(x @ rng.normal(size=(64, 96)) / 8.0 + 0.1 * rng.normal(size=96), 0.0)
    spaces = (pca, rff, relu)
    return (
        tuple(s[:N_TRAIN] for s in spaces),
        tuple(s[N_TRAIN:] for s in spaces),
        y[:N_TRAIN],
        y[N_TRAIN:],
    )


@pytest.fixture(scope="session")
def small_space(digits) -> FakeWorkspace:
    """Return 420 digits under three encoders, in a workspace."""
    train, test, y, yt = digits
    keep, held = 300, 120
    labels = np.concatenate([y[:keep], yt[:held]])
    n = keep + held
    items = pd.DataFrame({
        "id": np.arange(n) * 3, "sha256": "", "domain": "pen", "caption": "",
        "label": [f"digit {v}" for v in labels], "odd": np.where(labels % 2, "odd", "even"),
        "split": ["train"] * keep + ["test"] * held,
        "concept": [f"c{i // 2}" for i in range(n)],
    })  # fmt: skip
    items.loc[5, "label"] = ""
    store = {}
    for at, (model, a, b) in enumerate(zip(MODELS, train, test, strict=True)):
        x = np.concatenate([a[:keep], b[:held]]).astype(np.float32)
        order = np.random.default_rng(at).permutation(n)[: n - at]  # rows differ by encoder
        store[model] = Features(
            items["id"].to_numpy()[order], {"pool": x[order]}, "digits", model, "pool"
        )
    return FakeWorkspace(FakeDataset(items), store)
