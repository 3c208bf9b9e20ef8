"""TwoNN: intrinsic dimension from the ratio of the two nearest neighbours' distances.

Facco, d'Errico, Rodriguez, Laio 2017. ``mu = r_2 / r_1`` is Pareto with exponent d; sorted,
``-ln(1 - i/n)`` against ``ln mu_(i)`` is a line through the origin of slope d. The largest
10 % of the ratios are discarded. Exact duplicates count once.

Axes: n distinct samples, i rank of mu.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from core.errors import BadInput
from core.linalg.neighbours import nearest_neighbours
from core.quality.base import Metric, register
from core.quality.sample import Sample

LOWER_BOUND = 20.0
QUANTIZED_SHARE = 0.01
FEWEST = 10
METHODS = ("linear", "mle", "censored")


@dataclass(frozen=True)
class NeighbourRatios:
    """Sorted ratios of second to first neighbour distance.

    Attributes
    ----------
    mu : ndarray of float64, shape (n,)
        Ascending, at least 1.
    n_duplicates : int
        Rows that equal an earlier one.
    share_one : float
        Share of ratios that are exactly 1.
    r1_over_eps : float
        Median first distance over the rounding unit of the median row length.
    """

    mu: np.ndarray
    n_duplicates: int
    share_one: float
    r1_over_eps: float


def distinct_rows(x: np.ndarray) -> np.ndarray:
    """Return the row numbers of the first copy of every distinct row."""
    plain = np.ascontiguousarray(x + 0.0)  # -0.0 equals 0.0
    seen: dict[bytes, int] = {}
    for at, row in enumerate(plain):
        seen.setdefault(row.tobytes(), at)
    return np.fromiter(seen.values(), dtype=np.int64, count=len(seen))


def neighbour_ratios(x: torch.Tensor, *, eps: float = 2.220446049250313e-16) -> NeighbourRatios:
    """Return the ratios for finite rows, shape (n, d)."""
    keep = distinct_rows(x.cpu().numpy())
    rows = x if len(keep) == len(x) else x[torch.from_numpy(keep).to(x.device)]
    if len(rows) < 3:
        return NeighbourRatios(np.empty(0), len(x) - len(rows), 0.0, float("nan"))
    r = nearest_neighbours(rows, k=2).distances.cpu().numpy()
    # Distinct rows nearer than float64 can tell apart have no ratio.
    r = r[r[:, 0] > 0]
    if not len(r):
        return NeighbourRatios(np.empty(0), len(x) - len(rows), 0.0, float("nan"))
    mu = np.sort(r[:, 1] / r[:, 0])
    length = float(rows.double().norm(dim=1).median())
    noise = float(np.median(r[:, 0])) / (eps * length) if length > 0 else float("inf")
    return NeighbourRatios(mu, len(x) - len(rows), float((mu == 1.0).mean()), noise)


def dimension(
    mu: np.ndarray,
    *,
    discard: float = 0.1,
    method: Literal["linear", "mle", "censored"] = "linear",
) -> float:
    """Return the dimension of ascending ratios; NaN for fewer than ten or no spread.

    Examples
    --------
    >>> u = (np.arange(5000) + 0.5) / 5000
    >>> round(dimension((1 - u) ** (-1 / 7)), 1)
    7.0
    """
    n = len(mu)
    if n < FEWEST:
        return float("nan")
    x = np.log(mu)
    kept = int(n * (1.0 - discard))
    if method == "mle":
        top, total = n - 1.0, x.sum()
    elif method == "censored":
        top, total = kept - 1.0, x[:kept].sum() + (n - kept) * x[kept - 1]
    else:
        x = x[:kept]
        y = -np.log1p(-np.arange(1, kept + 1) / n)
        top, total = x @ y, x @ x
    return float(top / total) if total > 0 else float("nan")


def twonn(
    x: np.ndarray,
    *,
    discard: float = 0.1,
    method: Literal["linear", "mle", "censored"] = "linear",
) -> float:
    """Return the TwoNN estimate of the intrinsic dimension.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Features; rows that are not finite are left out and exact duplicates counted once.
    discard : float
        Share of the largest ratios left out (not for ``method="mle"``), 0 < discard < 1.
    method : {"linear", "mle", "censored"}
        Line through the origin; maximum likelihood over all ratios; the same with the
        discarded ones censored.

    Returns
    -------
    float
        Above 0, standard error about ``d / sqrt(n)``; biased low above about 20. NaN when
        fewer than ten distinct rows remain.

    Raises
    ------
    BadInput
        ``discard`` or ``method`` is out of range.

    References
    ----------
    Facco et al. 2017, Estimating the intrinsic dimension of datasets by a minimal
    neighborhood information, Eq. 4 and the algorithm after it.

    Examples
    --------
    >>> x = np.random.default_rng(0).random((2000, 2)) @ np.ones((2, 5)) * [1, 2, 3, 4, 5]
    >>> 0.8 < twonn(x) < 1.2
    True
    """
    if method not in METHODS:
        raise BadInput(f"method={method!r} is unknown.", f"Choose one of {', '.join(METHODS)}.")
    if not 0.0 < discard < 1.0:
        raise BadInput(f"discard={discard} must lie between 0 and 1.", "0.1 is the default.")
    return dimension(Sample(x).ratios.mu, discard=discard, method=method)


@register(
    "twonn",
    "Intrinsic dimension (TwoNN)",
    family="manifold",
    expected_sign=-1,
    meaning="How many coordinates locally describe the features. Lower: simpler for a probe.",
    study=True,
)
def compute(sample: Sample) -> Metric:
    """Return the linear estimate; both likelihood estimates as details."""
    found = sample.ratios
    value = dimension(found.mu)
    detail = {
        "mle": dimension(found.mu, method="mle"),
        "censored": dimension(found.mu, method="censored"),
        "share_mu_one": found.share_one,
        "n_duplicates": float(found.n_duplicates),
        "r1_over_eps": found.r1_over_eps,
    }
    flags = {
        "too_few_rows": np.isnan(value),
        "near_collapse": sample.near_collapse,
        "duplicates": found.n_duplicates > 0,
        "quantized": found.share_one > QUANTIZED_SHARE,
        "lower_bound": value > LOWER_BOUND,
    }
    out = Metric(value, len(found.mu), detail=detail)
    return out.flagged(*(name for name, on in flags.items() if on))
