"""A cleaned feature matrix and the statistics that several metrics share.

Failure policy: rows that are not finite are dropped and counted, more than 1 % of them make
the record invalid; zero rows stay for spectral metrics and leave those on unit rows.

Axes: n samples, d features.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from core.device import pick_device
from core.errors import BadInput
from core.linalg.spectra import BLOCK, Spectrum, self_product, spectrum

if TYPE_CHECKING:
    from core.quality.metrics.twonn import NeighbourRatios

INVALID_SHARE = 0.01
# Mean cosine of distinct rows above which centred metrics describe what little noise is left.
NEAR_COLLAPSE = 0.99


def as_matrix(x: np.ndarray, name: str = "x") -> np.ndarray:
    """Return ``x`` as a floating array of shape (n, d).

    Raises
    ------
    BadInput
        Not two-dimensional, no columns, or not real numbers.
    """
    array = np.asarray(x)
    if array.ndim != 2 or array.shape[1] == 0:
        raise BadInput(
            f"{name} must have shape (n, d) with d >= 1, got {array.shape}.",
            "Give one row a sample.",
        )
    if array.dtype.kind not in "fiub":
        raise BadInput(
            f"{name} must hold real numbers, got dtype {array.dtype}.", "Convert it first."
        )
    return array if array.dtype.kind == "f" else array.astype(np.float64)


class Sample:
    """Features ready to be measured.

    Parameters
    ----------
    x : ndarray, shape (n, d)
        float16, float32, float64 or integers.
    seed : int
        Seed of every subsample drawn from these rows.
    device : str, optional
        See :func:`core.device.pick_device`.

    Attributes
    ----------
    x : Tensor of float32 or float64, shape (n, d)
        The finite rows.
    n, d, n_nonfinite, n_zero : int
        Rows left, columns, rows dropped, rows that are all zero.
    """

    def __init__(self, x: np.ndarray, *, seed: int = 0, device: str | None = None) -> None:
        array = as_matrix(x)
        self.eps = float(np.finfo(array.dtype).eps)
        finite = np.isfinite(array).all(axis=1)
        kept = array if finite.all() else array[finite]
        kind = np.float64 if array.dtype == np.float64 else np.float32
        # A copy: stored features are memory-mapped read-only, which torch warns about.
        self.x = torch.from_numpy(np.array(kept, dtype=kind, order="C")).to(pick_device(device))
        self.n, self.d = self.x.shape
        self.n_nonfinite = int((~finite).sum())
        self.n_zero = int((~self._nonzero).sum())
        self.invalid = self.n_nonfinite > INVALID_SHARE * len(array) or self.n == 0
        self.seed = seed

    @cached_property
    def _nonzero(self) -> torch.Tensor:
        """Which rows hold something else than zeros, bool (n,)."""
        return (self.x != 0).any(1)

    @cached_property
    def spectrum(self) -> Spectrum:
        """Centred and raw singular values; see :func:`core.linalg.spectra.spectrum`."""
        return spectrum(self.x, eps=self.eps)

    @cached_property
    def unit(self) -> torch.Tensor:
        """Rows of length one, float64, zero rows left out, shape (n - n_zero, d)."""
        rows = self.x[self._nonzero] if self.n_zero else self.x
        out = torch.empty(rows.shape, dtype=torch.float64, device=rows.device)
        for start in range(0, len(rows), BLOCK):
            block = rows[start : start + BLOCK].double()
            # Dividing by the largest entry first keeps tiny rows from underflowing.
            block = block / block.abs().amax(1, keepdim=True)
            out[start : start + BLOCK] = block / block.norm(dim=1, keepdim=True)
        return out

    @cached_property
    def unit_purity(self) -> float:
        """``|W^T W|_F^2`` of the unit rows W, by the smaller of the two Gram matrices."""
        unit = self.unit
        if len(unit) <= self.d:
            return float((unit @ unit.T).square().sum())
        gram = unit.new_zeros((self.d, self.d))
        for block in unit.split(BLOCK):
            gram += self_product(block)
        return float(gram.square().sum())

    @cached_property
    def near_collapse(self) -> bool:
        """Whether distinct rows have a mean squared cosine above 0.99."""
        n = len(self.unit)
        return n > 1 and (self.unit_purity - n) / (n * (n - 1)) > NEAR_COLLAPSE and self.d > 1

    @cached_property
    def ratios(self) -> NeighbourRatios:
        """Ratios of second to first neighbour distances, shared by the estimators of ID."""
        from core.quality.metrics.twonn import neighbour_ratios

        return neighbour_ratios(self.x, eps=self.eps)

    def common_flags(self) -> tuple[str, ...]:
        """Return the flags that concern every metric of these rows."""
        flags = {
            "nonfinite_rows": self.n_nonfinite > 0,
            "invalid": self.invalid,
            "zero_rows": self.n_zero > 0,
        }
        return tuple(name for name, on in flags.items() if on)
