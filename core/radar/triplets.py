"""RADAR's triplet descriptors: theta and d of anchor, partner and the anchor one layer on.

RADAR, arXiv 2605.23028, Eq. 6-10, Appendix K (identity sep + detour = traj, so d >= 0).
Masks are ours: the paper's epsilon rule gives a number to a triangle without an angle.

Axes: n pairs, L transitions, d features; N, M items of two domains.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch

from core.device import pick_device
from core.errors import BadInput
from core.radar import geometry as geo
from core.radar import kernel
from core.radar.types import Descriptors

# Pairs a block: 64 rows x 768 columns x 8 bytes = 0.4 MB an array; the five in use fit the
# cache (256 rows took three times as long).
_BLOCK = 64
# A side shorter than this part of the median feature norm counts as none.
_DEGENERATE = 1e-7
# A table of all pairs pays when it holds no more than this many entries for one asked-for
# pair (a product is that much cheaper than a gathered row), and fits in memory.
_TABLE_EXCESS = 40
_TABLE_BYTES = 256 * 2**20

Layers = np.ndarray | Sequence[np.ndarray]


def triplet_descriptors(
    anchor_layers: Layers,
    partner_layers: Layers,
    *,
    eps: float = 1e-8,
    geometry: str = "euclidean",
    angle_mode: str = "stable",
    angle_pair: str = "sep_detour",
    scale: float | None = None,
    device: str | None = "cpu",
) -> Descriptors:
    r"""Return theta and d for n pairs at every transition.

    With ``sep = h_l(z) - h_l(x)``, ``detour = h_{l+1}(x) - h_l(z)``, ``traj = sep + detour``:

    .. math:: \theta = \angle(sep, detour), \qquad d = (|sep| + |detour| - |traj|) / |traj|

    Parameters
    ----------
    anchor_layers, partner_layers : ndarray (n, L+1, d), or L+1 arrays (n, d)
        Row i of one belongs to row i of the other. The partner's last state has no influence.
    eps : float
        Floor of the denominators of Eq. 9 (paper mode only) and Eq. 10 (where traj is 0).
    geometry : {"euclidean", "sphere", "poincare"}
        Flat; features scaled to length one; features mapped into the unit ball by
        ``tanh(scale |h| / 2) h / |h|``.
    angle_mode : {"stable", "paper"}
        "stable": ``2 atan2(|u - v|, |u + v|)`` of unit vectors. "paper": Eq. 9 as written,
        whose epsilon shrinks the cosine of small triangles (flat geometry only).
    angle_pair : {"sep_detour", "sep_traj"}
        Eq. 9's angle, or the interior angle at the anchor (the project page's wording;
        "stable" only).
    scale : float, optional
        Of the ball; default 1 over the 95th percentile of the features' norms.
    device : str, optional
        Where to compute; None follows THEODOLITE_DEVICE.

    Returns
    -------
    Descriptors
        float64. Where |sep|, |detour| or |traj| is at most 1e-7 of the median feature norm
        ``mask`` is False and the values are those of the paper's rule: (pi/2, 0) for sep or
        detour 0, (pi, 2 |sep| / eps) for traj 0.

    Raises
    ------
    BadInput
        Fewer than two states, rows that do not match, neighbouring states of unequal
        width, or values that are not finite (the message names the layer and the count).

    References
    ----------
    RADAR, arXiv 2605.23028, Eq. 6-10.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[[0.0, 0.0], [2.0, 0.0]]])
    >>> z = np.array([[[1.0, 1.0], [9.0, 9.0]]])
    >>> out = triplet_descriptors(x, z)
    >>> round(float(out.theta[0, 0]), 6), round(float(out.d[0, 0]), 6)
    (1.570796, 0.414214)
    """
    anchors = as_states(anchor_layers, "anchor", finite=False)
    partners = as_states(partner_layers, "partner", finite=False)
    _check_pair(anchors, partners)
    if angle_mode == "paper" and geometry != "euclidean":
        raise BadInput("angle_mode='paper' is Eq. 9, which is Euclidean.", "Use 'stable'.")
    if angle_mode == "paper" and angle_pair != "sep_detour":
        raise BadInput("angle_mode='paper' is Eq. 9: sep and detour.", "Use 'stable'.")
    where = pick_device(device)
    _check_finite(partners[-1:], "partner", len(partners) - 1)
    plain = geometry == "euclidean" and angle_mode == "stable" and angle_pair == "sep_detour"
    if plain and where.type == "cpu":
        rows = np.arange(len(anchors[0]))
        fused = _fused(anchors, partners, list(pairwise(range(len(anchors)))), rows, rows)
        if fused is not None:
            return fused
    _check_finite(anchors, "anchor")
    _check_finite(partners, "partner")
    if scale is None:
        scale = ball_scale(anchors + partners) if geometry == "poincare" else 1.0
    paper_eps = eps if angle_mode == "paper" else None
    theta, sides, floors = _measure(
        anchors, partners, (geometry, angle_pair), scale, paper_eps, where
    )
    return _assemble(theta, sides, floors, eps, angle_mode)


def _fused(
    anchors: Sequence[np.ndarray], partners: Sequence[np.ndarray],
    transitions: Sequence[tuple[int, int]], i: np.ndarray, j: np.ndarray,
) -> Descriptors | None:  # fmt: skip
    """Take the compiled path; None where it does not apply, would not pay, or meets a nan."""
    if sum(anchors[low].shape[1] for low, _ in transitions) * len(i) < kernel.LEAST_WORK:
        return None
    out = kernel.fused_sides(anchors, partners, transitions, i, j)
    if out is None:
        return None
    theta, sides, norms = out
    if not np.isfinite(norms).all():
        return None
    steps = len(transitions)
    # torch's median, the lower of the two middle values, as in the other path.
    flat = torch.as_tensor(np.ascontiguousarray(norms.transpose(1, 0, 2)).reshape(steps, -1))
    floors = _DEGENERATE * flat.median(dim=1).values.numpy()
    return _assemble(theta, sides, floors, 1e-8, "stable")


def as_states(layers: Layers, what: str, *, finite: bool = True) -> list[np.ndarray]:
    """Return the states as a list of (n, d) arrays, checked (for finite values if asked)."""
    if isinstance(layers, np.ndarray):
        if layers.ndim != 3:
            raise BadInput(f"{what} layers must be (n, L+1, d), got {layers.shape}.")
        states = [layers[:, index] for index in range(layers.shape[1])]
    else:
        states = [np.asarray(state) for state in layers]
    if len(states) < 2:
        raise BadInput(
            f"{what} has {len(states)} states, RADAR compares neighbouring ones.",
            "Extract at least two layers.",
        )
    for index, state in enumerate(states):
        if state.ndim != 2 or len(state) != len(states[0]):
            raise BadInput(f"{what} state {index} has shape {state.shape}, expected (n, d).")
    if finite:
        _check_finite(states, what)
    return states


def _check_finite(states: Sequence[np.ndarray], what: str, first: int = 0) -> None:
    for index, state in enumerate(states, first):
        bad = int(state.size - np.count_nonzero(np.isfinite(state)))
        if bad:
            raise BadInput(
                f"{what} state {index} holds {bad} values that are not finite.",
                "Leave those items out or extract again in float32.",
            )


def ball_scale(states: Sequence[np.ndarray]) -> float:
    """Return 1 over the 95th percentile of the norms of all states' rows."""
    norms = np.concatenate([np.linalg.norm(s.astype(np.float64), axis=1) for s in states])
    return float(1.0 / max(np.quantile(norms, 0.95), np.finfo(float).tiny))


def _check_pair(anchors: list[np.ndarray], partners: list[np.ndarray]) -> None:
    if len(anchors) != len(partners) or len(anchors[0]) != len(partners[0]):
        raise BadInput(
            f"anchor has {len(anchors)} states of {len(anchors[0])} rows, "
            f"partner {len(partners)} of {len(partners[0])}.",
            "Both need the same states and one row a pair.",
        )
    for index, (left, right) in enumerate(pairwise(anchors)):
        if left.shape[1] != right.shape[1] or partners[index].shape[1] != left.shape[1]:
            raise BadInput(
                f"States {index} and {index + 1} have widths {left.shape[1]} and "
                f"{right.shape[1]} (partner {partners[index].shape[1]}).",
                "Eq. 7 needs equal widths: leave this transition out.",
            )


def _measure(
    anchors: list[np.ndarray],
    partners: list[np.ndarray],
    shape: tuple[str, str],
    scale: float,
    paper_eps: float | None,
    device: torch.device,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return theta (n, L), sides (n, L, 3) and the lengths (L,) below which a side is none.

    Rows in blocks, layers inside: a block's anchors are read once for both their transitions.
    """
    n, steps = len(anchors[0]), len(anchors) - 1
    geometry, pair = shape
    theta = torch.empty(n, steps, dtype=torch.float64)
    sides = torch.empty(n, steps, 3, dtype=torch.float64)
    norms = torch.empty(n, steps, 3, dtype=torch.float64)
    for first in range(0, n, _BLOCK):
        block = slice(first, first + _BLOCK)

        def corner(state: np.ndarray, rows: slice = block) -> torch.Tensor:
            h = torch.as_tensor(np.asarray(state[rows])).to(device, torch.float64)
            return geo.embed(h, geometry, scale)

        x = corner(anchors[0])
        x_norm = x.norm(dim=1)
        for layer in range(steps):
            z, y = corner(partners[layer]), corner(anchors[layer + 1])
            y_norm = y.norm(dim=1)
            angle, lengths = geo.triangle(x, z, y, geometry, pair)
            if paper_eps is not None:
                product = (lengths[0] * lengths[1]).clamp_min(paper_eps)
                angle = torch.arccos((((z - x) * (y - z)).sum(1) / product).clamp(-1.0, 1.0))
            theta[block, layer] = angle.cpu()
            sides[block, layer] = torch.stack(lengths, dim=1).cpu()
            norms[block, layer] = torch.stack([x_norm, z.norm(dim=1), y_norm], dim=1).cpu()
            x, x_norm = y, y_norm
    floors = _DEGENERATE * norms.movedim(1, 0).reshape(steps, -1).median(dim=1).values
    return theta.numpy(), sides.numpy(), floors.numpy()


def _assemble(
    theta: np.ndarray, sides: np.ndarray, floors: np.ndarray, eps: float, angle_mode: str
) -> Descriptors:
    """Eq. 10 and the mask, from theta (n, L), sides (n, L, 3) and floors (L,)."""
    sep, detour, traj = np.moveaxis(sides, -1, 0)
    # Stable mode divides by traj itself, so that d does not depend on the features' scale.
    least = eps if angle_mode == "paper" else np.where(traj > 0, traj, eps)
    d = np.maximum(sep + detour - traj, 0.0) / np.maximum(traj, least)
    mask = np.all(sides > floors[None, :, None], axis=-1)
    return Descriptors(theta, d, mask, sides)


class PairSpace:
    """Descriptors of pairs (anchor of A, partner of B), looked up by row numbers.

    Small domains: the sides of all N x M triangles are computed once by two matrix products
    a transition (float64), and repeats only look up. Large ones: the asked-for pairs are
    computed. Both agree to about 1e-8 where a triangle is flat, else to rounding.

    Parameters
    ----------
    anchors, partners : list of ndarray
        States of A (N rows) and B (M rows).
    transitions : sequence of (int, int)
        Pairs of state numbers of equal width.
    n_expected : int
        Pairs that will be asked for in all.
    """

    def __init__(
        self, anchors: Sequence[np.ndarray], partners: Sequence[np.ndarray],
        transitions: Sequence[tuple[int, int]], *, n_expected: int, geometry: str = "euclidean",
        angle_mode: str = "stable", angle_pair: str = "sep_detour", scale: float = 1.0,
        device: str | None = "cpu",
    ) -> None:  # fmt: skip
        self._anchors, self._partners = anchors, partners
        self._transitions = tuple(transitions)
        self._geometry, self._angle_mode = geometry, angle_mode
        self._scale, self._device, self._angle_pair = scale, device, angle_pair
        entries = len(anchors[0]) * len(partners[0])
        fits = entries * len(self._transitions) * 2 * 8 <= _TABLE_BYTES
        small = entries <= _TABLE_EXCESS * n_expected
        # Eq. 9's own epsilon needs the dot product, which a table of lengths does not hold.
        tabled = fits and small and angle_mode == "stable"
        self._tables = [self._tabulate(*pair) for pair in self._transitions] if tabled else None

    def at(self, i: np.ndarray, j: np.ndarray) -> Descriptors:
        """Return the descriptors of pairs (anchor row i, partner row j), shape (n, L)."""
        if self._tables is None:
            return self._direct(i, j)
        sides = np.stack(
            [np.stack([t.sep[i, j], t.detour[i, j], t.traj[i]], axis=1) for t in self._tables],
            axis=1,
        )  # (n, L, 3)
        corners = torch.as_tensor(np.moveaxis(sides, -1, 0))
        theta = geo.angle_from_sides(tuple(corners), self._geometry, self._angle_pair).numpy()
        floors = np.array([table.floor for table in self._tables])
        return _assemble(theta, sides, floors, 1e-8, "stable")

    def _direct(self, i: np.ndarray, j: np.ndarray) -> Descriptors:
        plain = self._geometry == "euclidean" and self._angle_mode == "stable"
        on_cpu = pick_device(self._device).type == "cpu"
        if plain and on_cpu and self._angle_pair == "sep_detour":
            fused = _fused(self._anchors, self._partners, self._transitions, i, j)
            if fused is not None:
                return fused
        parts = [
            triplet_descriptors(
                [self._anchors[low][i], self._anchors[high][i]],
                [self._partners[low][j], self._partners[high][j]],
                geometry=self._geometry, angle_mode=self._angle_mode,
                angle_pair=self._angle_pair, scale=self._scale, device=self._device,
            )
            for low, high in self._transitions
        ]  # fmt: skip
        names = ("theta", "d", "mask", "sides")
        return Descriptors(
            *(np.concatenate([getattr(part, n) for part in parts], axis=1) for n in names)
        )

    def _tabulate(self, low: int, high: int) -> _Sides:
        device = pick_device(self._device)

        def embedded(state: np.ndarray) -> torch.Tensor:
            h = torch.as_tensor(np.asarray(state)).to(device, torch.float64)
            return geo.embed(h, self._geometry, self._scale)

        x, y = embedded(self._anchors[low]), embedded(self._anchors[high])
        z = embedded(self._partners[low])
        norms = torch.cat([h.norm(dim=1) for h in (x, z, y)])
        return _Sides(
            geo.pair_distance(x, z, self._geometry).cpu().numpy(),
            geo.pair_distance(y, z, self._geometry).cpu().numpy(),
            geo.row_distance(x, y, self._geometry).cpu().numpy(),
            _DEGENERATE * float(norms.median()),
        )


class _Sides(NamedTuple):
    """One transition's lengths for all pairs: sep, detour (N, M), traj (N,), least length."""

    sep: np.ndarray
    detour: np.ndarray
    traj: np.ndarray
    floor: float
