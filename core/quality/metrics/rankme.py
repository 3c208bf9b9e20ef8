"""RankMe: the effective rank of the features.

Garrido, Balestriero, Najman, LeCun 2023 (RankMe), Eq. 1; effective rank of Roy, Vetterli 2007.
``p_k = s_k / sum(s) + eps``, ``exp(-sum p ln p)`` on the singular values of the features as
they are (not centred).

Axes: k singular value.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch

from core.errors import BadInput
from core.quality.base import Metric, register
from core.quality.sample import Sample


def entropy_rank(weights: torch.Tensor, eps: float = 0.0) -> float:
    """Return ``exp(-sum p ln p)`` of non-negative weights; NaN when they sum to 0."""
    total = float(weights.sum()) if len(weights) else 0.0
    if not total > 0:
        return float("nan")
    p = weights / total + eps
    return float(torch.exp(-torch.xlogy(p, p).sum()))


def rankme(
    x: np.ndarray,
    *,
    eps: float = 0.0,
    centered: bool = False,
    spectrum: Literal["singular", "variance"] = "singular",
) -> float:
    """Return RankMe, the exponential entropy of the singular values.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Features; rows that are not finite are left out.
    eps : float
        Added to every ``p_k``. 0 is exact (0 ln 0 = 0); 1e-7 reproduces public ports and adds
        about ``min(n, d) eps ln(1/eps)`` nats.
    centered : bool
        Subtract the mean row first. The paper does not.
    spectrum : {"singular", "variance"}
        Weights: singular values, or their squares. The second is a different number that
        some packages report under the same name.

    Returns
    -------
    float
        1 ... min(n, d), higher for more evenly used directions. NaN for all-zero features,
        and for constant features when centred.

    Raises
    ------
    BadInput
        ``x`` is not a matrix of numbers, or ``spectrum`` is unknown.

    References
    ----------
    Garrido et al. 2023, RankMe: Assessing the downstream performance of pretrained
    self-supervised representations by their rank, Eq. 1.

    Examples
    --------
    >>> round(rankme(np.eye(4)), 6)
    4.0
    """
    if spectrum not in ("singular", "variance"):
        raise BadInput(f"spectrum={spectrum!r} is unknown.", "Choose 'singular' or 'variance'.")
    found = Sample(x).spectrum
    values = found.centered if centered else found.raw
    return entropy_rank(values**2 if spectrum == "variance" else values, eps)


@register(
    "rankme",
    "RankMe",
    family="spectral",
    expected_sign=1,
    meaning="How many directions the features use, evenly weighted (1 to d). Higher: richer.",
    study=True,
    log=True,
)
def compute(sample: Sample) -> Metric:
    """Return RankMe of the uncentred features; the centred one and RankMe/d as details."""
    raw, centered = entropy_rank(sample.spectrum.raw), entropy_rank(sample.spectrum.centered)
    out = Metric(raw, sample.n, detail={"centered": centered, "share": raw / sample.d})
    return out.flagged("rank_capped") if sample.n <= sample.d else out
