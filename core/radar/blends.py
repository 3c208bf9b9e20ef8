"""Blends: subsets of the sources, and how their descriptors are put together.

RADAR, arXiv 2605.23028, Eq. 1: a blend is the union of its members, so a member stands in it
with the weight of its size. Descriptors are computed once for each source; a blend takes each
of its rows from one member.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from core.errors import BadInput
from core.radar.types import Descriptors

MOST_EXHAUSTIVE = 10


def all_blends(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the 2^n - 1 non-empty subsets, by size and name.

    Raises
    ------
    BadInput
        No source, or a name twice.

    Examples
    --------
    >>> all_blends(["b", "a"])
    [('a',), ('b',), ('a', 'b')]
    """
    ordered = sorted(names)
    if not ordered:
        raise BadInput("sources is empty.", "Give at least one source domain.")
    if len(set(ordered)) < len(ordered):
        raise BadInput(f"sources names a domain twice: {', '.join(ordered)}.")
    return [c for size in range(1, len(ordered) + 1) for c in combinations(ordered, size)]


def blend_name(members: Sequence[str]) -> str:
    """Return "a + b", sorted."""
    return " + ".join(sorted(members))


def choose_members(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return for each row the member it is taken from, -1 where no member has weight.

    Parameters
    ----------
    weights : ndarray, shape (n, S)
        Weight of member s at row r, at least 0.
    rng : numpy Generator
        One evenly spaced ladder is shuffled, so shares are exact to one row; the same
        generator state gives the same rows to a member whatever the other members are called.
    """
    n = len(weights)
    ladder = (rng.permutation(n) + 0.5) / n
    total = weights.sum(1)
    edges = np.cumsum(weights, axis=1) / np.where(total > 0, total, 1.0)[:, None]
    chosen = (ladder[:, None] >= edges).sum(1)
    return np.where(total > 0, np.minimum(chosen, weights.shape[1] - 1), -1)


def take_rows(parts: Sequence[Descriptors], member: np.ndarray) -> Descriptors:
    """Return row r of the member chosen for it; rows without a member are left out."""
    keep = np.flatnonzero(member >= 0)
    if len(parts) == 1:
        return parts[0] if len(keep) == len(member) else parts[0].rows(keep)
    chosen = member[keep]

    def mix(name: str) -> np.ndarray:
        first = getattr(parts[0], name)
        out = np.empty((len(keep), *first.shape[1:]), dtype=first.dtype)
        for index, part in enumerate(parts):
            rows = chosen == index
            out[rows] = getattr(part, name)[keep[rows]]
        return out

    return Descriptors(mix("theta"), mix("d"), mix("mask"), mix("sides"))
