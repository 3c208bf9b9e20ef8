"""Centred kernel alignment (CKA) of two representations: linear or RBF, plain or debiased.

Similarity of neural network representations revisited (arXiv 1905.00414), Eq. 3:
``HSIC(K, L) / sqrt(HSIC(K, K) HSIC(L, L))``. The plain estimate rises towards 1 with d / n
whatever the data; the debiased one puts the U-statistic of HSIC in its place (Song et al.,
JMLR 13, 2012, Eq. 5; for CKA: Nguyen, Raghu and Kornblith, arXiv 2010.15327, Eq. 3), whose
mean is 0 for unrelated representations.

Axes: n samples, d_a and d_b dimensions. Every sum is taken in float64; n x n matrices are
seen in blocks of rows, or not at all when d is below n.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from core.errors import BadInput
from core.linalg.whitening import as_matrix

BLOCK = 1024  # rows of a kernel at once: memory stays flat in n
_MEDIAN_ROWS = 2048  # the median distance is read from at most this many rows

Kernel = Callable[[int, int], np.ndarray]


def paired(a: np.ndarray, b: np.ndarray, *, min_rows: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return ``a`` and ``b`` as finite float64 matrices with as many rows, or raise BadInput."""
    a, b = as_matrix(a, "a", min_rows=min_rows), as_matrix(b, "b", min_rows=min_rows)
    if len(a) != len(b):
        raise BadInput(
            f"a and b must describe the same samples, got {len(a)} and {len(b)} rows.",
            "Take both by id, in one order.",
        )
    return a, b


def linear_cka(a: np.ndarray, b: np.ndarray, *, debiased: bool = False) -> float:
    """Return the linear CKA of two representations of the same samples.

    Parameters
    ----------
    a, b : ndarray, shapes (n, d_a) and (n, d_b)
        Paired rows; n >= 2, or n >= 4 when debiased.
    debiased : bool
        Use the U-statistic of HSIC.

    Returns
    -------
    float
        1 for equal up to rotation, isotropic scale and shift; NaN when one of them does not
        vary. Plain: in [0, 1], and near 1 when d is much larger than n, whatever the data.
        Debiased: in [-1, 1], about 0 for unrelated representations.

    Raises
    ------
    BadInput
        Row counts differ, NaN, or too few rows.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(30, 4))
    >>> round(linear_cka(x, 3.0 * x @ np.eye(4)[::-1] + 1.0), 12)
    1.0

    References
    ----------
    arXiv 1905.00414, Eq. 3; debiased: arXiv 2010.15327, Eq. 3.
    """
    a, b = paired(a, b, min_rows=4 if debiased else 2)
    a, b = _centred(a), _centred(b)
    if max(a.shape[1], b.shape[1]) > len(a):
        # Fewer samples than dimensions: the kernels are smaller than the covariances.
        return _blocked(_linear(a), _linear(b), len(a), debiased)
    products = [float((m**2).sum()) for m in (a.T @ b, a.T @ a, b.T @ b)]
    if not debiased:
        # Centred columns have kernels with row sums 0.
        return _ratio(*products)
    own_a, own_b = (a**2).sum(axis=1), (b**2).sum(axis=1)  # (n,), the kernels' diagonals
    sums_a, sums_b = a @ a.sum(axis=0) - own_a, b @ b.sum(axis=0) - own_b
    pairs = ((own_a, own_b, sums_a, sums_b), (own_a, own_a, sums_a, sums_a),
             (own_b, own_b, sums_b, sums_b))  # fmt: skip
    return _ratio(
        *(
            _hsic(product - float(da @ db), ra, rb, debiased=True)
            for product, (da, db, ra, rb) in zip(products, pairs, strict=True)
        )
    )


def rbf_cka(a: np.ndarray, b: np.ndarray, *, width: float = 1.0, debiased: bool = False) -> float:
    """Return the CKA under Gaussian kernels ``exp(-|x - y|^2 / (2 sigma^2))``.

    Parameters
    ----------
    a, b : ndarray, shapes (n, d_a) and (n, d_b)
        Paired rows; n >= 2, or n >= 4 when debiased.
    width : float
        ``sigma`` in units of the median distance between two samples (of 2,048 of them when
        there are more), above 0. A small one looks at near neighbours only; a large one tends
        to the linear CKA.
    debiased : bool
        Use the U-statistic of HSIC.

    Returns
    -------
    float
        As :func:`linear_cka`; invariant to rotation, isotropic scale and shift.

    Raises
    ------
    BadInput
        Row counts differ, NaN, too few rows, or a width that is not positive.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(30, 4))
    >>> round(rbf_cka(x, 2.0 * x, debiased=True), 12)
    1.0

    References
    ----------
    arXiv 1905.00414, section 3; debiased: arXiv 2010.15327, Eq. 3.
    """
    a, b = paired(a, b, min_rows=4 if debiased else 2)
    if not (np.isfinite(width) and width > 0):
        raise BadInput(f"width must be a positive number, got {width!r}.", "Try 1.0 or 0.5.")
    return _blocked(_gaussian(_centred(a), width), _gaussian(_centred(b), width), len(a), debiased)


def linear_gram(x: np.ndarray) -> np.ndarray:
    """Return the inner products of centred rows, float64, shape (n, n)."""
    x = _centred(np.asarray(x, dtype=np.float64))
    return np.asarray(x @ x.T)


def squared_distances(x: np.ndarray) -> np.ndarray:
    """Return the squared distances of all rows, float64, shape (n, n), at least 0."""
    x = _centred(np.asarray(x, dtype=np.float64))
    return _distances(x, x, (x**2).sum(axis=1))


def gaussian_of(squared: np.ndarray, *, width: float = 1.0) -> np.ndarray:
    """Return the Gaussian kernel of squared distances, its width from their median, (n, n)."""
    scale = _median(squared)
    return np.exp(-squared / (2.0 * width**2 * scale)) if scale > 0 else np.ones_like(squared)


def u_centred(kernel: np.ndarray) -> np.ndarray:
    """Return the U-centred kernel of norm 1: the dot product of two is their debiased CKA.

    Parameters
    ----------
    kernel : ndarray, shape (n, n)
        Symmetric, n >= 4.

    Returns
    -------
    ndarray of float64, shape (n, n)
        All zero when the kernel is constant off its diagonal.

    References
    ----------
    Székely and Rizzo, Annals of Statistics 42(6), 2014, Eq. 2.2 (U-centring); its inner
    product over n (n - 3) is the HSIC U-statistic of Song et al.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(12, 3))
    >>> y = np.random.default_rng(1).normal(size=(12, 5))
    >>> dot = (u_centred(linear_gram(x)) * u_centred(linear_gram(y))).sum()
    >>> bool(np.isclose(dot, linear_cka(x, y, debiased=True)))
    True
    """
    n = len(kernel)
    out = np.array(kernel, dtype=np.float64)
    np.fill_diagonal(out, 0.0)
    size = float(np.linalg.norm(out))
    rows = out.sum(axis=1) / (n - 2)
    out -= rows[:, None] + rows[None, :] - out.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(out, 0.0)
    norm = float(np.linalg.norm(out))
    # Below rounding of what was subtracted, nothing is left that varies.
    return out / norm if norm > 1e-12 * size else np.zeros_like(out)


def _centred(x: np.ndarray) -> np.ndarray:
    return x - x.mean(axis=0)


def _linear(x: np.ndarray) -> Kernel:
    return lambda start, stop: x[start:stop] @ x.T


def _gaussian(x: np.ndarray, width: float) -> Kernel:
    squares = (x**2).sum(axis=1)
    some = x
    if len(x) > _MEDIAN_ROWS:
        some = x[np.sort(np.random.default_rng(0).choice(len(x), _MEDIAN_ROWS, replace=False))]
    scale = 2.0 * width**2 * _median(_distances(some, some, (some**2).sum(axis=1)))
    if scale <= 0:
        return lambda start, stop: np.ones((stop - start, len(x)))
    return lambda start, stop: np.exp(-_distances(x[start:stop], x, squares) / scale)


def _distances(rows: np.ndarray, x: np.ndarray, squares: np.ndarray) -> np.ndarray:
    found = (rows**2).sum(axis=1)[:, None] + squares[None, :] - 2.0 * (rows @ x.T)
    return np.maximum(found, 0.0)


def _median(squared: np.ndarray) -> float:
    n = len(squared)
    return float(np.median(squared[np.triu_indices(n, 1)])) if n > 1 else 0.0


def _blocked(kernel_a: Kernel, kernel_b: Kernel, n: int, debiased: bool) -> float:
    """Return CKA from one pass over both kernels, BLOCK rows at a time."""
    products = np.zeros(3)
    sums = np.zeros((2, n))
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        K, L = kernel_a(start, stop), kernel_b(start, stop)  # (block, n)
        if debiased:
            own = np.arange(stop - start)
            K[own, start + own] = 0.0
            L[own, start + own] = 0.0
        products += [(K * L).sum(), (K * K).sum(), (L * L).sum()]
        sums[0, start:stop], sums[1, start:stop] = K.sum(axis=1), L.sum(axis=1)
    a, b = sums
    return _ratio(
        *(
            _hsic(float(product), rows, columns, debiased=debiased)
            for product, (rows, columns) in zip(products, ((a, b), (a, a), (b, b)), strict=True)
        ),
        floor=1e-12 * float(products[1] * products[2]) ** 0.5 / (n * max(n - 3, 1)),
    )


def _hsic(product: float, a: np.ndarray, b: np.ndarray, *, debiased: bool) -> float:
    """Return HSIC from ``sum K_ij L_ij`` and the row sums.

    Of kernels without their diagonals when debiased (Song et al. 2012, Eq. 5), else with them,
    times n^2.
    """
    n = len(a)
    if not debiased:
        return product - 2.0 / n * float(a @ b) + float(a.sum() * b.sum()) / n**2
    middle = float(a.sum() * b.sum()) / ((n - 1) * (n - 2))
    return (product + middle - 2.0 / (n - 2) * float(a @ b)) / (n * (n - 3))


def _ratio(cross: float, own_a: float, own_b: float, *, floor: float = 0.0) -> float:
    # Own terms are sums of squares; rounding can leave them a hair on either side of 0.
    if min(own_a, own_b) <= floor:
        return float("nan")
    return float(np.clip(cross / (own_a**0.5 * own_b**0.5), -1.0, 1.0))
