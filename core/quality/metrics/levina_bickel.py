"""Levina-Bickel estimate of the intrinsic dimension from k nearest neighbours.

Levina, Bickel 2005, Eq. 8, averaged as MacKay, Ghahramani 2005 propose:
``1 / mean_i mean_{j<k} ln(T_k / T_j)``.
"""

from __future__ import annotations

import numpy as np
import torch

from core.errors import BadInput
from core.linalg.neighbours import nearest_neighbours
from core.quality.base import Metric, register
from core.quality.metrics.twonn import distinct_rows
from core.quality.sample import Sample


def levina_bickel(x: np.ndarray, *, k: int = 20) -> float:
    """Return the maximum-likelihood intrinsic dimension over k neighbours.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Features; rows that are not finite are left out and duplicates counted once.
    k : int
        Neighbours, at least 2.

    Returns
    -------
    float
        Above 0. NaN when k or fewer distinct rows remain.

    References
    ----------
    Levina and Bickel 2005, Maximum likelihood estimation of intrinsic dimension, Eq. 8.

    Examples
    --------
    >>> 1.7 < levina_bickel(np.random.default_rng(0).random((1000, 2))) < 2.2
    True
    """
    if k < 2:
        raise BadInput(f"k={k} must be at least 2.", "20 is the default.")
    return _of(Sample(x), k)


def _of(sample: Sample, k: int) -> float:
    rows = sample.x
    keep = torch.from_numpy(distinct_rows(rows.cpu().numpy())).to(rows.device)
    if len(keep) <= k:
        return float("nan")
    reach = nearest_neighbours(rows[keep], k=k).distances
    mean_log = torch.log(reach[:, -1:] / reach[:, :-1]).mean()
    return float(1.0 / mean_log) if mean_log > 0 else float("nan")


@register(
    "levina_bickel",
    "Levina-Bickel dimension",
    family="manifold",
    expected_sign=-1,
    meaning="Intrinsic dimension by maximum likelihood over 20 neighbours.",
    log=True,
    optional=True,
)
def compute(sample: Sample) -> Metric:
    """Return the estimate over 20 neighbours."""
    value = _of(sample, 20)
    out = Metric(value, sample.n)
    if value != value:
        return out.flagged("too_few_rows")
    return out.flagged("lower_bound") if value > 20 else out
