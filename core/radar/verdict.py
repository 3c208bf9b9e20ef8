"""From scores to words: add, leave out, cannot tell.

The rule, on single sources (excess = score - null; every sd is over repeats):

1. **Like the target**: the excess is below two of its standard deviations. Add it.
2. **Nothing is near**: the nearest source is farther from the target than the target's own
   classes are from one another (``far``). Then order among the sources is not evidence:
   cannot tell, for all of them. On outlying domains RADAR's ranking can even invert.
3. Otherwise sources are set against the nearest one. Not separable from it (difference below
   two standard deviations): add. Separable, and farther than halfway from the nearest to
   ``far`` (or, where classes are unknown, more than twice the nearest excess): leave out.
   In between: cannot tell.

The words are an estimate; only a measured gain shows benefit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.radar.types import RadarResult

ADD, LEAVE, UNSURE = "add", "leave out", "cannot tell"
_SURE = 2.0  # standard deviations


@dataclass(frozen=True)
class Decision:
    """What to do with one source.

    Attributes
    ----------
    source : str
    decision : {"add", "leave out", "cannot tell"}
    reason : str
        One sentence without a full stop.
    pairs_needed : float
        How many times the present pairs would bring the difference to two standard
        deviations (nan where more pairs would not settle it).
    """

    source: str
    decision: str
    reason: str
    pairs_needed: float = float("nan")


def decide(singles: Mapping[str, RadarResult], far: float | None = None) -> list[Decision]:
    """Decide on each source, nearest first.

    Parameters
    ----------
    singles : mapping of source name to its result
    far : float, optional
        Excess between the target's own classes, the yardstick for "not near".

    Returns
    -------
    list of Decision
    """
    names = sorted(singles, key=lambda name: (singles[name].score, name))
    nearest = singles[names[0]]
    lost = far is not None and nearest.excess > far and not _like_target(nearest)
    return [
        _lost(name) if lost else _one(name, singles[name], nearest, names[0], far) for name in names
    ]


def _one(
    name: str, out: RadarResult, nearest: RadarResult, nearest_name: str, far: float | None
) -> Decision:
    if _like_target(out):
        return Decision(name, ADD, "not told apart from the target's own halves")
    if name == nearest_name:
        return Decision(name, ADD, "the nearest source")
    # The same half of the target in both: their difference, repeat by repeat, varies less.
    apart = out.repeats - nearest.repeats
    sd = float(apart.std(ddof=1)) if len(apart) > 1 else float("nan")
    if not apart.mean() > _SURE * sd:
        return Decision(name, ADD, f"as near as {nearest_name} within two standard deviations")
    floor = max(nearest.excess, 0.0)
    limit = floor + max(0.5 * ((far or 0.0) - floor), 0.0) if far is not None else 2.0 * floor
    margin, spread = out.excess - limit, out.excess_sd
    if margin > _SURE * spread:
        return Decision(name, LEAVE, f"clearly farther than {nearest_name}")
    if margin < -_SURE * spread:
        return Decision(name, ADD, f"farther than {nearest_name}, but still near")
    # The spread falls with the root of the pairs; a margin of nothing would need endless pairs.
    needed = (_SURE * spread / max(abs(margin), 1e-12)) ** 2
    needed = needed if needed < 100 else float("nan")
    return Decision(name, UNSURE, f"between {nearest_name} and far", needed)


def _like_target(out: RadarResult) -> bool:
    return bool(out.excess <= _SURE * out.excess_sd)


def _lost(name: str) -> Decision:
    reason = "no source is near: all are farther from the target than its own classes are apart"
    return Decision(name, UNSURE, reason)


def headline(decisions: list[Decision], titles: Mapping[str, str] | None = None) -> str:
    """Say the decisions in one or two sentences.

    Examples
    --------
    >>> headline([Decision("noto", "add", ""), Decision("line", "leave out", "")])
    'Add noto. Leave out line.'
    """
    shown = titles or {}
    groups = {
        kind: [shown.get(d.source, d.source) for d in decisions if d.decision == kind]
        for kind in (ADD, LEAVE, UNSURE)
    }
    if not groups[ADD] and not groups[LEAVE]:
        return (
            f"Cannot tell: no source is near the target ({_listed(groups[UNSURE])}). "
            "Train and measure before trusting an order."
        )
    parts = []
    if groups[ADD]:
        parts.append(f"Add {_listed(groups[ADD])}.")
    if groups[LEAVE]:
        parts.append(f"Leave out {_listed(groups[LEAVE])}.")
    if groups[UNSURE]:
        parts.append(f"Cannot tell for {_listed(groups[UNSURE])}.")
    return " ".join(parts)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
