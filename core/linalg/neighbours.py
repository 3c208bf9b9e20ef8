"""Exact nearest neighbours: candidates from a blocked GEMM, re-ranked and certified.

``|a - b|^2 = |a|^2 + |b|^2 - 2 a.b`` in the storage precision gives ``k + 3`` candidates a
row (centred first, so that the cancellation is small). Their distances are then recomputed
from the differences in float64. A row is *certified* when the last candidate's approximate
distance, less the worst rounding error, still exceeds the k-th exact one: nothing outside
the candidates can be nearer. The other rows are searched again in float64 over every base row
that the bound leaves in question. Ties go to the lowest index.

Axes: q queries, n base rows, d features, k neighbours, c candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.errors import BadInput
from core.linalg.spectra import mean_row

if TYPE_CHECKING:
    import torch

TILE = 2048
SPARE = 3
GROUP = 32


@dataclass(frozen=True)
class Neighbours:
    """The k nearest base rows of each query.

    Attributes
    ----------
    distances : Tensor of float64, shape (q, k)
        Euclidean distances, ascending.
    indices : Tensor of int64, shape (q, k)
        Base row numbers; equal distances in ascending order of the row number.
    n_redone : int
        Rows whose candidates could not be certified and were searched again in float64.
    """

    distances: torch.Tensor
    indices: torch.Tensor
    n_redone: int


def nearest_neighbours(
    base: torch.Tensor, queries: torch.Tensor | None = None, *, k: int = 2
) -> Neighbours:
    """Return the exact k nearest neighbours in Euclidean distance.

    Parameters
    ----------
    base : Tensor, shape (n, d)
        Finite rows.
    queries : Tensor, shape (q, d), optional
        Rows to search for; ``None`` searches ``base`` itself and leaves each row out of its
        own list.
    k : int
        Neighbours a row.

    Raises
    ------
    BadInput
        ``k`` exceeds the rows there are, or the widths differ.
    """
    own = queries is None
    found = base if queries is None else queries
    if found.shape[1] != base.shape[1]:
        raise BadInput(
            f"queries have {found.shape[1]} columns and base has {base.shape[1]}.",
            "Give features of the same encoder and layer.",
        )
    if not 1 <= k <= len(base) - own:
        raise BadInput(
            f"k={k} neighbours were asked for among {len(base) - own} other rows.",
            "Lower k or give more rows.",
        )
    work = _Work.build(base, found, own)
    c = min(k + SPARE, len(base) - own)
    approx, cand = _candidates_own(work, c) if own else _candidates(work, c)
    return _certify(work, base, found, approx, cand, k)


@dataclass(frozen=True)
class _Work:
    """Centred copies in float32 (or float64) and their halved squared norms."""

    base: torch.Tensor
    queries: torch.Tensor
    half_base: torch.Tensor
    half_query: torch.Tensor
    own: bool

    @classmethod
    def build(cls, base: torch.Tensor, queries: torch.Tensor, own: bool) -> _Work:
        import torch

        kind = torch.float64 if base.dtype == torch.float64 else torch.float32
        mean = mean_row(base).to(kind)
        left = (base.to(kind) - mean).contiguous()
        right = left if own else (queries.to(kind) - mean).contiguous()
        half_left, half_right = _half_norms(left), _half_norms(right)
        return cls(left, right, half_left, half_right, own)

    def bound(self) -> torch.Tensor:
        """Worst error of half a squared distance, shape (q,), in float64.

        Rounding of a d-term product, ``d eps |a||b|``, of the norms and of the centring (the
        rows were rounded once, which moves a distance by at most ``eps (|a| + |b|)`` each).
        """
        import torch

        d = self.base.shape[1]
        eps = torch.finfo(self.base.dtype).eps
        longest = self.half_base.double().max()
        return (d + 8) * eps * (self.half_query.double() + longest) * 2.0


def _half_norms(x: torch.Tensor) -> torch.Tensor:
    """Return ``|x|^2 / 2`` a row; reduced in float64, shape (n,)."""
    import torch

    return torch.cat([rows.double().square().sum(1) for rows in x.split(TILE)]).to(x.dtype) / 2


def _tile(work: _Work, i: int, j: int) -> torch.Tensor:
    """Return ``|b|^2 / 2 - a.b`` for one tile, shape (rows of i, rows of j)."""
    import torch

    left, right = work.queries[i : i + TILE], work.base[j : j + TILE]
    half = work.half_base[j : j + TILE]
    return torch.addmm(half[None, :], left, right.T, alpha=-1.0)


def _smallest(values: torch.Tensor, c: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the c smallest of each row (unordered) and their columns, in two levels.

    The c smallest entries lie in the c groups with the smallest minima, and a minimum over
    groups runs at memory speed where ``topk`` over everything does not.
    """
    rows, columns = values.shape
    groups = columns // GROUP
    c = min(c, columns)
    if groups <= 2 * c or columns % GROUP:
        best = values.topk(c, dim=1, largest=False, sorted=False)
        return best.values, best.indices
    folded = values.view(rows, groups, GROUP)
    top = folded.amin(2).topk(c, dim=1, largest=False, sorted=False).indices  # (rows, c)
    picked = folded.gather(1, top[:, :, None].expand(-1, -1, GROUP)).reshape(rows, -1)
    best = picked.topk(c, dim=1, largest=False, sorted=False)
    group = top.gather(1, best.indices // GROUP)
    return best.values, group * GROUP + best.indices % GROUP


class _Best:
    """Running candidates of every query."""

    def __init__(self, q: int, c: int, like: torch.Tensor) -> None:
        import torch

        self.c = c
        self.values = torch.full((q, c), torch.inf, dtype=like.dtype, device=like.device)
        self.indices = torch.zeros((q, c), dtype=torch.int64, device=like.device)

    def merge(self, start: int, values: torch.Tensor, columns: torch.Tensor, shift: int) -> None:
        import torch

        at = slice(start, start + len(values))
        both = torch.cat([self.values[at], values], 1)
        index = torch.cat([self.indices[at], columns + shift], 1)
        best = both.topk(self.c, dim=1, largest=False, sorted=False)
        self.values[at] = best.values
        self.indices[at] = index.gather(1, best.indices)


def _candidates(work: _Work, c: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return approximate half squared distances (less the query's norm) and columns, (q, c)."""
    best = _Best(len(work.queries), c, work.base)
    for i in range(0, len(work.queries), TILE):
        for j in range(0, len(work.base), TILE):
            best.merge(i, *_smallest(_tile(work, i, j), c), j)
    return best.values, best.indices


def _candidates_own(work: _Work, c: int) -> tuple[torch.Tensor, torch.Tensor]:
    """As :func:`_candidates` for a base against itself: each tile is computed once."""
    import torch

    best = _Best(len(work.base), c, work.base)
    for i in range(0, len(work.base), TILE):
        for j in range(i, len(work.base), TILE):
            tile = _tile(work, i, j)
            if i == j:
                tile.fill_diagonal_(torch.inf)
            best.merge(i, *_smallest(tile, c), j)
            if i != j:
                # The tile holds |b|^2/2 - a.b; the transposed tile wants |a|^2/2 - a.b.
                tile.add_(work.half_base[i : i + TILE, None])
                tile.sub_(work.half_base[None, j : j + TILE])
                best.merge(j, *_smallest(tile.T.contiguous(), c), i)
    return best.values, best.indices


def _certify(
    work: _Work,
    base: torch.Tensor,
    queries: torch.Tensor,
    approx: torch.Tensor,
    cand: torch.Tensor,
    k: int,
) -> Neighbours:
    """Re-rank the candidates in float64 and search again the rows without a certificate."""
    import torch

    distances = torch.empty((len(queries), k), dtype=torch.float64, device=base.device)
    indices = torch.empty((len(queries), k), dtype=torch.int64, device=base.device)
    for start in range(0, len(queries), 256):
        rows = slice(start, start + 256)
        exact = _exact(queries[rows], base, cand[rows])  # (256, c)
        distances[rows], indices[rows] = _take(exact, cand[rows], k)
    if cand.shape[1] == len(base) - work.own:
        return Neighbours(distances, indices, 0)
    # Everything that is not a candidate has an approximate value of at least the largest kept.
    floor = approx.double().amax(1) + work.half_query.double() - work.bound()
    doubtful = torch.nonzero(floor <= distances[:, -1].square() / 2).flatten()
    for block in doubtful.split(256):
        _redo(work, base, queries, block, distances, indices)
    return Neighbours(distances, indices, len(doubtful))


def _exact(rows: torch.Tensor, base: torch.Tensor, cand: torch.Tensor) -> torch.Tensor:
    """Return float64 distances from each row to its candidates, from the differences."""
    return (rows.double()[:, None, :] - base[cand].double()).square().sum(2).sqrt()


def _take(exact: torch.Tensor, cand: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the k nearest of the candidates, equal distances by ascending index."""
    order = cand.argsort(dim=1)
    by_index = cand.gather(1, order)
    value, rank = exact.gather(1, order).sort(dim=1, stable=True)
    return value[:, :k], by_index.gather(1, rank[:, :k])


def _redo(
    work: _Work,
    base: torch.Tensor,
    queries: torch.Tensor,
    block: torch.Tensor,
    distances: torch.Tensor,
    indices: torch.Tensor,
) -> None:
    """Search ``block`` over every base row that the float64 bound leaves in question."""
    import torch

    k = distances.shape[1]
    left, right = work.queries[block].double(), work.base
    half = [rows.double().square().sum(1) / 2 for rows in right.split(TILE)]
    value = torch.cat(
        [h - left @ rows.double().T for h, rows in zip(half, right.split(TILE), strict=True)], 1
    )
    value += left.square().sum(1, keepdim=True) / 2  # (block, n)
    if work.own:
        value[torch.arange(len(block)), block] = torch.inf
    # The centred copies were rounded to the storage precision, so their slack decides.
    reach = distances[block, -1:].square() / 2 + work.bound()[block, None]
    for row, near in zip(block.tolist(), value <= reach, strict=True):
        cand = torch.nonzero(near).flatten()[None]
        exact = _exact(queries[row : row + 1], base, cand)
        value_k, index_k = _take(exact, cand, k)
        distances[row], indices[row] = value_k[0], index_k[0]
