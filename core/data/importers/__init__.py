"""Bring your own data: whatever a stranger has becomes a dataset, with a report on every row.

:func:`open_source` finds out what a path holds, :func:`preview` shows its first rows and
guesses what each column is, :func:`import_dataset` takes it. The page, the command line and the
API all come through here.
"""

from __future__ import annotations

from core.data.importers.importing import import_dataset
from core.data.importers.limits import ImportLimits
from core.data.importers.opening import TextOptions, open_source
from core.data.importers.outcome import OutcomeReport, Repaired
from core.data.importers.plan import Plan, clean_name
from core.data.importers.preview import Preview, preview
from core.data.importers.sources import Source
from core.data.importers.work import opened, run_import

__all__ = [
    "ImportLimits",
    "OutcomeReport",
    "Plan",
    "Preview",
    "Repaired",
    "Source",
    "TextOptions",
    "clean_name",
    "import_dataset",
    "open_source",
    "opened",
    "preview",
    "run_import",
]
