"""The picture of the point under the pointer, beside plotly's own label.

Plotly's labels hold text only; a picture for every point would travel with the chart.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import streamlit as st

from core.data.dataset import Dataset
from pages._shell.blocks import address

_HTML = '<div class="lens" hidden><img alt="" width="112" height="112"></div>'
_CSS = """
.lens { position: fixed; z-index: 1000; pointer-events: none; padding: 4px; border-radius: 8px;
  background: #fff; border: 1px solid var(--st-border-color, #888);
  box-shadow: 0 3px 14px rgba(0, 0, 0, .25); }
.lens img { display: block; object-fit: contain; }
.lens[hidden] { display: none; }
"""
_JS = Path(__file__).with_suffix(".js").read_text("utf-8")

_mount = st.components.v2.component("theodolite_lens", html=_HTML, css=_CSS, js=_JS)


def hover_lens(data: Dataset, charts: Sequence[str], *, key: str) -> None:
    """Show pictures of a dataset over the plotly charts of these keys.

    Parameters
    ----------
    data : Dataset
        Of pictures; for texts nothing is drawn.
    charts : sequence of str
        Keys of charts whose ``customdata`` are item ids.
    """
    if data.kind != "image" or not charts:
        return
    _mount(
        key=key,
        data={
            "keys": list(charts),
            "item": address("map-item") + f"?dataset={quote(data.name)}",
            "thumb": address("thumb", ""),
        },
    )
