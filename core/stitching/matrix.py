"""The stitching matrix: a head trained on encoder i, tested on encoder j, for all pairs.

Protocol of relative representations (arXiv 2209.15430) as this project fixes it: rows are the
encoder the head was trained on, columns the encoder the features come from; the split is by
item; nothing is fitted on test rows.

Axes: S seeds, N encoders, n_test rows, k anchors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from core.compare.cka import linear_cka
from core.linalg.whitening import Shrinkage
from core.stitching.heads import accuracy, fit_head, macro_f1
from core.stitching.methods import Method, method_of
from core.stitching.ranking import paired_retrieval, retrieval
from core.stitching.representation import unit_rows
from core.stitching.setting import Setting, StitchOptions, prepare
from core.stitching.translate import (
    anchor_angles,
    anchor_inverse,
    fit_translator,
    parallel_spectrum,
)

Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class StitchResult:
    """All pairs under one method.

    Attributes
    ----------
    method : str
    accuracy, f1 : ndarray of float64, shape (S, N, N)
        ``[s, i, j]``: head of encoder i on features of encoder j; accuracy and macro F1.
    native, native_f1 : ndarray of float64, shape (N,)
        Head trained and tested on the absolute features of one encoder.
    predictions : ndarray of int64, shape (S, N, N, n_test)
        Class numbers, indices into ``classes``.
    native_predictions : ndarray of int64, shape (N, n_test)
    classes : ndarray, shape (C,)
    retrieval : DataFrame
        One row an ordered pair: R@1, R@5, MRR, median_rank, n, chance (means over seeds),
        and the linear CKA of the two relative spaces.
    n_parallel, n_maps : int
        Parallel rows used; maps fitted for all pairs.
    shrinkage : str or float or None
        The shrinkage taken (None where none is used).
    seconds : float
    """

    method: str
    accuracy: np.ndarray
    f1: np.ndarray
    native: np.ndarray
    native_f1: np.ndarray
    predictions: np.ndarray
    native_predictions: np.ndarray
    classes: np.ndarray
    retrieval: pd.DataFrame
    n_parallel: int
    n_maps: int
    shrinkage: Shrinkage | None
    seconds: float = 0.0
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def mean(self) -> np.ndarray:
        """Accuracy, mean over seeds, shape (N, N)."""
        return self.accuracy.mean(axis=0)

    @property
    def sd(self) -> np.ndarray:
        """Standard deviation over seeds, shape (N, N); 0 for one seed."""
        return spread(self.accuracy)

    @property
    def off_diagonal(self) -> np.ndarray:
        """Mean accuracy over pairs of different encoders, one a seed, shape (S,)."""
        n = self.accuracy.shape[1]
        return self.accuracy[:, ~np.eye(n, dtype=bool)].mean(axis=1)

    @property
    def gap(self) -> np.ndarray:
        """Native accuracy of encoder j minus stitched accuracy, shape (N, N)."""
        return self.native[None, :] - self.mean

    @property
    def retention(self) -> np.ndarray:
        """Stitched over native accuracy of encoder j, shape (N, N)."""
        return self.mean / np.maximum(self.native[None, :], 1e-12)


def spread(values: np.ndarray) -> np.ndarray:
    """Return the sample standard deviation over the first axis; 0 for a single value."""
    return values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1:])


def stitch_matrix(
    spaces_train: Sequence[np.ndarray],
    spaces_test: Sequence[np.ndarray],
    y_train: np.ndarray,
    y_test: np.ndarray,
    *,
    method: str = "wip-param",
    n_anchors: int = 100,
    n_support: int = 800,
    n_parallel: int | None = None,
    shrinkage: Shrinkage = "auto",
    seeds: Sequence[int] = (0, 1, 2),
    head: str = "logistic",
    steps: int = 300,
    shuffle_pairs: bool = False,
    progress: Progress | None = None,
) -> StitchResult:
    """Train a head on each encoder and test it on every other, without retraining.

    "Without retraining" does not mean without data: ``n_parallel`` training items must be known
    to both encoders.

    Parameters
    ----------
    spaces_train, spaces_test : sequences of ndarray, each (n_train, d_i) and (n_test, d_i)
        The same items, row by row, under N >= 2 encoders.
    y_train, y_test : ndarray, shapes (n_train,) and (n_test,)
        Labels of any comparable type.
    method : str
        "cosine-random", "wip-random", "cosine-param", "wip-param", "ridge", "ortho" and the
        other names of :data:`core.stitching.METHODS`.
    n_anchors, n_support, n_parallel, shrinkage, seeds, head, steps, shuffle_pairs
        See :class:`core.stitching.StitchOptions`.
    progress : callable, optional
        Called with a fraction and a message; may raise :class:`core.errors.Cancelled`.

    Raises
    ------
    BadInput
        See :func:`core.stitching.prepare`; an unknown method or head.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 120)
    >>> x = rng.normal(size=(120, 6)) + 3.0 * y[:, None]
    >>> z = x @ rng.normal(size=(6, 6))
    >>> got = stitch_matrix([x[:80], z[:80]], [x[80:], z[80:]], y[:80], y[80:],
    ...                     method="wip-random", n_anchors=10, shrinkage=0, seeds=[0])
    >>> bool(np.allclose(got.mean, got.mean[0, 0]))
    True

    References
    ----------
    arXiv 2209.15430; arXiv 2605.30596.
    """
    options = StitchOptions(
        n_anchors, n_support, n_parallel, shrinkage, tuple(seeds), head, steps, shuffle_pairs
    )
    setting = prepare(spaces_train, spaces_test, y_train, y_test, options)
    return run_method(setting, method, progress)


def run_method(setting: Setting, name: str, progress: Progress | None = None) -> StitchResult:
    """Return the matrix of one method; fits already in ``setting`` are used again."""
    method = method_of(name)
    begun = time.perf_counter()
    N, seeds = setting.n_encoders, setting.options.seeds
    y = setting.y_test
    predictions = np.zeros((len(seeds), N, N, len(y)), dtype=np.int64)
    found = []
    for s, seed in enumerate(seeds):
        told = _within(progress, s, len(seeds), f"{method.title}, seed {s + 1} of {len(seeds)}")
        fill = _translate if method.translator else _relative
        predictions[s], rows = fill(setting, method, seed, told)
        found.append(rows)
    native = np.stack([setting.native(i).predict(setting.test[i]) for i in range(N)])
    cells = predictions.reshape(-1, len(y))
    shape = predictions.shape[:3]
    kind = method.shrinkage_kind
    return StitchResult(
        method=name,
        accuracy=np.array([accuracy(y, p) for p in cells]).reshape(shape),
        f1=np.array([macro_f1(y, p) for p in cells]).reshape(shape),
        native=np.array([accuracy(y, p) for p in native]),
        native_f1=np.array([macro_f1(y, p) for p in native]),
        predictions=predictions,
        native_predictions=native,
        classes=setting.classes,
        retrieval=pd.concat(found).groupby(["i", "j"], as_index=False).mean(),
        n_parallel=setting.n_parallel,
        n_maps=method.n_maps(N),
        shrinkage=setting.shrinkage(kind) if kind else None,
        seconds=time.perf_counter() - begun,
    )


def _relative(
    setting: Setting, method: Method, seed: int, progress: Progress | None
) -> tuple[np.ndarray, pd.DataFrame]:
    """One seed of a relative method: predictions (N, N, n_test) and the retrieval rows."""
    train, test = setting.relative(method, seed, progress)
    N = setting.n_encoders
    predictions = np.zeros((N, N, len(setting.y_test)), dtype=np.int64)
    rows = []
    for i in range(N):
        head = fit_head(train[i], setting.y_train, kind=setting.options.head)
        for j in range(N):
            predictions[i, j] = head.predict(test[j])
        for j in range(i + 1, N):
            # Both directions, and the similarity, from one pass over the pair.
            cka = linear_cka(test[i], test[j])
            forth, back = paired_retrieval(test[i], test[j])
            rows.append({"i": i, "j": j, **forth, "cka": cka})
            rows.append({"i": j, "j": i, **back, "cka": cka})
    return predictions, pd.DataFrame(rows)


def _translate(
    setting: Setting, method: Method, seed: int, progress: Progress | None
) -> tuple[np.ndarray, pd.DataFrame]:
    """One seed of a translator: features of j go into the space of i, whose native head reads."""
    if method.translator == "irp":
        return _project(setting, seed)
    N, test = setting.n_encoders, setting.test
    parallel = setting.parallel(setting.draw(seed))
    shared = [parallel_spectrum(x) for x in parallel] if method.translator == "cca" else None
    predictions = np.zeros((N, N, len(setting.y_test)), dtype=np.int64)
    rows = []
    for i in range(N):
        for j in range(N):
            if i == j:
                predictions[i, i] = setting.native(i).predict(test[i])
                continue
            if progress is not None:
                progress((i * N + j) / N**2, f"{method.title}: {j} into {i}")
            fit = fit_translator(
                parallel[j], parallel[i], kind=method.translator,
                spectra=(shared[j], shared[i]) if shared else None,
            )  # fmt: skip
            moved = fit(test[j])
            predictions[i, j] = setting.native(i).predict(moved)
            # Queries of j, moved, against the gallery of i; both in i's standardised rows.
            query, gallery = ((x - fit.to_mean) / fit.to_scale for x in (moved, test[i]))
            cka = linear_cka(moved, test[i])
            rows.append({"i": j, "j": i, **retrieval(query, gallery), "cka": cka})
    return predictions, pd.DataFrame(rows)


def _project(setting: Setting, seed: int) -> tuple[np.ndarray, pd.DataFrame]:
    """One seed of inverse relative projection; its head is trained on centred unit rows."""
    N = setting.n_encoders
    parallel = setting.parallel(setting.draw(seed))
    back = [anchor_inverse(x) for x in parallel]
    angles = [anchor_angles(x, a) for x, a in zip(setting.test, parallel, strict=True)]
    predictions = np.zeros((N, N, len(setting.y_test)), dtype=np.int64)
    rows = []
    for i in range(N):
        own = unit_rows(setting.train[i] - parallel[i].mean(axis=0))
        head = fit_head(own, setting.y_train, kind=setting.options.head)
        gallery = unit_rows(setting.test[i] - parallel[i].mean(axis=0))
        for j in range(N):
            moved = angles[j] @ back[i] if i != j else gallery
            predictions[i, j] = head.predict(moved)
            if i != j:
                cka = linear_cka(moved, gallery)
                rows.append({"i": j, "j": i, **retrieval(moved, gallery), "cka": cka})
    return predictions, pd.DataFrame(rows)


def _within(progress: Progress | None, at: int, of: int, prefix: str) -> Progress | None:
    """Return a progress callback for one part of several."""
    if progress is None:
        return None

    def told(fraction: float, message: str) -> None:
        progress((at + fraction) / of, f"{prefix}: {message}")

    told(0.0, "starting")
    return told
