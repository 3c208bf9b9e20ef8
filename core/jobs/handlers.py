"""Which function does the work of which kind of job."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from core.errors import BadInput

if TYPE_CHECKING:
    from core.workspace import Workspace

# kind -> "module:function", called with the workspace, the job's parameters and progress=.
# Named and not imported: the queue must not load torch.
HANDLERS = {
    "extract": "core.extract:run_extract",
    "analysis": "core.jobs.handlers:run_analysis",
    "map": "core.compare.maps:run_map",
    "demo": "core.data.demo:prepare",
    "import": "core.data.importers.work:run_import",
    "import-features": "core.data.feature_import:run_feature_import",
}


def check(kind: str) -> None:
    """Refuse a kind that names no handler.

    Raises
    ------
    BadInput
        Neither a known kind nor ``core.module:function``.
    """
    module, colon, name = kind.partition(":")
    dotted = colon and module.startswith("core.") and name.isidentifier()
    if kind not in HANDLERS and not (dotted and not name.startswith("_")):
        raise BadInput(
            f"kind={kind!r} is not a kind of job.", f"Choose one of: {', '.join(HANDLERS)}."
        )


def load(kind: str) -> Callable[..., Any]:
    """Return the function that does the work of ``kind``.

    Raises
    ------
    BadInput
        The kind names no function.
    """
    check(kind)
    module, _, name = HANDLERS.get(kind, kind).partition(":")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except (ModuleNotFoundError, AttributeError) as err:
        raise BadInput(
            f"The work of a {kind} job cannot be loaded ({err}).",
            "Check that Theodolite is installed completely.",
        ) from err
    return found


def lane(kind: str, params: Mapping[str, Any]) -> str:
    """Return the lane a job runs in: its device; maps, which people wait for, have their own."""
    if kind in {"map", "import", "import-features"}:
        # An import reads and writes files: it need not wait for an encoder.
        return kind
    return str(params.get("device") or "auto")


def counted(workspace: Workspace, kind: str, params: Mapping[str, Any]) -> tuple[float, str]:
    """Return how many items a job goes through and what they are, for its rate."""
    if kind == "extract" and params.get("dataset") in workspace.dataset_names():
        return float(workspace.dataset(str(params["dataset"])).n), "rows"
    if kind == "import":
        return float(params.get("rows") or 0), "rows"
    return 0.0, ""


def run_analysis(workspace: Workspace, *, name: str, progress: Any = None, **params: Any) -> Any:
    """Run the analysis ``name``; see :func:`core.analyses.run`."""
    from core import analyses

    return analyses.run(name, workspace, progress=progress, **params)
