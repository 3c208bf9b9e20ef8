"""What is in here? Items by class and domain, what was left out, and why."""

from __future__ import annotations

from pages._shell import datasets_view as view
from pages._shell import layout, pickers
from pages._shell.state import workspace

ws = workspace()
with pickers.selection():
    data = pickers.dataset(ws)
    chosen = view.filters(data)

layout.header("What is in here?", [data.title, view.noun(data)])
layout.verdict(view.words(data), view.tiles(data))
view.mosaic(data)
view.browse(data, chosen)
view.about(ws, data)
