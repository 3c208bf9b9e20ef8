"""Whitening with shrinkage, for the whitened inner product (WIP).

Learned Anchors and Whitened Inner Products (arXiv 2605.30596): ``mu`` the empirical mean,
``L = Sigma^(-1/2)`` symmetric, ``s(x, a) = <L (x - mu), L (a - mu)>``. The paper's shrinkage was
not available; the choice here (per-dimension prescaling, then shrinkage of the correlation
matrix towards its mean eigenvalue) is ours. One thin SVD in float64 serves every shrinkage.

Axes: n samples, d feature dimensions, r = min(n, d) directions, k anchors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from core.errors import BadInput

RTOL = 1e-10  # eigenvalues below RTOL * max are dropped when nothing is shrunk
GRAM_FLOOR = 1e-7  # smallest over largest eigenvalue above which the Gram matrix is exact enough
ENERGY_WARN = 1.5  # held-out rows this much longer than training rows: the whitening overfits
Shrinkage = str | float


def as_matrix(x: np.ndarray, name: str, *, min_rows: int = 1) -> np.ndarray:
    """Return ``x`` as a finite float64 matrix, shape (n, d), or raise :class:`BadInput`."""
    array = np.asarray(x, dtype=np.float64)
    if array.ndim != 2 or array.shape[0] < min_rows or array.shape[1] < 1:
        raise BadInput(
            f"{name} must be a matrix (n, d) with n >= {min_rows}, got shape {array.shape}.",
            "Give one row per sample.",
        )
    if not np.isfinite(array).all():
        rows = np.flatnonzero(~np.isfinite(array).all(axis=1))
        raise BadInput(
            f"{name} holds NaN or infinity in {len(rows)} rows, first row {rows[0]}.",
            "Leave these samples out, or extract them again.",
        )
    return array


@dataclass(frozen=True)
class Whitening:
    """A fitted whitening map ``z = ((x - mean) / scale) L``.

    Attributes
    ----------
    mean, scale : ndarray of float64, shape (d,)
        Centre and per-dimension standard deviation (1 for dead dimensions, or everywhere when
        not prescaled).
    directions : ndarray of float64, shape (d, r)
        Orthonormal principal directions of the scaled rows.
    gains : ndarray of float64, shape (r,)
        ``w'^(-1/2)`` along the directions; 0 where a direction was dropped.
    floor : float
        Gain of everything orthogonal to ``directions`` (0 without shrinkage).
    shrinkage : float
        Weight of the mean eigenvalue, in [0, 1].
    eigenvalues : ndarray of float64, shape (r,)
        Unshrunk eigenvalues, largest first.
    n, rank, dead : int
        Rows used, numerical rank, number of dead dimensions.
    """

    mean: np.ndarray
    scale: np.ndarray
    directions: np.ndarray
    gains: np.ndarray
    floor: float
    shrinkage: float
    eigenvalues: np.ndarray
    n: int
    rank: int
    dead: int

    @property
    def dim(self) -> int:
        """Feature dimension d."""
        return len(self.mean)

    @property
    def effective_rank(self) -> float:
        """Exponential of the entropy of the unshrunk eigenvalues, in [1, r]."""
        p = self.eigenvalues / max(self.eigenvalues.sum(), np.finfo(float).tiny)
        p = p[p > 0]
        return float(np.exp(-(p * np.log(p)).sum()))

    @property
    def condition(self) -> float:
        """Ratio of the extreme eigenvalues after shrinkage (dropped directions left out)."""
        gains = self.gains[self.gains > 0]
        if self.floor > 0 and len(self.gains) < self.dim:
            gains = np.append(gains, self.floor)
        return float((gains.max() / gains.min()) ** 2)

    @cached_property
    def matrix(self) -> np.ndarray:
        """The symmetric map ``L``, shape (d, d), float64."""
        V = self.directions  # (d, r)
        L = (V * (self.gains - self.floor)) @ V.T  # (d, d)
        L[np.diag_indices(self.dim)] += self.floor
        return L

    @cached_property
    def inverse(self) -> np.ndarray:
        """The pseudo-inverse of :attr:`matrix`, shape (d, d), float64."""
        back = np.divide(1.0, self.gains, out=np.zeros_like(self.gains), where=self.gains > 0)
        floor = 1.0 / self.floor if self.floor else 0.0
        V = self.directions  # (d, r)
        out = (V * (back - floor)) @ V.T  # (d, d)
        out[np.diag_indices(self.dim)] += floor
        return np.asarray(out)

    def transform(self, x: np.ndarray) -> np.ndarray:
        """Return the whitened rows, shape (n, d), float64."""
        c = (as_matrix(x, "x") - self.mean) / self.scale  # (n, d)
        V = self.directions
        z = ((c @ V) * (self.gains - self.floor)) @ V.T  # (n, d)
        return z + self.floor * c if self.floor else z

    def fold(self, anchors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Fold the map into anchors: ``wip(x, a) = x B^T - b`` for every x.

        Parameters
        ----------
        anchors : ndarray, shape (k, d)
            Anchors in the unwhitened space.

        Returns
        -------
        B : ndarray of float64, shape (k, d)
        b : ndarray of float64, shape (k,)
            So a new sample costs one d x k product instead of a whitening and a product.
        """
        c = (as_matrix(anchors, "anchors") - self.mean) / self.scale  # (k, d)
        V = self.directions
        twice = ((c @ V) * (self.gains**2 - self.floor**2)) @ V.T + self.floor**2 * c  # (k, d)
        B = twice / self.scale
        return B, B @ self.mean

    def energy_ratio(self, held_out: np.ndarray, train: np.ndarray) -> float:
        """Mean squared length of held-out whitened rows over that of the fitting rows.

        Near 1 when the covariance is well estimated; above 1.5 the whitening has fitted noise.
        """
        top = (self.transform(held_out) ** 2).sum(axis=1).mean()
        bottom = (self.transform(train) ** 2).sum(axis=1).mean()
        return float(top / max(bottom, np.finfo(float).tiny))


@dataclass(frozen=True)
class Spectrum:
    """Centre, scale and principal directions of one space; every shrinkage starts from it.

    Attributes
    ----------
    mean, scale : ndarray of float64, shape (d,)
    directions : ndarray of float64, shape (d, r)
    eigenvalues : ndarray of float64, shape (r,)
        Eigenvalues of the scaled covariance, divisor n - 1.
    n : int
        Rows.
    dead : int
        Dimensions that do not vary.
    ledoit_wolf : float
        Closed-form Ledoit-Wolf shrinkage of the scaled rows, in [0, 1].
    """

    mean: np.ndarray
    scale: np.ndarray
    directions: np.ndarray
    eigenvalues: np.ndarray
    n: int
    dead: int
    ledoit_wolf: float

    def whitening(self, shrinkage: Shrinkage, *, rtol: float = RTOL) -> Whitening:
        """Return the whitening map at one shrinkage ("lw", or a number in [0, 1]).

        Raises
        ------
        BadInput
            ``shrinkage`` is not "lw" or a number in [0, 1]; or it is 0 while n <= d + 1, where
            whitened training rows no longer depend on the data at all.
        """
        lam = self.ledoit_wolf if shrinkage == "lw" else _number(shrinkage)
        w, d = self.eigenvalues, len(self.mean)
        if lam == 0 and self.n <= d + 1:
            raise BadInput(
                f"shrinkage=0 needs more rows than dimensions + 1, got n = {self.n}, d = {d}: "
                "every encoder would look identical.",
                "Use shrinkage='auto' or 'lw', or give more rows.",
            )
        kept = w > rtol * w.max(initial=0.0)
        if not kept.any():
            raise BadInput(
                "x has no variance: all rows are equal.", "Check the features of this encoder."
            )
        shrunk = (1 - lam) * w + lam * w.sum() / d  # (r,)
        with np.errstate(divide="ignore"):
            gains = np.where(kept | (lam > 0), shrunk**-0.5, 0.0)
        floor = float((lam * w.sum() / d) ** -0.5) if lam > 0 else 0.0
        return Whitening(
            self.mean, self.scale, self.directions, gains, floor, float(lam), w, self.n,
            int(kept.sum()), self.dead,
        )  # fmt: skip


def _number(shrinkage: Shrinkage) -> float:
    try:
        lam = float(shrinkage)
    except ValueError:
        lam = float("nan")
    if not 0 <= lam <= 1:
        raise BadInput(
            f"shrinkage must be 'lw' or a number in [0, 1], got {shrinkage!r}.",
            "'auto' needs parallel rows of several encoders: use stitching.choose_shrinkage.",
        )
    return lam


def spectrum(x: np.ndarray, *, prescale: bool = True) -> Spectrum:
    """Return centre, scale, principal directions and Ledoit-Wolf shrinkage of ``x``.

    Parameters
    ----------
    x : ndarray, shape (n, d), n >= 2
        Training rows of one encoder; they need not be paired with anything.
    prescale : bool
        Divide each dimension by its standard deviation first, so that the correlation matrix
        is shrunk and a few outlier dimensions cannot swallow the rest.

    Raises
    ------
    BadInput
        Fewer than two rows, or NaN or infinity.

    References
    ----------
    Ledoit and Wolf (2004), A well-conditioned estimator for large-dimensional covariance
    matrices, J. Multivariate Anal. 88.
    """
    x = as_matrix(x, "x", min_rows=2)
    n, d = x.shape
    mean = x.mean(axis=0)
    c = x - mean  # (n, d)
    sd = np.sqrt((c**2).sum(axis=0) / (n - 1))
    dead = sd <= 1e-8 * np.maximum(np.abs(mean), sd.max(initial=0.0))
    scale = np.where(dead, 1.0, sd) if prescale else np.ones(d)
    c /= scale
    squares, directions = _principal(c)
    fourth = float(((c**2).sum(axis=1) ** 2).sum())
    lw = _ledoit_wolf(squares / n, fourth, n, d)
    return Spectrum(mean, scale, directions, squares / (n - 1), n, int(dead.sum()), lw)


def _principal(c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return squared singular values, largest first, and right singular vectors (d, r).

    With many more rows than dimensions the Gram matrix is several times faster. It squares the
    condition, so it is taken only where its smallest eigenvalue is known to nine digits.
    """
    n, d = c.shape
    if n >= 2 * d:
        w, V = np.linalg.eigh(c.T @ c)
        if w[0] > GRAM_FLOOR * w[-1]:
            return w[::-1].copy(), np.ascontiguousarray(V[:, ::-1])
    _, s, Vt = np.linalg.svd(c, full_matrices=False)  # (r,), (r, d)
    return s**2, Vt.T


def _ledoit_wolf(w: np.ndarray, fourth: float, n: int, d: int) -> float:
    """Return the closed form from eigenvalues ``w`` (divisor n) and the sum of ||row||^4."""
    mean = w.sum() / d
    delta = (w**2).sum() - d * mean**2
    beta = (fourth / n - (w**2).sum()) / n
    return float(min(max(beta, 0.0), delta) / delta) if delta > 0 else 1.0


def whitening_stats(
    x: np.ndarray, *, shrinkage: Shrinkage = "lw", prescale: bool = True, rtol: float = RTOL
) -> Whitening:
    """Fit the whitening map of WIP on training rows.

    ``z = ((x - mu) / sd) V diag(w'^(-1/2)) V^T`` with ``w' = (1 - lam) w + lam mean(w)``.
    With ``shrinkage=0`` inner products of ``z`` do not change under any affine map of the
    space that is injective on the data; with shrinkage they do not change under per-dimension
    scaling, shift and permutation.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Training rows.
    shrinkage : {"lw"} or float in [0, 1]
        "lw" is Ledoit-Wolf's closed form. For the automatic choice by held-out pairs see
        :func:`core.stitching.choose_shrinkage`.
    prescale : bool
        Shrink the correlation matrix instead of the covariance.
    rtol : float
        Without shrinkage, directions with ``w <= rtol max(w)`` are dropped (pseudo-inverse).

    Raises
    ------
    BadInput
        NaN, constant data, a bad shrinkage, or ``shrinkage=0`` with n <= d + 1.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(50, 3)) @ np.diag([1.0, 10.0, 100.0])
    >>> z = whitening_stats(x, shrinkage=0).transform(x)
    >>> bool(np.allclose(np.cov(z.T), np.eye(3)))
    True

    References
    ----------
    arXiv 2605.30596, the whitened inner product.
    """
    return spectrum(x, prescale=prescale).whitening(shrinkage, rtol=rtol)
