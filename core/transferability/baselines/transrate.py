"""TransRate: how much coding features by class saves.

Huang, Huang, Rong, Yang, Wei, "Frustratingly Easy Transferability Estimation", ICML 2022,
Eq. 2-3 and listing A.7. The listing averages the classes' rates alike; the authors'
experiment code weights them by size: both are here.

Axes: n items, d features, C classes.
"""

from __future__ import annotations

import numpy as np

from core.errors import BadInput
from core.linalg.factor import blocks
from core.transferability.baselines.checks import as_codes, as_rows

_WEIGHTINGS = ("listing", "size")


def transrate(
    x: np.ndarray,
    y: np.ndarray,
    *,
    eps: float = 1e-4,
    weighting: str = "listing",
    normalize: bool = False,
) -> float:
    r"""Return TransRate; higher is better.

    .. math:: R(Z) - \sum_c w_c R(Z_c), \qquad
        R(Z) = \tfrac 12 \log\det\bigl(I + \tfrac{1}{n \epsilon} Z^\top Z\bigr)

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Features; their mean is subtracted.
    y : ndarray, shape (n,)
        Labels of any type; at least two classes to say anything.
    eps : float
        Distortion of the code, above 0.
    weighting : {"listing", "size"}
        ``w_c = 1 / C`` or ``n_c / n``. They differ when classes are unbalanced.
    normalize : bool
        Scale each row to length one first, as the authors' experiments do.

    Returns
    -------
    float
        In nats; 0 for a single class. At least 0 with ``weighting="size"``.

    Raises
    ------
    BadInput
        An unknown weighting, ``eps`` not above 0, values that are not finite, or labels of
        another length.

    Examples
    --------
    >>> import numpy as np
    >>> i, j = np.arange(12)[:, None], np.arange(3)
    >>> x = np.sin(1 + 0.7 * i * (j + 1)) + 0.3 * np.cos(i + j)
    >>> round(transrate(x, np.arange(12) % 3), 6)
    1.024271
    """
    if weighting not in _WEIGHTINGS:
        raise BadInput(f"weighting={weighting!r} is not known.", "One of: listing, size.")
    if eps <= 0:
        raise BadInput(f"eps={eps}, expected above 0.", "1e-4 is usual.")
    rows = as_rows(x)
    codes, n_classes = as_codes(y, len(rows))
    if normalize:
        length = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
        rows = rows / np.where(length > 0, length, 1.0)
    mean = rows.mean(0, dtype=np.float64)
    rates = np.empty(n_classes)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes))
    whole: np.ndarray | None = None
    d = rows.shape[1]
    for c, members in enumerate(np.split(order, ends[:-1])):
        part = rows[members].astype(np.float64) - mean
        gram = part @ part.T if len(part) < d else part.T @ part
        rates[c] = _rate(gram, len(part), eps)
        if len(part) >= d:
            # A class's own d x d Gram is a term of the whole one: it is not computed twice.
            whole = gram if whole is None else whole + gram
            codes = np.where(codes == c, -1, codes)
    rest = rows[codes >= 0]
    total = _whole_gram(rest, mean, whole, len(rows))
    share = np.full(n_classes, 1.0 / n_classes)
    if weighting == "size":
        share = np.diff(ends, prepend=0) / len(rows)
    return _rate(total, len(rows), eps) - float(share @ rates)


def _whole_gram(rest: np.ndarray, mean: np.ndarray, done: np.ndarray | None, n: int) -> np.ndarray:
    """Gram of all centred rows: n x n where that is smaller, else what is done plus the rest."""
    d = rest.shape[1]
    if n < d:
        centred = rest.astype(np.float64) - mean
        return np.asarray(centred @ centred.T)
    gram = np.zeros((d, d)) if done is None else done
    for part in blocks(rest, mean):
        gram = gram + part.T @ part
    return gram


def _rate(gram: np.ndarray, n: int, eps: float) -> float:
    """Half the log-determinant of ``I + gram / (n eps)``: Sylvester lets the smaller side do."""
    chol = np.linalg.cholesky(np.eye(len(gram)) + gram / (n * eps))
    return float(np.log(chol.diagonal()).sum())
