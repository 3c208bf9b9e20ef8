"""What do your models see? One finding per analysis, each with a live figure and a link."""

from __future__ import annotations

from pages._shell import home_view
from pages._shell.layout import header
from pages._shell.state import workspace

ws = workspace()
header("What do your models see?", home_view.holdings(ws), share=False)
home_view.findings(ws)
home_view.datasets(ws)
