"""The head of the relative-representation papers, made to judge each sample by itself.

Published (arXiv 2209.15430 and its code): unit rows, LayerNorm, Linear(k, k), Tanh, InstanceNorm,
Linear(k, C), Adam. Its InstanceNorm standardises every hidden unit over the batch at hand, at test
time too, so a prediction would depend on the other samples. Here those statistics are taken over
the training rows and frozen; nothing else is changed.

Axes: n samples, k features, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.stitching.representation import unit_rows

EPOCHS, BATCH, LR, DECAY = 20, 32, 1e-3, 1e-4
_EPS = 1e-5


@dataclass(frozen=True)
class TanhHead:
    """A trained head with one hidden layer.

    Attributes
    ----------
    gain, shift : ndarray of float64, shape (k,)
        LayerNorm.
    inner, inner_bias : ndarray, shapes (k, k) and (k,)
    mean, scale : ndarray, shape (k,)
        Statistics of the hidden units over the training rows.
    weights, bias : ndarray, shapes (k, C) and (C,)
    """

    gain: np.ndarray
    shift: np.ndarray
    inner: np.ndarray
    inner_bias: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    weights: np.ndarray
    bias: np.ndarray

    def hidden(self, x: np.ndarray) -> np.ndarray:
        """Return the hidden units before standardisation, shape (n, k)."""
        u = unit_rows(x)
        centred = u - u.mean(axis=1, keepdims=True)
        normed = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + _EPS)
        return np.asarray(np.tanh((normed * self.gain + self.shift) @ self.inner + self.inner_bias))

    def scores(self, x: np.ndarray) -> np.ndarray:
        """Return the class scores, shape (n, C)."""
        return ((self.hidden(x) - self.mean) / self.scale) @ self.weights + self.bias

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Return the class numbers, shape (n,), int64."""
        return self.scores(x).argmax(axis=1)


def fit_tanh(x: np.ndarray, y: np.ndarray, classes: np.ndarray, *, seed: int = 0) -> TanhHead:
    """Train the head by Adam (20 epochs, batches of 32, step 1e-3, weight decay 1e-4).

    Parameters
    ----------
    x : ndarray, shape (n, k)
    y : ndarray of int, shape (n,)
    classes : ndarray of int
        Those that occur; the others are never predicted.
    seed : int
        Draws the weights and the batches; the same seed gives the same head.
    """
    import torch
    from torch import nn

    rng = np.random.default_rng(np.random.SeedSequence([seed, 8]))
    n, k = x.shape
    rows = torch.as_tensor(unit_rows(x), dtype=torch.float32)
    codes = torch.as_tensor(np.searchsorted(classes, y))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        norm, inner, outer = nn.LayerNorm(k), nn.Linear(k, k), nn.Linear(k, len(classes))
    known = [*norm.parameters(), *inner.parameters(), *outer.parameters()]
    optimiser = torch.optim.Adam(known, lr=LR, weight_decay=DECAY)
    for _ in range(EPOCHS):
        for part in np.array_split(rng.permutation(n), max(1, n // BATCH)):
            hidden = torch.tanh(inner(norm(rows[part])))
            centred = hidden - hidden.mean(0)
            scaled = centred / (centred.pow(2).mean(0) + _EPS).sqrt()
            loss = nn.functional.cross_entropy(outer(scaled), codes[part])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    raw = [p.detach().double().numpy() for p in known]
    weights = np.zeros((k, int(classes.max()) + 1))
    bias = np.full(weights.shape[1], -np.inf)
    weights[:, classes], bias[classes] = raw[4].T, raw[5]
    head = TanhHead(
        raw[0], raw[1], raw[2].T, raw[3], np.zeros(k), np.ones(k), weights, bias
    )  # fmt: skip
    units = head.hidden(x)
    scale = np.sqrt(units.var(axis=0) + _EPS)
    return TanhHead(raw[0], raw[1], raw[2].T, raw[3], units.mean(axis=0), scale, weights, bias)
