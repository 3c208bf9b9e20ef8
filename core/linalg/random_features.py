"""Random features: tables Phi whose Gram Phi Phi' is, in expectation, a kernel.

Rahimi and Recht (2007) for the Gaussian; KODA (arXiv 2606.04180) Eq. 22 for joint features of
several modalities; random tensor projections for products of cosine kernels (KrossFuse).

Axes: n rows, d features, r frequencies (2 r columns), l projections.
"""

from __future__ import annotations

import numpy as np
import torch

from core.errors import BadInput
from core.linalg.kernels import EXACT_LIMIT, Kernel

_ROWS = 8192  # rows a block: bounds the float64 temporaries
EXACT_TENSOR = 4096  # widest exact tensor product of two cosine tables


class FourierTable:
    """Random Fourier features that are formed row by row as they are read.

    Of 100,000 rows and 1,000 frequencies the table would be 0.8 GB a kernel.

    Attributes
    ----------
    shape : (int, int)
        n rows, 2 r columns.
    """

    def __init__(self, kernel: Kernel, stacked: torch.Tensor) -> None:
        self.shape = (kernel.n, 2 * stacked.shape[1])
        self._parts, self._stacked = kernel.parts, stacked

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | np.ndarray) -> torch.Tensor:
        """Return some rows, float32."""
        r = self._stacked.shape[1]
        phase = torch.cat([p[rows] for p in self._parts], dim=1) @ self._stacked
        out = torch.empty((len(phase), 2 * r), dtype=torch.float32, device=phase.device)
        out[:, :r] = torch.cos(phase)
        out[:, r:] = torch.sin(phase)
        return out.mul_(r**-0.5)


def fourier_table(
    kernel: Kernel, n_frequencies: int, *, seed: int = 0, orthogonal: bool = False
) -> FourierTable | torch.Tensor:
    """Return :func:`fourier_features`, as they are read where they would fill the memory.

    Above 10,000 rows, on the CPU. Arguments and errors are those of :func:`fourier_features`.
    """
    if kernel.n <= EXACT_LIMIT or kernel.parts[0].is_cuda:
        return fourier_features(kernel, n_frequencies, seed=seed, orthogonal=orthogonal)
    return FourierTable(kernel, _stacked(kernel, n_frequencies, seed, orthogonal))


def fourier_features(
    kernel: Kernel, n_frequencies: int, *, seed: int = 0, orthogonal: bool = False
) -> torch.Tensor:
    """Return random Fourier features of a Gaussian kernel.

    phi(x) = r^-1/2 [cos(w_i' x), sin(w_i' x)], w_i ~ N(0, I / sigma^2). For several modalities
    the phases add, w_x' u + w_t' v with independent frequencies (Eq. 22): the features of the
    product kernel in 2 r columns.

    Parameters
    ----------
    kernel : Kernel
        Of kind "rbf", with its bandwidth set.
    n_frequencies : int
        r. The entries' error has standard deviation at most 1 / sqrt(2 r).
    seed : int
        Seed of the frequencies.
    orthogonal : bool
        Draw orthogonal blocks of frequencies (Yu et al. 2016): same mean, less variance.

    Returns
    -------
    Tensor of float32, shape (n, 2 r)
        Rows have unit length.

    Raises
    ------
    BadInput
        The kernel is not Gaussian, or r < 1.

    Examples
    --------
    >>> from core.linalg.kernels import make_kernel
    >>> k = make_kernel(np.random.default_rng(0).standard_normal((20, 3)))
    >>> phi = fourier_features(k, 4000)
    >>> float((phi @ phi.T - k.dense()).abs().max()) < 0.06
    True
    """
    stacked = _stacked(kernel, n_frequencies, seed, orthogonal)
    out = torch.empty(
        (kernel.n, 2 * n_frequencies), dtype=torch.float32, device=kernel.parts[0].device
    )
    for at in range(0, kernel.n, _ROWS):
        rows = slice(at, at + _ROWS)
        phase = torch.cat([p[rows] for p in kernel.parts], dim=1) @ stacked
        out[rows, :n_frequencies] = torch.cos(phase)
        out[rows, n_frequencies:] = torch.sin(phase)
    return out.mul_(n_frequencies**-0.5)


def _stacked(kernel: Kernel, n_frequencies: int, seed: int, orthogonal: bool) -> torch.Tensor:
    """Return the frequencies of all modalities, shape (sum d, r): their phases add."""
    if kernel.kind != "rbf":
        raise BadInput("Random Fourier features are for the Gaussian kernel; this one is cosine.")
    if n_frequencies < 1:
        raise BadInput(f"n_features={n_frequencies} gives no frequency; use at least 1.")
    rng = np.random.default_rng(seed)
    device = kernel.parts[0].device
    draws = [
        _frequencies(p.shape[1], n_frequencies, rng, orthogonal=orthogonal) for p in kernel.parts
    ]
    scaled = [
        torch.from_numpy(w / (kernel.factor * s)).to(device)
        for w, s in zip(draws, kernel.scales, strict=True)
    ]
    return torch.cat(scaled)


def _frequencies(
    d: int, r: int, rng: np.random.Generator, *, orthogonal: bool = False
) -> np.ndarray:
    if not orthogonal:
        return rng.standard_normal((d, r))
    blocks = []
    for _ in range(-(-r // d)):
        q, upper = np.linalg.qr(rng.standard_normal((d, d)))
        # Signs of R make Q Haar-distributed; chi lengths give each column a Gaussian's norm.
        q = q * np.sign(np.diag(upper))
        blocks.append(q * np.sqrt(rng.chisquare(d, size=d)))
    return np.concatenate(blocks, axis=1)[:, :r]


def cosine_features(kernel: Kernel, n_projections: int = 3000, *, seed: int = 0) -> torch.Tensor:
    """Return features of a (product of) cosine kernels.

    One modality: its unit rows, exact. Two modalities: the exact tensor product when
    d_x d_t <= 4,096, else l^-1/2 (U R_x) * (V R_t) with R uniform on [-sqrt 3, sqrt 3], which
    is unbiased with standard deviation about 1 / sqrt(l) off the diagonal.

    Returns
    -------
    Tensor of float32, shape (n, d), (n, d_x d_t) or (n, l)

    Raises
    ------
    BadInput
        The kernel is not a cosine kernel.

    Examples
    --------
    >>> from core.linalg.kernels import make_kernel
    >>> k = make_kernel({"a": np.eye(3), "b": np.eye(3)}, kind="cosine", centered=False)
    >>> cosine_features(k).shape
    torch.Size([3, 9])
    """
    if kernel.kind != "cosine":
        raise BadInput("cosine_features takes a cosine kernel, not a Gaussian one.")
    parts = kernel.parts
    if len(parts) == 1:
        return parts[0].to(torch.float32)
    if int(np.prod([p.shape[1] for p in parts])) <= EXACT_TENSOR:
        out = parts[0]
        for part in parts[1:]:
            out = torch.einsum("ni,nj->nij", out, part).reshape(len(out), -1)
        return out.to(torch.float32)
    rng = np.random.default_rng(seed)
    side = np.sqrt(3.0)
    draws = [
        torch.from_numpy(rng.uniform(-side, side, (p.shape[1], n_projections))).to(p.device)
        for p in parts
    ]
    out = torch.empty((kernel.n, n_projections), dtype=torch.float32, device=parts[0].device)
    for at in range(0, kernel.n, _ROWS):
        rows = slice(at, at + _ROWS)
        product = torch.ones((), dtype=torch.float64, device=parts[0].device)
        for part, draw in zip(parts, draws, strict=True):
            product = product * (part[rows] @ draw)
        out[rows] = product
    return out.mul_(n_projections**-0.5)
