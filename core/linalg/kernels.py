"""Kernels between the rows of one or several feature tables, exact and by blocks.

KODA (arXiv 2606.04180) Sections 3 and 5: cosine and Gaussian kernels with k(x, x) = 1, and
their product over modalities. A product of Gaussians is one Gaussian on the concatenation
[u / s_u; v / s_v], so a :class:`Kernel` of any number of modalities has a single factor f:
k(z, z') = exp(-sum_m |z_m - z'_m|^2 / (2 f^2 s_m^2)), s_m the median distance of modality m.

Axes: n rows, d features, m group size (leading eigenvalue of the raw kernel).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from core.errors import BadInput
from core.linalg.lanczos import random_block, top_eigenpairs

DENSE_LIMIT = 3000  # above this no n x n matrix is ever held
EXACT_LIMIT = 10_000  # above this no product with the exact kernel is formed unasked
_UNIT_ROWS = 4096  # rows whose lengths are taken at once
_BLOCK_CELLS = 4_000_000  # cells of one block of kernel rows: 32 MB in float64

Table = np.ndarray | Mapping[str, np.ndarray]


def unit_rows(x: np.ndarray, *, centered: bool = True, name: str = "x") -> np.ndarray:
    """Return rows of unit length, after the feature means are taken off.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        Features.
    centered : bool
        Subtract the feature means first. Off is faithful to the KODA paper; on, the mean
        direction that all rows share no longer hides the groups.
    name : str
        How error messages call the table.

    Returns
    -------
    ndarray of float64, shape (n, d)
        A row of zeros (a sample that equals the mean) stays zero.

    Raises
    ------
    BadInput
        Not a table of numbers, or a value that is not finite.

    Examples
    --------
    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 2.0]]), centered=False).tolist()
    [[0.6, 0.8], [0.0, 1.0]]
    """
    given = np.asarray(x)
    if given.ndim != 2 or not given.size:
        raise BadInput(
            f"{name} has shape {given.shape}; a table (n, d) with at least one row is needed."
        )
    # One copy in float64, changed in place: of 100,000 x 768 each further one is 0.6 GB.
    table = np.array(given, dtype=np.float64)
    blocks = [slice(at, at + _UNIT_ROWS) for at in range(0, len(table), _UNIT_ROWS)]
    for rows in blocks:
        finite = np.isfinite(table[rows]).all(axis=1)
        if not finite.all():
            raise BadInput(
                f"{name} holds a value that is not finite, first in row "
                f"{rows.start + int((~finite).argmax())}.",
                "Leave this row out or extract its features again.",
            )
    if centered:
        table -= table.mean(axis=0)
    length = np.concatenate([np.linalg.norm(table[rows], axis=1, keepdims=True) for rows in blocks])
    # A centred row of rounding noise has no direction: it must not become a unit vector.
    floor = 1e-12 * max(float(length.max(initial=0.0)), 1e-300)
    np.divide(table, length, out=table, where=length > floor)
    table[length[:, 0] <= floor] = 0.0
    return table


def median_distance(rows: np.ndarray, *, n_rows: int = 2000, seed: int = 0) -> float:
    """Return the median distance between rows, over at most ``n_rows`` seeded rows."""
    if len(rows) > n_rows:
        pick = np.random.default_rng(seed).choice(len(rows), n_rows, replace=False)
        rows = rows[np.sort(pick)]
    gram = rows @ rows.T
    square = np.diag(gram)
    upper = np.triu_indices(len(rows), 1)
    distance = np.maximum(square[:, None] + square[None, :] - 2 * gram, 0.0)[upper]
    return float(np.sqrt(np.median(distance))) if distance.size else 0.0


@dataclass(frozen=True)
class Kernel:
    """A unit-diagonal kernel over n rows, formed block by block.

    Attributes
    ----------
    parts : tuple of Tensor, each (n, d_m), float64
        Unit rows, one table a modality.
    kind : {"rbf", "cosine"}
        Gaussian, or the (product of) cosine similarities.
    scales : tuple of float
        Median distance of each modality (1 for cosine).
    factor : float
        f: bandwidth as a multiple of the medians (ignored by cosine).
    names : tuple of str
        Modality names.
    """

    parts: tuple[torch.Tensor, ...]
    kind: str
    scales: tuple[float, ...]
    factor: float
    names: tuple[str, ...]
    _known: dict[str, torch.Tensor] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.parts[0].shape[0])

    @property
    def bandwidths(self) -> dict[str, float]:
        """Bandwidth sigma by modality (empty for cosine)."""
        if self.kind == "cosine":
            return {}
        return {m: self.factor * s for m, s in zip(self.names, self.scales, strict=True)}

    def with_factor(self, factor: float) -> Kernel:
        """Return the same kernel at another bandwidth."""
        return Kernel(self.parts, self.kind, self.scales, factor, self.names, self._known)

    def subset(self, rows: np.ndarray) -> Kernel:
        """Return the kernel over some rows."""
        at = torch.from_numpy(np.asarray(rows, dtype=np.int64)).to(self.parts[0].device)
        return Kernel(
            tuple(p[at] for p in self.parts), self.kind, self.scales, self.factor, self.names
        )

    def joined(self) -> torch.Tensor:
        """Return [u / s_u; v / s_v], shape (n, sum d): what one Gaussian sees."""
        if "joined" not in self._known:
            scaled = [p / s for p, s in zip(self.parts, self.scales, strict=True)]
            self._known["joined"] = torch.cat(scaled, dim=1)
        return self._known["joined"]

    def scaled(self, rows: np.ndarray | slice) -> torch.Tensor:
        """Return some rows of :meth:`joined`."""
        # Of many rows a second, scaled table is not held: 100,000 x 768 are 0.6 GB.
        if self.n <= EXACT_LIMIT or "joined" in self._known:
            return self.joined()[rows]
        scaled = [p[rows] / s for p, s in zip(self.parts, self.scales, strict=True)]
        return torch.cat(scaled, dim=1)

    def block(self, rows: np.ndarray | slice, cols: np.ndarray | slice) -> torch.Tensor:
        """Return k(rows, cols) as a float64 tensor."""
        if self.kind == "cosine":
            out = None
            for part in self.parts:
                similarity = part[rows] @ part[cols].T
                out = similarity if out is None else out * similarity
            assert out is not None
            return out
        squared = _squared_distance(self.scaled(rows), self.scaled(cols))
        return torch.exp_(squared.mul_(-0.5 / self.factor**2))

    def dense(self) -> torch.Tensor:
        """Return the whole matrix; refused above 3,000 rows."""
        if self.n > DENSE_LIMIT:
            raise BadInput(f"A dense kernel of {self.n:,} rows was asked for; 3,000 is the limit.")
        if self.kind == "rbf":
            # The distances serve every bandwidth: a search over scales forms them once.
            matrix = torch.exp(self._squared() * (-0.5 / self.factor**2))
        else:
            matrix = self.block(slice(None), slice(None))
        matrix.fill_diagonal_(1.0)
        return 0.5 * (matrix + matrix.T)

    def _squared(self) -> torch.Tensor:
        if "squared" not in self._known:
            joined = self.joined()
            self._known["squared"] = _squared_distance(joined, joined).fill_diagonal_(0.0)
        return self._known["squared"]

    def __matmul__(self, x: torch.Tensor) -> torch.Tensor:
        """Return K x for a block x (n, b), never holding more than a slab of rows."""
        step = max(1, _BLOCK_CELLS // self.n)
        if self.kind == "rbf":
            self.joined()  # every slab reads all of it
        out = torch.empty_like(x)
        for at in range(0, self.n, step):
            slab = self.block(slice(at, at + step), slice(None))
            inside = torch.arange(slab.shape[0], device=slab.device)
            slab[inside, at + inside] = 1.0
            out[at : at + step] = slab @ x
        return out


def make_kernel(
    table: Table,
    *,
    kind: str = "rbf",
    factor: float = 1.0,
    centered: bool = True,
    device: torch.device | str = "cpu",
    seed: int = 0,
    name: str = "x",
) -> Kernel:
    """Return the kernel of one table, or the product kernel of a mapping of modalities.

    Parameters
    ----------
    table : ndarray (n, d) or mapping of str to ndarray (n, d_m)
        Features; the rows of all modalities belong to the same samples.
    kind : {"rbf", "cosine"}
    factor : float
        Bandwidth as a multiple of each modality's median distance (rbf only).
    centered : bool
        Subtract the feature means before the rows are normalised.
    device, seed
        Where blocks are computed; seed of the rows behind the median.

    Raises
    ------
    BadInput
        Unknown kind, no rows, rows that differ in number, or rows that are all the same.

    Examples
    --------
    >>> k = make_kernel(np.eye(3), kind="cosine", centered=False)
    >>> k.dense().tolist()[0]
    [1.0, 0.0, 0.0]
    """
    if kind not in ("rbf", "cosine"):
        raise BadInput(f"kernel={kind!r} is not known.", "Use 'rbf' or 'cosine'.")
    tables = dict(table) if isinstance(table, Mapping) else {"x": table}
    if not tables:
        raise BadInput(f"{name} holds no modality.", "Give at least one table of features.")
    parts, scales = [], []
    for modality, values in tables.items():
        label = name if modality == "x" else f"{name}[{modality!r}]"
        rows = unit_rows(values, centered=centered, name=label)
        scale = median_distance(rows, seed=seed) if kind == "rbf" else 1.0
        if scale <= 0.0:
            raise BadInput(
                f"{label}: more than half of the pairs of rows are the same.",
                "A bandwidth needs rows that differ; drop the duplicates first.",
            )
        parts.append(torch.from_numpy(rows).to(device))
        scales.append(scale)
    lengths = {len(p) for p in parts}
    if len(lengths) > 1:
        raise BadInput(f"{name}: modalities differ in their number of rows: {sorted(lengths)}.")
    return Kernel(tuple(parts), kind, tuple(scales), factor, tuple(tables))


def leading_eigenvalue(kernel: Kernel, *, tol: float = 1e-6, seed: int = 0) -> float:
    """Return lmax of the raw kernel (unit diagonal), by Lanczos: between 1 and n."""
    operator = kernel.dense() if kernel.n <= DENSE_LIMIT else kernel
    start = torch.ones((kernel.n, 1), dtype=torch.float64, device=kernel.parts[0].device)
    start = start + 0.1 * random_block(kernel.n, 1, seed=seed, device=start.device)
    return float(top_eigenpairs(lambda x: operator @ x, start, tol=tol).values[0])


def match_group_size(
    kernel: Kernel,
    group_size: float,
    *,
    rtol: float = 1e-4,
    seed: int = 0,
    known: LeadingValues | None = None,
) -> Kernel:
    """Return the Gaussian kernel whose leading eigenvalue equals ``group_size``.

    The entries grow with the bandwidth, so by Perron-Frobenius the leading eigenvalue does:
    bisection on log f (with secant steps) finds the one bandwidth.

    Parameters
    ----------
    kernel : Kernel
        Of kind "rbf"; its factor is ignored.
    group_size : float
        Wanted lmax(K), between the largest set of identical rows and n.
    rtol : float
        Relative tolerance on lmax.
    seed : int
        Seed of Lanczos' first vector.
    known : LeadingValues, optional
        Of this kernel: values seen for other group sizes narrow the bracket.

    Raises
    ------
    BadInput
        ``group_size`` is out of reach: at most the largest set of identical rows, or n or more.

    Examples
    --------
    >>> x = np.random.default_rng(0).standard_normal((60, 4))
    >>> k = match_group_size(make_kernel(x), 5.0)
    >>> abs(leading_eigenvalue(k) - 5.0) < 1e-2
    True
    """
    if kernel.kind != "rbf":
        raise BadInput("group_size sets a bandwidth; the cosine kernel has none.")
    if not 1.0 < group_size < kernel.n:
        raise BadInput(
            f"group_size={group_size:g} is out of reach for {kernel.n:,} rows.",
            "It is a number of near-identical samples: more than 1, fewer than the rows.",
        )
    evaluate = LeadingValues(kernel, seed) if known is None else known
    low, high = evaluate.bracket(group_size)
    value_low, value_high = evaluate(low), evaluate(high)
    while value_low > group_size:
        if low < np.log(1e-4):
            raise BadInput(
                f"group_size={group_size:g} cannot be reached: about {value_low:.0f} rows are "
                "the same.",
                "Drop the duplicates, or take a larger group size.",
            )
        low, high, value_high = low - 1.5, low, value_low
        value_low = evaluate(low)
    while value_high < group_size:
        low, value_low, high = high, value_high, high + 1.5
        value_high = evaluate(high)
    wanted = np.log(group_size)
    for step in range(60):
        f_low, f_high = np.log(value_low) - wanted, np.log(value_high) - wanted
        share = 0.5 if step % 3 == 2 else float(np.clip(-f_low / (f_high - f_low), 0.02, 0.98))
        middle = low + share * (high - low)
        value = evaluate(middle)
        if abs(value / group_size - 1.0) <= rtol or high - low < 1e-12:
            return kernel.with_factor(float(np.exp(middle)))
        if value < group_size:
            low, value_low = middle, value
        else:
            high, value_high = middle, value
    return kernel.with_factor(float(np.exp(middle)))


class LeadingValues:
    """lmax(K) as a function of log f; what was evaluated is remembered.

    Parameters
    ----------
    kernel : Kernel
        Of kind "rbf"; its factor is ignored.
    seed : int
        Seed of Lanczos' first vector.
    """

    def __init__(self, kernel: Kernel, seed: int = 0) -> None:
        self.kernel = kernel
        device = kernel.parts[0].device
        self._start = torch.ones((kernel.n, 1), dtype=torch.float64, device=device)
        self._start = self._start + 0.1 * random_block(kernel.n, 1, seed=seed, device=device)
        self._seen: dict[float, float] = {}

    def bracket(self, group_size: float) -> tuple[float, float]:
        """Return the narrowest interval of log f seen to hold ``group_size``, else a wide one."""
        below = [at for at, value in self._seen.items() if value <= group_size]
        above = [at for at, value in self._seen.items() if value >= group_size]
        low = max(below, default=min([float(np.log(0.02)), *above]))
        return low, min(above, default=max([float(np.log(0.5)), *below]))

    def __call__(self, log_factor: float) -> float:
        """Return lmax at a bandwidth of exp(log_factor) times the medians."""
        at = float(log_factor)
        if at not in self._seen:
            kernel = self.kernel.with_factor(float(np.exp(at)))
            operator = kernel.dense() if kernel.n <= DENSE_LIMIT else kernel
            found = top_eigenpairs(lambda x: operator @ x, self._start, tol=1e-4)
            self._seen[at] = float(found.values[0])
        return self._seen[at]


def _squared_distance(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """|x_i - y_j|^2 in float64: the features are unit rows, so cancellation stays at 1e-16."""
    out = (x * x).sum(1)[:, None] + (y * y).sum(1)[None, :] - 2.0 * (x @ y.T)
    return out.clamp_(min=0.0)
