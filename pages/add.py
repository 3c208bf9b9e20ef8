"""What do you bring? A folder, archive or table becomes a dataset, every row accounted for."""

from __future__ import annotations

from core.data.importers import ImportLimits
from pages._shell import add_view as view
from pages._shell import layout
from pages._shell.state import workspace

ws = workspace()
limits = ImportLimits.from_environment()
layout.header("What do you bring?", view.shown(ws), share=False)
if not view.running(ws):
    given = view.source(ws, limits)
    if given is not None:
        view.choose(ws, given)
