"""Accuracy on labels by the two cheapest heads: ridge regression and nearest neighbours.

Linear probe: one-hot Y and X centred by the training means (which is the bias),
``(X^T X + lam tr(X^T X)/d I) B = X^T Y`` by Cholesky in float64; ``ridge=0`` is the
minimum-norm least squares. Near ``n_train = d`` least squares interpolates and its accuracy
collapses, hence the sweep.

Axes: n training rows, m test rows, d features, c classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from core.errors import BadInput
from core.linalg.neighbours import nearest_neighbours
from core.quality.sample import as_matrix
from core.stats.intervals import Interval, wilson_interval

SWEEP = (0.0, 1e-6, 1e-4, 1e-2)


@dataclass(frozen=True)
class ProbeResult:
    """Accuracy of a probe on held-out rows.

    Attributes
    ----------
    accuracy : float
        Share of test rows that are right, in [0, 1].
    interval : Interval
        Wilson's 95 % interval; too narrow when test rows resemble each other.
    per_class : float
        Mean over the classes of the share that is right.
    correct : ndarray of bool, shape (m,)
        Which test rows are right.
    predicted : ndarray, shape (m,)
        Predicted labels.
    n_train, n_test, d : int
        Rows used and features.
    setting : str
        Ridge, or k and the distance.
    """

    accuracy: float
    interval: Interval
    per_class: float
    correct: np.ndarray
    predicted: np.ndarray
    n_train: int
    n_test: int
    d: int
    setting: str

    @property
    def rows_per_feature(self) -> float:
        """Training rows a feature; near 1 least squares is at its worst."""
        return self.n_train / self.d


def _labelled(x: np.ndarray, y: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    features, labels = as_matrix(x, f"x{name}"), np.asarray(y)
    if labels.shape != (len(features),):
        raise BadInput(
            f"y{name} has shape {labels.shape}, x{name} has {len(features)} rows.",
            "Give one label a row.",
        )
    finite = np.isfinite(features).all(1)
    if not finite.all():
        raise BadInput(
            f"x{name} has {int((~finite).sum())} rows that are not finite.", "Leave them out first."
        )
    if not len(features):
        raise BadInput(f"x{name} has no rows.", "Give at least one.")
    return features, labels


def _pair(
    xtr: np.ndarray, ytr: np.ndarray, xte: np.ndarray, yte: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    left, right = _labelled(xtr, ytr, "tr"), _labelled(xte, yte, "te")
    if left[0].shape[1] != right[0].shape[1]:
        raise BadInput(
            f"xtr has {left[0].shape[1]} columns and xte has {right[0].shape[1]}.",
            "Give features of the same encoder and layer.",
        )
    return (*left, *right)


def _score(
    predicted: np.ndarray, truth: np.ndarray, n_train: int, d: int, setting: str
) -> ProbeResult:
    correct = predicted == truth
    classes, code = np.unique(truth, return_inverse=True)
    share = np.bincount(code, weights=correct, minlength=len(classes)) / np.bincount(code)
    interval = wilson_interval(int(correct.sum()), len(correct))
    return ProbeResult(
        interval.value, interval, float(share.mean()), correct, predicted, n_train,
        len(correct), d, setting,
    )  # fmt: skip


class _Ridge:
    """Sums of one training set, from which every ridge is solved."""

    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        self.classes, code = np.unique(y, return_inverse=True)
        rows = torch.from_numpy(np.asarray(x, dtype=np.float64))
        self.mean = rows.mean(0)
        self.x = rows - self.mean  # (n, d)
        hot = torch.nn.functional.one_hot(torch.from_numpy(code), len(self.classes)).double()
        self.prior = hot.mean(0)
        self.y = hot - self.prior  # (n, c)
        n, d = self.x.shape
        # The smaller Gram matrix: both forms of the ridge solution are the same.
        self.dual = n < d
        self.gram = self.x @ self.x.T if self.dual else self.x.T @ self.x
        self.scale = float(self.gram.diagonal().sum()) / d

    def solve(self, ridge: float) -> torch.Tensor:
        """Return B, shape (d, c)."""
        if ridge == 0 or self.scale == 0:
            found = np.linalg.lstsq(self.x.numpy(), self.y.numpy(), rcond=None)[0]
            return torch.from_numpy(found)
        shifted = self.gram + ridge * self.scale * torch.eye(len(self.gram), dtype=torch.float64)
        factor = torch.linalg.cholesky(shifted)
        if self.dual:
            return self.x.T @ torch.cholesky_solve(self.y, factor)
        return torch.cholesky_solve(self.x.T @ self.y, factor)

    def predict(self, xte: np.ndarray, ridge: float) -> np.ndarray:
        rows = torch.from_numpy(np.asarray(xte, dtype=np.float64)) - self.mean
        score = rows @ self.solve(ridge) + self.prior  # (m, c)
        return np.asarray(self.classes[score.argmax(1).numpy()])


def _check_ridge(ridge: float) -> None:
    if not (np.isfinite(ridge) and ridge >= 0):
        raise BadInput(f"ridge={ridge} must be 0 or positive.", "1e-6 is the default.")


def linear_probe(
    xtr: np.ndarray, ytr: np.ndarray, xte: np.ndarray, yte: np.ndarray, *, ridge: float = 1e-6
) -> ProbeResult:
    """Fit one-hot labels by (ridge) least squares and score held-out rows.

    Parameters
    ----------
    xtr, xte : ndarray, shapes (n, d) and (m, d)
        Training and test features, finite.
    ytr, yte : array, shapes (n,) and (m,)
        Labels of any type; a test label that was not trained counts as wrong.
    ridge : float
        Penalty relative to the mean diagonal of ``X^T X``; 0 is minimum-norm least squares.

    Raises
    ------
    BadInput
        Shapes differ, rows are not finite, or ``ridge`` is negative.

    References
    ----------
    Rifkin, Yeo, Poggio 2003, Regularized least-squares classification.

    Examples
    --------
    >>> x = np.array([[0.0], [1], [10], [11]])
    >>> linear_probe(x, np.array([0, 0, 1, 1]), x, np.array([0, 0, 1, 1])).accuracy
    1.0
    """
    _check_ridge(ridge)
    xtr, ytr, xte, yte = _pair(xtr, ytr, xte, yte)
    predicted = _Ridge(xtr, ytr).predict(xte, ridge)
    return _score(predicted, yte, len(xtr), xtr.shape[1], f"ridge {ridge:g}")


def ridge_sweep(
    xtr: np.ndarray,
    ytr: np.ndarray,
    xte: np.ndarray,
    yte: np.ndarray,
    *,
    ridges: Sequence[float] = SWEEP,
) -> dict[float, ProbeResult]:
    """Return :func:`linear_probe` for several ridges from one Gram matrix."""
    for ridge in ridges:
        _check_ridge(ridge)
    xtr, ytr, xte, yte = _pair(xtr, ytr, xte, yte)
    fitted = _Ridge(xtr, ytr)
    return {
        ridge: _score(fitted.predict(xte, ridge), yte, len(xtr), xtr.shape[1], f"ridge {ridge:g}")
        for ridge in ridges
    }


def knn_probe(
    xtr: np.ndarray,
    ytr: np.ndarray,
    xte: np.ndarray,
    yte: np.ndarray,
    *,
    k: int = 1,
    metric: Literal["euclidean", "cosine"] = "euclidean",
) -> ProbeResult:
    """Score held-out rows by the majority of their k nearest training rows.

    Parameters
    ----------
    xtr, xte : ndarray, shapes (n, d) and (m, d)
        Training and test features, finite.
    ytr, yte : array, shapes (n,) and (m,)
        Labels.
    k : int
        Neighbours; equal distances go to the lowest row, equal votes to the lowest label.
    metric : {"euclidean", "cosine"}
        On raw features, or on unit rows (zero rows are left out on both sides).

    Raises
    ------
    BadInput
        Shapes differ, rows are not finite, or k or metric cannot be used.

    References
    ----------
    Cover and Hart 1967, Nearest neighbor pattern classification.

    Examples
    --------
    >>> x = np.array([[0.0], [1], [10], [11]])
    >>> knn_probe(x, np.array([0, 0, 1, 1]), np.array([[2.0]]), np.array([0])).accuracy
    1.0
    """
    if metric not in ("euclidean", "cosine"):
        raise BadInput(f"metric={metric!r} is unknown.", "Choose 'euclidean' or 'cosine'.")
    xtr, ytr, xte, yte = _pair(xtr, ytr, xte, yte)
    if metric == "cosine":
        xtr, ytr = _unit(xtr, ytr)
        xte, yte = _unit(xte, yte)
    kind = np.result_type(xtr.dtype, xte.dtype, np.float32)
    base = torch.from_numpy(np.array(xtr, dtype=kind))
    queries = torch.from_numpy(np.array(xte, dtype=kind))
    near = nearest_neighbours(base, queries, k=k).indices.numpy()  # (m, k)
    classes, code = np.unique(ytr, return_inverse=True)
    votes = np.zeros((len(near), len(classes)), dtype=np.int64)
    np.add.at(votes, (np.arange(len(near))[:, None], code[near]), 1)
    predicted = classes[votes.argmax(1)]
    return _score(predicted, yte, len(xtr), xtr.shape[1], f"{k}-NN, {metric}")


def _unit(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    length = np.linalg.norm(np.asarray(x, dtype=np.float64), axis=1)
    keep = length > 0
    if not keep.any():
        raise BadInput("Every row is zero; cosine has no meaning.", "Use metric='euclidean'.")
    return np.asarray(x, dtype=np.float64)[keep] / length[keep, None], y[keep]
