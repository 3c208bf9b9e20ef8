"""What all methods of one comparison share: rows, statistics, pairs, anchors, native heads.

Everything unsupervised (centre, covariance, mixing, shrinkage) is fitted on training rows;
labels are seen by the heads alone. All methods get the same parallel rows.

Axes: N encoders, n_train and n_test rows, m support rows, k anchors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from core.errors import BadInput
from core.linalg.whitening import Shrinkage, Spectrum, Whitening, as_matrix, spectrum
from core.stitching.anchors import fps_anchors, kmeans_anchors, mixture_anchors, random_anchors
from core.stitching.auto import ShrinkageChoice, choose_shrinkage
from core.stitching.heads import Head, TanhHead, fit_head
from core.stitching.methods import Method
from core.stitching.param import ParamAnchors, learn_anchors
from core.stitching.representation import relative

Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class StitchOptions:
    """How the comparison is run.

    Attributes
    ----------
    n_anchors, n_support : int
        Anchors, and parallel rows that may be mixed into them.
    n_parallel : int or None
        Training rows used as parallel rows (None: all).
    shrinkage : str or float
        "auto", "lw" or a number in [0, 1].
    seeds : tuple of int
        One run a seed: it draws the parallel rows, the support, the anchors.
    head : {"logistic", "ridge", "tanh"}
    steps : int
        PARAM steps.
    shuffle_pairs : bool
        Control: break the pairing between encoders, which must bring accuracy to chance.
    """

    n_anchors: int = 100
    n_support: int = 800
    n_parallel: int | None = None
    shrinkage: Shrinkage = "auto"
    seeds: tuple[int, ...] = (0, 1, 2)
    head: str = "logistic"
    steps: int = 300
    shuffle_pairs: bool = False


@dataclass(frozen=True)
class Draw:
    """The parallel rows of one seed.

    Attributes
    ----------
    rows : tuple of ndarray of int64, each (n_par,)
        Training rows of each encoder; the same unless the pairing was broken.
    support : ndarray of int64, shape (m,)
        Which of them may be mixed.
    """

    rows: tuple[np.ndarray, ...]
    support: np.ndarray


@dataclass
class Setting:
    """Encoders, labels and options, with what was fitted so far. Make it by :func:`prepare`."""

    train: list[np.ndarray]
    test: list[np.ndarray]
    y_train: np.ndarray
    y_test: np.ndarray
    classes: np.ndarray
    options: StitchOptions
    _spectra: dict[int, Spectrum] = field(default_factory=dict)
    _choices: dict[str, ShrinkageChoice] = field(default_factory=dict)
    _fits: dict[tuple[str, int], ParamAnchors] = field(default_factory=dict)
    _heads: dict[int, Head | TanhHead] = field(default_factory=dict)

    @property
    def n_encoders(self) -> int:
        """Number of encoders N."""
        return len(self.train)

    @property
    def n_parallel(self) -> int:
        """Parallel rows used."""
        n = len(self.y_train)
        return min(self.options.n_parallel or n, n)

    def spectrum(self, i: int) -> Spectrum:
        """Return the principal directions of encoder i, fitted on all its training rows."""
        if i not in self._spectra:
            self._spectra[i] = spectrum(self.train[i])
        return self._spectra[i]

    def draw(self, seed: int) -> Draw:
        """Return the parallel rows of one seed."""
        rng = np.random.default_rng(np.random.SeedSequence([seed, 3]))
        rows = np.sort(rng.choice(len(self.y_train), self.n_parallel, replace=False))
        m = min(self.options.n_support, len(rows))
        support = np.sort(rng.choice(len(rows), m, replace=False))
        if self.options.shuffle_pairs:
            return Draw(tuple(rng.permutation(rows) for _ in self.train), support)
        return Draw((rows,) * self.n_encoders, support)

    def parallel(self, draw: Draw) -> list[np.ndarray]:
        """Return the parallel rows of every encoder, each (n_par, d_i)."""
        return [x[r] for x, r in zip(self.train, draw.rows, strict=True)]

    def shrinkage(self, kind: str, progress: Progress | None = None) -> Shrinkage:
        """Return the shrinkage for a kind of anchors; the automatic choice is made once."""
        if self.options.shrinkage != "auto":
            return self.options.shrinkage
        if kind not in self._choices:
            o, draw = self.options, self.draw(self.options.seeds[0])
            spectra = [self.spectrum(i) for i in range(self.n_encoders)]
            self._choices[kind] = choose_shrinkage(
                self.parallel(draw), spectra, o.n_anchors, anchors=kind,
                n_support=o.n_support, seed=o.seeds[0], progress=progress,
            )  # fmt: skip
        return self._choices[kind].shrinkage

    def choice(self, kind: str) -> ShrinkageChoice | None:
        """Return what the automatic choice tried, if it was made."""
        return self._choices.get(kind)

    def whitening(self, i: int, kind: str) -> Whitening:
        """Return the whitening map of encoder i for a kind of anchors."""
        return self.spectrum(i).whitening(self.shrinkage(kind))

    def param(self, method: Method, seed: int, progress: Progress | None = None) -> ParamAnchors:
        """Return the PARAM anchors of one seed; cosine and WIP share them."""
        key = (method.anchors, seed)
        if key not in self._fits:
            o, draw = self.options, self.draw(seed)
            kind = method.anchors
            self.shrinkage(kind, progress)
            self._fits[key] = learn_anchors(
                self.parallel(draw), o.n_anchors,
                mode="single" if kind == "param_single" else "multi",
                stats=[self.whitening(i, kind) for i in range(self.n_encoders)],
                support=draw.support, steps=o.steps, seed=seed, progress=progress,
            )  # fmt: skip
        return self._fits[key]

    def mixing(self, method: Method, seed: int, progress: Progress | None = None) -> np.ndarray:
        """Return the mixing matrix of a method and seed, shape (k, m)."""
        draw, k = self.draw(seed), self.options.n_anchors
        if method.learned:
            return self.param(method, seed, progress).mixing
        if method.anchors == "random":
            return random_anchors(len(draw.support), k, seed=seed)
        makers = {"fps": fps_anchors, "kmeans": kmeans_anchors, "mixture": mixture_anchors}
        reference = self.parallel(draw)[0][draw.support]
        return makers[method.anchors](reference, k, seed=seed)

    def relative(
        self, method: Method, seed: int, progress: Progress | None = None
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return relative train and test features of every encoder, each (n, k)."""
        draw = self.draw(seed)
        P = self.mixing(method, seed, progress)
        train: list[np.ndarray] = []
        test: list[np.ndarray] = []
        for i, rows in enumerate(self.parallel(draw)):
            anchors = P @ rows[draw.support]  # (k, d_i)
            kind = method.shrinkage_kind
            stats = None if method.similarity == "cosine" else (
                self.whitening(i, kind) if kind else self.spectrum(i).whitening("lw")
            )  # fmt: skip
            for out, x in ((train, self.train[i]), (test, self.test[i])):
                out.append(relative(x, anchors, similarity=method.similarity, stats=stats))
        return train, test

    def native(self, i: int) -> Head | TanhHead:
        """Return the head trained on the absolute features of encoder i."""
        if i not in self._heads:
            self._heads[i] = fit_head(self.train[i], self.y_train, kind=self.options.head)
        return self._heads[i]

    def control(self, seed: int, steps: int) -> Setting:
        """Return the same setting with the pairing broken, one seed, shrinkage as chosen here."""
        return replace(
            self, options=replace(self.options, seeds=(seed,), steps=steps, shuffle_pairs=True),
            _fits={},
        )  # fmt: skip


def prepare(
    spaces_train: Sequence[np.ndarray],
    spaces_test: Sequence[np.ndarray],
    y_train: np.ndarray,
    y_test: np.ndarray,
    options: StitchOptions | None = None,
) -> Setting:
    """Check the inputs and return a :class:`Setting`.

    Raises
    ------
    BadInput
        Fewer than two encoders, rows that do not pair up, labels of another length, NaN.
    """
    train = [as_matrix(x, f"spaces_train[{i}]", min_rows=4) for i, x in enumerate(spaces_train)]
    test = [as_matrix(x, f"spaces_test[{i}]") for i, x in enumerate(spaces_test)]
    if len(train) < 2 or len(train) != len(test):
        raise BadInput(
            f"Stitching needs the same two or more encoders in training and test, got "
            f"{len(train)} and {len(test)}.",
            "Choose at least two encoders.",
        )
    y_train, y_test = np.asarray(y_train), np.asarray(y_test)
    for name, spaces, y in (("train", train, y_train), ("test", test, y_test)):
        bad = [i for i, x in enumerate(spaces) if len(x) != len(y)]
        if bad or y.ndim != 1:
            raise BadInput(
                f"spaces_{name}[{bad[0] if bad else 0}] and y_{name} must have one row per item, "
                f"got {len(spaces[bad[0]]) if bad else len(spaces[0])} rows and shape {y.shape}.",
                "Take features and labels by id, in one order.",
            )
    for i, (a, b) in enumerate(zip(train, test, strict=True)):
        if a.shape[1] != b.shape[1]:
            raise BadInput(
                f"Encoder {i} has {a.shape[1]} dimensions in training and {b.shape[1]} in test."
            )
    classes, codes = np.unique(np.concatenate([y_train, y_test]), return_inverse=True)
    codes = codes.astype(np.int64)
    return Setting(
        train, test, codes[: len(y_train)], codes[len(y_train) :], classes,
        options or StitchOptions(),
    )  # fmt: skip
