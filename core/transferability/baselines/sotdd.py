"""s-OTDD: the sliced distance of two labelled data sets, labels entering as distributions.

Nguyen, Nguyen, Pham, Ho, "Lightspeed Geometric Dataset Distance via Sliced Optimal
Transport", ICML 2025 (arXiv 2501.18901), definitions 1-3.

Axes: n, m items, d features, L projections, Q = 5 moments.
"""

from __future__ import annotations

import math

import numpy as np

from core.errors import BadInput
from core.linalg.factor import class_sums
from core.linalg.transport import check_clouds, directions, line_blocks, wasserstein_1d
from core.transferability.baselines.checks import as_codes, as_rows

MOMENTS = 5


def s_otdd(
    xa: np.ndarray,
    ya: np.ndarray,
    xb: np.ndarray,
    yb: np.ndarray,
    *,
    n_projections: int = 1_000,
    p: float = 2.0,
    seed: int = 0,
    scale: float | None = None,
) -> float:
    r"""Return s-OTDD; lower is nearer.

    A projection has a direction u, weights :math:`\psi` on the sphere of R^6 and moments
    :math:`m_i` (zero-truncated Poisson with rate i). It puts an item (x, y) at
    :math:`\psi_0 u \cdot x + \sum_i \psi_i E_{x' \mid y}[(u \cdot x')^{m_i}] / m_i!`;
    the distance is ``(mean over projections of W_p^p) ^ (1 / p)``.

    Parameters
    ----------
    xa, xb : ndarray, shape (n, d) and (m, d)
    ya, yb : ndarray, shape (n,) and (m,)
        Labels of any type. Names do not matter: only which items share one.
    n_projections : int
        The paper uses 10,000; the relative error falls with its root.
    p : float
        At least 1.
    seed : int
        The same seed gives the same projections for every pair of data sets of a width.
    scale : float, optional
        Features are divided by it, since moments explode; default the root mean square
        length of all rows. Give one value for all blends that are to be compared.

    Returns
    -------
    float
        At least 0; 0 for identical data.

    Raises
    ------
    BadInput
        Widths that differ, values that are not finite, labels of another length, or no
        projection.

    Examples
    --------
    >>> import numpy as np
    >>> x, y = np.arange(8.0).reshape(4, 2), np.array([0, 0, 1, 1])
    >>> s_otdd(x, y, x, y + 7)
    0.0
    """
    a, b = as_rows(xa, "xa"), as_rows(xb, "xb")
    check_clouds(a, b)
    if n_projections < 1:
        raise BadInput(f"n_projections={n_projections}, expected at least 1.")
    codes_a, codes_b = as_codes(ya, len(a), "ya"), as_codes(yb, len(b), "yb")
    size = joint_scale(a, b) if scale is None else scale
    lines = directions(a.shape[1], n_projections, seed)
    weights, powers = _draw_moments(n_projections, seed)
    total = 0.0
    for block in line_blocks(n_projections):
        u = lines[block] / size
        left = _project(a, *codes_a, u, weights[block], powers[block])
        right = _project(b, *codes_b, u, weights[block], powers[block])
        total += float(wasserstein_1d(left, right, p=p).sum())
    return (total / n_projections) ** (1.0 / p)


def joint_scale(*clouds: np.ndarray) -> float:
    """Return the root mean square length of all rows, 1 where all are zero."""
    square = sum(float(np.square(c, dtype=np.float64).sum()) for c in clouds)
    return math.sqrt(square / sum(map(len, clouds))) or 1.0


def _draw_moments(n_projections: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights psi (L, Q + 1), unit rows, and moment orders (L, Q), at least 1."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, MOMENTS]))
    psi = rng.standard_normal((n_projections, MOMENTS + 1))
    psi /= np.linalg.norm(psi, axis=1, keepdims=True)
    # A Poisson variable given that it is not 0, by inversion: P(0) = exp(-rate) is cut off.
    from scipy.stats import poisson

    rates = np.arange(1, MOMENTS + 1)
    zero = np.exp(-rates)
    quantile = zero + rng.random((n_projections, MOMENTS)) * (1.0 - zero)
    return psi, np.maximum(poisson.ppf(quantile, rates), 1.0)


def _project(
    x: np.ndarray, codes: np.ndarray, n_classes: int, u: np.ndarray, psi: np.ndarray,
    powers: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Place the items on each line, (lines, n)."""
    along = np.asarray(x, dtype=np.float64) @ u.T  # (n, lines)
    counts = np.bincount(codes, minlength=n_classes)[:, None]
    shift = np.zeros((n_classes, u.shape[0]))
    for i in range(MOMENTS):
        order = powers[:, i]
        moment = class_sums(_power(along, order), codes, n_classes) / counts
        shift += psi[:, i + 1] * moment / np.array([math.factorial(int(k)) for k in order])
    return (psi[:, 0] * along + shift[codes]).T


def _power(base: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Integer powers of negative numbers too, column by column."""
    out = np.empty_like(base)
    for k in np.unique(order):
        columns = order == k
        out[:, columns] = base[:, columns] ** int(k)
    return out
