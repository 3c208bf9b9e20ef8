"""What the spectral metrics say of a power-law spectrum: exactly, and from a sample.

The spectrum is ``lambda_i = i^-alpha``.
With ``H(d, a) = sum_{i<=d} i^-a``: NESum = H(d, alpha), kappa = d^(alpha/2), participation ratio
``H(d, alpha)^2 / H(d, 2 alpha)``, RankMe ``exp(ln H(d, alpha/2) + (alpha/2) sum i^(-alpha/2) ln i
/ H(d, alpha/2))``, alpha-ReQ = alpha. Samples of n rows depart from these (Marchenko-Pastur).

Axes: a exponents, w widths d.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from core.errors import BadInput
from core.quality.label_free import label_free_metrics

ALPHAS = tuple(np.round(np.arange(0, 3.0001, 0.05), 2))
WIDTHS = (64, 128, 256, 512, 768, 1024, 2048)
CURVES: dict[str, str] = {
    "rankme": "RankMe",
    "ne_sum": "NESum",
    "alpha_req": "alpha-ReQ",
    "condition_number": "Condition number",
    "participation_ratio": "Participation ratio",
}


def power_law_metrics(d: int, alpha: float) -> dict[str, float]:
    """Return the metrics of a population with ``lambda_i = i^-alpha``, i = 1 ... d.

    Parameters
    ----------
    d : int
        Width, at least 1.
    alpha : float
        Exponent, at least 0.

    Raises
    ------
    BadInput
        Out of range.

    Examples
    --------
    >>> exact = power_law_metrics(64, 1.0)
    >>> round(exact["rankme"], 4), round(exact["ne_sum"], 4), round(exact["condition_number"], 4)
    (54.9904, 4.7439, 8.0)
    """
    if d < 1 or not (np.isfinite(alpha) and alpha >= 0):
        raise BadInput(f"d={d}, alpha={alpha} is out of range.", "d >= 1 and alpha >= 0.")
    log_i = np.log(np.arange(1, d + 1))
    variance, deviation = np.exp(-alpha * log_i), np.exp(-0.5 * alpha * log_i)
    total = deviation.sum()
    return {
        "rankme": float(np.exp(np.log(total) + 0.5 * alpha * (deviation @ log_i) / total)),
        "ne_sum": float(variance.sum()),
        "alpha_req": float(alpha),
        "condition_number": float(np.exp(0.5 * alpha * log_i[-1])),
        "participation_ratio": float(variance.sum() ** 2 / (variance**2).sum()),
    }


def exact_curves(
    *, alphas: Sequence[float] = ALPHAS, widths: Sequence[int] = WIDTHS
) -> pd.DataFrame:
    """Return the population values: columns d, alpha and one a metric.

    Examples
    --------
    >>> len(exact_curves(alphas=[0.0, 1.0], widths=[64]))
    2
    """
    rows = [{"d": d, "alpha": a, **power_law_metrics(d, a)} for d in widths for a in alphas]
    return pd.DataFrame(rows)


def elasticity(curves: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the local elasticity ``d ln m / d ln d`` of a metric between successive widths.

    0: the width does not matter; 1: the metric grows with it in proportion.

    Parameters
    ----------
    curves : DataFrame
        From :func:`exact_curves`, at least two widths.
    metric : str
        One of :data:`CURVES`.

    Returns
    -------
    DataFrame
        alpha, d (geometric mean of the two widths), elasticity.

    Raises
    ------
    BadInput
        The metric is unknown or there is one width only.

    Examples
    --------
    >>> found = elasticity(exact_curves(alphas=[0.0], widths=[64, 128]), "rankme")
    >>> round(float(found["elasticity"].iloc[0]), 6)
    1.0
    """
    widths = np.sort(curves["d"].unique())
    if metric not in CURVES or len(widths) < 2:
        raise BadInput(
            f"metric={metric!r} over {len(widths)} widths has no elasticity.",
            f"Choose one of {', '.join(CURVES)} and at least two widths.",
        )
    values = curves.pivot(index="alpha", columns="d", values=metric)[widths]
    step = np.diff(np.log(widths.astype(float)))
    slope = np.diff(np.log(values.to_numpy().clip(min=1e-300)), axis=1) / step
    middle = np.sqrt(widths[1:] * widths[:-1].astype(float))
    return pd.DataFrame(
        {
            "alpha": np.repeat(values.index.to_numpy(), len(middle)),
            "d": np.tile(middle, len(values)),
            "elasticity": slope.ravel(),
        }
    )


def sampled_curve(
    d: int, n: int, *, alphas: Sequence[float] = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0), repeats: int = 3,
    seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Return what n Gaussian rows with that spectrum give: the bias of a finite sample.

    Parameters
    ----------
    d, n : int
        Width and rows.
    repeats, seed : int
        Draws at each exponent, and their seed.

    Returns
    -------
    DataFrame
        alpha, draw, n and one column a metric; NaN where a metric has too little to fit.

    Raises
    ------
    BadInput
        Fewer than two rows or one draw.
    """
    if n < 2 or repeats < 1:
        raise BadInput(f"n={n}, repeats={repeats} is too small.", "At least 2 rows and 1 draw.")
    rng = np.random.default_rng(seed)
    rows = []
    for alpha in alphas:
        scale = np.arange(1, d + 1) ** (-alpha / 2)
        for draw in range(repeats):
            x = rng.standard_normal((n, d)) * scale
            found = label_free_metrics(x, names=list(CURVES))
            values = {name: metric.value for name, metric in found.items()}
            rows.append({"alpha": alpha, "draw": draw, "n": n, **values})
    return pd.DataFrame(rows)
