"""Condition number of the centred features: largest over smallest singular value that counts.

``kappa = s_1 / s_r`` with r the numerical rank (``s > max(n, d) 2.2e-16 s_1``).
"""

from __future__ import annotations

import numpy as np

from core.linalg.spectra import Spectrum
from core.quality.base import Metric, register
from core.quality.metrics.ne_sum import spectral_flags
from core.quality.sample import Sample


def kappa(found: Spectrum) -> float:
    """Return ``s_1 / s_r``; NaN for a collapsed cloud."""
    rank = found.rank
    return float(found.centered[0] / found.centered[rank - 1]) if rank else float("nan")


def condition_number(x: np.ndarray) -> float:
    """Return ``s_1 / s_r`` of the centred features.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Features; rows that are not finite are left out.

    Returns
    -------
    float
        At least 1; large when some directions are nearly unused. Accurate to about 1e-6
        relative up to 1e5 (float64 Gram), and by blocked QR beyond. NaN for constant
        features. The eigenvalue version is its square.

    References
    ----------
    Golub and Van Loan, Matrix Computations, section 2.6.2 (2-norm condition number).

    Examples
    --------
    >>> round(condition_number(np.array([[2.0, 0], [-2, 0], [0, 1], [0, -1]])), 6)
    2.0
    """
    return kappa(Sample(x).spectrum)


@register(
    "condition_number",
    "Condition number",
    family="spectral",
    expected_sign=-1,
    meaning="Largest over smallest used direction. Lower: easier for a linear solver.",
    study=True,
    log=True,
)
def compute(sample: Sample) -> Metric:
    """Return kappa, the numerical rank and log10 kappa."""
    found = sample.spectrum
    value = kappa(found)
    detail = {"rank": float(found.rank), "log10": float(np.log10(value))}
    out = Metric(value, sample.n, detail=detail).flagged(*spectral_flags(sample))
    full = min(sample.d, sample.n - 1)
    return out.flagged("rank_deficient") if 0 < found.rank < full else out
