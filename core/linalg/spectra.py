"""Singular values of a feature matrix, in float64, by blocks.

One centred Gram matrix serves every spectral metric: the uncentred Gram is
``C + n m m^T`` (m the mean row). Eigenvalues of a Gram matrix lose a singular value s
below about ``sqrt(eps) s_1`` (error ~ eps kappa^2), so an ill-conditioned matrix is
reduced by blocked QR instead and its triangle decomposed: error ~ eps kappa.

Axes: n samples, d features, b rows of a block, r = min(n, d).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.device import one_thread

if TYPE_CHECKING:
    import torch

BLOCK = 4096
# Above this ratio of extreme singular values the Gram route is no longer trusted.
GRAM_KAPPA = 1e5
# A relative spread below max(n, d) * eps is rounding. In half precision that product passes
# one for a few thousand rows and would call every cloud constant, hence the ceiling.
MAX_REL_GUARD = 1e-2


@dataclass(frozen=True)
class Spectrum:
    """Singular values of a matrix, centred and as it is.

    Attributes
    ----------
    centered, raw : Tensor of float64, shape (min(n, d),)
        Singular values of ``x - mean`` and of ``x``, descending. ``centered`` is all zero
        when the cloud is constant up to rounding.
    n, d : int
        Rows and columns.
    collapsed : bool
        The constant-cloud guard set ``centered`` to zero.
    route : {"gram", "qr"}
        How the centred values were computed.
    """

    centered: torch.Tensor
    raw: torch.Tensor
    n: int
    d: int
    collapsed: bool
    route: str

    @property
    def variances(self) -> torch.Tensor:
        """Eigenvalues of the sample covariance, ``s^2 / (n - 1)``, descending."""
        return self.centered**2 / max(self.n - 1, 1)

    @property
    def rank(self) -> int:
        """Numerical rank of the centred matrix: ``s > max(n, d) 2.2e-16 s_1``."""
        if self.collapsed or not len(self.centered):
            return 0
        floor = max(self.n, self.d) * 2.220446049250313e-16 * self.centered[0]
        return int((self.centered > floor).sum())


def mean_row(x: torch.Tensor) -> torch.Tensor:
    """Return the mean row in float64, shape (d,), summed by blocks."""
    total = x.new_zeros(x.shape[1], dtype=_f64())
    for rows in x.split(BLOCK):
        total += rows.double().sum(0)
    return total / max(len(x), 1)


def centered_gram(x: torch.Tensor, mean: torch.Tensor | None = None) -> torch.Tensor:
    """Return ``(x - mean)^T (x - mean)`` in float64, shape (d, d)."""
    mean = mean_row(x) if mean is None else mean
    gram = x.new_zeros((x.shape[1], x.shape[1]), dtype=_f64())
    for rows in x.split(BLOCK):
        gram += self_product(rows.double() - mean)  # (d, d)
    return gram


def self_product(rows: torch.Tensor) -> torch.Tensor:
    """Return ``rows^T rows`` of a float64 block, shape (d, d)."""
    import torch

    if rows.device.type == "cpu":
        # numpy sees a product with its own transpose and calls dsyrk: half the work of dgemm.
        array = rows.numpy()
        return torch.from_numpy(array.T @ array)
    return rows.T @ rows


def spectrum(x: torch.Tensor, *, eps: float | None = None) -> Spectrum:
    """Return centred and raw singular values of ``x``.

    Parameters
    ----------
    x : Tensor of float16, float32 or float64, shape (n, d)
        Finite values.
    eps : float, optional
        Rounding unit the values were stored with (default: that of ``x``'s dtype); it sets
        the guard against a constant cloud.

    Returns
    -------
    Spectrum
        Exact zeros where the cloud is constant: ``s_1 <= max(n, d) eps ||x||_F``.
    """
    import torch

    n, d = x.shape
    mean = mean_row(x)
    with one_thread():
        if n > d:
            gram = centered_gram(x, mean)
            centered, route = _from_gram(gram, x, mean)
            raw, _ = _from_gram(gram + n * torch.outer(mean, mean), x, None)
        else:
            centered, route = _by_qr(x, mean), "qr"
            raw = _by_qr(x, None)
    unit = torch.finfo(x.dtype).eps if eps is None else eps
    guard = min(max(n, d) * unit, MAX_REL_GUARD) * float(raw.norm())
    collapsed = not len(centered) or float(centered[0]) <= guard
    if collapsed:
        centered = torch.zeros_like(centered)
    elif n <= d:
        # A centred matrix of n rows has rank n - 1 at most; the last value is rounding.
        centered[n - 1 :] = 0.0
    return Spectrum(centered, raw, n, d, collapsed, route)


def _from_gram(
    gram: torch.Tensor, x: torch.Tensor, mean: torch.Tensor | None
) -> tuple[torch.Tensor, str]:
    """Return descending singular values from a Gram matrix, by QR when it is ill-conditioned."""
    import torch

    values = torch.linalg.eigvalsh(gram).flip(0)  # (d,)
    if values[-1] * GRAM_KAPPA**2 > values[0]:
        return values.sqrt(), "gram"
    return _by_qr(x, mean), "qr"


def _by_qr(x: torch.Tensor, mean: torch.Tensor | None) -> torch.Tensor:
    """Return singular values, shape (min(n, d),), of ``x - mean`` by blocked QR, then SVD."""
    import torch

    n, d = x.shape
    if n <= d:
        rows = x.double() if mean is None else x.double() - mean
        return torch.linalg.svdvals(rows)
    triangle = x.new_zeros((0, d), dtype=_f64())
    for rows in x.split(max(BLOCK, 2 * d)):
        block = rows.double() if mean is None else rows.double() - mean
        triangle = torch.linalg.qr(torch.cat([triangle, block]), mode="r")[1]  # (<= d, d)
    return torch.linalg.svdvals(triangle)


def _f64() -> torch.dtype:
    import torch

    return torch.float64
