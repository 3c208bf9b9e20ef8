"""LiDAR: effective rank of the between-image scatter seen against the scatter of views.

Thilak et al. 2023, arXiv 2312.04000, Eq. 4: with S_w the mean within-image covariance of q
augmented views plus ``delta I`` and S_b the covariance of the images' mean features,
``exp(H_1)`` of the eigenvalues of ``S_w^{-1/2} S_b S_w^{-1/2}``. It needs views, so it is not
part of the suite on stored features: call it where views exist.

Axes: n images, q views, d features.
"""

from __future__ import annotations

import numpy as np

from core.errors import BadInput


def lidar(views: np.ndarray, *, delta: float = 1e-4) -> float:
    """Return LiDAR, 1 ... min(n - 1, d).

    Parameters
    ----------
    views : ndarray, shape (n, q, d)
        Features of q >= 2 augmented views of n >= 2 images, finite.
    delta : float
        Ridge on the within-image scatter, above 0.

    Returns
    -------
    float
        NaN when the images' mean features are all equal.

    Raises
    ------
    BadInput
        Wrong shape, values that are not finite, or ``delta`` not positive.

    References
    ----------
    Thilak et al. 2023, LiDAR: sensing linear probing performance in joint embedding SSL
    architectures.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.standard_normal((400, 1, 4))
    >>> round(lidar(centres + 0.01 * rng.standard_normal((400, 5, 4))))
    4
    """
    x = np.asarray(views, dtype=np.float64)
    if x.ndim != 3 or x.shape[0] < 2 or x.shape[1] < 2:
        raise BadInput(
            f"views must have shape (n, q, d) with n, q >= 2, got {x.shape}.",
            "Give at least two views of each of at least two images.",
        )
    if not np.isfinite(x).all() or delta <= 0:
        raise BadInput("views must be finite and delta positive.", "1e-4 is the default of delta.")
    n, q, d = x.shape
    means = x.mean(1)
    within = (x - means[:, None]).reshape(n * q, d)
    scatter_w = within.T @ within / (n * (q - 1)) + delta * np.eye(d)
    between = means - means.mean(0)
    scatter_b = between.T @ between / (n - 1)
    values, vectors = np.linalg.eigh(scatter_w)
    root = vectors / np.sqrt(values) @ vectors.T
    spectrum = np.linalg.eigvalsh(root @ scatter_b @ root).clip(min=0)
    if spectrum.sum() <= 0:
        return float("nan")
    p = spectrum[spectrum > 0] / spectrum.sum()
    return float(np.exp(-(p * np.log(p)).sum()))
