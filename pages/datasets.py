"""What is in here? The items of a dataset: how many, of what, from where, and each one."""

from __future__ import annotations

from core.data.overview import overview
from pages._shell import datasets_view as view
from pages._shell import layout, pickers
from pages._shell.state import workspace

ws = workspace()
with pickers.selection():
    data = pickers.dataset(ws)
found = overview(data)

layout.header("What is in here?", [data.title, view.kind(data), view.splits(found)])
view.verdict(found)
layout.left_out(found.left_out)
view.mosaic(data, found)
view.search(data, found)
view.origin(ws, data)
