"""Encoders of scikit-learn's digits for the stitching tests: a linear one and two random nets."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

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
