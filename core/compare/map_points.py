"""The points of a stored map as a page and a browser use them: a grid, bytes, regions, ids.

A map of a million points is 4 MB: two uint16 a point, on the grid of its square. A region
drawn in the browser comes back as its outline; the rows inside it are found here.

Axes: n points.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from core.compare.lasso import Extent, inside, read_outline
from core.errors import BadInput

if TYPE_CHECKING:
    from core.results import Result


@dataclass(frozen=True, eq=False)
class MapPoints:
    """The points of one stored map; two are equal when they are of the same result.

    Attributes
    ----------
    key : str
        Key of the result.
    dataset : str
        Name of the dataset.
    ids : ndarray of int64, shape (n,)
        Item ids, in the order of the map's rows.
    xy : ndarray of float32, shape (n, 2)
        Places, in the map's own units.
    extent : Extent
        Its square.
    """

    key: str
    dataset: str
    ids: np.ndarray
    xy: np.ndarray
    extent: Extent

    def __len__(self) -> int:
        return len(self.ids)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MapPoints) and other.key == self.key

    @cached_property
    def _order(self) -> np.ndarray:
        return np.argsort(self.ids, kind="stable")

    @cached_property
    def block(self) -> bytes:
        """All x, then all y, as little-endian uint16 on the grid of the extent: 4 n bytes."""
        return np.ascontiguousarray(self.extent.grid(self.xy).T).astype("<u2").tobytes()

    def ids_in(self, text: str) -> np.ndarray:
        """Return the ids inside a region's text, in the order of the map's rows.

        Raises
        ------
        BadInput
            As :func:`core.compare.lasso.read_outline`.
        """
        return self.ids[inside(self.xy, read_outline(text, self.extent))]

    def rows_of(self, ids: np.ndarray) -> np.ndarray:
        """Return which points are among ``ids``, bool, shape (n,); other ids are left away."""
        lit = np.zeros(len(self), dtype=bool)
        wanted = np.asarray(ids, dtype=np.int64)
        if not len(self) or not len(wanted):
            return lit
        at = np.minimum(np.searchsorted(self.ids, wanted, sorter=self._order), len(self) - 1)
        rows = self._order[at]
        lit[rows[self.ids[rows] == wanted]] = True
        return lit

    def lit(self, ids: np.ndarray) -> bytes:
        """Return which points are among ``ids``, a bit each, least significant first: n/8 bytes."""
        return np.packbits(self.rows_of(ids), bitorder="little").tobytes()


def map_points(result: Result) -> MapPoints:
    """Return the points of a stored map.

    Raises
    ------
    BadInput
        The result is no map.
    """
    if "map" not in result.tables:
        raise BadInput(
            f"A result of method {result.params.get('method')!r} is no map.",
            "Use method 'pca', 'umap' or 'tsne'.",
        )
    table = result.tables["map"]
    ids = table["id"].to_numpy(dtype=np.int64)
    xy = np.column_stack([table["x"], table["y"]]).astype(np.float32)
    for array in (ids, xy):
        array.flags.writeable = False
    return MapPoints(result.key, str(result.params["dataset"]), ids, xy, Extent.of(xy))


@lru_cache(maxsize=16)
def ids_in_region(points: MapPoints, text: str) -> np.ndarray:
    """Return :meth:`MapPoints.ids_in`; asked again, it is not computed again.

    The page, the grid and the other map all ask for the same region within a second.
    """
    found = points.ids_in(text)
    found.flags.writeable = False
    return found
