"""Uniformity: how evenly unit rows cover the sphere.

Wang, Isola 2020, Eq. 4 (t = 2): ``log mean_{i<j} exp(-2 |u_i - u_j|^2)``.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from core.quality.base import Metric, register
from core.quality.sample import Sample

_ROWS = 2048


def uniformity(x: np.ndarray) -> float:
    """Return the uniformity of the unit rows, at most 0; lower is more even.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Features; rows that are zero or not finite are left out.

    Returns
    -------
    float
        0 when all rows point one way, about ``-4`` for isotropic rows of many dimensions
        (``log E exp(-4 (1 - cos))``). NaN for fewer than two rows.

    References
    ----------
    Wang and Isola 2020, Understanding contrastive representation learning through alignment
    and uniformity on the hypersphere, Eq. 4.

    Examples
    --------
    >>> round(uniformity(np.array([[1.0, 0.0], [-2.0, 0.0]])), 6)
    -8.0
    """
    return _of(Sample(x))


def _of(sample: Sample) -> float:
    unit = sample.unit
    n = len(unit)
    if n < 2:
        return float("nan")
    total = 0.0
    for rows in unit.split(_ROWS):
        # |u - v|^2 = 2 - 2 cos on the sphere; rounding may leave cos a hair above one.
        total += float(torch.exp(4 * ((rows @ unit.T).clamp(max=1.0) - 1)).sum())
    return math.log((total - n) / (n * (n - 1)))


@register(
    "uniformity",
    "Uniformity",
    family="relational",
    expected_sign=-1,
    meaning="Log mean Gaussian potential of unit rows (0 all parallel, about -4 even).",
    optional=True,
)
def compute(sample: Sample) -> Metric:
    """Return the uniformity of the unit rows."""
    value = _of(sample)
    out = Metric(value, len(sample.unit))
    return out if math.isfinite(value) else out.flagged("too_few_rows")
