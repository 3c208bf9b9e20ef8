"""What really happened: the accuracy a probe gains when a blend joins the target's data.

RADAR, arXiv 2605.23028, Eq. 2-3: A(S) is the target's test accuracy of a classifier trained
on target and blend, delta(S) = A(S) - A(empty). Protocol of our specification, section 7: a
frozen encoder, logistic regression on standardised features, a small target budget a class
so that a gain can be seen, several seeds. Training rows never hold a concept of the test set:
the same concept drawn in another style is a leak.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.errors import BadInput

MOST_PER_CLASS = 200  # a source gives no more items a class than this

LabelledRows = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class GainTable:
    """Gains of blends.

    Attributes
    ----------
    table : DataFrame
        One row a blend: blend, accuracy, gain (mean over seeds), gain_sd, gain_seeds (list).
    baseline, baseline_sd : float
        A(empty): target data alone, mean and standard deviation over seeds.
    per_class : int
        Target training items a class.
    n_test : int
        Target test items.
    seeds : int
    """

    table: pd.DataFrame
    baseline: float
    baseline_sd: float
    per_class: int
    n_test: int
    seeds: int


def probe_gain(
    target_train: LabelledRows,
    target_test: LabelledRows,
    sources: Mapping[str, LabelledRows],
    blends: Sequence[Sequence[str]],
    *,
    per_class: int = 10,
    seeds: int = 5,
    c: float = 1.0,
    seed: int = 0,
    progress: Callable[[float, str], None] | None = None,
) -> GainTable:
    """Return A(S) - A(empty) for each blend.

    Parameters
    ----------
    target_train, target_test : (features (n, d), labels (n,))
        Disjoint; split by concept.
    sources : mapping of str to (features, labels)
        Must not hold the test set's concepts.
    blends : sequence of member names
    per_class : int
        Target training items a class (fewer where a class has fewer).
    seeds : int
        Draws of the target's training items (and of sources above 200 items a class).
    c : float
        Inverse penalty of the probe, as scikit-learn's ``C``.
    seed : int
    progress : callable, optional

    Returns
    -------
    GainTable
        Gains in [-1, 1]; negative is negative transfer.

    Raises
    ------
    BadInput
        Fewer than two classes in the target's training rows, no test rows, or a blend with
        an unknown member.

    References
    ----------
    RADAR, arXiv 2605.23028, Eq. 2-3.
    """
    x_train, y_train = target_train
    x_test, y_test = target_test
    _check(y_train, y_test, sources, blends, seeds)
    classes = np.unique(y_train)
    scores = np.empty((seeds, len(blends) + 1))
    for index in range(seeds):
        if progress:
            progress(index / seeds, f"Probes with seed {index + 1} of {seeds}")
        rng = np.random.default_rng(np.random.SeedSequence([seed, index]))
        parts = [_capped(x_train, y_train, classes, per_class, rng)]
        parts += [_capped(*sources[n], classes, MOST_PER_CLASS, rng) for n in sorted(sources)]
        scores[index] = _accuracies(parts, sorted(sources), blends, (x_test, y_test), c)
    gains = scores[:, 1:] - scores[:, :1]
    table = pd.DataFrame({
        "blend": [" + ".join(sorted(members)) for members in blends],
        "accuracy": scores[:, 1:].mean(0),
        "gain": gains.mean(0),
        "gain_sd": gains.std(0, ddof=1) if seeds > 1 else np.nan,
        "gain_seeds": list(gains.T),
    })  # fmt: skip
    spread = float(scores[:, 0].std(ddof=1)) if seeds > 1 else float("nan")
    return GainTable(table, float(scores[:, 0].mean()), spread, per_class, len(y_test), seeds)


def _check(
    y_train: np.ndarray, y_test: np.ndarray, sources: Mapping[str, LabelledRows],
    blends: Sequence[Sequence[str]], seeds: int,
) -> None:  # fmt: skip
    if len(np.unique(y_train)) < 2:
        raise BadInput("The target's training rows have fewer than two classes.", "Check labels.")
    if len(y_test) == 0:
        raise BadInput("The target has no test rows.", "Mark some items split='test'.")
    if seeds < 1:
        raise BadInput(f"seeds={seeds}, expected at least 1.")
    unknown = sorted({name for members in blends for name in members} - set(sources))
    if unknown:
        raise BadInput(f"blends names {unknown[0]!r}, which is not a source.")


def _capped(
    x: np.ndarray, y: np.ndarray, classes: np.ndarray, most: int, rng: np.random.Generator
) -> LabelledRows:
    """At most ``most`` random rows a class, of the target's classes only."""
    rows = [rng.permutation(np.flatnonzero(y == label))[:most] for label in classes]
    chosen = np.sort(np.concatenate(rows))
    return x[chosen], y[chosen]


def _accuracies(
    parts: Sequence[LabelledRows], names: Sequence[str], blends: Sequence[Sequence[str]],
    test: LabelledRows, c: float,
) -> np.ndarray:  # fmt: skip
    """Test accuracy of target alone and of target with each blend, (1 + len(blends),)."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    chosen = [(0,), *((0, *(1 + list(names).index(m) for m in members)) for members in blends)]
    scores = []
    for rows in chosen:
        x = np.concatenate([parts[row][0] for row in rows]).astype(np.float64)
        y = np.concatenate([parts[row][1] for row in rows])
        scaler = StandardScaler().fit(x)
        head = LogisticRegression(C=c, max_iter=2_000).fit(scaler.transform(x), y)
        # A test class that no training row shows counts as wrong, as it would in use.
        scores.append(float((head.predict(scaler.transform(test[0])) == test[1]).mean()))
    return np.array(scores)
