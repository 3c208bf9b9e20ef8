"""What is running? Rate, time left, stop, go on."""

from __future__ import annotations

from pages._shell import jobs_view
from pages._shell.layout import header
from pages._shell.state import workspace

ws = workspace()
header("What is running?", jobs_view.counts(ws), share=False)
jobs_view.active(ws)
jobs_view.ended(ws)
