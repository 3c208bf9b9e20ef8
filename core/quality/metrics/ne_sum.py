"""NESum: the sum of the covariance eigenvalues over the largest one.

He, Ozay 2022, Definition 4.1. Equals the stable rank of the centred features.
"""

from __future__ import annotations

import numpy as np

from core.linalg.spectra import Spectrum
from core.quality.base import Metric, register
from core.quality.sample import Sample


def eigenvalue_sum(found: Spectrum) -> float:
    """Return ``sum(lambda) / lambda_1``; NaN for a collapsed cloud."""
    values = found.variances
    return float(values.sum() / values[0]) if not found.collapsed else float("nan")


def spectral_flags(sample: Sample) -> tuple[str, ...]:
    """Return the flags every metric of the centred spectrum shares."""
    flags = {
        "collapsed": sample.spectrum.collapsed,
        "near_collapse": sample.near_collapse,
        "rank_capped": sample.n <= sample.d,
    }
    return tuple(name for name, on in flags.items() if on)


def ne_sum(x: np.ndarray) -> float:
    """Return NESum, ``sum(lambda_i) / lambda_1`` of the covariance.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Features; rows that are not finite are left out.

    Returns
    -------
    float
        1 ... d; d when every direction has the same variance. It depends on n: 10,000
        isotropic rows of width 768 give about 60 % of d. NaN for constant features.

    References
    ----------
    He and Ozay 2022, Exploring the gap between collapsed and whitened features in
    self-supervised learning, Definition 4.1.

    Examples
    --------
    >>> round(ne_sum(np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])), 6)
    2.0
    """
    return eigenvalue_sum(Sample(x).spectrum)


@register(
    "ne_sum",
    "NESum",
    family="spectral",
    expected_sign=1,
    meaning="Total variance over the largest direction's (1 to d). Higher: no direction rules.",
    study=True,
    log=True,
)
def compute(sample: Sample) -> Metric:
    """Return NESum and NESum/d."""
    value = eigenvalue_sum(sample.spectrum)
    out = Metric(value, sample.n, detail={"share": value / sample.d})
    return out.flagged(*spectral_flags(sample))
