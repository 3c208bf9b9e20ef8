"""Which encoders can I use? Ready, in need of weights, or not loadable here, and why."""

from __future__ import annotations

from pages._shell import features_view, layout, models_run
from pages._shell import models_view as view
from pages._shell.state import workspace

ws = workspace()
known = view.known_models(ws)
layout.header("Which encoders can I use?", view.counts(known))
layout.verdict(view.words(known), view.tiles(ws, known))
view.weights(ws, known)
chosen = view.table(known)
models_run.detail(ws, chosen)
models_run.by_name(ws)
view.coverage(ws)
features_view.bring(ws)
