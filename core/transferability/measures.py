"""Every baseline as a row of a table: what it needs, which way is better, how it was adapted.

The published measures compare many encoders on one data set. Here one frozen encoder meets
many blends of sources, so most had to be adapted: LEEP and NCE take a probe trained on the
blend as the source classifier; LogME, TransRate and H-score see blend and target together,
since on the target alone they are the same for every blend. The paper's own adaptation
(RADAR, arXiv 2605.23028) is not known to us.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from core.errors import BadInput
from core.transferability.baselines.hscore import h_score
from core.transferability.baselines.leep import leep
from core.transferability.baselines.logme import logme
from core.transferability.baselines.nce import nce
from core.transferability.baselines.otdd import otdd
from core.transferability.baselines.sotdd import joint_scale, s_otdd
from core.transferability.baselines.transrate import transrate
from core.transferability.simple import distance_of_class_means, distance_of_means

LabelledRows = tuple[np.ndarray, np.ndarray]
Progress = Callable[[float, str], None]

_PROBE = "a probe trained on the blend stands in for the source classifier"
_POOLED = "on blend and target together: on the target alone it is the same for every blend"


@dataclass(frozen=True)
class BlendData:
    """A target's training rows and one blend, as a measure sees them.

    Attributes
    ----------
    target, blend : (features (n, d), labels (n,))
    scale : float
        Root mean square length of the rows of target and all sources, one for all blends.
    seed : int
    probe_c : float
        Inverse penalty of the probe behind LEEP and NCE.
    n_projections : int
        Of s-OTDD.
    """

    target: LabelledRows
    blend: LabelledRows
    scale: float
    seed: int
    probe_c: float
    n_projections: int

    @cached_property
    def probabilities(self) -> np.ndarray:
        """Source class probabilities of the target's rows by a probe trained on the blend."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.preprocessing import StandardScaler

        x, y = self.blend
        if len(np.unique(y)) < 2:
            return np.ones((len(self.target[0]), 1))
        scaler = StandardScaler().fit(x)
        head = LogisticRegression(C=self.probe_c, max_iter=2_000).fit(scaler.transform(x), y)
        return np.asarray(head.predict_proba(scaler.transform(self.target[0])))

    @cached_property
    def pooled(self) -> LabelledRows:
        """Blend and target, one after the other."""
        (x, y), (z, w) = self.target, self.blend
        return np.concatenate([x, z]), np.concatenate([y, w])


@dataclass(frozen=True)
class Measure:
    """One baseline.

    Attributes
    ----------
    name : str
        Column in tables.
    label : str
        As shown.
    better : {"higher", "lower"}
    score : callable
        ``BlendData -> float``.
    target_labels, source_labels : bool
        Labels it needs.
    adapted : str
        How it was adapted to one encoder and many blends; empty: as published.
    heavy : bool
        Seconds a blend: not measured unless asked for by name.
    """

    name: str
    label: str
    better: str
    score: Callable[[BlendData], float]
    target_labels: bool = True
    source_labels: bool = True
    adapted: str = ""
    heavy: bool = False


@dataclass(frozen=True)
class MeasureTable:
    """Values of measures over blends.

    Attributes
    ----------
    values : DataFrame
        blend, and one column a measure; nan where it could not be computed.
    seconds : mapping of str to float
        Spent on each measure over all blends (the shared probe counts for the first).
    unavailable : mapping of str to str
        Measures that are "n/a", and why: constant over the blends, or labels missing.
    """

    values: pd.DataFrame
    seconds: Mapping[str, float]
    unavailable: Mapping[str, str] = field(default_factory=dict)


def _register(*measures: Measure) -> dict[str, Measure]:
    return {measure.name: measure for measure in measures}


MEASURES: dict[str, Measure] = _register(
    Measure(
        "leep", "LEEP", "higher",
        lambda data: leep(data.probabilities, data.target[1]), adapted=_PROBE,
    ),
    Measure(
        "nce", "NCE", "higher",
        lambda data: nce(data.probabilities.argmax(1), data.target[1]), adapted=_PROBE,
    ),
    Measure("logme", "LogME", "higher", lambda data: logme(*data.pooled), adapted=_POOLED),
    Measure(
        "transrate", "TransRate", "higher", lambda data: transrate(*data.pooled), adapted=_POOLED
    ),
    Measure(
        "h_score", "H-score (shrunk)", "higher",
        lambda data: h_score(*data.pooled, shrinkage=True), adapted=_POOLED,
    ),
    Measure(
        "s_otdd", "s-OTDD", "lower",
        lambda data: s_otdd(
            *data.target, *data.blend, n_projections=data.n_projections, seed=data.seed,
            scale=data.scale,
        ),
    ),
    Measure(
        "otdd", "OTDD", "lower",
        lambda data: otdd(*data.target, *data.blend, seed=data.seed), heavy=True,
    ),
    Measure(
        "size", "blend size", "higher", lambda data: float(len(data.blend[0])),
        target_labels=False, source_labels=False,
    ),
    Measure(
        "distance_of_means", "distance of means", "lower",
        lambda data: distance_of_means(data.target[0], data.blend[0]),
        target_labels=False, source_labels=False,
    ),
    Measure(
        "distance_of_class_means", "distance of class means", "lower",
        lambda data: distance_of_class_means(*data.target, *data.blend),
    ),
)  # fmt: skip


def measure_blends(
    target: LabelledRows,
    sources: Mapping[str, LabelledRows],
    blends: Sequence[Sequence[str]],
    *,
    names: Sequence[str] | None = None,
    has_labels: bool = True,
    seed: int = 0,
    probe_c: float = 1.0,
    n_projections: int = 200,
    progress: Progress | None = None,
) -> MeasureTable:
    """Return every measure of every blend.

    Parameters
    ----------
    target : (features (n, d), labels (n,))
        The target's training rows: a measure may not see the test set.
    sources : mapping of str to (features, labels)
    blends : sequence of member names
    names : sequence of str, optional
        Keys of ``MEASURES``; default all but the heavy ones.
    has_labels : bool
        False leaves out what needs labels, with that reason.
    seed : int
        Shared by all blends, so that random projections are common.
    probe_c, n_projections
        See :class:`BlendData`.
    progress : callable, optional

    Returns
    -------
    MeasureTable

    Raises
    ------
    BadInput
        An unknown measure or source, an empty blend, or features of unequal width.
    """
    chosen = [name for name in MEASURES if not MEASURES[name].heavy] if names is None else names
    _check(chosen, sources, blends)
    report = progress or (lambda _fraction, _message: None)
    scale = joint_scale(target[0], *(rows for rows, _ in sources.values()))
    usable = [name for name in chosen if has_labels or not MEASURES[name].target_labels]
    values = {name: np.full(len(blends), np.nan) for name in chosen}
    seconds = dict.fromkeys(chosen, 0.0)
    for index, members in enumerate(blends):
        report(index / len(blends), f"Measuring blend {index + 1} of {len(blends)}")
        parts = [sources[name] for name in sorted(members)]
        blend = np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])
        data = BlendData(target, blend, scale, seed, probe_c, n_projections)
        for name in usable:
            began = time.perf_counter()
            values[name][index] = MEASURES[name].score(data)
            seconds[name] += time.perf_counter() - began
    table = pd.DataFrame({"blend": [" + ".join(sorted(members)) for members in blends], **values})
    return MeasureTable(table, seconds, _reasons(values, usable))


def _check(
    names: Sequence[str], sources: Mapping[str, LabelledRows], blends: Sequence[Sequence[str]]
) -> None:
    for name in names:
        if name not in MEASURES:
            raise BadInput(f"{name!r} is not a measure.", f"One of: {', '.join(MEASURES)}.")
    for members in blends:
        unknown = sorted(set(members) - set(sources))
        if unknown or not members:
            what = f"names {unknown[0]!r}, which is not a source" if unknown else "has no member"
            raise BadInput(f"A blend {what}.", f"Known: {', '.join(sorted(sources))}.")


def _reasons(values: Mapping[str, np.ndarray], usable: Sequence[str]) -> dict[str, str]:
    reasons = {}
    for name, column in values.items():
        if name not in usable:
            reasons[name] = "needs labels"
        elif not np.isfinite(column).all():
            reasons[name] = "not defined for some blend: no class is shared"
        elif len(column) > 1 and np.ptp(column) <= 1e-12 * np.abs(column).max():
            reasons[name] = "the same for every blend: it cannot rank them"
    return reasons
