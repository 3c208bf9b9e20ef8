"""The four losses of PARAM and its entropy floor, on torch tensors.

arXiv 2605.30596 names them (coverage by soft k-means, penalty on correlated anchors, norm
control, symmetric InfoNCE); the exact formulas are this project's, its section 2 [DEF] of the
specification, since the paper's were not available.

Axes: B batch rows, d dimensions, k anchors, m support rows. Leading dimensions are allowed:
stacked spaces (N, B, d), or pairs of spaces, give one value each.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

TINY = 1e-9


def coverage(z: Tensor, anchors: Tensor, tau: float = 0.1, rel: Tensor | None = None) -> Tensor:
    """Free energy of soft k-means per unit of mean squared length; 1 for one anchor at the mean.

    As ``tau`` goes to 0 it tends to the inertia over the sum of squared lengths.
    ``z`` (B, d), ``anchors`` (k, d); ``rel`` is ``z @ anchors.T`` when it is known already.
    """
    squares = (z * z).sum(-1)  # (B,)
    rel = z @ anchors.mT if rel is None else rel  # (B, k)
    distance = squares[..., None] + (anchors * anchors).sum(-1)[..., None, :] - 2.0 * rel
    mean = squares.mean(-1)[..., None, None].clamp_min(TINY)
    energy = (-distance.clamp_min(0.0) / mean / tau).logsumexp(-1) - math.log(anchors.shape[-2])
    return (-tau * energy).mean(-1)


def correlation(anchors: Tensor) -> Tensor:
    """Mean squared cosine between different anchors: 0 orthogonal, 1 equal or antipodal."""
    unit = anchors / anchors.norm(dim=-1, keepdim=True).clamp_min(TINY)
    squared = (unit @ unit.mT) ** 2  # (k, k)
    k = squared.shape[-1]
    own = squared.diagonal(dim1=-2, dim2=-1).sum(-1)
    return (squared.sum((-2, -1)) - own) / (k * (k - 1))


def length(anchors: Tensor, target: Tensor) -> Tensor:
    """Mean squared relative departure of the anchors' norms from ``target``."""
    return ((anchors.norm(dim=-1) / target.clamp_min(TINY)[..., None] - 1.0) ** 2).mean(-1)


def symmetric_nce(rel_a: Tensor, rel_b: Tensor, tau: float = 0.3) -> Tensor:
    """Symmetric InfoNCE between the relative coordinates (B, k) of paired rows.

    Rows are normalised, so their lengths do not matter; constant rows give ``log B``.
    """
    import torch

    unit_a = rel_a / rel_a.norm(dim=-1, keepdim=True).clamp_min(TINY)
    unit_b = rel_b / rel_b.norm(dim=-1, keepdim=True).clamp_min(TINY)
    logits = unit_a @ unit_b.mT / tau  # (B, B)
    diagonal = logits.diagonal(dim1=-2, dim2=-1)
    forth = (logits.logsumexp(-1) - diagonal).mean(-1)
    back = (logits.logsumexp(-2) - diagonal).mean(-1)
    return torch.add(forth, back) / 2.0


def entropy_floor(mixing: Tensor, n_min: float) -> Tensor:
    """Mean shortfall of the mixing rows' entropy below ``log n_min`` (0 when all are wider)."""
    entropy = -(mixing * mixing.clamp_min(1e-30).log()).sum(1)  # (k,)
    return (math.log(n_min) - entropy).clamp_min(0.0).mean()
