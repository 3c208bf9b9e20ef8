"""Which items changed neighbours or place between two representations, in the original spaces.

Two questions a row, each against its own permutation null, none of them asked of a picture.

*Neighbours*: how many of its k nearest rows under A are also among its k nearest under B
(mutual nearest neighbours, arXiv 2405.07987), and their Jaccard index. *Place*: how far its
row under A lies from its row under B once the two clouds are laid on one another by an
orthogonal map (Schoenemann 1966; both centred and of mean squared length one, the narrower
padded with zeros, so that no direction is dropped). The map of a row is fitted on the other
folds only: a map that has seen a row would pull its two places together, most of all when d
is near n.

Null, for row i: its row under B is that of another item. Both statistics are computed again
with partners j drawn without replacement among the others (for the place, among the rows of
its own fold, which its map has not seen either); p is the share of partners that look as near
as its own row does, plus one in numerator and denominator. A row *kept* its neighbours or its
place when Benjamini and Hochberg's q is at most ``alpha``; else it is *as far as chance*.

Axes: n items, d_a and d_b dimensions, k neighbours, m partners.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from core.compare.cka import paired
from core.compare.maps import scaled
from core.compare.neighbours import METRICS, neighbour_ids
from core.errors import BadInput
from core.stats.fdr import benjamini_hochberg

Progress = Callable[[float, str], None]

PARTNERS = 999
VERDICTS = ("moved", "new neighbours", "moved with its group", "kept", "cannot tell")
_BLOCK = 1024
# Five folds fit a better map; below this a fold would hold too few partners for a small p.
_FIVE_FOLDS_FROM = 1_000


@dataclass(frozen=True)
class Changed:
    """What each item kept between two representations.

    Attributes
    ----------
    overlap : ndarray of float64, shape (n,)
        Share of the k neighbours that are common, in [0, 1].
    jaccard : ndarray of float64, shape (n,)
        Common neighbours over all neighbours of either side, in [0, 1].
    displacement : ndarray of float64, shape (n,)
        Distance between an item's two places over the median distance to its partners' places:
        0 has not moved, 1 is as far as another item taken at random.
    p_neighbours, p_place, q_neighbours, q_place : ndarray of float64, shape (n,)
        Of the null that its row under B is another item's; small means kept.
    verdict : ndarray of str, shape (n,)
        One of :data:`VERDICTS`: "moved" kept neither; "new neighbours" kept its place only;
        "moved with its group" kept its neighbours only; "cannot tell" where so few partners
        exist that no p could reach ``alpha``.
    folds, partners : int
        Folds of the map; partners of a row's place, the fewest of any fold.
    """

    overlap: np.ndarray
    jaccard: np.ndarray
    displacement: np.ndarray
    p_neighbours: np.ndarray
    p_place: np.ndarray
    q_neighbours: np.ndarray
    q_place: np.ndarray
    verdict: np.ndarray
    folds: int
    partners: int


def changed(
    a: np.ndarray,
    b: np.ndarray,
    *,
    k: int = 10,
    metric: str = "cosine",
    partners: int = PARTNERS,
    alpha: float = 0.05,
    seed: int = 0,
    progress: Progress | None = None,
) -> Changed:
    """Return how far each item changed neighbours and place between ``a`` and ``b``.

    Parameters
    ----------
    a, b : ndarray, shapes (n, d_a) and (n, d_b)
        Paired rows, finite, n >= 4.
    k : int
        Neighbours, 1 <= k < n.
    metric : {"cosine", "euclidean"}
        Cosine scales every row to length one first, for the place too.
    partners : int
        Partners of each row's null, at least 19; fewer where there are fewer rows.
    alpha : float
        False discovery rate of "kept", in (0, 1).
    seed : int
        Of the folds and the partners.

    Raises
    ------
    BadInput
        Row counts differ, NaN, fewer than four rows, a space that does not vary, or a
        parameter out of range.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(200, 4))
    >>> y = x @ np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    >>> found = changed(x, y, k=5)
    >>> found.overlap.min(), round(float(found.displacement.max()), 6), set(found.verdict)
    (np.float64(1.0), 0.0, {np.str_('kept')})

    References
    ----------
    Schoenemann 1966, A generalized solution of the orthogonal Procrustes problem.
    arXiv 2405.07987. Benjamini and Hochberg 1995.
    """
    a, b = paired(a, b, min_rows=4)
    _check(len(a), k, metric, partners, alpha)
    say = progress or (lambda _fraction, _message: None)
    rng = np.random.default_rng(seed)
    a, b = scaled(a, metric), scaled(b, metric)
    say(0.05, "Neighbours under A")
    near_a = _incidence(neighbour_ids(a, k=k, metric="euclidean"))
    say(0.40, "Neighbours under B")
    near_b = _incidence(neighbour_ids(b, k=k, metric="euclidean"))
    say(0.75, "Neighbours of random partners")
    shared, p_neighbours = _shared(near_a, near_b, partners, rng)
    say(0.80, "Laying B on A")
    displacement, p_place, folds, least = _places(_unit(a, "a"), _unit(b, "b"), partners, rng)
    q_neighbours, q_place = benjamini_hochberg(p_neighbours), benjamini_hochberg(p_place)
    say(1.0, "Done")
    return Changed(
        overlap=shared / k,
        jaccard=shared / (2 * k - shared),
        displacement=displacement,
        p_neighbours=p_neighbours,
        p_place=p_place,
        q_neighbours=q_neighbours,
        q_place=q_place,
        verdict=_verdicts(q_neighbours <= alpha, q_place <= alpha, 1.0 / (least + 1) <= alpha),
        folds=folds,
        partners=least,
    )


def _check(n: int, k: int, metric: str, partners: int, alpha: float) -> None:
    if metric not in METRICS:
        raise BadInput(f"metric={metric!r} is not known.", f"Use one of {', '.join(METRICS)}.")
    if not 1 <= k < n:
        raise BadInput(f"k must be at least 1 and below the {n} samples, got {k}.", "Lower k.")
    if partners < 19 or not 0.0 < alpha < 1.0:
        raise BadInput(
            f"partners must be at least 19 and alpha in (0, 1), got {partners} and {alpha}.",
            "999 and 0.05 are the defaults.",
        )


def _incidence(near: np.ndarray) -> sparse.csr_matrix:
    """Return the neighbours as a 0/1 matrix, shape (n, n)."""
    n, k = near.shape
    ones = np.ones(n * k, dtype=np.int32)
    return sparse.csr_matrix((ones, near.ravel(), np.arange(n + 1) * k), shape=(n, n))


def _shared(
    near_a: sparse.csr_matrix,
    near_b: sparse.csr_matrix,
    partners: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the neighbours each row shares with itself, (n,), and its p against partners."""
    n = near_a.shape[0]
    own = np.asarray(near_a.multiply(near_b).sum(axis=1)).ravel().astype(np.float64)
    # One draw serves every row: to each row alone it is a draw without replacement.
    drawn = rng.choice(n, min(partners + 1, n), replace=False)
    column = np.full(n, -1)
    column[drawn] = np.arange(len(drawn))
    other = near_b[drawn].T.tocsr()  # (n, m)
    hits = np.empty(n)
    for start in range(0, n, _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, n))
        counts = (near_a[rows] @ other).toarray()  # (block, m)
        mine = column[rows] >= 0
        counts[np.flatnonzero(mine), column[rows][mine]] = -1  # a row is not its own partner
        hits[rows] = (counts >= own[rows, None]).sum(axis=1)
    return own, (hits + 1) / (len(drawn) - (column >= 0) + 1)


def _unit(x: np.ndarray, name: str) -> np.ndarray:
    """Return the rows centred, with mean squared length one."""
    x = x - x.mean(axis=0)
    length = float(np.sqrt((x**2).sum(axis=1).mean()))
    if length <= 1e-12 * max(float(np.abs(x).max()), 1.0):
        raise BadInput(
            f"{name} does not vary: every row is the same.", "Choose another layer or metric."
        )
    return x / length


def _places(
    a: np.ndarray, b: np.ndarray, partners: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Return displacement (n,), its p (n,), the folds and the fewest partners of a row."""
    n = len(a)
    folds = 5 if n >= _FIVE_FOLDS_FROM else 2
    parts = [np.sort(part) for part in np.array_split(rng.permutation(n), folds)]
    crosses = [a[part].T @ b[part] for part in parts]  # (d_a, d_b) each
    total = np.sum(crosses, axis=0)
    displacement, p = np.empty(n), np.empty(n)
    least = n
    for part, cross in zip(parts, crosses, strict=True):
        laid = a[part] @ _orthogonal(total - cross)  # (rows, d_b)
        # A direction of the wider space has no counterpart: it counts in full as unmatched.
        base = (a[part] ** 2).sum(axis=1)
        drawn = rng.choice(len(part), min(partners + 1, len(part)), replace=False)
        displacement[part], p[part] = _against(laid, base, b[part], drawn)
        least = min(least, min(partners, len(drawn) - 1))
    return displacement, p, folds, least


def _orthogonal(cross: np.ndarray) -> np.ndarray:
    """Return the map R of unit singular values that maximises tr(R^T cross), (d_a, d_b).

    Directions the rows do not determine (a singular value of nothing) stay unmatched.
    """
    u, s, vt = np.linalg.svd(cross, full_matrices=False)
    rank = int((s > s[0] * max(cross.shape) * np.finfo(np.float64).eps).sum()) if s[0] > 0 else 0
    return u[:, :rank] @ vt[:rank]


def _against(
    laid: np.ndarray, base: np.ndarray, b: np.ndarray, drawn: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's displacement over its partners' median, and its p; both (rows,)."""
    rows = len(laid)
    lengths = (b**2).sum(axis=1)
    own = np.sqrt(np.maximum(base + lengths - 2.0 * (laid * b).sum(axis=1), 0.0))
    column = np.full(rows, -1)
    column[drawn] = np.arange(len(drawn))
    relative, p = np.empty(rows), np.empty(rows)
    for start in range(0, rows, _BLOCK):
        at = np.arange(start, min(start + _BLOCK, rows))
        square = base[at, None] + lengths[drawn] - 2.0 * laid[at] @ b[drawn].T  # (block, m)
        far = np.sqrt(np.maximum(square, 0.0))
        mine = column[at] >= 0
        far[np.flatnonzero(mine), column[at][mine]] = np.nan
        others = len(drawn) - mine
        # Rounding must not turn a tie with its own row into a miss.
        hits = (far <= own[at, None] * (1 + 1e-12) + 1e-12).sum(axis=1)
        p[at] = (hits + 1) / (others + 1)
        middle = np.nanmedian(far, axis=1)
        relative[at] = np.where(middle > 0, own[at] / np.maximum(middle, 1e-300), 0.0)
    return relative, p


def _verdicts(near: np.ndarray, place: np.ndarray, testable: bool) -> np.ndarray:
    if not testable:
        return np.full(len(near), "cannot tell")
    return np.where(
        near,
        np.where(place, "kept", "moved with its group"),
        np.where(place, "new neighbours", "moved"),
    )
