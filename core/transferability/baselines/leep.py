"""LEEP: the log-likelihood of target labels under a source classifier's soft predictions.

Nguyen, Hassner, Seeger, Archambeau, "LEEP: A New Measure to Evaluate Transferability of
Learned Representations", ICML 2020, Eq. 1-2.

Axes: N target items, Z source classes, C target classes.
"""

from __future__ import annotations

import numpy as np

from core.errors import BadInput
from core.linalg.factor import BLOCK, class_sums
from core.transferability.baselines.checks import as_codes, as_rows


def leep(probs: np.ndarray, y: np.ndarray) -> float:
    r"""Return LEEP; higher is better.

    .. math:: \frac 1 N \sum_i \log \sum_z \hat P(y_i \mid z)\, p_{iz}, \qquad
        \hat P(y \mid z) = \frac{\sum_{i: y_i = y} p_{iz}}{\sum_i p_{iz}}

    Parameters
    ----------
    probs : ndarray, shape (N, Z)
        Source class probabilities of each target item, at least 0.
    y : ndarray, shape (N,)
        Target labels of any type.

    Returns
    -------
    float
        In nats, at most 0. Predictions that say nothing give minus the entropy of the
        labels. A source class without any mass has no part in it.

    Raises
    ------
    BadInput
        Negative or infinite probabilities, a row without mass, labels of another length.

    Examples
    --------
    >>> import numpy as np
    >>> probs = np.array([[0.8, 0.2], [0.6, 0.4], [0.3, 0.7], [0.1, 0.9]])
    >>> round(leep(probs, np.array([0, 0, 1, 1])), 6)
    -0.471248
    """
    p = as_rows(probs, "probs")
    codes, n_classes = as_codes(y, len(p))
    if p.min() < 0 or p.sum(1).min() <= 0:
        raise BadInput("probs has negative entries or rows without mass.", "Give probabilities.")
    joint = class_sums(p, codes, n_classes)  # (C, Z)
    mass = joint.sum(0)
    given = joint / np.where(mass > 0, mass, 1.0)  # P(y | z)
    total = 0.0
    for first in range(0, len(p), BLOCK):
        rows = slice(first, first + BLOCK)
        total += float(np.log(np.einsum("iz,iz->i", given[codes[rows]], p[rows])).sum())
    return total / len(p)
