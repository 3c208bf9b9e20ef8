"""The similarities of two representations by name, each in two forms that agree.

``function`` takes two matrices of features and any number of rows. ``raw`` and ``ready`` give
one matrix for a space, computed once and used in every pair, every subsample and every
permutation: the similarity of two spaces is then a dot product (CKA, RSA, neighbours) or a
nuclear norm (Procrustes) of their ready matrices. A new similarity is one entry here.

Axes: n samples, d dimensions, r rank.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from core.compare import cka, dissimilarity, neighbours, procrustes
from core.errors import BadInput

Matrix = np.ndarray


@dataclass(frozen=True)
class Measure:
    """One similarity of representations.

    Attributes
    ----------
    name, title : str
        Its key, and the words people read.
    least : float
        Its smallest value, -1 or 0; the largest is 1.
    function : callable
        ``function(a, b, k) -> float``; ``k`` is read by the neighbours alone.
    raw : callable
        ``raw(x) -> (n, n)``: what a subsample takes rows and columns of.
    ready : callable
        ``ready(raw, k)``: (n, n), or (n, r) when ``factor``.
    factor : bool
        Whether ``ready`` is a factor with samples in its rows only.
    most_drawn : int
        Rows of a subsample, at most: what a draw costs grows with their cube for a factor.
    """

    name: str
    title: str
    least: float
    function: Callable[[Matrix, Matrix, int], float]
    raw: Callable[[Matrix], Matrix]
    ready: Callable[[Matrix, int], Matrix]
    factor: bool = False
    most_drawn: int = 500

    def of(self, left: Matrix, right: Matrix) -> float:
        """Return the similarity of two ready spaces; NaN when one of them does not vary."""
        if not left.any() or not right.any():
            return float("nan")
        if self.factor:
            value = float(np.linalg.svd(left.T @ right, compute_uv=False).sum())
        else:
            value = float(np.vdot(left, right))
        return min(max(value, self.least), 1.0)

    def permuted(self, ready: Matrix, order: np.ndarray) -> Matrix:
        """Return a ready space with its samples in another order."""
        return ready[order] if self.factor else ready[np.ix_(order, order)]


MEASURES: dict[str, Measure] = {
    found.name: found
    for found in (
        Measure(
            "cka",
            "linear CKA, debiased",
            -1.0,
            lambda a, b, _k: cka.linear_cka(a, b, debiased=True),
            cka.linear_gram,
            lambda raw, _k: cka.u_centred(raw),
        ),
        Measure(
            "cka-rbf",
            "RBF CKA, debiased",
            -1.0,
            lambda a, b, _k: cka.rbf_cka(a, b, debiased=True),
            cka.squared_distances,
            lambda raw, _k: cka.u_centred(cka.gaussian_of(raw)),
        ),
        Measure(
            "knn",
            "mutual nearest neighbours",
            0.0,
            lambda a, b, k: neighbours.mutual_knn(a, b, k=k),
            neighbours.distance_order,
            neighbours.unit_neighbours,
        ),
        Measure(
            "rsa",
            "RSA",
            -1.0,
            lambda a, b, _k: dissimilarity.rsa(a, b),
            dissimilarity.dissimilarities,
            lambda raw, _k: dissimilarity.unit_ranks(raw),
        ),
        Measure(
            "procrustes",
            "Procrustes similarity",
            0.0,
            lambda a, b, _k: procrustes.procrustes_similarity(a, b),
            cka.linear_gram,
            lambda raw, _k: procrustes.unit_factor(raw),
            factor=True,
            most_drawn=250,
        ),
    )
}


def measure(name: str) -> Measure:
    """Return a similarity by its name.

    Raises
    ------
    BadInput
        There is none of that name.

    Examples
    --------
    >>> measure("rsa").title
    'RSA'
    """
    if name not in MEASURES:
        raise BadInput(f"measure={name!r} is not known.", f"Use one of: {', '.join(MEASURES)}.")
    return MEASURES[name]
