"""Heads that are trained on one encoder and applied, unchanged, to another.

No batch statistics at test time: heads with instance or batch normalisation over the
evaluation batch (as in the published relative-representation code) make a prediction depend
on the other samples, so they are not offered.

Axes: n samples, k features, C classes.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from core.errors import BadInput
from core.stitching.tanh_head import TanhHead, fit_tanh

HEADS = ("logistic", "ridge", "tanh")


@dataclass(frozen=True)
class Head:
    """A linear head with its own standardisation, frozen after training.

    Attributes
    ----------
    mean, scale : ndarray of float64, shape (k,)
        Statistics of the training features; part of the head.
    weights : ndarray of float64, shape (k, C)
    bias : ndarray of float64, shape (C,)
    """

    mean: np.ndarray
    scale: np.ndarray
    weights: np.ndarray
    bias: np.ndarray

    def scores(self, x: np.ndarray) -> np.ndarray:
        """Return the class scores, shape (n, C)."""
        return ((x - self.mean) / self.scale) @ self.weights + self.bias

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Return the class numbers, shape (n,), int64."""
        return self.scores(x).argmax(axis=1)


def fit_head(
    x: np.ndarray, y: np.ndarray, *, kind: str = "logistic", ridge: float = 1.0
) -> Head | TanhHead:
    """Fit a head on training features.

    Parameters
    ----------
    x : ndarray, shape (n, k)
    y : ndarray of int, shape (n,)
        Class numbers 0..C-1; at least two classes occur.
    kind : {"logistic", "ridge", "tanh"}
        Multinomial logistic regression (C = 1); closed-form ridge regression on one-hot
        targets; or the papers' head with one hidden layer (:mod:`core.stitching.tanh_head`).
    ridge : float
        Penalty of "ridge", as a share of the mean Gram eigenvalue.

    Raises
    ------
    BadInput
        Unknown kind, or a single class.

    Examples
    --------
    >>> x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> fit_head(x, np.array([0, 0, 1, 1])).predict(x).tolist()
    [0, 0, 1, 1]
    """
    if kind not in HEADS:
        raise BadInput(f"head={kind!r} is not known.", f"Use one of {', '.join(HEADS)}.")
    classes = np.unique(y)
    if len(classes) < 2:
        raise BadInput("y_train holds one class only.", "Give labels with at least two classes.")
    if kind == "tanh":
        return fit_tanh(x, y, classes)
    return fit_linear(x, y, classes, kind=kind, ridge=ridge)


def fit_linear(
    x: np.ndarray, y: np.ndarray, classes: np.ndarray, *, kind: str, ridge: float = 1.0
) -> Head:
    """Fit a linear head; arguments as in :func:`fit_head`, ``classes`` those that occur."""
    mean, sd = x.mean(axis=0), x.std(axis=0)
    scale = np.where(sd <= 1e-10 * max(float(sd.max()), 1e-300), 1.0, sd)
    s = (x - mean) / scale
    fit = _logistic if kind == "logistic" else _ridge
    weights, bias = fit(s, y, classes, ridge)
    full_w = np.zeros((x.shape[1], int(classes.max()) + 1))
    full_b = np.full(full_w.shape[1], -np.inf)  # a class never seen is never predicted
    full_w[:, classes], full_b[classes] = weights, bias
    return Head(mean, scale, full_w, full_b)


def _logistic(
    s: np.ndarray, y: np.ndarray, classes: np.ndarray, _: float
) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        # 500 iterations are the protocol; separable data never "converges" and need not.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=1.0, max_iter=500).fit(s, y)
    if len(classes) == 2:
        return np.hstack([-model.coef_.T, model.coef_.T]) / 2, np.append(
            -model.intercept_, model.intercept_
        ) / 2
    return model.coef_.T, model.intercept_


def _ridge(
    s: np.ndarray, y: np.ndarray, classes: np.ndarray, ridge: float
) -> tuple[np.ndarray, np.ndarray]:
    targets = (y[:, None] == classes).astype(np.float64)  # (n, C)
    bias = targets.mean(axis=0)
    gram = s.T @ s
    gram[np.diag_indices_from(gram)] += ridge * np.trace(gram) / len(gram)
    return np.linalg.solve(gram, s.T @ (targets - bias)), bias


def accuracy(y: np.ndarray, predicted: np.ndarray) -> float:
    """Return the share of right predictions."""
    return float((y == predicted).mean())


def macro_f1(y: np.ndarray, predicted: np.ndarray) -> float:
    """Return the mean F1 over the classes that occur in ``y`` or ``predicted``.

    Examples
    --------
    >>> macro_f1(np.array([0, 0, 1]), np.array([0, 1, 1])) == (2 / 3 + 2 / 3) / 2
    True
    """
    size = int(max(y.max(), predicted.max())) + 1
    true = np.bincount(y, minlength=size)
    said = np.bincount(predicted, minlength=size)
    hit = np.bincount(y[y == predicted], minlength=size)
    seen = true + said > 0
    return float((2.0 * hit[seen] / (true + said)[seen]).mean())
