"""A map of many points, drawn by the browser's WebGL: our component over regl-scatterplot.

The page gives addresses of binary blocks; the browser gives back the outline of a lasso or the
row of a click, never a list of points.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from core.compare.map_points import MapPoints
from core.figures.paint import Paint
from pages._shell.blocks import address, block_url
from pages._shell.map_routes import library_digest

_HTML = """
<div class="map">
  <div class="tools" role="toolbar" aria-label="Map tools">
    <button type="button" data-tool="lasso" aria-pressed="true">Lasso</button>
    <button type="button" data-tool="box" aria-pressed="false">Box</button>
    <button type="button" data-tool="move" aria-pressed="false">Move</button>
    <button type="button" data-tool="fit">Fit</button>
  </div>
  <div class="frame"><canvas class="points" role="img"></canvas>
    <canvas class="ink" aria-hidden="true"></canvas>
    <div class="tip" hidden><img alt="" width="96" height="96"><b></b><span></span></div>
  </div>
  <p class="say" role="status" aria-live="polite">Fetching the points</p>
</div>
"""

_CSS = """
.map { font: 400 .85rem var(--st-font, sans-serif); color: var(--st-text-color, inherit); }
.tools { display: flex; gap: .3rem; margin-bottom: .35rem; flex-wrap: wrap; }
button { font: inherit; color: inherit; cursor: pointer; border-radius: 6px;
  padding: .2rem .65rem; background: var(--st-background-color, transparent);
  border: 1px solid var(--st-border-color, #888); }
button[aria-pressed="true"] { border-color: var(--st-primary-color, #0072B2);
  color: var(--st-primary-color, #0072B2); font-weight: 600; }
button:focus-visible { outline: 3px solid var(--st-primary-color, #0072B2); outline-offset: 1px; }
.frame { position: relative; width: 100%; aspect-ratio: 1; max-height: 480px; overflow: hidden;
  border: 1px solid var(--st-border-color, #888); border-radius: 6px; }
canvas { display: block; touch-action: none; }
.ink { position: absolute; inset: 0; width: 100%; height: 100%; cursor: crosshair; }
.tip { position: absolute; pointer-events: none; max-width: 13rem; padding: .4rem;
  border-radius: 6px; border: 1px solid var(--st-border-color, #888);
  background: var(--st-background-color, #fff); box-shadow: 0 2px 10px rgba(0, 0, 0, .18); }
.tip img { display: block; object-fit: contain; background: #fff; border-radius: 4px; }
.tip b { display: block; font-weight: 600; overflow-wrap: anywhere; }
.tip span { opacity: .75; overflow-wrap: anywhere; }
.say { margin: .3rem 0 0; min-height: 0; } .say:empty { display: none; }
[hidden] { display: none !important; }
"""

_JS = Path(__file__).with_suffix(".js").read_text("utf-8")

_mount = st.components.v2.component("theodolite_map", html=_HTML, css=_CSS, js=_JS)


def webgl_map(
    points: MapPoints,
    paint: Paint,
    lit: bytes | None,
    *,
    key: str,
    alt: str,
    on_lasso: Callable[[], None],
    on_click: Callable[[], None],
) -> None:
    """Draw the map.

    Parameters
    ----------
    points : MapPoints
        Of the stored map.
    paint : Paint
        Colours of the same rows.
    lit : bytes or None
        A bit a point, from :meth:`MapPoints.lit`: the others are grey. None: all are lit.
    key : str
        Unique on the page; :func:`lassoed` and :func:`clicked` read it in the callbacks.
    alt : str
        What the map shows, in one sentence.
    """
    colours, bits = block_url(paint.codes.tobytes()), block_url(lit) if lit is not None else ""
    _mount(
        key=key,
        data={
            "library": address("vendor", library_digest(), "regl-scatterplot.js"),
            "points": block_url(points.block),
            "colours": colours,
            "lit": bits,
            "stamp": f"{colours[-12:]} {bits[-12:]}",
            "palette": list(paint.palette),
            "item": address("map-item") + f"?map={points.key}",
            "thumb": address("thumb", ""),
            "alt": alt,
        },
        on_lasso_change=on_lasso,
        on_picked_change=on_click,
    )


def lassoed(key: str) -> list[int]:
    """Return the outline just drawn, as x and y in turn on the grid; empty when none was."""
    return [int(v) for v in _state(key).get("lasso") or []]


def clicked(key: str) -> int | None:
    """Return the row just clicked, or None."""
    row = _state(key).get("picked")
    return None if row is None else int(row)


def _state(key: str) -> dict[str, Any]:
    return dict(st.session_state.get(key) or {})
