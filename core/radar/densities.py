"""From descriptors to a divergence: how unlike within- and cross-domain triangles are.

RADAR, arXiv 2605.23028, section 3: mixtures of Gaussians are fitted to theta and d of the
within and of the cross pairs, and their symmetric KL is the score. Component counts,
covariances and the KL estimator are not stated there; ours: full covariances, K by BIC on
the pooled rows and the same for both, both fits started from the pooled one.

Axes: n rows, L transitions, D columns (2L for theta and d, L for one of them).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from core.errors import BadInput
from core.linalg.divergence import SymKL, gaussian_symmetric_kl, symmetric_kl, variational_kl
from core.linalg.gmm import GaussianMixture, MixtureBatch, fit_mixtures, select_mixtures
from core.radar.alternatives import histogram_kl, kde_kl, transport
from core.radar.types import LAYER_DENSITIES, Descriptors, RadarConfig

MIN_ROWS = 50
# A single Gaussian needs no more than a guard against rounding; its columns have variance 1.
_GAUSSIAN_REG = 1e-9
_FIT: dict[str, Any] = {"n_init": 3, "tol": 1e-3, "max_iter": 300}


@dataclass(frozen=True)
class Divergence:
    """One comparison of within and cross descriptors, in nats.

    Attributes
    ----------
    joint, se : float
        Symmetric KL in all columns at once, and its Monte Carlo standard error.
    per_layer : ndarray of float64, shape (L,)
    n_within, n_cross : int
        Rows of the joint fit.
    n_components : int
        K of the joint fit.
    n_params : int
        Free parameters of the joint fit.
    """

    joint: float
    se: float
    per_layer: np.ndarray
    n_within: int
    n_cross: int
    n_components: int
    n_params: int


def compare(within: Descriptors, cross: Descriptors, config: RadarConfig, seed: int) -> Divergence:
    """Return the joint and the per-layer divergence of two sets of descriptors.

    Raises
    ------
    BadInput
        Fewer than 50 rows remain after leaving out degenerate triangles.
    """
    w, x = columns(within, config.descriptors), columns(cross, config.descriptors)
    rows_w, rows_x = np.all(within.mask, axis=1), np.all(cross.mask, axis=1)
    for name, rows in (("within", rows_w), ("cross", rows_x)):
        if rows.sum() < MIN_ROWS:
            raise BadInput(
                f"Only {int(rows.sum())} of {len(rows)} {name} rows have a triangle at every "
                f"layer, at least {MIN_ROWS} are needed.",
                "Leave out the degenerate layers or raise n_pairs.",
            )
    z_w, z_x = _standardise(_flat(w[rows_w]), _flat(x[rows_x]))
    per_layer = _per_layer(w, within.mask, x, cross.mask, config, seed)
    dim = z_w.shape[1]
    value, error, k = _joint(z_w, z_x, config, seed)
    n_params = k * (dim + dim * (dim + 1) // 2) + k - 1
    return Divergence(
        float(value), error, per_layer, int(rows_w.sum()), int(rows_x.sum()), k, n_params
    )


def _joint(
    w: np.ndarray, x: np.ndarray, config: RadarConfig, seed: int
) -> tuple[float, float, int]:
    """Divergence in all columns at once, its Monte Carlo error, and K."""
    if config.density == "gaussian":
        return float(_gaussian(w[None], x[None])[0]), 0.0, 1
    if config.density in LAYER_DENSITIES:
        return float("nan"), 0.0, 1
    if config.density in ("sliced", "sinkhorn"):
        return transport(w, x, config.density, seed, config.device), 0.0, 1
    return _mixture(w, x, config, seed)


def columns(descriptors: Descriptors, which: str) -> np.ndarray:
    """Return (n, L, 2) for theta and d, (n, L, 1) for one of them."""
    if which == "theta":
        return descriptors.theta[..., None]
    if which == "d":
        return descriptors.d[..., None]
    return np.stack([descriptors.theta, descriptors.d], axis=2)


def _flat(values: np.ndarray) -> np.ndarray:
    """(n, L, c) to (n, c L): all thetas, then all ds."""
    return values.transpose(0, 2, 1).reshape(len(values), -1)


def _standardise(w: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scale both by the pooled mean and spread: their own would erase the shift."""
    pooled = np.concatenate([w, x])
    mean, spread = pooled.mean(0), pooled.std(0)
    spread = np.where(spread > 0, spread, 1.0)
    return (w - mean) / spread, (x - mean) / spread


def _gaussian(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Closed-form symmetric KL of B pairs of clouds, (B, n, D) and (B, m, D) to (B,)."""
    return gaussian_symmetric_kl(*_moments(w), *_moments(x))


def _moments(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = z.mean(1)  # (B, D)
    centred = z - mean[:, None]
    cov = centred.transpose(0, 2, 1) @ centred / z.shape[1]  # (B, D, D)
    return mean, cov + _GAUSSIAN_REG * np.eye(z.shape[2])


def _mixture(
    w: np.ndarray, x: np.ndarray, config: RadarConfig, seed: int
) -> tuple[float, float, int]:
    """Joint mixture: K by BIC on the pooled rows, both fits from the pooled one, MC divergence."""
    pooled = np.concatenate([w, x])
    options: dict[str, Any] = {"reg_covar": config.reg_covar, "device": config.device, **_FIT}
    chosen, fits = select_mixtures(pooled, config.n_components, seed=seed, **options)
    start = fits[config.n_components.index(chosen[0])]
    p, q = (fit_mixtures(z, chosen[0], start=start, **options).one(0) for z in (w, x))
    out = _between(p, q, config, seed)
    return out.value, out.se, chosen[0]


def _between(p: GaussianMixture, q: GaussianMixture, config: RadarConfig, seed: int) -> SymKL:
    if config.density == "variational":
        there, back = variational_kl(p, q), variational_kl(q, p)
        return SymKL(there, back, 0.5 * (there + back), 0.0)
    return symmetric_kl(p, q, n_samples=config.n_samples, seed=seed)


def _per_layer(
    w: np.ndarray, mask_w: np.ndarray, x: np.ndarray, mask_x: np.ndarray, config: RadarConfig,
    seed: int,
) -> np.ndarray:  # fmt: skip
    """Divergence at each transition on its own (L,); its own degenerate entries dropped."""
    if not (mask_w.all() and mask_x.all()):
        # Layers keep different rows: one call each.
        return np.concatenate([
            _per_layer(
                w[mask_w[:, i], i : i + 1], np.ones((int(mask_w[:, i].sum()), 1), bool),
                x[mask_x[:, i], i : i + 1], np.ones((int(mask_x[:, i].sum()), 1), bool),
                config, seed,
            )
            for i in range(w.shape[1])
        ])  # fmt: skip
    n_w = len(w)
    if config.density == "histogram":
        angled = config.descriptors != "d"
        return np.array([histogram_kl(w[:, i], x[:, i], angled) for i in range(w.shape[1])])
    both = np.concatenate([w, x]).transpose(1, 0, 2)  # (L, n_w + n_x, c)
    spread = both.std(1, keepdims=True)
    both = (both - both.mean(1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    if config.density == "gaussian":
        return _gaussian(both[:, :n_w], both[:, n_w:])
    if config.density == "kde":
        return np.array([kde_kl(z[:n_w], z[n_w:], seed) for z in both])
    if config.density in ("sliced", "sinkhorn"):
        kind, device = config.density, config.device
        return np.array([
            transport(z[:n_w], z[n_w:], kind, seed, device, layer=True) for z in both
        ])  # fmt: skip
    return _mixture_layers(both, n_w, config, seed)


def _mixture_layers(both: np.ndarray, n_w: int, config: RadarConfig, seed: int) -> np.ndarray:
    """All transitions' mixtures at once; a transition uses the K that its pooled BIC prefers."""
    options: dict[str, Any] = {
        "reg_covar": config.reg_covar, "device": config.device, **_FIT, "n_init": 1,
    }  # fmt: skip
    ks = config.n_components_layer
    chosen, fits = select_mixtures(both, ks, seed=seed, **options)
    out = np.zeros(len(both))
    for k, fit in zip(ks, fits, strict=True):
        rows = np.flatnonzero(np.asarray(chosen) == k)
        if len(rows) == 0:
            continue
        start = _subset(fit, rows)
        p = fit_mixtures(both[rows][:, :n_w], k, start=start, **options)
        q = fit_mixtures(both[rows][:, n_w:], k, start=start, **options)
        for at, row in enumerate(rows):
            out[row] = _between(p.one(at), q.one(at), config, seed).value
    return out


def _subset(fit: MixtureBatch, rows: np.ndarray) -> MixtureBatch:
    at = torch.as_tensor(rows)
    return MixtureBatch(
        fit.weights[at], fit.means[at], fit.covariances[at],
        fit.log_likelihood[at], fit.n_iter[at], fit.converged[at],
    )  # fmt: skip
