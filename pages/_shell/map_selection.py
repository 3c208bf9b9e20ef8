"""What is selected on the maps: a few ids, or a region of a map that holds too many.

A lasso on a million points may hold half of them: the session and the address keep its outline,
and the ids are found again from it. The address carries every region and short lists of ids,
so that a link shows the same selection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import streamlit as st

from core.compare.lasso import outline_text
from core.compare.map_points import MapPoints, ids_in_region
from core.errors import BadInput, NotFound
from core.workspace import default_root
from pages._shell import state
from pages._shell.map_routes import stored_map

PAGE = "explore"
# Longer selections are kept as their region.
LIST = 5_000
# Longer lists of ids do not fit an address.
IN_ADDRESS = 60
_PARAM = f"{PAGE}_region"
_KEPT = f"{PAGE}_region_kept"


@dataclass(frozen=True)
class Shown:
    """A map on the page.

    Attributes
    ----------
    side : str
        "a" or "b".
    method : str
        "pca", "umap" or "tsne".
    points : MapPoints
        Its points.
    """

    side: str
    method: str
    points: MapPoints


def current() -> np.ndarray:
    """Return the selected ids, int64; empty when nothing is selected."""
    listed = state.selected_ids(PAGE)
    if listed:
        return np.asarray(listed, dtype=np.int64)
    kept = st.session_state.get(_KEPT)
    if kept:
        try:
            return ids_in_region(stored_map(str(default_root()), kept[0]), kept[1])
        except (BadInput, NotFound):
            # The map was removed, or another dataset is shown now.
            st.session_state.pop(_KEPT)
    return np.zeros(0, dtype=np.int64)


def take_ids(ids: np.ndarray | list[int], region: str = "") -> None:
    """Select ids; ``region`` is what the address says, else the ids if they are few."""
    chosen = [int(i) for i in ids]
    state.set_selected_ids(PAGE, chosen)
    st.session_state.pop(_KEPT, None)
    if not region and 0 < len(chosen) <= IN_ADDRESS:
        region = "ids~" + ".".join(map(str, chosen))
    _address(region)


def take_region(shown: Shown, outline: np.ndarray) -> None:
    """Select what lies inside an outline, shape (v, 2), in the map's own units."""
    _take_text(shown, outline_text(outline, shown.points.extent))


def region_of(shown: Shown, outline: np.ndarray) -> str:
    """Return what the address says of a region of a map."""
    return f"{shown.side}~{shown.method}~{outline_text(outline, shown.points.extent)}"


def clear() -> None:
    """Select nothing."""
    take_ids([])


def restore(maps: list[Shown]) -> str:
    """Select what the address says, once in a session; say what went wrong, or ""."""
    done = f"{PAGE}_region_read"
    if st.session_state.get(done):
        return ""
    st.session_state[done] = True
    text = str(st.query_params.get(_PARAM, ""))
    if not text or len(current()):
        return ""
    return _restore(text, {(shown.side, shown.method): shown for shown in maps})


def _restore(text: str, maps: Mapping[tuple[str, str], Shown]) -> str:
    kind, _, rest = text.partition("~")
    if kind == "ids":
        numbers = rest.split(".")
        if not all(part.isdecimal() and len(part) < 19 for part in numbers):
            return "The selection in this address cannot be read. Select again."
        take_ids([int(part) for part in numbers])
        return ""
    method, _, outline = rest.partition("~")
    shown = maps.get((kind, method))
    if shown is None:
        return "The selection in this address was drawn on a map that is not shown now."
    try:
        _take_text(shown, outline)
    except BadInput as error:
        return str(error)
    return ""


def _take_text(shown: Shown, outline: str) -> None:
    ids = ids_in_region(shown.points, outline)
    region = f"{shown.side}~{shown.method}~{outline}"
    if len(ids) <= LIST:
        take_ids([int(i) for i in ids], region)
        return
    state.set_selected_ids(PAGE, [])
    st.session_state[_KEPT] = (shown.points.key, outline)
    _address(region)


def _address(region: str) -> None:
    if region:
        st.query_params[_PARAM] = region
    else:
        st.query_params.pop(_PARAM, None)
