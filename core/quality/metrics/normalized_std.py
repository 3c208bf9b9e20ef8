"""Collapse alarm: mean standard deviation of the channels of unit rows, times sqrt(d).

Chen, He 2021 (SimSiam) watch ``std(z / |z|)``: about ``1 / sqrt(d)`` for spread features and 0
for collapsed ones. Multiplied by sqrt(d) the alarm reads the same at every width.
"""

from __future__ import annotations

import numpy as np

from core.quality.base import Metric, register
from core.quality.sample import Sample

ALARM = 0.1


def normalized_std(x: np.ndarray) -> float:
    """Return the mean channel standard deviation of unit rows times sqrt(d).

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Features; rows that are zero or not finite are left out.

    Returns
    -------
    float
        About 1 for isotropic features, 0 when collapsed; at most 1. NaN when no row remains.

    References
    ----------
    Chen and He 2021, Exploring simple siamese representation learning, section 4.1.

    Examples
    --------
    >>> normalized_std(np.ones((5, 3)))
    0.0
    """
    return _of(Sample(x))


def _of(sample: Sample) -> float:
    if not len(sample.unit):
        return float("nan")
    return float(sample.unit.std(0, correction=0).mean()) * sample.d**0.5


@register(
    "normalized_std",
    "Collapse alarm",
    family="alarm",
    expected_sign=1,
    meaning="Spread of unit rows (1 isotropic, 0 collapsed). Below 0.1: look before you compare.",
)
def compute(sample: Sample) -> Metric:
    """Return the alarm; flagged below 0.1."""
    value = _of(sample)
    out = Metric(value, len(sample.unit))
    return out.flagged("near_collapse") if value < ALARM else out
