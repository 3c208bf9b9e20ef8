"""What RADAR takes and gives: frozen, numpy only, so that pages may import it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from core.errors import BadInput
from core.types import LeftOut

CHOICES: dict[str, tuple[str, ...]] = {
    "direction": ("blend", "target", "both"),
    "label_mode": ("auto", "any", "same", "different"),
    "geometry": ("euclidean", "sphere", "poincare"),
    "angle_mode": ("stable", "paper"),
    "angle_pair": ("sep_detour", "sep_traj"),
    "density": ("gaussian", "gmm", "variational", "kde", "histogram", "sliced", "sinkhorn"),
    "mode": ("joint", "per_layer"),
    "descriptors": ("both", "theta", "d"),
    "source_weight": ("size", "equal"),
    "pool": ("halves", "all"),
    "project": ("none", "jl"),
}
# Densities of two columns only: there is no joint reading.
LAYER_DENSITIES = ("kde", "histogram")


@dataclass(frozen=True)
class Descriptors:
    """Triplet descriptors of n pairs over L transitions.

    Attributes
    ----------
    theta : ndarray of float64, shape (n, L)
        Angle between separation and detour, radians in [0, pi] (Eq. 9).
    d : ndarray of float64, shape (n, L)
        Relative distance, at least 0 (Eq. 10).
    mask : ndarray of bool, shape (n, L)
        True where the triangle is not degenerate.
    sides : ndarray of float64, shape (n, L, 3)
        Lengths of separation, detour and trajectory.
    """

    theta: np.ndarray
    d: np.ndarray
    mask: np.ndarray
    sides: np.ndarray

    def rows(self, index: np.ndarray) -> Descriptors:
        """Return the pairs at ``index``."""
        return Descriptors(self.theta[index], self.d[index], self.mask[index], self.sides[index])

    def transitions(self, keep: Sequence[int] | np.ndarray) -> Descriptors:
        """Return the transitions at ``keep``."""
        return Descriptors(
            self.theta[:, keep], self.d[:, keep], self.mask[:, keep], self.sides[:, keep]
        )


@dataclass(frozen=True)
class Domain:
    """One domain: its features at every state and, if known, its labels.

    Attributes
    ----------
    layers : tuple of ndarray, shape (n, d_l)
        L + 1 states from input to output.
    labels : ndarray of shape (n,), optional
    name : str
        Used for seeds (the same name draws the same pairs) and in tables.
    layer_names : tuple of str
    """

    layers: tuple[np.ndarray, ...]
    labels: np.ndarray | None = None
    name: str = ""
    layer_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.layers[0])


@dataclass(frozen=True)
class RadarConfig:
    """Every choice of a RADAR score.

    Attributes
    ----------
    layers : "all", "late" or sequence
        States to use: all, those of the last half of the transitions, or names / numbers.
    n_pairs : int
        Anchors a repeat; each has one within and one cross partner.
    repeats : int
        Independent draws; their standard deviation is the reported one.
    seed : int
    direction : {"blend", "target", "both"}
        Where anchors come from. "blend" is dsim's argument order (Eq. 4).
    label_mode : {"auto", "any", "same", "different"}
        Partners' labels; "auto" is "same" when all labels are known, else "any".
    geometry : {"euclidean", "sphere", "poincare"}
    angle_mode : {"stable", "paper"}
        "paper" keeps Eq. 9's epsilon, which depends on scale.
    angle_pair : {"sep_detour", "sep_traj"}
        Eq. 9's angle, or the interior angle at the anchor between separation and trajectory
        (the wording of the authors' project page; an alternative, not the paper's equation).
    density : {"gmm", "gaussian", "variational", "kde", "histogram", "sliced", "sinkhorn"}
        Mixture with K by BIC and Monte Carlo; one Gaussian in closed form; the mixture with
        the variational KL; kernel density at held-out points and 30 bins a side (both per
        layer only); or, on the standardised rows and no longer in nats, sliced 2-Wasserstein
        distance and debiased Sinkhorn divergence.
    mode : {"joint", "per_layer"}
        What ``score`` is; both are always computed.
    descriptors : {"both", "theta", "d"}
    source_weight : {"size", "equal"}
        Weight of a member in a blend: its size (Eq. 1) or the same for all.
    pool : {"halves", "all"}
        "halves": each repeat draws from a random half of every domain. The null, which must
        split the target, then stands on the same number of items; and the spread of
        half-sample values about their mean estimates that of the full sample (the delete-half
        jackknife), so that the sd counts the items and not only the pairs.
    project : {"none", "jl"}
        What is done with neighbouring states of unequal width: left out, or all states
        brought to the least width by a fixed random projection (approximate).
    n_components, n_components_layer : tuple of int
        Candidates for K, joint and per layer.
    n_samples : int
        Monte Carlo draws a direction.
    reg_covar : float
        Added to the variances of the standardised columns of a mixture.
    device : {"cpu", "cuda", "cuda:N", "auto"}
        Where mixtures and transport are computed; all layers' mixtures are fitted at once.
    """

    layers: str | tuple[str | int, ...] = "all"
    n_pairs: int = 2_000
    repeats: int = 5
    seed: int = 0
    direction: str = "blend"
    label_mode: str = "auto"
    geometry: str = "euclidean"
    angle_mode: str = "stable"
    density: str = "gmm"
    mode: str = "joint"
    descriptors: str = "both"
    source_weight: str = "size"
    pool: str = "halves"
    n_components: tuple[int, ...] = (1, 2, 3, 5)
    n_components_layer: tuple[int, ...] = (1, 2, 3)
    n_samples: int = 10_000
    reg_covar: float = 1e-4
    device: str = "cpu"
    angle_pair: str = "sep_detour"
    project: str = "none"

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise BadInput(f"{name}={value!r} is not known.", f"One of: {', '.join(allowed)}.")
        if self.density in LAYER_DENSITIES and self.mode == "joint":
            raise BadInput(
                f"density={self.density!r} has no joint reading.", "Use mode='per_layer'."
            )
        if self.n_pairs < 50:
            raise BadInput(f"n_pairs={self.n_pairs}, expected at least 50.", "2,000 is usual.")
        if self.repeats < 1:
            raise BadInput(f"repeats={self.repeats}, expected at least 1.", "5 is usual.")
        if not isinstance(self.layers, str):
            object.__setattr__(self, "layers", tuple(self.layers))
        elif self.layers not in ("all", "late"):
            raise BadInput(
                f"layers={self.layers!r} is not known.", "Give 'all', 'late' or a list of layers."
            )

    def as_dict(self) -> dict[str, Any]:
        """Return the choices as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class RadarResult:
    """The score of one blend against the target. Lower means more alike.

    Attributes
    ----------
    score, sd : float
        Mean and standard deviation over repeats, in nats. The score is a divergence.
    se_mc : float
        Standard error from Monte Carlo (0 in closed form).
    null, null_sd : float
        The same between halves of the target: what two draws of one domain score.
    excess, excess_sd : float
        ``score - null`` and its standard deviation, repeat by repeat (both use the same half
        of the target).
    joint, per_layer_mean : float
        Both readings, whichever ``score`` is; ``joint`` is nan for a kernel density and a
        histogram.
    per_layer, per_layer_sd, null_layer, null_layer_sd : ndarray of float64, shape (L,)
        Divergence at each kept transition, and of the halves of the target.
    kept_layers : tuple of str
        Transitions used, "from → to".
    dropped_layers : tuple of LeftOut
        Transitions left out, and why.
    n_pairs, n_used, n_masked, n_skipped : int
        Pairs drawn in all repeats (within and cross), rows used, rows left out because a
        triangle was degenerate, items that could not be anchors.
    within, cross : Descriptors
        The first repeat's descriptors, for figures.
    repeats : ndarray of float64, shape (R,)
        The score of each repeat.
    members : tuple of str
    config : RadarConfig
    warnings : tuple of str
    """

    score: float
    sd: float
    se_mc: float
    null: float
    null_sd: float
    excess: float
    excess_sd: float
    joint: float
    per_layer_mean: float
    per_layer: np.ndarray
    per_layer_sd: np.ndarray
    null_layer: np.ndarray
    null_layer_sd: np.ndarray
    kept_layers: tuple[str, ...]
    dropped_layers: tuple[LeftOut, ...]
    n_pairs: int
    n_used: int
    n_masked: int
    n_skipped: int
    within: Descriptors
    cross: Descriptors
    repeats: np.ndarray
    members: tuple[str, ...]
    config: RadarConfig
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class BlendRanking:
    """All blends of a target's sources, nearest first.

    Attributes
    ----------
    table : DataFrame
        One row a blend: blend, members (tuple of str), size (items), n_members, score, sd,
        null, null_sd, excess, excess_sd, joint, per_layer, rank.
    results : mapping of str to RadarResult
        By blend name ("a + b").
    anchors : mapping of str to ndarray of int64, shape (m, 3)
        For each source the first repeat's rows (anchor, within partner, cross partner).
    target : str
    config : RadarConfig
    exhaustive : bool
        False when blends were searched greedily (more than ten sources).
    seconds : float
    """

    table: pd.DataFrame
    results: Mapping[str, RadarResult]
    anchors: Mapping[str, np.ndarray]
    target: str
    config: RadarConfig
    exhaustive: bool = True
    seconds: float = 0.0
    warnings: tuple[str, ...] = field(default=())
