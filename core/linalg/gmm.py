"""Gaussian mixtures with full covariances, many problems at once.

Expectation-maximisation as in Dempster, Laird and Rubin (1977), with the stopping rule,
the regularisation and the convergence measure of scikit-learn's ``GaussianMixture``, run in
float64 torch for a whole batch of data sets of equal size (one a layer) and restarts.
RADAR (arXiv 2605.23028) fits such mixtures to within- and cross-domain descriptors.

Axes: B problems, n points, D dimensions, K components.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from core.device import pick_device
from core.errors import BadInput
from core.linalg.em import State, joint_log_prob, maximise, stepper

# The start looks at no more points than this: k-means++ needs the shape of the cloud only.
_START_POINTS = 2_000
_LLOYD_STEPS = 10


@dataclass(frozen=True)
class MixtureBatch:
    """B mixtures of K Gaussians in D dimensions.

    Attributes
    ----------
    weights : tensor of float64, shape (B, K)
    means : tensor of float64, shape (B, K, D)
    covariances : tensor of float64, shape (B, K, D, D)
    log_likelihood : tensor of float64, shape (B,)
        Mean log-density of the data each mixture was fitted to (nan when built by hand).
    n_iter : tensor of int64, shape (B,)
    converged : tensor of bool, shape (B,)
    """

    weights: torch.Tensor
    means: torch.Tensor
    covariances: torch.Tensor
    log_likelihood: torch.Tensor
    n_iter: torch.Tensor
    converged: torch.Tensor

    @property
    def n_params(self) -> int:
        """Free parameters of one mixture."""
        _, k, dim = self.means.shape
        return k * (dim + dim * (dim + 1) // 2) + k - 1

    def log_prob(self, points: torch.Tensor) -> torch.Tensor:
        """Return the log-density at ``points`` (B, m, D) as (B, m)."""
        return torch.logsumexp(joint_log_prob(points, *_state(self)), dim=2)

    def bic(self, n_points: int) -> torch.Tensor:
        """Return the Bayesian information criterion (B,), lower is better."""
        return -2.0 * n_points * self.log_likelihood + self.n_params * float(np.log(n_points))

    def one(self, index: int) -> GaussianMixture:
        """Return problem ``index`` as a density of its own, in numpy."""
        return GaussianMixture(
            self.weights[index].cpu().numpy(),
            self.means[index].cpu().numpy(),
            self.covariances[index].cpu().numpy(),
        )


@dataclass(frozen=True)
class GaussianMixture:
    """One mixture as a density: ``logpdf``, ``sample``, ``n_params``.

    Attributes
    ----------
    weights : ndarray of float64, shape (K,)
        Positive, sum 1.
    means : ndarray of float64, shape (K, D)
    covariances : ndarray of float64, shape (K, D, D)
        Positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> unit = GaussianMixture(np.ones(1), np.zeros((1, 1)), np.ones((1, 1, 1)))
    >>> round(float(unit.logpdf(np.zeros((1, 1)))[0]), 6)
    -0.918939
    """

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray

    @property
    def n_components(self) -> int:
        """Number of Gaussians K."""
        return len(self.weights)

    @property
    def n_params(self) -> int:
        """Free parameters."""
        k, dim = self.means.shape
        return k * (dim + dim * (dim + 1) // 2) + k - 1

    def logpdf(self, points: np.ndarray) -> np.ndarray:
        """Return the log-density at ``points`` (m, D) as float64 (m,)."""
        state = (self.weights[None], self.means[None], self.covariances[None])
        z = torch.as_tensor(np.asarray(points, dtype=np.float64))[None]
        joint = joint_log_prob(z, *(torch.as_tensor(part) for part in state))
        return torch.logsumexp(joint, dim=2)[0].numpy()

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw ``n`` points, float64 (n, D)."""
        counts = rng.multinomial(n, self.weights / self.weights.sum())
        noise = rng.standard_normal((n, self.means.shape[1]))
        chol = np.linalg.cholesky(self.covariances)
        label = np.repeat(np.arange(self.n_components), counts)
        return self.means[label] + np.einsum("nij,nj->ni", chol[label], noise)


def fit_gaussian(points: np.ndarray, *, reg_covar: float = 0.0) -> GaussianMixture:
    """Fit one Gaussian by its sample mean and (maximum likelihood) covariance.

    Parameters
    ----------
    points : ndarray, shape (n, D)
    reg_covar : float
        Added to the diagonal.

    Raises
    ------
    BadInput
        Fewer than D + 1 points without ``reg_covar``: the covariance is singular.
    """
    z = np.asarray(points, dtype=np.float64)
    n, dim = z.shape
    if n <= dim and reg_covar <= 0:
        raise BadInput(
            f"points has {n} rows, a full covariance in {dim} dimensions needs {dim + 1}.",
            "Raise n_pairs or take fewer layers.",
        )
    mean = z.mean(0)
    centred = z - mean
    cov = centred.T @ centred / n + reg_covar * np.eye(dim)
    return GaussianMixture(np.ones(1), mean[None], cov[None])


def fit_mixtures(
    points: np.ndarray | torch.Tensor,
    n_components: int,
    *,
    seed: int = 0,
    n_init: int = 1,
    reg_covar: float = 1e-6,
    tol: float = 1e-3,
    max_iter: int = 100,
    start: MixtureBatch | None = None,
    device: str | None = "cpu",
) -> MixtureBatch:
    """Fit one K-component mixture to each of B data sets.

    Parameters
    ----------
    points : array, shape (B, n, D) or (n, D)
    n_components : int
        K >= 1.
    seed : int
        Seeds the k-means++ starts; the same seed gives the same fit.
    n_init : int
        Restarts; the best log-likelihood is kept for each problem.
    reg_covar, tol, max_iter : float, float, int
        As scikit-learn's: added to the diagonals; stop when the mean log-likelihood changes
        by less; most iterations.
    start : MixtureBatch, optional
        Start from these parameters instead (then ``n_init`` and ``seed`` play no part).
    device : str, optional
        Where to compute; None follows THEODOLITE_DEVICE.

    Returns
    -------
    MixtureBatch

    Raises
    ------
    BadInput
        Fewer points than components, or values that are not finite.

    References
    ----------
    Dempster, Laird, Rubin, "Maximum likelihood from incomplete data via the EM algorithm", 1977.
    """
    z = torch.as_tensor(points).to(device=pick_device(device), dtype=torch.float64)
    z = z[None] if z.ndim == 2 else z  # (B, n, D)
    _check(z, n_components)
    if start is not None:
        return _expectation_maximisation(z, _state(start), reg_covar, tol, max_iter)
    batch = z.shape[0]
    rng = np.random.default_rng(np.random.SeedSequence([seed, n_components]))
    copies = z.repeat(n_init, 1, 1)  # (n_init * B, n, D)
    responsibilities = _kmeans_start(copies, n_components, rng)
    fitted = _expectation_maximisation(
        copies, maximise(copies, responsibilities, reg_covar), reg_covar, tol, max_iter
    )
    best = fitted.log_likelihood.view(n_init, batch).argmax(0)  # (B,)
    rows = best * batch + torch.arange(batch, device=z.device)
    return _pick(fitted, rows)


def select_mixtures(
    points: np.ndarray | torch.Tensor, ks: Sequence[int], **options: Any
) -> tuple[list[int], list[MixtureBatch]]:
    """Fit every K of ``ks`` and say, for each problem, which has the lowest BIC.

    Returns
    -------
    chosen : list of int, length B
        The K of each problem (the smaller one on a tie).
    fits : list of MixtureBatch, length len(ks)
        All fits, in the order of ``ks``.
    """
    z = torch.as_tensor(points)
    n = z.shape[-2]
    fits = [fit_mixtures(z, k, **options) for k in ks]
    bic = torch.stack([fit.bic(n) for fit in fits])  # (len(ks), B)
    return [int(ks[i]) for i in bic.argmin(0).tolist()], fits


def _state(fit: MixtureBatch) -> State:
    return fit.weights, fit.means, fit.covariances


def _check(z: torch.Tensor, n_components: int) -> None:
    if z.ndim != 3:
        raise BadInput(f"points must be (B, n, D) or (n, D), got {tuple(z.shape)}.")
    if n_components < 1 or z.shape[1] < max(n_components, 2):
        raise BadInput(
            f"n_components={n_components} for {z.shape[1]} points.",
            "A mixture needs at least two points and no more components than points.",
        )
    if not torch.isfinite(z).all():
        bad = int((~torch.isfinite(z)).sum())
        raise BadInput(f"points holds {bad} values that are not finite.", "Leave those rows out.")


def _expectation_maximisation(
    z: torch.Tensor, state: State, reg_covar: float, tol: float, max_iter: int
) -> MixtureBatch:
    """Run EM on all problems; a problem that has converged is frozen and costs no more."""
    batch = z.shape[0]
    steps = stepper(z)
    weights, means, covs = (part.clone() for part in state)
    bound = torch.full((batch,), -torch.inf, dtype=z.dtype, device=z.device)
    n_iter = torch.zeros(batch, dtype=torch.int64, device=z.device)
    converged = torch.zeros(batch, dtype=torch.bool, device=z.device)
    active = torch.arange(batch, device=z.device)
    for step in range(1, max_iter + 1):
        new, parts = steps.step((weights[active], means[active], covs[active]), reg_covar, active)
        weights[active], means[active], covs[active] = parts
        done = (new - bound[active]).abs() < tol
        bound[active] = new
        n_iter[active] = step
        converged[active[done]] = True
        active = active[~done]
        if len(active) == 0:
            break
    final = torch.logsumexp(joint_log_prob(z, weights, means, covs), dim=2).mean(1)
    return MixtureBatch(weights, means, covs, final, n_iter, converged)


def _pick(fit: MixtureBatch, rows: torch.Tensor) -> MixtureBatch:
    return MixtureBatch(
        fit.weights[rows],
        fit.means[rows],
        fit.covariances[rows],
        fit.log_likelihood[rows],
        fit.n_iter[rows],
        fit.converged[rows],
    )


def _kmeans_start(z: torch.Tensor, k: int, rng: np.random.Generator) -> torch.Tensor:
    """Hard assignments (B, n, K) from k-means++ and a few Lloyd steps on standardised axes."""
    batch, n, _ = z.shape
    if k == 1:
        return torch.ones((batch, n, 1), dtype=z.dtype, device=z.device)
    spread = z.std(1, keepdim=True).clamp_min(1e-300)
    scaled = (z - z.mean(1, keepdim=True)) / spread
    sample = scaled
    if n > _START_POINTS:
        rows = torch.as_tensor(rng.permutation(n)[:_START_POINTS], device=z.device)
        sample = scaled[:, rows]
    centres = _kmeans_plus_plus(sample, k, rng)
    for _ in range(_LLOYD_STEPS):
        hot = _nearest(sample, centres)  # (B, m, K)
        mass = hot.sum(1)[..., None]  # (B, K, 1)
        moved = hot.transpose(1, 2) @ sample / mass.clamp_min(1.0)
        centres = torch.where(mass > 0, moved, centres)
    return _nearest(scaled, centres)


def _kmeans_plus_plus(z: torch.Tensor, k: int, rng: np.random.Generator) -> torch.Tensor:
    """Spread-out starting centres (B, K, D): each drawn with odds of its squared distance."""
    batch, n, _ = z.shape
    each = torch.arange(batch, device=z.device)
    first = torch.as_tensor(rng.integers(n, size=batch), device=z.device)
    centres = [z[each, first]]
    nearest = (z - centres[0][:, None]).square().sum(2)  # (B, n)
    for _ in range(k - 1):
        ladder = nearest.cumsum(1)
        dart = torch.as_tensor(rng.random(batch), device=z.device)[:, None] * ladder[:, -1:]
        chosen = torch.searchsorted(ladder, dart).clamp_max(n - 1)[:, 0]
        centres.append(z[each, chosen])
        nearest = torch.minimum(nearest, (z - centres[-1][:, None]).square().sum(2))
    return torch.stack(centres, dim=1)


def _nearest(z: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    """One-hot (B, m, K) of the nearest centre."""
    label = torch.cdist(z, centres).argmin(2)
    return torch.nn.functional.one_hot(label, centres.shape[1]).to(z.dtype)
