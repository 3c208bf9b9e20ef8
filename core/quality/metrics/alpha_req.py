"""alpha-ReQ: the exponent of a power law fitted to the covariance eigenvalues.

Agrawal, Mondal, Ghosh, Richards 2022 (alpha-ReQ). ``ln lambda_i = c - alpha ln i`` by least
squares with weights ``1 / i`` over i = 11 ... 100 (1-based), the range of the authors' code.
The fit range can turn the sign of the correlation with accuracy, so [11, 0.9 d] is reported
beside it.

Axes: i eigenvalue, 1-based.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.errors import BadInput
from core.quality.base import Metric, register
from core.quality.metrics.ne_sum import spectral_flags
from core.quality.sample import Sample

USABLE = 1e-12
FEWEST = 5


@dataclass(frozen=True)
class PowerLaw:
    """A fitted power law ``lambda_i = exp(intercept) i^-alpha``.

    Attributes
    ----------
    alpha, intercept : float
        NaN when fewer than five eigenvalues are usable.
    r2 : float
        Unweighted R^2 of ``ln lambda``.
    n_fit, first, last : int
        Eigenvalues used and the 1-based range they span.
    """

    alpha: float
    intercept: float
    r2: float
    n_fit: int
    first: int
    last: int


def power_law(
    eigenvalues: np.ndarray,
    fit_range: tuple[int, int | float] = (11, 100),
    *,
    weighted: bool = True,
) -> PowerLaw:
    """Fit a power law to descending eigenvalues.

    Parameters
    ----------
    eigenvalues : ndarray, shape (r,)
        Descending, non-negative. Values up to ``1e-12 lambda_1`` are not used.
    fit_range : (int, int or float)
        First and last index, 1-based and inclusive; a last value below 1 is a share of r.
    weighted : bool
        Weights ``1 / i`` (the authors') or none.

    Examples
    --------
    >>> round(power_law(np.arange(1, 65.0) ** -1.5).alpha, 6)
    1.5
    """
    first, last = fit_range
    share = isinstance(last, float) and last < 1
    if first < 1 or (not share and last < first):
        raise BadInput(
            f"fit_range={fit_range} must be (first, last) with 1 <= first <= last.",
            "The default is (11, 100).",
        )
    last = int(last * len(eigenvalues)) if share else int(last)
    index = np.arange(first, min(last, len(eigenvalues)) + 1)
    index = index[eigenvalues[index - 1] > USABLE * eigenvalues[0]] if len(index) else index
    if len(index) < FEWEST:
        nan = float("nan")
        return PowerLaw(nan, nan, nan, len(index), first, last)
    x, y = np.log(index), np.log(eigenvalues[index - 1])
    w = 1.0 / index if weighted else np.ones(len(index))
    w = w / w.sum()
    slope = (w * (x - w @ x) * (y - w @ y)).sum() / (w * (x - w @ x) ** 2).sum()
    intercept = w @ y - slope * (w @ x)
    spread = ((y - y.mean()) ** 2).sum()
    r2 = 1.0 - ((y - intercept - slope * x) ** 2).sum() / spread if spread > 0 else float("nan")
    return PowerLaw(
        float(-slope), float(intercept), float(r2), len(index), int(index[0]), int(index[-1])
    )


def alpha_req(x: np.ndarray, *, fit_range: tuple[int, int | float] = (11, 100)) -> float:
    """Return the power-law exponent of the covariance spectrum.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Features; rows that are not finite are left out.
    fit_range : (int, int or float)
        First and last eigenvalue, 1-based and inclusive; a last value below 1 is a share of
        min(n, d), so ``(11, 0.9)`` ends at 90 %.

    Returns
    -------
    float
        At least about 0; 0 for a flat spectrum (samples bias it up to 0.1-0.3). NaN when
        fewer than five eigenvalues above ``1e-12 lambda_1`` fall in the range.

    Raises
    ------
    BadInput
        The range is empty or starts below 1.

    References
    ----------
    Agrawal et al. 2022, alpha-ReQ: Assessing representation quality in self-supervised
    learning by measuring eigenspectrum decay.

    Examples
    --------
    >>> x = np.random.default_rng(0).standard_normal((4000, 64)) * np.arange(1, 65) ** -0.5
    >>> 0.8 < alpha_req(x) < 1.3
    True
    """
    return power_law(Sample(x).spectrum.variances.cpu().numpy(), fit_range).alpha


def _measure(sample: Sample, fit_range: tuple[int, int | float]) -> Metric:
    fit = power_law(sample.spectrum.variances.cpu().numpy(), fit_range)
    detail = {
        "r2": fit.r2,
        "n_fit": float(fit.n_fit),
        "intercept": fit.intercept,
        "first": float(fit.first),
        "last": float(fit.last),
    }
    out = Metric(fit.alpha, sample.n, detail=detail).flagged(*spectral_flags(sample))
    return out.flagged("few_eigenvalues") if fit.n_fit < FEWEST else out


@register(
    "alpha_req",
    "alpha-ReQ",
    family="spectral",
    expected_sign=0,
    meaning="How fast the eigenvalues 11 to 100 decay. Near 1 is claimed best; disputed.",
    study=True,
)
def compute(sample: Sample) -> Metric:
    """Return alpha over eigenvalues 11 to 100, with R^2 and the number fitted."""
    return _measure(sample, (11, 100))


@register(
    "alpha_req_90pct",
    "alpha-ReQ, wide range",
    family="spectral",
    expected_sign=0,
    meaning="The same decay from eigenvalue 11 to 90 % of them; compare with alpha-ReQ.",
)
def compute_wide(sample: Sample) -> Metric:
    """Return alpha over eigenvalues 11 to 90 % of them."""
    return _measure(sample, (11, 0.9))
