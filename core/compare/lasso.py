"""Regions drawn on a map: which points lie inside, and a text of a region for an address.

A browser sends the outline of a lasso, never the points in it: a few hundred bytes whatever
is selected. The outline is kept on a grid of 65,536 steps across the map, the grid on which
the points are drawn, so the same text always selects the same points.

Axes: n points, v vertices.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

import numpy as np

from core.errors import BadInput

STEPS = 65_535
MOST_VERTICES = 256
# Points tested at once: the table of edges by points stays below 64 MB.
_CELLS = 8_000_000


@dataclass(frozen=True)
class Extent:
    """The square of a map: its lower left corner and its side.

    Attributes
    ----------
    x, y : float
        Lower left corner, in the map's own units.
    side : float
        Width and height, above 0: both axes have one scale, so that shapes are kept.
    """

    x: float
    y: float
    side: float

    @classmethod
    def of(cls, xy: np.ndarray) -> Extent:
        """Return the smallest square around points, shape (n, 2), with a margin of 2 %.

        No points, or all in one place, give a square of side one around it.
        """
        if not len(xy):
            return cls(0.0, 0.0, 1.0)
        low, high = xy.min(axis=0).astype(np.float64), xy.max(axis=0).astype(np.float64)
        side = 1.04 * float((high - low).max()) or 1.0
        corner = (low + high - side) / 2.0
        return cls(float(corner[0]), float(corner[1]), side)

    def grid(self, xy: np.ndarray) -> np.ndarray:
        """Return points on the grid, uint16, shape (n, 2); outside ones are put on the edge."""
        at = (np.asarray(xy, dtype=np.float64) - (self.x, self.y)) / self.side * STEPS
        return np.clip(np.rint(at), 0, STEPS).astype(np.uint16)

    def back(self, grid: np.ndarray) -> np.ndarray:
        """Return grid positions in the map's own units, float64, shape (n, 2)."""
        return np.asarray(grid, dtype=np.float64) / STEPS * self.side + (self.x, self.y)


def inside(xy: np.ndarray, outline: np.ndarray) -> np.ndarray:
    """Return which points lie inside a closed outline, bool, shape (n,).

    By the even-odd rule: a ray from the point crosses the outline an odd number of times.
    Only points in the outline's bounding box are tested, in blocks of memory.

    Parameters
    ----------
    xy : ndarray, shape (n, 2)
        Points; those that are not finite lie outside.
    outline : ndarray, shape (v, 2)
        Vertices in order; the last is joined to the first. It may cross itself.

    Raises
    ------
    BadInput
        Fewer than three vertices, or one that is not finite.

    Examples
    --------
    >>> square = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]])
    >>> inside(np.array([[1.0, 1.0], [3.0, 1.0]]), square).tolist()
    [True, False]
    """
    xy = np.asarray(xy)
    path = np.asarray(outline, dtype=np.float64)
    if path.ndim != 2 or len(path) < 3 or path.shape[1] != 2 or not np.isfinite(path).all():
        raise BadInput(
            f"outline must be at least three finite (x, y) vertices, got shape {path.shape}.",
            "Draw the lasso again.",
        )
    low, high = path.min(axis=0), path.max(axis=0)
    x, y = xy[:, 0], xy[:, 1]
    near = np.flatnonzero((x >= low[0]) & (x <= high[0]) & (y >= low[1]) & (y <= high[1]))
    found = np.zeros(len(xy), dtype=bool)
    step = max(1, _CELLS // len(path))
    for start in range(0, len(near), step):
        rows = near[start : start + step]
        found[rows] = _crossings(x[rows].astype(np.float64), y[rows].astype(np.float64), path)
    return found


def _crossings(x: np.ndarray, y: np.ndarray, path: np.ndarray) -> np.ndarray:
    odd = np.zeros(len(x), dtype=bool)
    ends = np.roll(path, -1, axis=0)
    for (x0, y0), (x1, y1) in zip(path, ends, strict=True):
        if y0 == y1:
            continue
        # Half-open in y: a ray through a vertex counts it once.
        spans = np.flatnonzero((y0 > y) != (y1 > y))
        across = x0 + (y[spans] - y0) * ((x1 - x0) / (y1 - y0))
        odd[spans] ^= x[spans] < across
    return odd


def thinned(outline: np.ndarray, most: int = MOST_VERTICES) -> np.ndarray:
    """Return at most ``most`` vertices of an outline: those whose loss would change it most.

    Visvalingam and Whyatt 1993: the vertex of the smallest triangle with its neighbours goes
    first. An outline that is short enough stays as it is.

    Parameters
    ----------
    outline : ndarray, shape (v, 2)
    most : int
        At least 3.
    """
    path = np.asarray(outline, dtype=np.float64)
    # A hand-drawn outline has hundreds of vertices; a file of millions is cut down first.
    if len(path) > 4 * most:
        path = path[np.linspace(0, len(path) - 1, 4 * most).astype(int)]
    while len(path) > most:
        before, after = np.roll(path, 1, axis=0) - path, np.roll(path, -1, axis=0) - path
        area = np.abs(before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0])
        path = np.delete(path, int(area.argmin()), axis=0)
    return path


def outline_text(outline: np.ndarray, extent: Extent) -> str:
    """Return an outline as a short text of letters, digits, ``-`` and ``_``.

    Parameters
    ----------
    outline : ndarray, shape (v, 2)
        In the map's own units.
    extent : Extent
        Of the map.

    Examples
    --------
    >>> text = outline_text(np.array([[0, 0], [1, 0], [0, 1]]), Extent(0.0, 0.0, 1.0))
    >>> text, read_outline(text, Extent(0.0, 0.0, 1.0)).round(6).tolist()
    ('AAAAAP__AAAAAP__', [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    """
    grid = extent.grid(thinned(outline)).astype("<u2")
    return base64.urlsafe_b64encode(grid.tobytes()).decode().rstrip("=")


def read_outline(text: str, extent: Extent) -> np.ndarray:
    """Return the outline of a text, in the map's own units, float64, shape (v, 2).

    Raises
    ------
    BadInput
        Not such a text, fewer than three vertices, or too many.
    """
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) % 4 or not 12 <= len(raw) <= 4 * MOST_VERTICES:
        raise BadInput(
            "The region in this address cannot be read.",
            f"Draw it again; a region has 3 to {MOST_VERTICES} vertices.",
        )
    return extent.back(np.frombuffer(raw, dtype="<u2").reshape(-1, 2))
