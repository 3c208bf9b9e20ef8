"""Participation ratio of the covariance spectrum: ``(sum lambda)^2 / sum lambda^2``.

Exponential order-2 Renyi entropy of the normalised eigenvalues. Biased:
``1/PR_hat ~ 1/n + 1/d + 1/PR``.
"""

from __future__ import annotations

import numpy as np

from core.linalg.spectra import Spectrum
from core.quality.base import Metric, register
from core.quality.metrics.ne_sum import spectral_flags
from core.quality.sample import Sample


def participation(found: Spectrum) -> float:
    """Return ``(sum lambda)^2 / sum lambda^2``; NaN for a collapsed cloud."""
    values = found.variances
    return float(values.sum() ** 2 / values.square().sum()) if not found.collapsed else float("nan")


def participation_ratio(x: np.ndarray) -> float:
    """Return the participation ratio, 1 ... d; NaN for constant features.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Features; rows that are not finite are left out.

    References
    ----------
    Gao et al. 2017, A theory of multineuronal dimensionality, dynamics and measurement.

    Examples
    --------
    >>> round(participation_ratio(np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])), 6)
    2.0
    """
    return participation(Sample(x).spectrum)


@register(
    "participation_ratio",
    "Participation ratio",
    family="spectral",
    expected_sign=1,
    meaning="How many directions share the variance (1 to d). Higher: more evenly.",
    log=True,
)
def compute(sample: Sample) -> Metric:
    """Return the participation ratio."""
    return Metric(participation(sample.spectrum), sample.n).flagged(*spectral_flags(sample))
