"""Diffusion spectral entropy: entropy of a Gaussian random walk's spectrum.

Liao et al. 2023 (DSE). ``G_ij = exp(-|x_i - x_j|^2 / (2 sigma^2))``, ``K = D^-1/2 G D^-1/2``
with D the row sums of G, ``e = |eig(K)|^t``, ``p = e / sum(e)``, ``-sum p log2 p``. Rows have
unit length unless asked otherwise: without that the value follows the features' scale.

Axes: m rows used (at most 2,000, seeded), since the matrix is m by m.
"""

from __future__ import annotations

import numpy as np
import torch

from core.device import one_thread
from core.errors import BadInput
from core.quality.base import Metric, register
from core.quality.sample import Sample

MAX_ROWS = 2000
BAND_DRAWS = 3


def spectral_entropy(rows: torch.Tensor, sigma: float, t: float) -> float:
    """Return the entropy in bits for float64 rows, shape (m, d); NaN without rows."""
    if not len(rows):
        return float("nan")
    norms = rows.square().sum(1)
    distance = (norms[:, None] + norms[None, :] - 2.0 * rows @ rows.T).clamp_min_(0.0)
    distance.fill_diagonal_(0.0)  # (m, m)
    kernel = distance.mul_(-0.5 / sigma**2).exp_()
    scale = kernel.sum(1).rsqrt()
    kernel.mul_(scale[:, None]).mul_(scale[None, :])
    with one_thread():
        weights = torch.linalg.eigvalsh(kernel).abs() ** t
    p = weights / weights.sum()
    return max(0.0, float(-torch.xlogy(p, p).sum() / np.log(2.0)))


def draw_rows(n: int, seed: int, max_rows: int = MAX_ROWS) -> np.ndarray:
    """Return sorted row numbers: all of them, or a seeded subset of ``max_rows``."""
    if n <= max_rows:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).permutation(n)[:max_rows])


def diffusion_spectral_entropy(
    x: np.ndarray,
    *,
    sigma: float = 10.0,
    t: float = 1.0,
    l2: bool = True,
    max_rows: int = MAX_ROWS,
    seed: int = 0,
) -> float:
    """Return the diffusion spectral entropy, in bits.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Features; rows that are not finite are left out.
    sigma : float
        Kernel width. Never fit it per model: that removes what is compared.
    t : float
        Diffusion time, a power of the eigenvalues.
    l2 : bool
        Scale rows to unit length (zero rows are left out). ``False`` is not scale invariant.
    max_rows, seed : int
        Above ``max_rows`` a subset of that many rows is drawn with ``seed``; the entropy
        depends on the number of rows, so compare models at the same n.

    Returns
    -------
    float
        0 (one point) ... log2 of the rows (all far apart). NaN when no row remains.

    Raises
    ------
    BadInput
        ``sigma`` or ``t`` is not positive.

    References
    ----------
    Liao et al. 2023, Assessing neural network representations during training using
    noise-resilient diffusion spectral entropy, Def. 3.1.

    Examples
    --------
    >>> round(diffusion_spectral_entropy(np.eye(4), sigma=0.01), 6)
    2.0
    """
    if not (sigma > 0 and t > 0):
        raise BadInput(f"sigma={sigma} and t={t} must be positive.", "10 and 1 are the defaults.")
    sample = Sample(x, seed=seed)
    rows = sample.unit if l2 else sample.x
    return spectral_entropy(rows[draw_rows(len(rows), seed, max_rows)].double(), sigma, t)


def _measure(sample: Sample, sigma: float, draws: int) -> Metric:
    rows = sample.unit
    if len(rows) < 2:
        return Metric(float("nan"), len(rows)).flagged("too_few_rows")
    picked = [draw_rows(len(rows), sample.seed + k) for k in range(draws)]
    if len(picked[0]) == len(rows):
        return Metric(spectral_entropy(rows, sigma, 1.0), len(rows))
    values = [spectral_entropy(rows[at], sigma, 1.0) for at in picked]
    band = (min(values), max(values)) if draws > 1 else None
    return Metric(values[0], len(picked[0]), band=band).flagged("subsampled")


@register(
    "diffusion_spectral_entropy",
    "Diffusion spectral entropy",
    family="relational",
    expected_sign=1,
    meaning="Entropy of a random walk between the samples, width 10. Higher: less clumped.",
    study=True,
    unit="bits",
)
def compute(sample: Sample) -> Metric:
    """Return DSE at sigma 10 on unit rows, with the band of three subsets above 2,000 rows."""
    return _measure(sample, 10.0, BAND_DRAWS)


@register(
    "dse_s1",
    "Diffusion spectral entropy, width 1",
    family="relational",
    expected_sign=1,
    meaning="The same entropy at kernel width 1, where its scale is easier to read.",
    unit="bits",
)
def compute_narrow(sample: Sample) -> Metric:
    """Return DSE at sigma 1 on unit rows."""
    return _measure(sample, 1.0, 1)
