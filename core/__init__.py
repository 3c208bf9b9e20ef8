"""Theodolite: measure neural representations from two places.

The public API, imported only when it is used::

    import core

    workspace = core.open_workspace()
    result = core.run("transfer", workspace, dataset="emoji", target="noto")
    print(result.headline)

The functions of each method are in ``core.radar``, ``core.quality``, ``core.contrast``,
``core.stitching``, ``core.compare``, ``core.transferability`` and ``core.stats``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.analyses import run as run
    from core.results import Result as Result
    from core.types import Features as Features
    from core.workspace import Workspace as Workspace
    from core.workspace import open_workspace as open_workspace

__version__ = "0.1.0"

_HOMES = {
    "run": "core.analyses",
    "Result": "core.results",
    "Features": "core.types",
    "Workspace": "core.workspace",
    "open_workspace": "core.workspace",
}

__all__ = ["Features", "Result", "Workspace", "__version__", "open_workspace", "run"]


def __getattr__(name: str) -> Any:
    # Lazily: a page that shows stored results must not wait for torch.
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'core' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
