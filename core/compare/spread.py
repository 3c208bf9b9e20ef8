"""How sure a matrix of similarities is: intervals from subsamples, chance from permutations.

A bootstrap draws samples twice, and a copy is its own nearest neighbour and a pair at distance
0: U-statistics, ranks of pairs and neighbours are then biased upwards. Subsamples without
replacement have no copies. The variance of the full estimate follows from that of estimates
on a share f of the groups (the delete-d jackknife, Shao and Wu, Annals of Statistics 17(3),
1989, Eq. 1.3): ``var = f / (1 - f) * mean (theta_s - mean theta_s)^2``. Whole groups are drawn:
six drawings of one concept are not six independent samples.

Chance: the rows of one space are put in random order (Davison and Hinkley 1997, section 4.3);
``p = (1 + #{theta_perm >= theta}) / (1 + permutations)``, on one subsample for both, so that
value and chance have the same rows.

Axes: n samples, S spaces, P pairs, B subsamples, Q permutations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.compare.measures import Measure
from core.errors import BadInput
from core.stats import benjamini_hochberg

Progress = Callable[[float, str], None]

LEAST_ROWS = 12
# Raw matrices of all spaces are kept while together they are no larger than this.
KEPT_BYTES = 600_000_000
_Z = 1.959963984540054  # 97.5 % of the normal


@dataclass(frozen=True)
class Spread:
    """Similarities of pairs of spaces, and how sure they are.

    Attributes
    ----------
    value : ndarray of float64, shape (P,)
        On all rows; NaN where a space does not vary.
    sd, low, high : ndarray of float64, shape (P,)
        Standard deviation, and the 95 % interval, cut to the measure's range.
    drawn_value, chance, chance_high, p, q : ndarray of float64, shape (P,)
        On one subsample: the value, the mean and 95th percentile of the permutations, the
        one-sided p, and the false discovery rate over the pairs (Benjamini-Hochberg).
    n, drawn, groups : int
        Rows, rows of the first subsample, and groups drawn from.
    drawn_k : int
        Neighbours on a subsample: in proportion, at least 1.
    """

    value: np.ndarray
    sd: np.ndarray
    low: np.ndarray
    high: np.ndarray
    drawn_value: np.ndarray
    chance: np.ndarray
    chance_high: np.ndarray
    p: np.ndarray
    q: np.ndarray
    n: int
    drawn: int
    groups: int
    drawn_k: int


def spread(
    spaces: Sequence[Any],
    pairs: Sequence[tuple[int, int]],
    measure: Measure,
    *,
    groups: np.ndarray | None = None,
    k: int = 10,
    n_draws: int = 100,
    n_permutations: int = 99,
    seed: int = 0,
    progress: Progress | None = None,
) -> Spread:
    """Compare pairs of spaces, with intervals and chance.

    Parameters
    ----------
    spaces : sequence of S arrays, shapes (n, d_s)
        Finite, paired rows; only blocks of them are held in float64.
    pairs : sequence of (int, int)
        Which spaces to compare.
    measure : Measure
        From :data:`core.compare.measures.MEASURES`.
    groups : array, shape (n,), optional
        Samples that belong together; each is a group of its own when None.
    k : int
        Neighbours, for the measure that reads them.
    n_draws, n_permutations : int
        Subsamples (at least 2) and permutations (at least 1).
    seed : int
        Of both.
    progress : callable, optional
        Told a fraction and what is done.

    Raises
    ------
    BadInput
        Fewer than twelve rows or four groups, rows that do not pair, or counts out of range.

    Examples
    --------
    >>> from core.compare.measures import measure
    >>> x = np.random.default_rng(0).normal(size=(60, 4))
    >>> found = spread([x, 2.0 * x], [(0, 1)], measure("cka"), n_draws=5)
    >>> round(float(found.value[0]), 6), float(found.p[0])
    (1.0, 0.01)
    """
    say = progress or (lambda _fraction, _message: None)
    n = _checked(spaces, k, n_draws, n_permutations)
    codes = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    n_groups = int(codes.max()) + 1
    if n_groups < 4:
        raise BadInput(
            f"An interval needs four groups of samples, got {n_groups}.", "Add more samples."
        )
    share = min(0.5, measure.most_drawn / n)
    take = min(max(round(share * n_groups), 2), n_groups - 2)
    share = take / n_groups
    work = _Spaces(spaces, measure, k)
    value = work.all(pairs, say)
    rng = np.random.default_rng(seed)
    draws = np.empty((n_draws, len(pairs)))
    first: np.ndarray | None = None
    for at in range(n_draws):
        rows = _draw(rng, codes, take, n_groups)
        first = rows if first is None else first
        draws[at] = work.some(rows, pairs)
        say(0.2 + 0.6 * (at + 1) / n_draws, f"Subsample {at + 1} of {n_draws}")
    assert first is not None
    sd = np.sqrt(share / (1 - share)) * _deviation(draws)
    null = _null(work, first, pairs, n_permutations, rng, say)
    ordered = np.sum(null >= draws[0] - 1e-12, axis=0)
    p = np.where(np.isfinite(draws[0]), (1 + ordered) / (1 + n_permutations), np.nan)
    return Spread(
        value, sd,
        np.maximum(value - _Z * sd, measure.least), np.minimum(value + _Z * sd, 1.0),
        draws[0], null.mean(axis=0), np.percentile(null, 95, axis=0), p, benjamini_hochberg(p),
        n, len(first), n_groups, work.drawn_k(len(first)),
    )  # fmt: skip


def _checked(spaces: Sequence[Any], k: int, n_draws: int, n_permutations: int) -> int:
    n = len(spaces[0])
    if n < LEAST_ROWS:
        raise BadInput(f"A comparison needs {LEAST_ROWS} samples, got {n}.", "Add more samples.")
    other = next((len(x) for x in spaces if len(x) != n), n)
    if other != n:
        raise BadInput(
            f"All spaces must describe the same samples, got {n} and {other} rows.",
            "Take them by id, in one order.",
        )
    if not 1 <= k < n:
        raise BadInput(f"k must be at least 1 and below the {n} samples, got {k}.", "Lower k.")
    if n_draws < 2 or n_permutations < 1:
        raise BadInput(
            f"n_draws={n_draws} and n_permutations={n_permutations} are too few.",
            "At least 2 and 1; the defaults are 100 and 99.",
        )
    return n


class _Spaces:
    """The raw matrices of the spaces: kept where they fit, else made from the rows drawn."""

    def __init__(self, spaces: Sequence[Any], measure: Measure, k: int) -> None:
        self.spaces, self.measure, self.k, self.n = spaces, measure, k, len(spaces[0])
        self.kept: list[np.ndarray] = []
        self.fits = 8 * self.n**2 * len(spaces) <= KEPT_BYTES

    def drawn_k(self, rows: int) -> int:
        """Return the neighbours of a subsample: the same share of the rows."""
        return min(max(round(self.k * rows / self.n), 1), rows - 1)

    def all(self, pairs: Sequence[tuple[int, int]], say: Progress) -> np.ndarray:
        """Return the similarities on all rows, shape (P,)."""
        value = np.empty(len(pairs))
        if not self.fits:
            for at, (i, j) in enumerate(pairs):
                say(0.2 * at / len(pairs), f"Pair {at + 1} of {len(pairs)}")
                value[at] = self.measure.function(self.spaces[i], self.spaces[j], self.k)
            return value
        for at, x in enumerate(self.spaces):
            say(0.1 * at / len(self.spaces), f"Space {at + 1} of {len(self.spaces)}")
            self.kept.append(self.measure.raw(np.asarray(x, dtype=np.float64)))
        # One space is held ready at a time besides the left one of its pairs.
        left: tuple[int, np.ndarray] = (-1, np.empty(0))
        for at in sorted(range(len(pairs)), key=lambda index: pairs[index]):
            i, j = pairs[at]
            if left[0] != i:
                left = (i, self.measure.ready(self.kept[i], self.k))
            right = self.measure.ready(self.kept[j], self.k)
            value[at] = self.measure.of(left[1], right)
            say(0.1 + 0.1 * at / len(pairs), f"Pair {at + 1} of {len(pairs)}")
        return value

    def ready(self, rows: np.ndarray) -> list[np.ndarray]:
        """Return every space on some of the rows."""
        k = self.drawn_k(len(rows))
        if self.kept:
            return [self.measure.ready(raw[np.ix_(rows, rows)], k) for raw in self.kept]
        return [
            self.measure.ready(self.measure.raw(np.asarray(x[rows], dtype=np.float64)), k)
            for x in self.spaces
        ]

    def some(self, rows: np.ndarray, pairs: Sequence[tuple[int, int]]) -> np.ndarray:
        """Return the similarities on some of the rows, shape (P,)."""
        ready = self.ready(rows)
        return np.array([self.measure.of(ready[i], ready[j]) for i, j in pairs])


def _deviation(draws: np.ndarray) -> np.ndarray:
    """Return the deviation over subsamples, shape (P,); one in which a space is flat says nothing.

    NaN where fewer than two say something.
    """
    known = np.isfinite(draws)
    count = known.sum(axis=0)
    held = np.where(known, draws, 0.0)
    mean = held.sum(axis=0) / np.maximum(count, 1)
    squares = (np.where(known, draws - mean, 0.0) ** 2).sum(axis=0)
    return np.where(count >= 2, np.sqrt(squares / np.maximum(count, 1)), np.nan)


def _draw(rng: np.random.Generator, codes: np.ndarray, take: int, groups: int) -> np.ndarray:
    chosen = np.zeros(groups, dtype=bool)
    chosen[rng.choice(groups, take, replace=False)] = True
    return np.flatnonzero(chosen[codes])


def _null(
    work: _Spaces,
    rows: np.ndarray,
    pairs: Sequence[tuple[int, int]],
    n_permutations: int,
    rng: np.random.Generator,
    say: Progress,
) -> np.ndarray:
    """Return the similarities with the right space's rows in random order, shape (Q, P)."""
    ready = work.ready(rows)
    null = np.empty((n_permutations, len(pairs)))
    for at in range(n_permutations):
        order = rng.permutation(len(rows))
        mixed = {j: work.measure.permuted(ready[j], order) for j in {j for _, j in pairs}}
        null[at] = [work.measure.of(ready[i], mixed[j]) for i, j in pairs]
        say(0.8 + 0.19 * (at + 1) / n_permutations, f"Permutation {at + 1} of {n_permutations}")
    return null
