"""Advice in full: what to do with each source, how sure that is, and what would settle it.

The words add, leave out and cannot tell come from :mod:`core.radar.verdict`; here they get a
probability and, where they are open, the sampling that would close them. Read from a stored
result of "transfer": nothing is scored again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from core.radar.verdict import ADD, LEAVE
from core.results import Result

_SURE = 2.0
_MOST = 100.0


@dataclass(frozen=True)
class Advice:
    """What to do with one source.

    Attributes
    ----------
    source, decision : str
    confidence : float
        Probability in (0, 1) that the source lies on the side of the yardstick it was put on,
        by Student's t with repeats - 1 degrees of freedom; for "cannot tell" that of the
        likelier side; nan without a yardstick or spread.
    excess, excess_sd, far : float
        In nats: excess over the null, its standard deviation over repeats, the yardstick.
    sentence : str
        The advice in one or two plain sentences.
    settles : str
        What extra sampling would settle it; empty where it is settled.
    """

    source: str
    decision: str
    confidence: float
    excess: float
    excess_sd: float
    far: float
    sentence: str
    settles: str


def confidence(excess: float, sd: float, far: float, repeats: int) -> float:
    """Return the probability that the excess lies on the nearer or farther side of ``far``.

    Examples
    --------
    >>> round(confidence(1.0, 0.1, 1.3, 5), 2), round(confidence(1.3, 0.1, 1.3, 5), 2)
    (0.98, 0.5)
    """
    from scipy.stats import t

    if repeats < 2 or not (np.isfinite([excess, sd, far]).all() and sd > 0):
        return float("nan")
    return float(t.cdf(abs(far - excess) / sd, repeats - 1))


def advise(result: Result) -> list[Advice]:
    """Return the advice on every source of a stored result of "transfer", nearest first.

    Parameters
    ----------
    result : Result
        Of kind "transfer".
    """
    ranking = result.tables["ranking"].set_index("blend")
    facts = result.summary
    far = float(facts["far"]) if facts["far"] is not None else float("nan")
    out = []
    for line in facts["decisions"]:
        name = str(line["source"])
        row = ranking.loc[name]
        excess, sd = float(row["excess"]), float(row["excess_sd"])
        sure = confidence(excess, sd, far, int(facts["repeats"]))
        out.append(Advice(
            name, str(line["decision"]), sure, excess, sd, far,
            _sentence(name, str(line["decision"]), str(line["reason"]), row, facts["gain"]),
            _settles(line, excess, sd, far, int(facts["n"]), int(facts["n_sources"][name])),
        ))  # fmt: skip
    return out


def _sentence(name: str, decision: str, reason: str, row: object, measured: bool) -> str:
    start = {ADD: f"Add {name}", LEAVE: f"Leave {name} out"}.get(decision, f"{name}: cannot tell")
    if reason.startswith("no "):
        text = f"{start}: {reason}."
    else:
        text = f"{start}: it {'' if reason.startswith('differs') else 'is '}{reason}."
    if not measured:
        return text
    gain, sd = float(row["gain"]), float(row["gain_sd"])  # type: ignore[index]
    points = f"{100 * gain:+.1f} points"
    if not math.isfinite(sd):
        return f"{text} Alone it gained {points}."
    if abs(gain) <= _SURE * sd:
        return f"{text} Alone it gained {points}, within the spread of the seeds."
    helped = (gain > 0) == (decision == ADD)
    if decision not in (ADD, LEAVE):
        return f"{text} Measured, it gained {points} alone: go by that."
    return f"{text} Measured, it gained {points} alone{'' if helped else ', against the advice'}."


def _settles(
    line: dict[str, object], excess: float, sd: float, far: float, n_target: int, n_source: int
) -> str:
    if line["decision"] in (ADD, LEAVE):
        return ""
    if not np.isfinite([excess, sd, far]).all():
        return "Labels of the target: without its classes there is no yardstick."
    gap = abs(excess - far)
    if excess - _SURE * sd >= far:
        return (
            "No sampling of these sources: all are farther than the target's own classes. "
            "Train and measure, or bring a source that is nearer."
        )
    times = (_SURE * sd / gap) ** 2 if gap > 0 else float("inf")
    if not times < _MOST:
        return "It lies on the yardstick itself: no affordable sample would settle it. Measure."
    if times <= 1.0:
        return ""
    wanted = [math.ceil(times * count - 1e-6) for count in (n_target, n_source)]
    n = f"{wanted[0]:,} target and {wanted[1]:,} source items"
    return f"About {times:.1f} times the items ({n} instead of {n_target:,} and {n_source:,})."
