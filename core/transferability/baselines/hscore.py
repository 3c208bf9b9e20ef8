"""H-score: how much of the features' spread lies between classes.

Bao, Li, Huang, Zhang, Zheng, Zamir, Guibas, "An Information-Theoretic Approach to
Transferability in Task Transfer Learning", ICIP 2019, Definition 2; regularised after
Ibrahim, Ponomareva, Mazumder, "Newer is not always better", ECML 2022 (Ledoit-Wolf).

Axes: n items, d features, C classes.
"""

from __future__ import annotations

import numpy as np

from core.errors import BadInput
from core.linalg.factor import blocks, class_sums, thin_factor
from core.transferability.baselines.checks import as_codes, as_rows


def h_score(x: np.ndarray, y: np.ndarray, *, shrinkage: bool = False) -> float:
    r"""Return the H-score; higher is better.

    .. math:: \mathrm{tr}\bigl(\mathrm{cov}(f)^{+}\, \mathrm{cov}(E[f \mid y])\bigr)

    Parameters
    ----------
    x : ndarray, shape (n, d)
    y : ndarray, shape (n,)
        Labels of any type.
    shrinkage : bool
        Shrink the covariance towards a multiple of the identity by Ledoit and Wolf's
        intensity s and multiply by ``1 - s``: to be preferred when n is not far above d,
        where the plain score counts noise (with d >= n - 1 it is C - 1 whatever the labels).

    Returns
    -------
    float
        In [0, min(C - 1, d)]; 0 for one class or a constant cloud.

    Raises
    ------
    BadInput
        Fewer than two items, values that are not finite, or labels of another length.

    Examples
    --------
    >>> import numpy as np
    >>> i, j = np.arange(12)[:, None], np.arange(3)
    >>> x = np.sin(1 + 0.7 * i * (j + 1)) + 0.3 * np.cos(i + j)
    >>> round(h_score(x, np.arange(12) % 3), 4)
    0.94
    """
    rows = as_rows(x)
    if len(rows) < 2:
        raise BadInput("x has 1 row, a covariance needs two.")
    codes, n_classes = as_codes(y, len(rows))
    counts = np.bincount(codes)
    mean = rows.mean(0, dtype=np.float64)
    sums = class_sums(rows, codes, n_classes) - counts[:, None] * mean  # of centred rows
    if shrinkage:
        return _shrunk(rows, mean, sums, counts)
    factor = thin_factor(rows, centre=True)
    if len(factor.values) == 0:
        return 0.0
    return float((factor.left_products(sums) ** 2 / counts[:, None]).sum())


def _shrunk(x: np.ndarray, mean: np.ndarray, sums: np.ndarray, counts: np.ndarray) -> float:
    n, d = x.shape
    cov, fourth = np.zeros((d, d)), 0.0
    for rows in blocks(x, mean):
        cov += rows.T @ rows
        fourth += float(((rows**2).sum(1) ** 2).sum())
    cov /= n
    level = float(np.trace(cov)) / d
    if level == 0.0:
        return 0.0
    square = float((cov**2).sum())
    # Ledoit and Wolf (2004), Lemma 3.1-3.4: distance to the target and the part that is noise.
    distance = square - d * level**2
    noise = min((fourth / n - square) / n, distance)
    intensity = noise / distance if distance > 0 else 1.0
    shrunk = (1.0 - intensity) * cov + intensity * level * np.eye(d)
    between = sums @ np.linalg.solve(shrunk, sums.T)
    return float((1.0 - intensity) * (between.diagonal() / counts).sum() / (n - 1))
