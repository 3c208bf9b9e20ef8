"""RADAR's score of a blend, and the ranking of all blends.

RADAR, arXiv 2605.23028, Eq. 1-10: triplet descriptors of within- and cross-domain pairs,
densities of both, symmetric KL between them; lower means the blend is more like the target.
The null (half of the target against the other half) and the repeats are ours: without them a
divergence has no zero.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from core.errors import BadInput
from core.radar.blends import MOST_EXHAUSTIVE, all_blends, blend_name, choose_members, take_rows
from core.radar.collect import Collector, SourceDraw, resolve_labels
from core.radar.densities import Divergence, compare
from core.radar.pairing import generator
from core.radar.states import (
    DomainLike,
    as_domain,
    as_sources,
    constant_transitions,
    project_states,
    transition_name,
    usable_transitions,
)
from core.radar.types import BlendRanking, Descriptors, Domain, RadarConfig, RadarResult
from core.types import LeftOut

Progress = Callable[[float, str], None]
Draws = dict[str, dict[str, list[SourceDraw]]]  # direction -> source -> one draw a repeat


def radar_score(
    target: DomainLike,
    blend: DomainLike | Sequence[DomainLike] | Mapping[str, DomainLike],
    *,
    direction: str = "blend",
    **options: Any,
) -> RadarResult:
    """Return how unlike a blend of sources is to the target: lower is nearer.

    Parameters
    ----------
    target : Domain, Features, ndarray (n, L+1, d) or list of ndarray (n, d_l)
    blend : the same, or a sequence or mapping of them
        The members. A list of 2-D arrays is the states of one domain; name members through
        a mapping or :class:`~core.radar.types.Domain`.
    direction : {"blend", "target", "both"}
        Where anchors come from.
    **options
        Fields of :class:`~core.radar.types.RadarConfig`.

    Returns
    -------
    RadarResult
        Scores in nats. ``null`` is nan when the target has fewer than four items.

    Raises
    ------
    BadInput
        Fewer than two states or items, values that are not finite, labels of another length,
        no transition of equal width, or fewer than 50 usable pairs.

    References
    ----------
    RADAR, arXiv 2605.23028.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> stream = lambda shift: np.cumsum(rng.normal(shift, 1, (200, 4, 8)), axis=1)
    >>> near = radar_score(stream(0), stream(0), density="gaussian", n_pairs=400)
    >>> far = radar_score(stream(0), stream(2), density="gaussian", n_pairs=400)
    >>> near.score < far.score
    True
    """
    config = RadarConfig(direction=direction, **options)
    study = _Study(as_domain(target, "target"), as_sources(blend), config)
    return study.score(tuple(study.sources))


def rank_blends(
    target: DomainLike,
    sources: Sequence[DomainLike] | Mapping[str, DomainLike],
    *,
    progress: Progress | None = None,
    **options: Any,
) -> BlendRanking:
    """Score every non-empty blend of the sources, nearest first.

    Up to ten sources all 2^K - 1 blends are scored; above that the singles and a greedy
    chain, which adds the source that keeps the score lowest.

    Parameters
    ----------
    target : Domain, Features, ndarray or list of ndarray
    sources : sequence or mapping of the same
        Names must differ.
    progress : callable, optional
        Called with a fraction and a message; may raise ``Cancelled``.
    **options
        Fields of :class:`~core.radar.types.RadarConfig`.

    Returns
    -------
    BlendRanking

    Raises
    ------
    BadInput
        As :func:`radar_score`, or no source.
    """
    began = time.perf_counter()
    report = progress or (lambda _fraction, _message: None)
    config = RadarConfig(**options)
    study = _Study(as_domain(target, "target"), as_sources(sources), config, report)
    exhaustive = len(study.sources) <= MOST_EXHAUSTIVE
    results: dict[str, RadarResult] = {}
    if exhaustive:
        blends = all_blends(list(study.sources))
        for index, members in enumerate(blends):
            report(0.5 + 0.5 * index / len(blends), f"Scoring blend {index + 1} of {len(blends)}")
            results[blend_name(members)] = study.score(members)
    else:
        _greedy(study, results, report)
    return _ranking(study, results, exhaustive, began)


def _ranking(
    study: _Study, results: dict[str, RadarResult], exhaustive: bool, began: float
) -> BlendRanking:
    table = _table(results, study)
    anchors = {
        name: np.stack([d[0].pairs.anchor, d[0].pairs.within, d[0].pairs.cross], axis=1)[
            d[0].weight > 0
        ]
        for name, d in study.draws[study.directions[0]].items()
    }
    warnings = next(iter(results.values())).warnings
    return BlendRanking(
        table, results, anchors, study.target.name, study.config, exhaustive,
        time.perf_counter() - began, warnings,
    )  # fmt: skip


def score_blends(
    target: DomainLike,
    sources: Sequence[DomainLike] | Mapping[str, DomainLike],
    blends: Sequence[Sequence[str]],
    *,
    progress: Progress | None = None,
    **options: Any,
) -> BlendRanking:
    """Score the named blends only: for densities that take seconds each.

    Parameters
    ----------
    target, sources, progress, **options
        As :func:`rank_blends`.
    blends : sequence of member names

    Returns
    -------
    BlendRanking
        The same numbers as :func:`rank_blends` gives for these blends.

    Raises
    ------
    BadInput
        As :func:`rank_blends`; no blend, or a member that is not a source.
    """
    began = time.perf_counter()
    report = progress or (lambda _fraction, _message: None)
    study = _Study(as_domain(target, "target"), as_sources(sources), RadarConfig(**options), report)
    unknown = sorted({name for members in blends for name in members} - set(study.sources))
    if unknown or not blends or not all(blends):
        what = f"names {unknown[0]!r}" if unknown else "holds no blend, or an empty one"
        raise BadInput(f"blends {what}.", f"Known sources: {', '.join(study.sources)}.")
    results: dict[str, RadarResult] = {}
    for index, members in enumerate(blends):
        report(0.5 + 0.5 * index / len(blends), f"Scoring blend {index + 1} of {len(blends)}")
        results[blend_name(members)] = study.score(tuple(members))
    return _ranking(study, results, False, began)


def _greedy(study: _Study, results: dict[str, RadarResult], report: Progress) -> None:
    """Singles, then the chain that adds the source with the lowest blend score."""
    names = list(study.sources)
    steps = len(names) * (len(names) + 1) // 2
    chain: tuple[str, ...] = ()
    while len(chain) < len(names):
        tried = [(*chain, name) for name in names if name not in chain]
        for members in tried:
            report(0.5 + 0.5 * len(results) / steps, f"Scoring {blend_name(members)}")
            results[blend_name(members)] = study.score(members)
        chain = min(tried, key=lambda members: results[blend_name(members)].score)


def _table(results: Mapping[str, RadarResult], study: _Study) -> pd.DataFrame:
    rows = [
        {
            "blend": name,
            "members": list(out.members),
            "n_members": len(out.members),
            "size": sum(len(study.sources[member]) for member in out.members),
            "score": out.score, "sd": out.sd, "null": out.null, "null_sd": out.null_sd,
            "excess": out.excess, "excess_sd": out.excess_sd,
            "joint": out.joint, "per_layer": out.per_layer_mean,
            "n_used": out.n_used, "n_masked": out.n_masked,
        }
        for name, out in results.items()
    ]  # fmt: skip
    frame = pd.DataFrame(rows).sort_values(["score", "blend"], kind="stable", ignore_index=True)
    frame["rank"] = np.arange(1, len(frame) + 1)
    return frame


@dataclass(frozen=True)
class _Repeats:
    """One comparison over all repeats: joint, se (R,), per_layer (R, L)."""

    joint: np.ndarray
    se: np.ndarray
    per_layer: np.ndarray
    first: Divergence

    def reading(self, mode: str) -> np.ndarray:
        return self.joint if mode == "joint" else self.per_layer.mean(1)


class _Study:
    """Everything about one target: descriptors of all sources, the null, kept layers."""

    def __init__(
        self, target: Domain, sources: Sequence[Domain], config: RadarConfig,
        report: Progress = lambda _fraction, _message: None,
    ) -> None:  # fmt: skip
        self.config, self.projected = config, None
        domains = [target, *sources]
        if config.project == "jl":
            domains, self.projected = project_states(domains, config.layers)
        target, *sources = domains
        self.target = target
        self.sources = {source.name: source for source in sources}
        transitions, dropped = usable_transitions(domains, config.layers)
        self.label_mode = resolve_labels(target, sources, config.label_mode)
        collector = Collector(target, domains, transitions, self.label_mode, config)
        both = ("blend", "target")
        self.directions = both if config.direction == "both" else (config.direction,)
        self.draws: Draws = {direction: {} for direction in self.directions}
        for index, source in enumerate(sources):
            report(0.5 * index / len(sources), f"Triangles of {source.name}")
            for direction in self.directions:
                self.draws[direction][source.name] = collector.source(source, direction)
        names = [transition_name(target, pair) for pair in transitions]
        self.keep, constant = constant_transitions(self._samples(), names)
        self.kept_names = tuple(names[index] for index in self.keep)
        self.dropped: tuple[LeftOut, ...] = (*dropped, *constant)
        self.null: _Repeats | None = None
        if collector.can_halve:
            parts = [self._compare([draw], ("null",), r) for r, draw in enumerate(collector.null())]
            self.null = _gather(parts)

    def _samples(self) -> list[Descriptors]:
        return [
            part
            for by_source in self.draws.values()
            for draws in by_source.values()
            for part in (draws[0].within, draws[0].cross)
        ]

    def _mix(self, draws: Sequence[SourceDraw], repeat: int) -> tuple[Descriptors, Descriptors]:
        """Put a blend's within and cross sets together with the same member for each row."""
        weights = np.stack([draw.weight for draw in draws], axis=1)  # (n, S)
        rng = generator(self.config.seed, "mix", self.target.name, repeat)
        member = choose_members(weights, rng)
        within = take_rows([draw.within for draw in draws], member).transitions(self.keep)
        cross = take_rows([draw.cross for draw in draws], member).transitions(self.keep)
        return within, cross

    def _compare(
        self, draws: Sequence[SourceDraw], members: tuple[str, ...], repeat: int
    ) -> Divergence:
        within, cross = self._mix(draws, repeat)
        rng = generator(self.config.seed, "fit", self.target.name, *members, repeat)
        return compare(within, cross, self.config, int(rng.integers(2**31)))

    def score(self, members: tuple[str, ...]) -> RadarResult:
        """Score one blend of the collected sources."""
        members = tuple(sorted(members))
        by_direction = []
        for direction in self.directions:
            draws = [self.draws[direction][name] for name in members]
            parts = [
                self._compare([draw[repeat] for draw in draws], members, repeat)
                for repeat in range(self.config.repeats)
            ]
            by_direction.append(_gather(parts))
        return self._result(members, _average(by_direction))

    def _result(self, members: tuple[str, ...], out: _Repeats) -> RadarResult:
        config, null = self.config, self.null
        reading = out.reading(config.mode)
        n_layers = out.per_layer.shape[1]
        nothing = np.full(n_layers, np.nan)
        floor = null.reading(config.mode) if null else np.array([np.nan])
        draws = [self.draws[self.directions[0]][name] for name in members]
        within, cross = self._mix([draw[0] for draw in draws], 0)
        n_pairs = 2 * config.n_pairs
        used = out.first.n_within + out.first.n_cross
        return RadarResult(
            score=float(reading.mean()), sd=_sd(reading),
            se_mc=float(np.sqrt((out.se**2).mean() / len(out.se))),
            null=float(floor.mean()), null_sd=_sd(floor),
            excess=float(reading.mean() - floor.mean()),
            excess_sd=_sd(reading - floor),
            joint=float(out.joint.mean()), per_layer_mean=float(out.per_layer.mean()),
            per_layer=out.per_layer.mean(0), per_layer_sd=_sd_rows(out.per_layer),
            null_layer=null.per_layer.mean(0) if null else nothing,
            null_layer_sd=_sd_rows(null.per_layer) if null else nothing,
            kept_layers=self.kept_names, dropped_layers=self.dropped,
            n_pairs=n_pairs, n_used=used, n_masked=n_pairs - used,
            n_skipped=sum(draw[0].pairs.n_skipped for draw in draws),
            within=within, cross=cross, repeats=reading, members=members, config=config,
            warnings=self._warnings(out.first),
        )  # fmt: skip

    def _warnings(self, first: Divergence) -> tuple[str, ...]:
        found = []
        least = 3 * first.n_params
        if self.config.mode == "joint" and min(first.n_within, first.n_cross) < least:
            found.append(
                f"{self.config.n_pairs:,} pairs for {first.n_params:,} parameters of the joint "
                f"density: fewer than three a parameter. Raise n_pairs to {least:,} or read the "
                "per-layer score."
            )
        if self.projected is not None:
            found.append(
                f"States of unequal width were projected at random to {self.projected} "
                "columns: the triangles are approximate."
            )
        if self.null is None:
            found.append("The target has fewer than four items: there is no null to compare with.")
        small = min(len(domain) for domain in (self.target, *self.sources.values()))
        if small < 50:
            found.append(f"The smallest domain has {small} items: pairs repeat the same pictures.")
        return tuple(found)


def _gather(parts: Sequence[Divergence]) -> _Repeats:
    return _Repeats(
        np.array([part.joint for part in parts]),
        np.array([part.se for part in parts]),
        np.stack([part.per_layer for part in parts]),
        parts[0],
    )


def _average(parts: Sequence[_Repeats]) -> _Repeats:
    """Mean over directions."""
    if len(parts) == 1:
        return parts[0]
    return _Repeats(
        np.mean([part.joint for part in parts], axis=0),
        np.sqrt(np.mean([part.se**2 for part in parts], axis=0) / len(parts)),
        np.mean([part.per_layer for part in parts], axis=0),
        parts[0].first,
    )


def _sd(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")


def _sd_rows(values: np.ndarray) -> np.ndarray:
    return values.std(0, ddof=1) if len(values) > 1 else np.full(values.shape[1], np.nan)
