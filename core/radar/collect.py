"""Descriptors of every source, once: all blends are put together from them.

RADAR, arXiv 2605.23028, section 3. Each (target, source, repeat) has its own random stream,
so nothing depends on the order of sources or blends.

Axes: n pairs a repeat, R repeats, S sources, L transitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.errors import BadInput
from core.radar.pairing import (
    Pairs,
    draw_anchors,
    draw_partners,
    generator,
    has_partner,
    sample_pairs,
    shared_codes,
)
from core.radar.triplets import PairSpace, ball_scale
from core.radar.types import Descriptors, Domain, RadarConfig


@dataclass(frozen=True)
class SourceDraw:
    """One source in one repeat.

    Attributes
    ----------
    within, cross : Descriptors
        (n, L); row r of both has the same anchor.
    weight : ndarray of float64, shape (n,)
        How much this source counts at row r of a blend.
    pairs : Pairs
        Row numbers in the domains the pairs came from.
    """

    within: Descriptors
    cross: Descriptors
    weight: np.ndarray
    pairs: Pairs


def resolve_labels(target: Domain, sources: Sequence[Domain], label_mode: str) -> str:
    """Turn "auto" into "same" (all labels known) or "any".

    Raises
    ------
    BadInput
        "same" or "different" was asked for and labels are missing.
    """
    missing = [domain.name for domain in (target, *sources) if domain.labels is None]
    if label_mode == "auto":
        return "any" if missing else "same"
    if label_mode != "any" and missing:
        raise BadInput(
            f"label_mode={label_mode!r} needs labels, {missing[0]!r} has none.",
            "Give labels or use label_mode='any'.",
        )
    return label_mode


def halves(domain: Domain, seed: int, repeat: int) -> tuple[np.ndarray, np.ndarray]:
    """Split a domain's rows into two random halves, class by class where labels are known."""
    order = generator(seed, "half", domain.name, repeat).permutation(len(domain))
    if domain.labels is not None:
        order = order[np.argsort(np.asarray(domain.labels)[order], kind="stable")]
    return np.sort(order[::2]), np.sort(order[1::2])


class Collector:
    """Draws pairs and computes their descriptors for one target.

    Parameters
    ----------
    target : Domain
    domains : sequence of Domain
        Target and all sources: they set the ball's scale.
    transitions : sequence of (int, int)
    label_mode : {"any", "same", "different"}
    config : RadarConfig
    """

    def __init__(
        self, target: Domain, domains: Sequence[Domain], transitions: Sequence[tuple[int, int]],
        label_mode: str, config: RadarConfig,
    ) -> None:  # fmt: skip
        self._target, self._transitions = target, transitions
        self._label_mode, self._config = label_mode, config
        self._scale = 1.0
        if config.geometry == "poincare":
            self._scale = ball_scale([state for d in domains for state in d.layers])
        self._own: dict[str, PairSpace] = {}

    @property
    def can_halve(self) -> bool:
        """Whether the target has enough items for two halves with pairs in each."""
        return len(self._target) >= 4

    def source(self, source: Domain, direction: str) -> list[SourceDraw]:
        """Return a source's draws, one a repeat.

        ``direction`` "blend": anchors and within partners from the source, cross partners
        from the target. "target": anchors and within partners from the target.
        """
        a, b = (source, self._target) if direction == "blend" else (self._target, source)
        cross = self._space(a, b)
        return [self._draw(a, b, cross, source.name, repeat) for repeat in range(self._repeats)]

    def null(self) -> list[SourceDraw]:
        """Return half of the target against the other half, one draw a repeat."""
        space = self._own_space(self._target)
        out = []
        for repeat in range(self._repeats):
            left, right = halves(self._target, self._config.seed, repeat)
            pairs = self._sample(
                self._target, self._target, left, right, (self._target.name, "null", repeat)
            )
            out.append(self._describe(space, space, pairs, np.ones(len(pairs.anchor))))
        return out

    @property
    def _repeats(self) -> int:
        return self._config.repeats

    def _draw(self, a: Domain, b: Domain, cross: PairSpace, source: str, repeat: int) -> SourceDraw:
        config = self._config
        rows_a, rows_b = self._pool(a, repeat), self._pool(b, repeat)
        key = (self._target.name, source, repeat)
        if a is self._target:
            pairs, weight = self._from_target(a, b, rows_a, rows_b, key)
        else:
            pairs = self._sample(a, b, rows_a, rows_b, key)
            weight = np.full(len(pairs.anchor), float(len(rows_a) - pairs.n_skipped))
        if config.source_weight == "equal":
            weight = (weight > 0).astype(float)
        return self._describe(self._own_space(a), cross, pairs, weight)

    def _pool(self, domain: Domain, repeat: int) -> np.ndarray:
        if self._config.pool == "halves" and self.can_halve and len(domain) >= 4:
            return halves(domain, self._config.seed, repeat)[0]
        return np.arange(len(domain))

    def _codes(
        self, a: Domain, b: Domain, rows_a: np.ndarray, rows_b: np.ndarray
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        left = None if a.labels is None else np.asarray(a.labels)[rows_a]
        right = None if b.labels is None else np.asarray(b.labels)[rows_b]
        return left, right

    def _sample(
        self, a: Domain, b: Domain, rows_a: np.ndarray, rows_b: np.ndarray,
        key: tuple[str | int, ...],
    ) -> Pairs:  # fmt: skip
        labels_a, labels_b = self._codes(a, b, rows_a, rows_b)
        pairs = sample_pairs(
            len(rows_a), len(rows_b), self._config.n_pairs,
            generator(self._config.seed, "pairs", *key),
            label_mode=self._label_mode, labels_a=labels_a, labels_b=labels_b,
        )  # fmt: skip
        return Pairs(
            rows_a[pairs.anchor], rows_a[pairs.within], rows_b[pairs.cross], pairs.n_skipped
        )

    def _from_target(
        self, a: Domain, b: Domain, rows_a: np.ndarray, rows_b: np.ndarray,
        key: tuple[str | int, ...],
    ) -> tuple[Pairs, np.ndarray]:  # fmt: skip
        """Anchors and within partners that all sources share; weight = partners at hand."""
        mode, seed, n = self._label_mode, self._config.seed, self._config.n_pairs
        labels_a, labels_b = self._codes(a, b, rows_a, rows_b)
        codes_a, codes_b = shared_codes(labels_a, labels_b, len(rows_a), len(rows_b), mode)
        shared = generator(seed, "anchors", key[0], key[2])
        possible = np.flatnonzero(has_partner(codes_a, codes_a, mode, own=True))
        if len(possible) == 0:
            raise BadInput(
                f"No target item has a partner with label_mode={mode!r}.", "Use label_mode='any'."
            )
        anchor = draw_anchors(possible, n, shared)
        within = draw_partners(codes_a[anchor], codes_a, mode, shared, exclude=anchor)
        classes = codes_a[anchor]
        cross = draw_partners(classes, codes_b, mode, generator(seed, "cross", *key))
        counts = np.bincount(codes_b, minlength=int(codes_a.max()) + 1)[classes]
        weight = (len(codes_b) - counts if mode == "different" else counts).astype(float)
        pairs = Pairs(rows_a[anchor], rows_a[within], rows_b[cross], len(rows_a) - len(possible))
        return pairs, weight

    def _space(self, a: Domain, b: Domain) -> PairSpace:
        config = self._config
        return PairSpace(
            a.layers, b.layers, self._transitions, n_expected=config.n_pairs * config.repeats,
            geometry=config.geometry, angle_mode=config.angle_mode,
            angle_pair=config.angle_pair, scale=self._scale, device=config.device,
        )  # fmt: skip

    def _own_space(self, domain: Domain) -> PairSpace:
        # Kept for one domain beside the target: its table is not needed once it is done.
        if domain.name not in self._own:
            kept = self._own.get(self._target.name)
            self._own = {} if kept is None else {self._target.name: kept}
            self._own[domain.name] = self._space(domain, domain)
        return self._own[domain.name]

    @staticmethod
    def _describe(own: PairSpace, cross: PairSpace, pairs: Pairs, weight: np.ndarray) -> SourceDraw:
        return SourceDraw(
            own.at(pairs.anchor, pairs.within), cross.at(pairs.anchor, pairs.cross), weight, pairs
        )
