"""Kullback-Leibler divergences between densities.

Closed form between Gaussians; Monte Carlo with its standard error between mixtures. The
symmetric form is RADAR's score (arXiv 2605.23028, section 3.3; estimator not stated there,
ours: half the sum of the two directions).

Axes: ... batch, D dimensions, m samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeGuard

import numpy as np

from core.errors import BadInput
from core.linalg.gmm import GaussianMixture

# A log-density below this is a sample the other density does not know at all; without the
# floor one such sample decides the estimate.
LOG_FLOOR = -1e3


class Density(Protocol):
    """What a divergence needs of a density."""

    def logpdf(self, points: np.ndarray) -> np.ndarray:
        """Log-density at (m, D) as (m,)."""

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw (n, D)."""


@dataclass(frozen=True)
class SymKL:
    """A symmetric Kullback-Leibler divergence.

    Attributes
    ----------
    kl_pq, kl_qp : float
        The two directions, in nats; Monte Carlo values may be slightly negative.
    value : float
        Half their sum.
    se : float
        Standard error of ``value`` (0 for the closed form).
    n_floor : int
        Samples whose log-density was raised to the floor of -1,000.
    """

    kl_pq: float
    kl_qp: float
    value: float
    se: float
    n_floor: int = 0


def gaussian_kl(
    mean_p: np.ndarray, cov_p: np.ndarray, mean_q: np.ndarray, cov_q: np.ndarray
) -> np.ndarray:
    """Return KL(p || q) between Gaussians, in nats.

    Parameters
    ----------
    mean_p, mean_q : ndarray, shape (..., D)
    cov_p, cov_q : ndarray, shape (..., D, D)
        Positive definite.

    Returns
    -------
    ndarray of float64, shape (...)
        At least 0 up to rounding.

    Raises
    ------
    BadInput
        A covariance is not positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> one, two = np.eye(1), np.eye(1) * 4.0
    >>> round(float(gaussian_kl(np.zeros(1), one, np.zeros(1), two)), 6)
    0.318147
    """
    dim = mean_p.shape[-1]
    try:
        chol_p = np.linalg.cholesky(np.asarray(cov_p, dtype=np.float64))
        chol_q = np.linalg.cholesky(np.asarray(cov_q, dtype=np.float64))
    except np.linalg.LinAlgError as err:
        raise BadInput(
            "A covariance is not positive definite.",
            "Drop constant columns, raise n_pairs, or set reg_covar above 0.",
        ) from err
    ratio = np.linalg.solve(chol_q, chol_p)  # (..., D, D); |ratio|^2 = tr(cov_q^-1 cov_p)
    shift = np.linalg.solve(chol_q, (mean_q - mean_p)[..., None])[..., 0]
    log_det = 2.0 * np.log(np.diagonal(ratio, axis1=-2, axis2=-1)).sum(-1)
    return 0.5 * ((ratio**2).sum((-2, -1)) + (shift**2).sum(-1) - dim - log_det)


def gaussian_symmetric_kl(
    mean_p: np.ndarray, cov_p: np.ndarray, mean_q: np.ndarray, cov_q: np.ndarray
) -> np.ndarray:
    """Return half the sum of both directions of :func:`gaussian_kl`, shape (...), in nats."""
    there = gaussian_kl(mean_p, cov_p, mean_q, cov_q)
    back = gaussian_kl(mean_q, cov_q, mean_p, cov_p)
    return 0.5 * (there + back)


def symmetric_kl(p: Density, q: Density, *, n_samples: int = 10_000, seed: int = 0) -> SymKL:
    """Return the symmetric Kullback-Leibler divergence of two densities.

    Two single Gaussians are compared in closed form; anything else by Monte Carlo,
    ``KL(p || q) = mean(log p(x) - log q(x))`` over ``n_samples`` draws ``x ~ p``.

    Parameters
    ----------
    p, q : Density
        Objects with ``logpdf`` and ``sample``, such as
        :class:`~core.linalg.gmm.GaussianMixture`, over the same dimensions.
    n_samples : int
        Draws for each direction, at least 2.
    seed : int
        The same seed gives the same value.

    Returns
    -------
    SymKL
        In nats; ``value`` is half the sum of the directions.

    Raises
    ------
    BadInput
        ``n_samples`` below 2, or a covariance that is not positive definite.

    References
    ----------
    RADAR, arXiv 2605.23028, section 3.3.

    Examples
    --------
    >>> import numpy as np
    >>> from core.linalg.gmm import GaussianMixture
    >>> p = GaussianMixture(np.ones(1), np.zeros((1, 1)), np.ones((1, 1, 1)))
    >>> q = GaussianMixture(np.ones(1), np.ones((1, 1)), np.ones((1, 1, 1)))
    >>> symmetric_kl(p, q).value
    0.5
    """
    if _is_gaussian(p) and _is_gaussian(q):
        there = float(gaussian_kl(p.means[0], p.covariances[0], q.means[0], q.covariances[0]))
        back = float(gaussian_kl(q.means[0], q.covariances[0], p.means[0], p.covariances[0]))
        return SymKL(there, back, 0.5 * (there + back), 0.0)
    if n_samples < 2:
        raise BadInput(f"n_samples={n_samples}, expected at least 2.")
    rng_p, rng_q = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2))
    there, se_there, floor_there = _one_way(p, q, n_samples, rng_p)
    back, se_back, floor_back = _one_way(q, p, n_samples, rng_q)
    se = 0.5 * float(np.hypot(se_there, se_back))
    return SymKL(there, back, 0.5 * (there + back), se, floor_there + floor_back)


def variational_kl(p: GaussianMixture, q: GaussianMixture) -> float:
    r"""Return Hershey and Olsen's variational approximation of KL(p || q), in nats.

    .. math:: \sum_a \pi_a \log \frac{\sum_{a'} \pi_{a'} e^{-KL(p_a \| p_{a'})}}
        {\sum_b \omega_b e^{-KL(p_a \| q_b)}}

    Deterministic and 0 for equal mixtures, but neither a bound nor at least 0: a cross-check
    of the Monte Carlo value.

    Parameters
    ----------
    p, q : GaussianMixture

    Raises
    ------
    BadInput
        A covariance is not positive definite.

    References
    ----------
    Hershey, Olsen, "Approximating the Kullback Leibler divergence between Gaussian mixture
    models", ICASSP 2007, Eq. 20.

    Examples
    --------
    >>> import numpy as np
    >>> p = GaussianMixture(np.ones(1), np.zeros((1, 1)), np.ones((1, 1, 1)))
    >>> q = GaussianMixture(np.ones(1), np.ones((1, 1)), np.ones((1, 1, 1)))
    >>> variational_kl(p, q)
    0.5
    """
    own, other = _log_overlap(p, p), _log_overlap(p, q)
    return float(p.weights @ (own - other))


def _log_overlap(p: GaussianMixture, q: GaussianMixture) -> np.ndarray:
    """Return ``log sum_b weight_b exp(-KL(p_a || q_b))`` for each component a of p."""
    pairs = gaussian_kl(
        p.means[:, None], p.covariances[:, None], q.means[None], q.covariances[None]
    )
    return np.asarray(np.logaddexp.reduce(np.log(q.weights) - pairs, axis=1))


def _is_gaussian(density: Density) -> TypeGuard[GaussianMixture]:
    return isinstance(density, GaussianMixture) and density.n_components == 1


def _one_way(
    p: Density, q: Density, n_samples: int, rng: np.random.Generator
) -> tuple[float, float, int]:
    """Return KL(p || q), its standard error and the number of floored samples."""
    x = p.sample(n_samples, rng)
    log_p, log_q = p.logpdf(x), q.logpdf(x)
    n_floor = int((log_p < LOG_FLOOR).sum() + (log_q < LOG_FLOOR).sum())
    gap = np.maximum(log_p, LOG_FLOOR) - np.maximum(log_q, LOG_FLOOR)
    return float(gap.mean()), float(gap.std(ddof=1) / np.sqrt(n_samples)), n_floor
