"""Debiased Sinkhorn divergence in the log domain, float64, with epsilon scaling.

Feydy, Séjourné, Vialard, Amari, Trouvé, Peyré, "Interpolating between Optimal Transport and
MMD using Sinkhorn Divergences", AISTATS 2019, Eq. 3 and section 3.1 (symmetric updates of the
self-terms); Schmitzer, "Stabilized sparse scaling algorithms", 2019 (falling epsilon).

Axes: n, m points of equal weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from core.device import pick_device
from core.errors import BadInput
from core.linalg.transport import check_clouds

_SCALING = 0.5  # epsilon falls by this factor, starting at the largest cost
_CHECK_EVERY = 10


@dataclass(frozen=True)
class Sinkhorn:
    """A debiased Sinkhorn divergence.

    Attributes
    ----------
    value : float
        ``OT(a, b) - OT(a, a) / 2 - OT(b, b) / 2``.
    epsilon : float
        Temperature used, in units of the cost.
    residual : float
        Largest violation of a marginal, as a share of the mass: what the value may be off.
    n_iter : int
        Iterations of the three problems at the final temperature.
    converged : bool
    """

    value: float
    epsilon: float
    residual: float
    n_iter: int
    converged: bool


def half_squared_cost(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return ``|a_i - b_j|^2 / 2`` as (n, m)."""
    squares = a.square().sum(1)[:, None] + b.square().sum(1)[None]
    return (0.5 * squares - a @ b.T).clamp_min(0.0)


def sinkhorn_divergence(
    a: np.ndarray,
    b: np.ndarray,
    *,
    epsilon: float | None = None,
    tol: float = 1e-6,
    max_iter: int = 2_000,
    device: str | None = "cpu",
) -> Sinkhorn:
    """Return the debiased Sinkhorn divergence of two clouds with cost ``|u - v|^2 / 2``.

    Parameters
    ----------
    a, b : ndarray, shape (n, d) and (m, d)
        Points of equal weight. Three cost matrices are held: keep n and m in the thousands.
    epsilon : float, optional
        Temperature, above 0; default a tenth of the median cost between the clouds.
    tol : float
        Stop when the marginals are met to this share of the mass.
    max_iter : int
        Most iterations of each problem at the final temperature.
    device : str, optional

    Returns
    -------
    Sinkhorn
        ``value`` is 0 for equal clouds and at least 0 up to ``residual``; half the squared
        2-Wasserstein distance as epsilon goes to 0.

    Raises
    ------
    BadInput
        Clouds that are empty or of unequal width, or ``epsilon`` not above 0.

    Examples
    --------
    >>> import numpy as np
    >>> round(sinkhorn_divergence(np.zeros((1, 1)), np.full((1, 1), 3.0)).value, 9)
    4.5
    """
    check_clouds(a, b)
    where = pick_device(device)
    x, y = (torch.as_tensor(np.asarray(c, dtype=np.float64), device=where) for c in (a, b))
    centre = 0.5 * (x.mean(0) + y.mean(0))  # small numbers cancel less
    x, y = x - centre, y - centre
    costs = half_squared_cost(x, y), half_squared_cost(x, x), half_squared_cost(y, y)
    return divergence_of_costs(*costs, epsilon=epsilon, tol=tol, max_iter=max_iter)


def divergence_of_costs(
    between: torch.Tensor, own_a: torch.Tensor, own_b: torch.Tensor, *,
    epsilon: float | None = None, tol: float = 1e-6, max_iter: int = 2_000,
) -> Sinkhorn:  # fmt: skip
    """Return the debiased divergence for costs (n, m), (n, n) and (m, m).

    ``epsilon=None`` takes a tenth of the median of ``between`` (1 where that is 0).

    Raises
    ------
    BadInput
        ``epsilon`` not above 0.
    """
    if epsilon is None:
        epsilon = 0.1 * float(between.median()) or 1.0
    if epsilon <= 0:
        raise BadInput(f"epsilon={epsilon}, expected above 0.", "A tenth of the median cost.")
    cross = _solve(between, epsilon, tol, max_iter, symmetric=False)
    left = _solve(own_a, epsilon, tol, max_iter, symmetric=True)
    right = _solve(own_b, epsilon, tol, max_iter, symmetric=True)
    value = cross[0] - 0.5 * (left[0] + right[0])
    residual = max(cross[1], left[1], right[1])
    steps = cross[2] + left[2] + right[2]
    return Sinkhorn(value, epsilon, residual, steps, residual <= tol)


def _solve(
    cost: torch.Tensor, epsilon: float, tol: float, max_iter: int, *, symmetric: bool
) -> tuple[float, float, int]:
    """Return the dual value of entropic transport, its residual and the iterations."""
    n, m = cost.shape
    f = torch.zeros(n, dtype=cost.dtype, device=cost.device)
    g = torch.zeros(m, dtype=cost.dtype, device=cost.device)
    heat = max(float(cost.max()), epsilon)
    while heat > epsilon:
        f, g = _step(cost, f, g, heat, symmetric)
        heat *= _SCALING
    residual, steps = float("inf"), 0
    for steps in range(1, max_iter + 1):
        f, g = _step(cost, f, g, epsilon, symmetric)
        if steps % _CHECK_EVERY == 0 or steps == max_iter:
            residual = _residual(cost, f, g, epsilon)
            if residual <= tol:
                break
    # At the optimum the plan has mass 1, so the dual is the mean of both potentials.
    return float(f.mean() + g.mean()), residual, steps


def _step(
    cost: torch.Tensor, f: torch.Tensor, g: torch.Tensor, epsilon: float, symmetric: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """One Sinkhorn update; a self-term moves half-way, which converges in a few steps."""
    if symmetric:
        f = 0.5 * (f + _softmin(cost, f, epsilon, dim=1))
        return f, f
    f = _softmin(cost, g, epsilon, dim=1)
    return f, _softmin(cost, f, epsilon, dim=0)


def _softmin(cost: torch.Tensor, potential: torch.Tensor, eps: float, dim: int) -> torch.Tensor:
    along = potential[None] if dim == 1 else potential[:, None]
    log_count = float(np.log(cost.shape[dim]))
    return -eps * (torch.logsumexp((along - cost) / eps, dim=dim) - log_count)


def _residual(cost: torch.Tensor, f: torch.Tensor, g: torch.Tensor, epsilon: float) -> float:
    """Total variation between the plan's row sums and 1 / n."""
    log_rows = torch.logsumexp((f[:, None] + g[None] - cost) / epsilon, dim=1)
    return float((log_rows.exp() / cost.shape[1] - 1.0).abs().mean())
