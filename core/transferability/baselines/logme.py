"""LogME: the evidence of the labels under a Bayesian linear model on the features.

You, Liu, Wang, Long, "LogME: Practical Assessment of Pre-trained Models for Transfer
Learning", ICML 2021, and its fixed-point iteration, "Ranking and Tuning Pre-trained Models",
JMLR 2022, algorithm 3. The log-determinant of the d x d posterior precision includes the
``d - k`` directions the features do not span; the authors' code leaves them out (their issue
23), which turns the sign of the score when d > N.

Axes: N items, d features, k rank, T targets (one indicator a class).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from core.errors import BadInput
from core.linalg.factor import blocks, class_sums, thin_factor
from core.transferability.baselines.checks import as_codes, as_rows

_EPS = 1e-5
_STEPS = 11
_TOLERANCE = {"fixed_point": 1e-3, "icml": 1e-2}


class _Model(NamedTuple):
    """Squares of the T targets' coordinates (T, k), what lies outside (T,), and the sizes."""

    squares: np.ndarray
    outside: np.ndarray
    sigma: np.ndarray
    n: int
    d: int


def logme(x: np.ndarray, y: np.ndarray, *, variant: str = "fixed_point") -> float:
    r"""Return the log maximum evidence per item, averaged over targets; higher is better.

    For a target t, with :math:`\sigma = s^2` the squared singular values of x, the evidence

    .. math:: \tfrac 1 N \bigl[\tfrac d2 \log\alpha + \tfrac N2 \log\beta
        - \tfrac 12 \log\det(\alpha I + \beta x^\top x) - \tfrac\beta2 |xm - t|^2
        - \tfrac\alpha2 |m|^2 - \tfrac N2 \log 2\pi \bigr]

    is raised over :math:`\alpha, \beta` by at most eleven fixed-point steps.

    Parameters
    ----------
    x : ndarray, shape (N, d)
        Features as they are: no centring and no bias.
    y : ndarray, shape (N,) of labels, or (N, T) of numbers
        Labels become one indicator a class; a matrix is a regression with T outputs.
    variant : {"fixed_point", "icml"}
        The later iteration (stops at a relative change of 1e-3 of alpha / beta) or that of
        the ICML paper (1e-2, and its guard of 1e-5 inside the evidence).

    Returns
    -------
    float
        In nats an item.

    Raises
    ------
    BadInput
        An unknown variant, values that are not finite, features that are all zero, or
        ``y`` of another length.

    Examples
    --------
    >>> import numpy as np
    >>> i, j = np.arange(12)[:, None], np.arange(3)
    >>> x = np.sin(1 + 0.7 * i * (j + 1)) + 0.3 * np.cos(i + j)
    >>> round(logme(x, np.arange(12) % 3), 6)
    -0.834538
    """
    if variant not in _TOLERANCE:
        raise BadInput(f"variant={variant!r} is not known.", "One of: fixed_point, icml.")
    rows = as_rows(x)
    products, squares = _targets(rows, y)
    factor = thin_factor(rows)
    if len(factor.values) == 0:
        raise BadInput("x is all zero: a linear model has nothing to learn from.")
    coordinates = factor.left_products(products) ** 2  # (T, k)
    outside = np.maximum(squares - coordinates.sum(1), 0.0)
    n, d = rows.shape
    model = _Model(coordinates, outside, factor.values**2, n, d)
    return float(_evidence(model, variant).mean())


def _targets(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``T^T x`` (T, d) and the squared lengths of the targets (T,)."""
    values = np.asarray(y)
    if values.ndim == 1:
        codes, n_classes = as_codes(values, len(x))
        return class_sums(x, codes, n_classes), np.bincount(codes).astype(float)
    targets = as_rows(values, "y").astype(np.float64)
    if len(targets) != len(x):
        raise BadInput(f"y has {len(targets)} rows, x has {len(x)}.")
    parts = zip(blocks(targets), blocks(x), strict=True)
    return sum(t.T @ rows for t, rows in parts), (targets**2).sum(0)


def _evidence(model: _Model, variant: str) -> np.ndarray:
    """Evidence of every target (T,), all iterated at once; each stops on its own."""
    count = len(model.outside)
    alpha, beta, m2, r2 = np.ones((4, count))
    active = np.arange(count)
    for _ in range(_STEPS):
        tau = alpha[active] / beta[active]
        gamma = (model.sigma / (model.sigma + tau[:, None])).sum(1)
        m2[active], r2[active] = _lengths(model, active, tau[:, None])
        alpha[active] = gamma / (m2[active] + _EPS)
        beta[active] = (model.n - gamma) / (r2[active] + _EPS)
        change = np.abs(alpha[active] / beta[active] - tau) / tau
        active = active[change > _TOLERANCE[variant]]
        if len(active) == 0:
            break
    # The lengths are those of the last solution, before alpha and beta moved, as upstream.
    guard = _EPS if variant == "icml" else 0.0
    n, d, rank = model.n, model.d, len(model.sigma)
    log_det = np.log(alpha[:, None] + beta[:, None] * model.sigma).sum(1)
    log_det += (d - rank) * np.log(alpha)
    total = 0.5 * (d * np.log(alpha) + n * np.log(beta) - log_det - n * np.log(2.0 * np.pi))
    total -= 0.5 * (beta * (r2 + guard) + alpha * (m2 + guard))
    return np.asarray(total / n)


def _lengths(model: _Model, active: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``|m|^2`` and ``|x m - t|^2`` of the posterior means of some targets."""
    squares, sigma = model.squares[active], model.sigma
    m2 = (sigma * squares / (tau + sigma) ** 2).sum(1)
    r2 = (squares / (1.0 + sigma / tau) ** 2).sum(1) + model.outside[active]
    return m2, r2
