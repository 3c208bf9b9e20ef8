"""Augmentation of a whole batch at once: one affine resampling, flips, colour, a hole.

``weak`` moves a picture by a few pixels; ``medium`` crops, flips and changes brightness and
contrast; ``strong`` crops harder, turns colours grey or mixes them, and cuts a hole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Strength:
    """How far an augmentation goes: share of the side kept, colour factor, grey, hole."""

    smallest: float
    shift: float
    flip: bool
    colour: float
    grey: float
    hole: float


STRENGTHS = {
    "weak": Strength(1.0, 0.12, False, 0.0, 0.0, 0.0),
    "medium": Strength(0.7, 0.3, True, 0.3, 0.0, 0.0),
    "strong": Strength(0.45, 0.5, True, 0.6, 0.2, 0.5),
}


def _uniform(generator: torch.Generator, low: float, high: float, *shape: int) -> torch.Tensor:
    import torch

    return low + (high - low) * torch.rand(*shape, generator=generator)


def augment(x: torch.Tensor, name: str, generator: torch.Generator) -> torch.Tensor:
    """Return randomly changed copies of ``x``, ``(n, 3, s, s)`` in [0, 1].

    All random numbers come from ``generator`` (on the CPU), so a device changes nothing.
    """
    import torch
    import torch.nn.functional as nnf

    how = STRENGTHS[name]
    n = len(x)
    scale = _uniform(generator, how.smallest, 1.0, n)
    move = _uniform(generator, -1.0, 1.0, n, 2) * how.shift
    sign = torch.ones(n)
    if how.flip:
        sign = torch.where(torch.rand(n, generator=generator) < 0.5, -1.0, 1.0)
    theta = torch.zeros(n, 2, 3)
    theta[:, 0, 0], theta[:, 1, 1], theta[:, :, 2] = scale * sign, scale, move
    grid = nnf.affine_grid(theta.to(x), list(x.shape), align_corners=False)
    out = nnf.grid_sample(x, grid, padding_mode="border", align_corners=False)
    if how.colour:
        factor = _uniform(generator, 1 - how.colour, 1 + how.colour, n, 3, 1, 1).to(x)
        offset = _uniform(generator, -how.colour / 3, how.colour / 3, n, 1, 1, 1).to(x)
        out = (out * factor + offset).clamp(0, 1)
    if how.grey:
        pick = (torch.rand(n, 1, 1, 1, generator=generator) < how.grey).to(x.device)
        out = torch.where(pick, out.mean(1, keepdim=True), out)
    if how.hole:
        out = _cut(out, how.hole, generator)
    return out


def _cut(x: torch.Tensor, share: float, generator: torch.Generator) -> torch.Tensor:
    """Grey out a square of a quarter of the side in a ``share`` of the pictures."""
    import torch

    n, side = len(x), x.shape[-1]
    corner = (torch.rand(n, 2, 1, generator=generator) * (side * 3 // 4)).floor()
    at = torch.arange(side)
    inside = (at >= corner) & (at < corner + side // 4)
    hole = inside[:, 0, :, None] & inside[:, 1, None, :]
    hole &= torch.rand(n, 1, 1, generator=generator) < share
    return torch.where(hole[:, None].to(x.device), torch.full_like(x, 0.5), x)
