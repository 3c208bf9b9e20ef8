"""A residual adapter on frozen features, trained by kernel alignment (KUEA, Gong 2025).

f(z) = z + W2 gelu(W1 z), W2 = 0 at first, so that training begins at the identity. Loss on a
batch: keep * mean |f(z) - z|^2 + weight * mean (k_S - k_T)^2, k_S = (g z'z + c)^3 normalised to a
unit diagonal with g, c learned (0.0032 and 0.1916 at first, features scaled by sqrt d as the
paper's are not of unit length), k_T = (z'z / d + 1)^3 likewise on the target.

Axes: n samples, d features, h hidden units, q rows of a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import nn

Progress = Callable[[float, str], None]
_HIDDEN = 256
_RATE = 1e-3
_GAMMA, _CONSTANT = 0.0032, 0.1916


class _Residual(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.w1, self.w2 = nn.Linear(d, _HIDDEN), nn.Linear(_HIDDEN, d)
        nn.init.zeros_(self.w2.weight)
        nn.init.zeros_(self.w2.bias)
        self.gamma = nn.Parameter(torch.tensor(float(np.log(_GAMMA))))
        self.constant = nn.Parameter(torch.tensor(float(np.log(_CONSTANT))))

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = z + self.w2(nn.functional.gelu(self.w1(z)))
        return out

    def kernel(self, z: torch.Tensor) -> torch.Tensor:
        return _cubic(self.gamma.exp() * (z @ z.T) + self.constant.exp())


def _cubic(inner: torch.Tensor) -> torch.Tensor:
    cube = inner**3
    length = cube.diagonal().clamp(min=1e-12).sqrt()
    return cube / torch.outer(length, length)


@dataclass(frozen=True)
class Adapter:
    """A trained adapter: call it with unit rows (n, d), get unit rows (n, d)."""

    net: _Residual
    losses: pd.DataFrame

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return the adapted rows, of unit length, float32."""
        scale = float(rows.shape[1]) ** 0.5
        with torch.no_grad():
            out = self.net(torch.from_numpy(np.asarray(rows, dtype=np.float32)) * scale).numpy()
        length = np.linalg.norm(out, axis=1, keepdims=True)
        return np.asarray(out / np.maximum(length, 1e-12), dtype=np.float32)


def train(
    reference: np.ndarray,
    target: np.ndarray,
    rows: np.ndarray,
    *,
    steps: int = 300,
    batch: int = 256,
    weight: float = 1.0,
    keep: float = 0.1,
    seed: int = 0,
    progress: Progress | None = None,
) -> Adapter:
    """Train an adapter of the reference's features towards the target's kernel.

    Parameters
    ----------
    reference, target : ndarray, shapes (n, d_b) and (n, d_a)
        Unit rows of the same samples.
    rows : ndarray of int
        Samples of the sets used for training: half of every batch; the rest is any sample.
    steps, batch : int
        AdamW steps at a rate of 1e-3, and samples a step.
    weight, keep : float
        Weights of the alignment and of staying put.
    seed : int
    progress : callable, optional
        Called with (share done, message).

    Examples
    --------
    >>> x = np.eye(6, dtype=np.float32)
    >>> adapter = train(x, x, np.arange(3), steps=1, batch=16)
    >>> adapter(x).shape, len(adapter.losses)
    ((6, 6), 1)
    """
    torch.manual_seed(seed)
    rng = np.random.default_rng([seed, 11])
    n, d = reference.shape
    net = _Residual(d)
    optimiser = torch.optim.AdamW(net.parameters(), lr=_RATE, weight_decay=1e-4)
    z = torch.from_numpy(np.array(reference, dtype=np.float32)) * float(d) ** 0.5
    t = torch.from_numpy(np.array(target, dtype=np.float32)) * float(target.shape[1]) ** 0.5
    records = []
    for step in range(steps):
        half = min(batch // 2, n)
        picked = np.concatenate(
            [rng.choice(rows, half, replace=half > len(rows)), rng.choice(n, half, replace=False)]
        )
        here = torch.from_numpy(np.unique(picked))
        moved = net(z[here])
        stay = (moved - z[here]).square().sum(1).mean() / d
        wanted = _cubic(t[here] @ t[here].T / t.shape[1] + 1.0)
        align = (net.kernel(moved) - wanted).square().mean()
        loss = keep * stay + weight * align
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        records.append({"step": step + 1, "align": align.item(), "stay": stay.item()})
        if progress is not None and step % 25 == 0:
            progress(step / steps, f"step {step + 1} of {steps}")
    return Adapter(net.eval(), pd.DataFrame(records))
