"""From scores to words: add, leave out, cannot tell.

The rule looks at single sources and has one yardstick, ``far``: the excess between halves of
the target's own classes. A source nearer than that differs from the target less than the target
differs within itself. With the excess (score - null) and its standard deviation over repeats:

1. excess + 2 sd <= far: **add**;
2. excess - 2 sd >= far: **leave out**; but if that holds for every source, nothing is near, the
   order among them is not evidence (RADAR can invert for outlying domains), and the answer is
   **cannot tell** for all;
3. otherwise **cannot tell**: the interval holds the yardstick, and more items or pairs would
   settle it.

Where the classes are unknown the yardstick is twice the excess of the nearest source, and at
least the null: then "far" only means "clearly farther than the nearest".

The words are an estimate; only a measured gain shows benefit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.radar.types import RadarResult

ADD, LEAVE, UNSURE = "add", "leave out", "cannot tell"
_SURE = 2.0  # standard deviations
_MOST_NEEDED = 100.0
_NEAR = "differs from the target less than its own classes do"
_FAR = "differs from the target more than its own classes do"
_BETWEEN = "about as far as the target's own classes from one another"


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
        How many times the present items would take the yardstick out of the interval (nan
        where more would hardly settle it).
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
        Excess between the target's own classes, in nats.

    Returns
    -------
    list of Decision
        With one repeat, or without a null, there is no interval: cannot tell.
    """
    names = sorted(singles, key=lambda name: (singles[name].score, name))
    nearest = singles[names[0]]
    limit = max(2.0 * nearest.excess, nearest.null) if far is None else far
    low = {name: out.excess - _SURE * out.excess_sd for name, out in singles.items()}
    lost = far is not None and all(value >= limit for value in low.values())
    return [_lost(name) if lost else _one(name, singles[name], limit) for name in names]


def _one(name: str, out: RadarResult, limit: float) -> Decision:
    spread = _SURE * out.excess_sd
    if out.excess + spread <= limit:
        alike = out.excess <= spread
        reason = "not told apart from the target's own halves" if alike else _NEAR
        return Decision(name, ADD, reason)
    if out.excess - spread >= limit:
        return Decision(name, LEAVE, _FAR)
    # The spread falls with the root of the items; on the yardstick itself none would settle it.
    needed = (spread / max(abs(out.excess - limit), 1e-12)) ** 2
    return Decision(name, UNSURE, _BETWEEN, needed if needed < _MOST_NEEDED else float("nan"))


def _lost(name: str) -> Decision:
    return Decision(name, UNSURE, "no source is near: all are beyond the yardstick")


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
