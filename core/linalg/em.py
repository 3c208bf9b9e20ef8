"""One step of expectation-maximisation for a batch of Gaussian mixtures, two ways.

Dempster, Laird, Rubin (1977). In few dimensions a log-density is one product with the monomials
``1, z_i, z_i z_j``, and so are the moments of the M step: nothing of size n x D x K is formed.
Beyond, the monomials outgrow the cache and triangular solves are faster.

Axes: B problems, n points, D dimensions, K components, F = 1 + D + D (D + 1) / 2 monomials.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch

_LOG_2PI = float(np.log(2.0 * np.pi))
_MONOMIAL_DIMS = 4

State = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class Stepper(Protocol):
    """The points of B problems, ready for EM."""

    def step(
        self, state: State, reg_covar: float, active: torch.Tensor
    ) -> tuple[torch.Tensor, State]:
        """Return the mean log-likelihood of ``state`` (B,) and the next state."""


def stepper(z: torch.Tensor) -> Stepper:
    """Return the faster way for points (B, n, D)."""
    return _Monomials(z) if z.shape[-1] <= _MONOMIAL_DIMS else _Whitened(z)


def joint_log_prob(
    z: torch.Tensor, weights: torch.Tensor, means: torch.Tensor, covs: torch.Tensor
) -> torch.Tensor:
    """Return log(weight) + log N(z | mean, cov), shape (B, n, K)."""
    dim = z.shape[-1]
    chol = torch.linalg.cholesky(covs)  # (B, K, D, D)
    diff = (z[:, None] - means[:, :, None]).transpose(2, 3)  # (B, K, D, n)
    white = torch.linalg.solve_triangular(chol, diff, upper=False)
    mahalanobis = white.square().sum(2)  # (B, K, n)
    log_det = chol.diagonal(dim1=-2, dim2=-1).log().sum(-1)  # (B, K)
    log_gauss = -0.5 * (mahalanobis + dim * _LOG_2PI) - log_det[..., None]
    return (log_gauss + weights.log()[..., None]).transpose(1, 2)


def maximise(z: torch.Tensor, resp: torch.Tensor, reg_covar: float) -> State:
    """M step: parameters from responsibilities (B, n, K)."""
    dim = z.shape[-1]
    # The same guard as scikit-learn's, so that a dying component stays finite.
    mass = resp.sum(1) + 10 * torch.finfo(torch.float64).eps  # (B, K)
    means = resp.transpose(1, 2) @ z / mass[..., None]  # (B, K, D)
    diff = z[:, None] - means[:, :, None]  # (B, K, n, D)
    weighted = diff * resp.transpose(1, 2)[..., None]
    covs = weighted.transpose(2, 3) @ diff / mass[..., None, None]  # (B, K, D, D)
    covs = covs + reg_covar * torch.eye(dim, dtype=z.dtype, device=z.device)
    return mass / z.shape[1], means, covs


class _Whitened:
    """E and M step by triangular solves, for any number of dimensions."""

    def __init__(self, z: torch.Tensor) -> None:
        self._z = z

    def step(
        self, state: State, reg_covar: float, active: torch.Tensor
    ) -> tuple[torch.Tensor, State]:
        points = self._z if len(active) == len(self._z) else self._z[active]
        joint = joint_log_prob(points, *state)
        norm = torch.logsumexp(joint, dim=2, keepdim=True)
        return norm.mean((1, 2)), maximise(points, (joint - norm).exp(), reg_covar)


class _Monomials:
    """E and M step as two products with the monomials of the centred points, (B, F, n)."""

    def __init__(self, z: torch.Tensor) -> None:
        self._centre = z.mean(1, keepdim=True)  # small numbers cancel less
        x = (z - self._centre).transpose(1, 2)  # (B, D, n)
        dim = x.shape[1]
        self._i, self._j = torch.triu_indices(dim, dim, device=z.device)
        self._terms = torch.cat([torch.ones_like(x[:, :1]), x, x[:, self._i] * x[:, self._j]], 1)

    def step(
        self, state: State, reg_covar: float, active: torch.Tensor
    ) -> tuple[torch.Tensor, State]:
        terms = self._terms if len(active) == len(self._terms) else self._terms[active]
        centre = self._centre[active]
        joint = self._coefficients(state, centre) @ terms  # (B, K, n)
        top = joint.amax(1, keepdim=True)
        resp = joint.sub_(top).exp_()
        total = resp.sum(1, keepdim=True)
        likelihood = (total.log() + top).mean((1, 2))
        moments = resp.div_(total) @ terms.transpose(1, 2)  # (B, K, F)
        return likelihood, self._parameters(moments, centre, terms.shape[2], reg_covar)

    def _coefficients(self, state: State, centre: torch.Tensor) -> torch.Tensor:
        """Return log weight + log N as weights of 1, x_i and x_i x_j, (B, K, F)."""
        weights, means, covs = state
        dim = means.shape[-1]
        chol = torch.linalg.cholesky(covs)
        precision = torch.cholesky_inverse(chol)  # (B, K, D, D)
        shifted = means - centre
        linear = (precision @ shifted[..., None])[..., 0]
        log_det = 2.0 * chol.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        const = weights.log() - 0.5 * (dim * _LOG_2PI + log_det + (linear * shifted).sum(-1))
        square = precision[..., self._i, self._j]
        # A product of two different columns stands once for both of its places.
        square = torch.where(self._i == self._j, -0.5 * square, -square)
        return torch.cat([const[..., None], linear, square], dim=-1)

    def _parameters(
        self, moments: torch.Tensor, centre: torch.Tensor, n: int, reg_covar: float
    ) -> State:
        dim = centre.shape[-1]
        # The same guard as scikit-learn's, so that a dying component stays finite.
        mass = moments[..., 0] + 10 * torch.finfo(torch.float64).eps
        means = moments[..., 1 : dim + 1] / mass[..., None]
        covs = means.new_empty((*means.shape, dim))
        product = moments[..., dim + 1 :] / mass[..., None]
        product = product - means[..., self._i] * means[..., self._j]
        covs[..., self._i, self._j] = covs[..., self._j, self._i] = product
        covs = covs + reg_covar * torch.eye(dim, dtype=covs.dtype, device=covs.device)
        return mass / n, means + centre, covs
