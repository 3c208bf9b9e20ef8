"""Drawing anchors and partners.

RADAR, arXiv 2605.23028, section 3: one within- and one cross-domain partner for each anchor.
How labels restrict partners is not stated there; the modes are ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.digest import bytes_digest
from core.errors import BadInput


@dataclass(frozen=True)
class Pairs:
    """Row numbers of n anchors in A, their within partners in A and cross partners in B.

    Attributes
    ----------
    anchor, within, cross : ndarray of int64, shape (n,)
    n_skipped : int
        Items of A that no pair could be built for (their class lacks a partner).
    """

    anchor: np.ndarray
    within: np.ndarray
    cross: np.ndarray
    n_skipped: int = 0


def generator(seed: int, *names: str | int) -> np.random.Generator:
    """Return the generator of (seed, names): the same whatever was drawn before."""
    words = [int(bytes_digest(str(name).encode())[:8], 16) for name in names]
    return np.random.default_rng(np.random.SeedSequence([seed, *words]))


def sample_pairs(
    n_a: int,
    n_b: int,
    n: int,
    rng: np.random.Generator,
    *,
    label_mode: str = "any",
    labels_a: np.ndarray | None = None,
    labels_b: np.ndarray | None = None,
) -> Pairs:
    """Draw n anchors of A with one partner in A and one in B each.

    Parameters
    ----------
    n_a, n_b : int
        Items of A (at least 2) and B (at least 1).
    n : int
        Pairs. Anchors repeat only when all have been used.
    rng : numpy Generator
    label_mode : {"any", "same", "different"}
        Partners of any class, the anchor's class, or another class.
    labels_a, labels_b : ndarray, optional
        Needed unless "any".

    Raises
    ------
    BadInput
        Labels are missing, or no item of A has both partners.
    """
    if label_mode != "any" and (labels_a is None or labels_b is None):
        raise BadInput(f"label_mode={label_mode!r} needs labels.", "Use label_mode='any'.")
    codes_a, codes_b = shared_codes(labels_a, labels_b, n_a, n_b, label_mode)
    possible = np.flatnonzero(
        has_partner(codes_a, codes_a, label_mode, own=True)
        & has_partner(codes_a, codes_b, label_mode, own=False)
    )
    if len(possible) == 0:
        raise BadInput(
            f"No item has partners with label_mode={label_mode!r}.",
            "The domains share no class with two items: use label_mode='any'.",
        )
    anchor = draw_anchors(possible, n, rng)
    within = draw_partners(codes_a[anchor], codes_a, label_mode, rng, exclude=anchor)
    cross = draw_partners(codes_a[anchor], codes_b, label_mode, rng)
    return Pairs(anchor, within, cross, n_a - len(possible))


def shared_codes(
    labels_a: np.ndarray | None, labels_b: np.ndarray | None, n_a: int, n_b: int, label_mode: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return integer classes of both domains; one class for all in "any" mode."""
    if label_mode == "any" or labels_a is None or labels_b is None:
        return np.zeros(n_a, dtype=np.int64), np.zeros(n_b, dtype=np.int64)
    _, codes = np.unique(np.concatenate([labels_a, labels_b]), return_inverse=True)
    return codes[:n_a], codes[n_a:]


def draw_anchors(possible: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw n of ``possible``; nobody is drawn again before everybody has been drawn."""
    rounds = [rng.permutation(possible) for _ in range(-(-n // len(possible)))]
    return np.concatenate(rounds)[:n]


def has_partner(codes: np.ndarray, pool: np.ndarray, label_mode: str, *, own: bool) -> np.ndarray:
    """Say for each item whether the pool holds a partner (not itself, where it is its own)."""
    counts = np.bincount(pool, minlength=int(max(codes.max(), pool.max())) + 1)
    same = counts[codes]
    if label_mode == "different":
        return len(pool) - same > 0
    return same - int(own) > 0


def draw_partners(
    codes: np.ndarray, pool: np.ndarray, label_mode: str, rng: np.random.Generator,
    exclude: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """Draw one partner of the pool for each anchor class, uniformly; never ``exclude``.

    A class without a partner gets an arbitrary row: the caller gives it no weight.

    The pool is sorted by class, so that a class is a run: a draw is a position in that run
    (or outside of it), and skipping the anchor itself is a shift by one.
    """
    order = np.argsort(pool, kind="stable")
    counts = np.bincount(pool, minlength=int(max(codes.max(), pool.max())) + 1)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    first, size = starts[codes], counts[codes]
    if label_mode == "different":
        at = (rng.random(len(codes)) * (len(pool) - size)).astype(np.int64)
        return order[np.minimum(np.where(at >= first, at + size, at), len(pool) - 1)]
    if exclude is None:
        at = first + (rng.random(len(codes)) * size).astype(np.int64)
        return order[np.minimum(at, len(pool) - 1)]
    rank = np.empty(len(pool), dtype=np.int64)
    rank[order] = np.arange(len(pool))
    at = (rng.random(len(codes)) * (size - 1)).astype(np.int64)
    own = rank[exclude] - first
    return order[first + at + (at >= own)]
