"""The automatic shrinkage: chosen by held-out pairs, without a label.

One fifth of the parallel rows is held out; for each candidate the anchors are made from the
other rows, and the candidate whose relative features let held-out samples find themselves
again in the other encoders (mean reciprocal rank) is taken. This project's rule
(stitching specification, section 3 [DEF]); arXiv 2605.30596 does not say how it shrinks.

Axes: N encoders, n parallel rows, k anchors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from core.errors import BadInput
from core.linalg.whitening import Shrinkage, Spectrum, Whitening
from core.stitching.anchors import mixture_anchors, random_anchors
from core.stitching.param import learn_anchors
from core.stitching.ranking import retrieval
from core.stitching.representation import relative

CANDIDATES: tuple[Shrinkage, ...] = ("lw", 0.05, 0.2, 0.5, 0.8, 1.0)
HELD_OUT = 0.2
MIN_HELD_OUT = 10
TRIAL_STEPS = 100
Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class ShrinkageChoice:
    """What was tried and what was taken.

    Attributes
    ----------
    shrinkage : str or float
        The candidate taken: "lw" or a number.
    candidates : tuple of str or float
    scores : ndarray of float64, shape (len(candidates),)
        Mean held-out reciprocal rank over ordered encoder pairs, in (0, 1].
    n_held_out : int
        Pairs held out.
    anchors : str
        Kind of anchors the choice was made for.
    """

    shrinkage: Shrinkage
    candidates: tuple[Shrinkage, ...]
    scores: np.ndarray
    n_held_out: int
    anchors: str

    @property
    def reason(self) -> str:
        """Return one sentence: why this candidate."""
        best = float(self.scores.max())
        return (
            f"Of {len(self.candidates)} candidates it lets held-out samples find themselves best: "
            f"mean reciprocal rank {best:.3f} over {self.n_held_out} held-out pairs."
        )


def choose_shrinkage(
    spaces: Sequence[np.ndarray],
    spectra: Sequence[Spectrum],
    n_anchors: int = 100,
    *,
    anchors: str = "param",
    n_support: int = 800,
    candidates: Sequence[Shrinkage] = CANDIDATES,
    steps: int = TRIAL_STEPS,
    seed: int = 0,
    progress: Progress | None = None,
) -> ShrinkageChoice:
    """Choose the shrinkage of WIP by held-out retrieval.

    Parameters
    ----------
    spaces : sequence of ndarray, each (n, d_i)
        Parallel training rows of at least two encoders; n >= 2 * MIN_HELD_OUT.
    spectra : sequence of Spectrum
        Fitted on all training rows of each encoder (they need no pairs).
    n_anchors, n_support : int
        As in :func:`core.stitching.learn_anchors`.
    anchors : {"param", "param_single", "random", "mixture"}
        Kind of anchors the shrinkage is chosen for.
    candidates : sequence of str or float
    steps : int
        PARAM steps of a trial.
    seed : int
    progress : callable, optional

    Raises
    ------
    BadInput
        Fewer than two encoders or too few pairs.
    """
    n = len(spaces[0]) if len(spaces) else 0
    if len(spaces) < 2 or n < 2 * MIN_HELD_OUT:
        raise BadInput(
            f"The automatic shrinkage needs two encoders and {2 * MIN_HELD_OUT} parallel rows, "
            f"got {len(spaces)} encoders and {n} rows.",
            "Give more parallel rows, or set shrinkage to a number such as 0.8.",
        )
    rng = np.random.default_rng(np.random.SeedSequence([seed, 2]))
    order = rng.permutation(n)
    held = max(MIN_HELD_OUT, round(HELD_OUT * n))
    out, kept = np.sort(order[:held]), np.sort(order[held:])
    support = np.sort(rng.choice(len(kept), min(n_support, len(kept)), replace=False))
    rows = [np.asarray(x, dtype=np.float64) for x in spaces]
    scores = []
    for c, candidate in enumerate(candidates):
        if progress is not None:
            progress(c / len(candidates), f"Shrinkage {candidate}: held-out pairs")
        maps = [s.whitening(candidate) for s in spectra]
        train = [x[kept] for x in rows]
        mixing = trial_mixing(anchors, train, maps, support, n_anchors, steps=steps, seed=seed)
        rel = [
            relative(x[out], mixing @ t[support], similarity="wip", stats=w)
            for x, t, w in zip(rows, train, maps, strict=True)
        ]
        pairs = permutations(range(len(rel)), 2)
        scores.append(np.mean([retrieval(rel[i], rel[j])["MRR"] for i, j in pairs]))
    best = int(np.argmax(scores))
    return ShrinkageChoice(candidates[best], tuple(candidates), np.array(scores), held, anchors)


def trial_mixing(
    kind: str,
    spaces: Sequence[np.ndarray],
    maps: Sequence[Whitening],
    support: np.ndarray,
    n_anchors: int,
    *,
    steps: int,
    seed: int,
) -> np.ndarray:
    """Return the mixing matrix of one anchor kind over ``support``, shape (k, m)."""
    if kind == "random":
        return random_anchors(len(support), n_anchors, seed=seed)
    if kind == "mixture":
        return mixture_anchors(spaces[0][support], n_anchors, seed=seed)
    mode = "single" if kind == "param_single" else "multi"
    fit = learn_anchors(
        spaces, n_anchors, mode=mode, stats=maps, support=support, steps=steps, seed=seed
    )
    return fit.mixing
