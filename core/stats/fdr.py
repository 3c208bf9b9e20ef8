"""The false discovery rate: Benjamini and Hochberg 1995."""

from __future__ import annotations

import numpy as np

from core.errors import BadInput


def benjamini_hochberg(p: np.ndarray) -> np.ndarray:
    """Return adjusted p-values ``q_(i) = min_{j >= i} m p_(j) / j``, same shape.

    NaN stays NaN and is not counted in m: a cell without a test is not a hypothesis.

    Parameters
    ----------
    p : array of float
        p-values in [0, 1], any shape.

    Raises
    ------
    BadInput
        A value lies outside [0, 1].

    References
    ----------
    Benjamini and Hochberg 1995, Controlling the false discovery rate.

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.01, 0.02, 0.03, 0.04, 0.5])).round(6).tolist()
    [0.05, 0.05, 0.05, 0.05, 0.5]
    """
    values = np.asarray(p, dtype=np.float64)
    known = np.isfinite(values)
    tested = values[known]
    if ((tested < 0) | (tested > 1)).any():
        raise BadInput("p holds a value outside [0, 1].", "Give p-values.")
    order = np.argsort(tested, kind="stable")
    m = len(tested)
    scaled = tested[order] * m / np.arange(1, m + 1)
    adjusted = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    out = np.full(values.shape, np.nan)
    back = np.empty(m)
    back[order] = adjusted
    out[known] = back
    return out
