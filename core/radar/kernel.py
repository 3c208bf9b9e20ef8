"""The sides of many triangles in one pass over memory: a compiled kernel, flat geometry only.

RADAR, arXiv 2605.23028, Eq. 6-10. The kernel takes row numbers, so that nothing is gathered;
each row is read once and all sums are in float64. It agrees with the torch path of
``core.radar.triplets`` to 1e-12, which stays the reference and serves GPUs, other geometries
and small jobs (compiling takes seconds the first time, loading a tenth of one later).

Axes: n pairs, L transitions, d features.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

# Below this many multiplied numbers the torch path is done before the kernel is loaded.
LEAST_WORK = 2 * 10**7
# Pairs a block: a transition's upper state is the next one's lower and is still in the cache.
_BLOCK = 128
_NEAR_FLAT = 0.99


def fused_sides(
    anchors: Sequence[np.ndarray], partners: Sequence[np.ndarray],
    transitions: Sequence[tuple[int, int]], i: np.ndarray, j: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:  # fmt: skip
    """Return theta (n, L), sides (n, L, 3) and corner norms (n, L, 3) in float64.

    Parameters
    ----------
    anchors, partners : sequence of ndarray
        States of A and of B, rows contiguous.
    transitions : sequence of (int, int)
        Pairs of state numbers of equal width.
    i, j : ndarray of int64, shape (n,)
        Rows of A and of B.

    Returns
    -------
    tuple, or None
        None where the kernel does not apply: no numba, or states it was not compiled for.
    """
    used = [array for low, high in transitions for array in (anchors[low], anchors[high])]
    used += [partners[low] for low, _ in transitions]
    if any(a.dtype not in (np.float32, np.float64) or not a.flags.c_contiguous for a in used):
        return None
    run = _compiled()
    if run is None:
        return None
    theta = np.empty((len(i), len(transitions)))
    sides, norms = np.empty((2, len(i), len(transitions), 3))
    i, j = (np.ascontiguousarray(rows, dtype=np.int64) for rows in (i, j))
    plain = [[np.asarray(state) for state in states] for states in (anchors, partners)]
    for first in range(0, len(i), _BLOCK):
        last = min(first + _BLOCK, len(i))
        for layer, (low, high) in enumerate(transitions):
            x, z, y = plain[0][low], plain[1][low], plain[0][high]
            run(x, z, y, i, j, first, last, layer, theta, sides, norms)
    return theta, sides, norms


def _triangles(
    x: np.ndarray, z: np.ndarray, y: np.ndarray, i: np.ndarray, j: np.ndarray, first: int,
    last: int, layer: int, theta: np.ndarray, sides: np.ndarray, norms: np.ndarray,
) -> None:  # fmt: skip
    """Fill rows first..last of one transition; compiled by numba."""
    for row in range(first, last):
        p, q, r = x[i[row]], z[j[row]], y[i[row]]
        aa = bb = cc = dot = xx = zz = yy = 0.0
        for k in range(len(p)):
            u, v, w = np.float64(p[k]), np.float64(q[k]), np.float64(r[k])
            sep, detour, traj = v - u, w - v, w - u
            aa += sep * sep
            bb += detour * detour
            cc += traj * traj
            dot += sep * detour
            xx += u * u
            zz += v * v
            yy += w * w
        a, b = math.sqrt(aa), math.sqrt(bb)
        sides[row, layer, 0], sides[row, layer, 1] = a, b
        sides[row, layer, 2] = math.sqrt(cc)
        norms[row, layer, 0], norms[row, layer, 1] = math.sqrt(xx), math.sqrt(zz)
        norms[row, layer, 2] = math.sqrt(yy)
        if a == 0.0 or b == 0.0:
            theta[row, layer] = 0.5 * math.pi
            continue
        cosine = dot / (a * b)
        if abs(cosine) <= _NEAR_FLAT:
            theta[row, layer] = math.acos(cosine)
            continue
        # Near a flat angle arccos loses half of its digits: from the unit vectors instead.
        across = along = 0.0
        for k in range(len(p)):
            u, v, w = np.float64(p[k]), np.float64(q[k]), np.float64(r[k])
            sep, detour = (v - u) / a, (w - v) / b
            across += (sep - detour) * (sep - detour)
            along += (sep + detour) * (sep + detour)
        theta[row, layer] = 2.0 * math.atan2(math.sqrt(across), math.sqrt(along))


@lru_cache(maxsize=1)
def _compiled() -> Callable[..., Any] | None:
    """Compile on first use; numba comes with umap-learn, and without it torch does the work."""
    try:
        import numba
    except ImportError:
        return None
    # Sums may be reordered (that is what makes them vector sums) but nothing else is relaxed.
    options: dict[str, Any] = {"nogil": True, "fastmath": {"reassoc", "contract"}}
    try:
        return numba.njit(cache=True, **options)(_triangles)
    except RuntimeError:  # no folder to keep compiled code in
        return numba.njit(cache=False, **options)(_triangles)
