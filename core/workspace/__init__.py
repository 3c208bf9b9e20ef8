"""The workspace: one folder that holds datasets, features, results, notes and jobs.

Several processes may have it open at once. Everything large is content-addressed and
written as temp file, fsync, rename; everything small is a row in ``catalogue.sqlite``.
"""

from __future__ import annotations

from core.workspace.workspace import Workspace, default_root, open_workspace

__all__ = ["Workspace", "default_root", "open_workspace"]
