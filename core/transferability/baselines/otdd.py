"""OTDD with Gaussian classes: transport between labelled data sets.

Alvarez-Melis, Fusi, "Geometric Dataset Distances via Optimal Transport", NeurIPS 2020,
Eq. 4-6: items are moved at the cost of their distance and of the distance of their classes,
each class taken as a Gaussian. Outer problem: debiased Sinkhorn, as the authors' package.

Axes: n, m items, d features, C classes.
"""

from __future__ import annotations

import numpy as np

from core.errors import BadInput
from core.linalg.transport import bures, check_clouds
from core.transferability.baselines.checks import as_codes, as_rows


def otdd(
    xa: np.ndarray,
    ya: np.ndarray,
    xb: np.ndarray,
    yb: np.ndarray,
    *,
    epsilon: float | None = None,
    max_samples: int = 1_000,
    seed: int = 0,
    device: str | None = "cpu",
) -> float:
    """Return OTDD (p = 2); lower is nearer.

    The cost of moving (x, y) to (x', y') is ``|x - x'|^2 / 2 + W2(class y, class y')^2 / 2``
    with the classes' Gaussians, so the value tends to half the squared OTDD as epsilon falls.

    Parameters
    ----------
    xa, xb : ndarray, shape (n, d) and (m, d)
    ya, yb : ndarray, shape (n,) and (m,)
        Labels of any type. Classes with fewer than two items are left out.
    epsilon : float, optional
        Temperature in units of the cost; default a tenth of the median cost, so that the
        value scales with the squared features (the package's is 0.1 whatever the scale).
    max_samples : int
        Larger sets are thinned at random to this many items after their Gaussians were
        taken (costs are n x m in memory; the package's limit is 10,000).
    seed : int
        Of the thinning: the same rows for the same size and seed.
    device : str, optional

    Returns
    -------
    float
        At least 0 up to 1e-6 of the cost; 0 for identical data.

    Raises
    ------
    BadInput
        Widths that differ, values that are not finite, labels of another length, or no class
        with two items.

    Examples
    --------
    >>> import numpy as np
    >>> x, y = np.arange(8.0).reshape(4, 2), np.array([0, 0, 1, 1])
    >>> otdd(x, y, x, y) < 1e-6
    True
    """
    import torch

    from core.device import pick_device
    from core.linalg.sinkhorn import divergence_of_costs, half_squared_cost

    a, b = as_rows(xa, "xa"), as_rows(xb, "xb")
    check_clouds(a, b)
    centre = 0.5 * (a.mean(0, dtype=np.float64) + b.mean(0, dtype=np.float64))
    left = _Set(a - centre, ya, "ya", max_samples, seed)
    right = _Set(b - centre, yb, "yb", max_samples, seed)
    where = pick_device(device)

    def cost(one: _Set, two: _Set) -> torch.Tensor:
        x, z = (torch.as_tensor(s.rows, device=where) for s in (one, two))
        classes = 0.5 * _class_distances(one, two)[one.codes][:, two.codes]
        return half_squared_cost(x, z) + torch.as_tensor(classes, device=where)

    costs = cost(left, right), cost(left, left), cost(right, right)
    return divergence_of_costs(*costs, epsilon=epsilon).value


class _Set:
    """Items kept, their codes, and the Gaussian of each class: mean (C, d), cov (C, d, d)."""

    def __init__(
        self, x: np.ndarray, y: np.ndarray, name: str, max_samples: int, seed: int
    ) -> None:
        codes, _ = as_codes(y, len(x), name)
        kept = np.flatnonzero(np.bincount(codes)[codes] >= 2)
        if len(kept) == 0:
            raise BadInput(f"{name} has no class with two items.", "A Gaussian needs two.")
        x = np.asarray(x[kept], dtype=np.float64)
        _, codes = np.unique(codes[kept], return_inverse=True)
        self.means = np.stack([x[codes == c].mean(0) for c in range(codes.max() + 1)])
        self.factors = [x[codes == c] - mean for c, mean in enumerate(self.means)]
        order = np.arange(len(x))
        if len(x) > max_samples:
            order = np.sort(np.random.default_rng(seed).permutation(len(x))[:max_samples])
        self.rows, self.codes = x[order], codes[order]


def _class_distances(one: _Set, two: _Set) -> np.ndarray:
    """Squared 2-Wasserstein distances (C, C') of the classes' Gaussians.

    With centred items X of n rows, cov = X'X / (n - 1), and the cross term
    ``tr (S^1/2 T S^1/2)^1/2`` is the nuclear norm of ``X Z' / sqrt((n - 1)(m - 1))``: no
    d x d root where classes are smaller than d.
    """
    out = np.empty((len(one.means), len(two.means)))
    for i, (mean, x) in enumerate(zip(one.means, one.factors, strict=True)):
        for j, (other, z) in enumerate(zip(two.means, two.factors, strict=True)):
            out[i, j] = _gaussian_distance(mean, x, other, z)
    return out


def _gaussian_distance(mean: np.ndarray, x: np.ndarray, other: np.ndarray, z: np.ndarray) -> float:
    freedom_x, freedom_z = len(x) - 1, len(z) - 1
    if min(len(x), len(z)) > x.shape[1]:
        return bures(mean, x.T @ x / freedom_x, other, z.T @ z / freedom_z)
    cross = np.linalg.svd(x @ z.T, compute_uv=False).sum() / np.sqrt(freedom_x * freedom_z)
    shift = mean - other
    spread = (x**2).sum() / freedom_x + (z**2).sum() / freedom_z
    return float(max(shift @ shift + spread - 2.0 * cross, 0.0))
