"""Distances and angles of RADAR's triangle in three geometries.

RADAR, arXiv 2605.23028, Eq. 6-10. The paper's abstract names geometry variants without
formulas; ours replace norms by geodesic lengths and the angle by the one between log maps,
which gives Eq. 9 and 10 back in flat space.

Corners: x anchor at layer l, z partner at layer l, y anchor at layer l + 1. Sides: a = |xz|
(separation), b = |zy| (detour), c = |xy| (trajectory). All float64.
"""

from __future__ import annotations

import math

import torch

Triangle = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
# Points of the ball stay this far from its rim, where float64 distances lose their digits.
_RIM = 1e-5
# Beyond this cosine arccos would lose more than one digit of float64.
_NEAR_FLAT = 0.99


def embed(h: torch.Tensor, geometry: str, scale: float) -> torch.Tensor:
    """Map features (..., d) into the geometry: as they are, onto the sphere, into the ball."""
    if geometry == "euclidean":
        return h
    norm = h.norm(dim=-1, keepdim=True)
    unit = h / norm.clamp_min(torch.finfo(h.dtype).tiny)
    if geometry == "sphere":
        return unit
    return unit * torch.tanh(0.5 * scale * norm).clamp_max(1.0 - _RIM)


def triangle(
    x: torch.Tensor, z: torch.Tensor, y: torch.Tensor, geometry: str, pair: str = "sep_detour"
) -> tuple[torch.Tensor, Triangle]:
    """Return theta and the three sides of embedded corners (n, d), each (n,).

    With ``pair="sep_traj"`` the angle is the interior one at x.
    """
    if pair == "sep_traj":
        # The exterior angle at the middle corner of (z, x, y) is pi minus the interior one at x.
        outer, (sep, traj, detour) = triangle(z, x, y, geometry)
        flat = (sep == 0) | (traj == 0)
        return torch.where(flat, outer, math.pi - outer), (sep, detour, traj)
    if geometry == "euclidean":
        sep, detour = z - x, y - z
        sides = sep.norm(dim=-1), detour.norm(dim=-1), (y - x).norm(dim=-1)
        return angle_between(sep, detour, sides[0], sides[1]), sides
    if geometry == "sphere":
        sep, detour = -_sphere_log(z, x), _sphere_log(z, y)
        sides = _arc(z - x, z + x), _arc(y - z, y + z), _arc(y - x, y + x)
    else:
        # The ball is conformal: the angle between the tangent vectors is the Euclidean one.
        sep, detour = -_moebius(-z, x), _moebius(-z, y)
        sides = ball_distance(x, z), ball_distance(z, y), ball_distance(x, y)
    return angle_between(sep, detour, sep.norm(dim=-1), detour.norm(dim=-1)), sides


def angle_between(
    u: torch.Tensor, v: torch.Tensor, norm_u: torch.Tensor, norm_v: torch.Tensor
) -> torch.Tensor:
    """Return the angle of u and v (n, d) in [0, pi]; pi/2 where either is zero.

    arccos loses half of its digits near 0 and pi; there ``2 atan2(|u' - v'|, |u' + v'|)`` of
    the unit vectors is taken, which keeps them.
    """
    flat = (norm_u == 0) | (norm_v == 0)
    product = torch.where(flat, torch.ones_like(norm_u), norm_u * norm_v)
    cosine = (u * v).sum(dim=-1) / product
    theta = torch.arccos(cosine.clamp(-1.0, 1.0))
    rows = ((cosine.abs() > _NEAR_FLAT) & ~flat).nonzero()[:, 0]
    if len(rows):
        unit_u = u[rows] / norm_u[rows, None]
        unit_v = v[rows] / norm_v[rows, None]
        across, along = (unit_u - unit_v).norm(dim=-1), (unit_u + unit_v).norm(dim=-1)
        theta[rows] = 2.0 * torch.atan2(across, along)
    return torch.where(flat, torch.full_like(theta, 0.5 * math.pi), theta)


def angle_from_sides(sides: Triangle, geometry: str, pair: str = "sep_detour") -> torch.Tensor:
    """Return theta, the exterior angle at z (or the interior one at x), from lengths alone.

    The half-angle formula, the same in the three geometries with f = identity, sin, sinh:
    ``tan(theta / 2)^2 = f(s) f(s - c) / (f(s - a) f(s - b))``, s half the perimeter.
    Absolute error about 1e-8 where the triangle is flat; used for tables of many pairs.
    """
    a, b, c = sides
    if pair == "sep_traj":
        flat = (a == 0) | (c == 0)
        outer = angle_from_sides((a, c, b), geometry)
        return torch.where(flat, outer, math.pi - outer)
    s = 0.5 * (a + b + c)
    f = {"euclidean": lambda t: t, "sphere": torch.sin, "poincare": torch.sinh}[geometry]
    over = (f(s) * f(s - c)).clamp_min(0.0)
    under = (f(s - a) * f(s - b)).clamp_min(0.0)
    theta = 2.0 * torch.atan2(over.sqrt(), under.sqrt())
    flat = (a == 0) | (b == 0)
    return torch.where(flat, torch.full_like(theta, 0.5 * math.pi), theta)


def pair_distance(u: torch.Tensor, v: torch.Tensor, geometry: str) -> torch.Tensor:
    """Return all distances (n, m) between embedded u (n, d) and v (m, d), by one product."""
    if geometry == "euclidean":
        # Centring first: the identity |u|^2 + |v|^2 - 2 u.v cancels the squared mean.
        centre = u.mean(0)
        return _squared(u - centre, v - centre).sqrt()
    chord = _squared(u, v)
    if geometry == "sphere":
        return 2.0 * torch.asin((0.5 * chord.sqrt()).clamp_max(1.0))
    room = (1.0 - u.square().sum(1))[:, None] * (1.0 - v.square().sum(1))[None]
    return _arcosh1p(2.0 * chord / room)


def row_distance(u: torch.Tensor, v: torch.Tensor, geometry: str) -> torch.Tensor:
    """Return the distance of each row of u to the same row of v, (n, d) to (n,)."""
    if geometry == "euclidean":
        return (u - v).norm(dim=-1)
    return _arc(u - v, u + v) if geometry == "sphere" else ball_distance(u, v)


def ball_distance(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return the Poincaré distance (curvature -1) of points of the open unit ball."""
    room = (1.0 - u.square().sum(-1)) * (1.0 - v.square().sum(-1))
    return _arcosh1p(2.0 * (u - v).square().sum(-1) / room)


def _squared(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    gram = u @ v.T
    squares = u.square().sum(1)[:, None] + v.square().sum(1)[None]
    return (squares - 2.0 * gram).clamp_min(0.0)


def _arcosh1p(t: torch.Tensor) -> torch.Tensor:
    """arcosh(1 + t) without losing small t."""
    return torch.log1p(t + torch.sqrt(t * (t + 2.0)))


def _arc(difference: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    return 2.0 * torch.atan2(difference.norm(dim=-1), total.norm(dim=-1))


def _sphere_log(z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Direction of the geodesic from z to y on the sphere (not its length)."""
    return y - (z * y).sum(-1, keepdim=True) * z


def _moebius(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Möbius addition in the unit ball; (-z) + y points along the geodesic from z to y."""
    dot = (x * y).sum(-1, keepdim=True)
    xx, yy = x.square().sum(-1, keepdim=True), y.square().sum(-1, keepdim=True)
    return ((1 + 2 * dot + yy) * x + (1 - xx) * y) / (1 + 2 * dot + xx * yy)
