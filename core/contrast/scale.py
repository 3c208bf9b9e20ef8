"""Which bandwidth turns certified directions into groups a person can name.

On real features a wide kernel gives certified but meaningless directions, whatever epsilon. The
knob that works is the group size m = lmax(K), raw: about how many near-identical samples make a
group. Both bandwidths follow from m. The automatic choice walks m and keeps the largest at
which at least four of the first five sets are small and tight.

Axes: n rows; m group size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.contrast.clusters import coherence, orient, participation_ratio, set_size
from core.contrast.sequence import Direction, Progress, solve_sequence
from core.contrast.types import ScalePoint
from core.errors import BadInput
from core.linalg.kernels import (
    DENSE_LIMIT,
    EXACT_LIMIT,
    Kernel,
    LeadingValues,
    leading_eigenvalue,
    match_group_size,
)

GROUP_SIZES = (3.0, 4.0, 6.0, 8.0, 12.0, 20.0, 30.0)
MOST_SIZE, LEAST_COHERENCE = 40.0, 0.12
_DIRECTIONS, _ENOUGH = 5, 4


@dataclass(frozen=True)
class Scale:
    """The kernels at the chosen group size.

    Attributes
    ----------
    target, reference : Kernel
        On all rows.
    group_size : float
        lmax(K_A), raw, on all rows; nan above 10,000, where it would take n^2 products.
    path : tuple of ScalePoint
        What each group size gave (on the rows of the search).
    note : str
        Empty, or why the choice is second best.
    """

    target: Kernel
    reference: Kernel
    group_size: float
    path: tuple[ScalePoint, ...]
    note: str


def fixed_scale(target: Kernel, reference: Kernel, group_size: float, *, seed: int = 0) -> Scale:
    """Return both kernels at lmax(K) = ``group_size``."""
    return Scale(
        match_group_size(target, group_size, seed=seed),
        match_group_size(reference, group_size, seed=seed),
        group_size,
        (),
        "",
    )


def automatic_scale(
    target: Kernel,
    reference: Kernel,
    epsilon: float,
    *,
    group_sizes: tuple[float, ...] = GROUP_SIZES,
    whole_path: bool = True,
    seed: int = 0,
    progress: Progress | None = None,
) -> Scale:
    """Choose the group size by what its first directions give.

    The default is the largest m at which at least four of the first five sets have a
    participation ratio of at most 40 and a coherence under A of at least 0.12. Above 3,000
    rows the search runs on 3,000 seeded rows and its bandwidths are kept.

    Parameters
    ----------
    target, reference : Kernel
        Gaussian; their factors are ignored.
    epsilon : float
        Raw bound on x' K_B x.
    group_sizes : tuple of float
        Candidates, in any order.
    whole_path : bool
        Look at every candidate; else stop at the first that will do, from the widest down.
    seed : int
    progress : callable, optional

    Raises
    ------
    BadInput
        No candidate can be reached (too few rows, or too many duplicates).
    """
    rows = np.arange(target.n)
    if target.n > DENSE_LIMIT:
        picked = np.random.default_rng(seed).choice(target.n, DENSE_LIMIT, replace=False)
        rows = np.sort(picked)
    small_a, small_b = target.subset(rows), reference.subset(rows)
    leading = (LeadingValues(small_a, seed), LeadingValues(small_b, seed))

    def judge(m: float, quick: bool) -> ScalePoint:
        return judge_scale(small_a, small_b, m, epsilon, seed=seed, leading=leading, quick=quick)

    path: list[ScalePoint] = []
    refused = ""
    wanted = [m for m in sorted(group_sizes, reverse=True) if m < len(rows)]
    for number, m in enumerate(wanted):
        if progress is not None:
            progress(number / len(wanted), f"looking at groups of about {m:g}")
        try:
            path.append(judge(m, not whole_path))
        except BadInput as err:
            # A candidate below the largest set of duplicates cannot be reached; larger ones can.
            refused = str(err)
        if path and path[-1].passed >= _ENOUGH and not whole_path:
            break
    path.reverse()
    if not path:
        raise BadInput(refused or f"{len(rows)} rows are too few for any group size.")
    if not whole_path and not any(p.passed >= _ENOUGH for p in path):
        # None will do, so the second best is wanted: what was cut short is looked at in full.
        path = [judge(p.group_size, False) for p in path]
    best, note = _choose(path)
    kernel_a, kernel_b = target.with_factor(best.factor_a), reference.with_factor(best.factor_b)
    whole = len(rows) == target.n
    size = best.group_size if whole else float("nan")
    if not whole and target.n <= EXACT_LIMIT:
        size = leading_eigenvalue(kernel_a, tol=1e-4, seed=seed)
    if not whole:
        note = f"{note} The scale was chosen on {len(rows):,} of {target.n:,} rows.".strip()
    return Scale(kernel_a, kernel_b, size, tuple(path), note)


def judge_scale(
    target: Kernel,
    reference: Kernel,
    group_size: float,
    epsilon: float,
    *,
    seed: int = 0,
    leading: tuple[LeadingValues | None, LeadingValues | None] = (None, None),
    quick: bool = False,
) -> ScalePoint:
    """Find the first five directions at one group size and score their sets.

    ``quick`` stops once too many sets have failed for the scale to be chosen.
    """
    a = match_group_size(target, group_size, rtol=2e-3, seed=seed, known=leading[0])
    b = match_group_size(reference, group_size, rtol=2e-3, seed=seed, known=leading[1])
    sizes: list[float] = []
    inside_a: list[float] = []
    inside_b: list[float] = []

    def judge(step: Direction) -> bool:
        x = orient(step.y[None])[0]
        ratio = participation_ratio(x)
        members = np.argsort(-x, kind="stable")[: set_size(ratio, len(x))]
        sizes.append(ratio)
        inside_a.append(coherence(a, members))
        inside_b.append(coherence(b, members))
        failed = len(sizes) - _passed(sizes, inside_a)
        return quick and failed > _DIRECTIONS - _ENOUGH

    solve_sequence(
        a.dense(), b.dense(), epsilon, _DIRECTIONS, tol=1e-4, seed=seed, certify=False, enough=judge
    )
    passed = _passed(sizes, inside_a)
    return ScalePoint(
        group_size, a.factor, b.factor, tuple(sizes), tuple(inside_a), tuple(inside_b), passed
    )


def _passed(sizes: list[float], coherences: list[float]) -> int:
    return sum(
        s <= MOST_SIZE and c >= LEAST_COHERENCE for s, c in zip(sizes, coherences, strict=True)
    )


def _choose(path: list[ScalePoint]) -> tuple[ScalePoint, str]:
    good = [p for p in path if p.passed >= _ENOUGH]
    if good:
        return max(good, key=lambda p: p.group_size), ""
    best = max(path, key=lambda p: (p.passed, np.mean(p.coherence_a) if p.coherence_a else 0.0))
    note = (
        f"No scale gives four groups among the first five directions; at a group size of "
        f"{best.group_size:g} there are {best.passed}."
    )
    return best, note
