"""What the contrast functions return."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from core.errors import BadInput

EPSILON_MODES = ("unit_trace", "floor", "quantile", "fraction")


class Similarity(Protocol):
    """A unit-diagonal kernel whose blocks can be read: rows x columns, float64."""

    @property
    def n(self) -> int:
        """Number of samples."""
        ...

    def block(self, rows: Any, cols: Any) -> Any:
        """Return k(rows, cols)."""
        ...


@dataclass(frozen=True)
class Cluster:
    """The samples a direction ranks first.

    Attributes
    ----------
    direction : int
        Number of the direction, from 0.
    rows : ndarray of int64, shape (N,)
        Row numbers, strongest first.
    scores : ndarray, shape (N,)
        Entries x_i of the oriented direction.
    size : float
        Participation ratio of the positive part: how many samples share the direction.
    other_rows, other_scores : ndarray
        The negative pole, strongest first (empty when its energy is 25 % or less).
    other_energy : float
        Energy of the negative pole, 0 to 0.5.
    coherence_a, coherence_b : float
        Mean off-diagonal kernel value among the rows, under A and under B.
    quotient : float
        (1 + (N - 1) coherence_a) / (1 + (N - 1) coherence_b).
    z_a, z_b : float
        Coherence against 500 random sets of the same size, in their standard deviations.
    band_a, band_b : float
        99th percentile of the random sets' coherence.
    """

    direction: int
    rows: np.ndarray
    scores: np.ndarray
    size: float
    other_rows: np.ndarray
    other_scores: np.ndarray
    other_energy: float
    coherence_a: float
    coherence_b: float
    quotient: float
    z_a: float
    z_b: float
    band_a: float
    band_b: float

    def is_group(self, n: int, *, least_coherence: float = 0.12) -> bool:
        """Whether the set reads as a group of alike samples, and not as a wide contrast.

        Certified directions can be smears: a group holds at most a tenth of the samples, and
        its coherence stands above ``least_coherence`` and above what random sets reach.
        """
        coherent = self.coherence_a >= max(least_coherence, self.band_a)
        return self.size <= max(n / 10, 8.0) and coherent


@dataclass(frozen=True)
class ScalePoint:
    """One group size of the automatic search and what its first directions gave.

    Attributes
    ----------
    group_size : float
        lmax(K_A) = lmax(K_B), raw, on the rows of the search.
    factor_a, factor_b : float
        Bandwidths as multiples of the median distances.
    sizes, coherence_a, coherence_b : tuple of float
        Participation ratio and coherence of each set.
    passed : int
        Sets with size <= 40 and coherence under A >= 0.12.
    """

    group_size: float
    factor_a: float
    factor_b: float
    sizes: tuple[float, ...]
    coherence_a: tuple[float, ...]
    coherence_b: tuple[float, ...]
    passed: int


@dataclass(frozen=True)
class KodaResult:
    """Directions coherent under the target and held down under the reference.

    All values are in raw units (k(x, x) = 1): an epsilon of 2 lets the reference see the
    direction as no more than two identical samples.

    Attributes
    ----------
    directions : ndarray of float64, shape (k, n)
        Orthonormal rows, oriented: the positive part holds at least half of the energy.
    objective, constraint : ndarray, shape (k,)
        x' K_A x and x' K_B x.
    multiplier, dual_bound, gap : ndarray, shape (k,)
        lambda, the proven upper bound on the objective, and bound minus objective.
    scale : ndarray, shape (k,)
        lmax(K_A) of each (deflated) problem.
    status : tuple of str
        "active", "inactive", "boundary", "infeasible" (constraint is then the least epsilon
        that can be met) or "not certified".
    certificate : tuple of str
        How each bound was proven: "eigen", "cholesky", "ritz" (estimate) or "none".
    range_mass : ndarray, shape (k,)
        Share of x inside the range of the features; below 1 epsilon is too tight and the rest
        is arbitrary filler, left out of ``directions``.
    epsilon : float
        Raw bound.
    group_size : float
        lmax(K_A), raw.
    bandwidths : dict
        sigma by side and modality (empty for cosine and given matrices).
    weights : ndarray, shape (m, k), optional
        u with x = Phi u, where features were used: scores of new samples.
    scale_path : tuple of ScalePoint
        The automatic search, when there was one.
    similarities : tuple of Similarity
        K_A and K_B.
    notes : tuple of str
        What a reader must know: limits, warnings.
    """

    directions: np.ndarray
    objective: np.ndarray
    constraint: np.ndarray
    multiplier: np.ndarray
    dual_bound: np.ndarray
    gap: np.ndarray
    scale: np.ndarray
    status: tuple[str, ...]
    certificate: tuple[str, ...]
    range_mass: np.ndarray
    epsilon: float
    group_size: float
    similarities: tuple[Similarity, Similarity]
    bandwidths: dict[str, dict[str, float]] = field(default_factory=dict)
    weights: np.ndarray | None = None
    scale_path: tuple[ScalePoint, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.directions.shape[1])

    @property
    def relative_gap(self) -> np.ndarray:
        """Gap as a share of lmax(K_A), shape (k,)."""
        return self.gap / np.maximum(self.scale, 1e-300)

    def clusters(
        self, size: int | None = None, *, seed: int = 0, rotate: bool = False
    ) -> list[Cluster]:
        """Return the samples each feasible direction ranks first, with honesty scores.

        Parameters
        ----------
        size : int, optional
            Samples a cluster; by default min(max(round(participation ratio), 8), 200).
        seed : int
            Seed of the random sets behind the z-scores.
        rotate : bool
            Varimax rotation of the directions first; the certificates speak of the unrotated.
        """
        from core.contrast.clusters import extract_clusters, varimax

        feasible = [k for k, s in enumerate(self.status) if s != "infeasible"]
        chosen = self.directions[feasible]
        if rotate and len(chosen):
            chosen = varimax(chosen)
        found = extract_clusters(chosen, *self.similarities, size, seed=seed)
        return [
            Cluster(**{**vars(c), "direction": k}) for k, c in zip(feasible, found, strict=True)
        ]

    def score(self, phi_a: np.ndarray, phi_b: np.ndarray) -> np.ndarray:
        """Score new samples by their features: phi_A(z)' u_A + phi_B(z)' u_B, shape (q, k).

        Raises
        ------
        BadInput
            The directions were found from whole kernels, or the columns do not match.
        """
        if self.weights is None:
            raise BadInput(
                "New samples can only be scored where directions came from features.",
                "Use koda_features, the cosine kernel, or n_features.",
            )
        columns = phi_a.shape[1] + phi_b.shape[1]
        if columns != len(self.weights):
            raise BadInput(f"The features have {columns} columns; {len(self.weights)} are needed.")
        split = phi_a.shape[1]
        return np.asarray(phi_a @ self.weights[:split] + phi_b @ self.weights[split:])


@dataclass(frozen=True)
class SpecResult:
    """Eigenvectors of (K_A - eta K_B) / n (SPEC, arXiv 2506.06231).

    Attributes
    ----------
    eigenvalues : ndarray, shape (k,)
        In unit trace; positive ones are dominant in the target.
    directions : ndarray, shape (k, n)
        Orthonormal rows, oriented as KODA's.
    objective, constraint : ndarray, shape (k,)
        x' K_A x and x' K_B x, raw: KODA at epsilon = constraint[0] gives the same direction.
    eta : float
    """

    eigenvalues: np.ndarray
    directions: np.ndarray
    objective: np.ndarray
    constraint: np.ndarray
    eta: float
