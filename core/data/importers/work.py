"""The import as a job: from an inbox, an allowed folder of the server, or a name on the hub."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.data.importers.importing import import_dataset
from core.data.importers.opening import TextOptions, open_source
from core.data.importers.plan import Plan
from core.errors import BadInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from core.data.dataset import Dataset
    from core.data.importers.sources import Source
    from core.workspace import Workspace

_HUB = re.compile(r"hf:([\w.-]+(?:/[\w.-]+)?)(?::([\w.+\[\]:%-]+))?")


def run_import(
    workspace: Workspace,
    *,
    source: dict[str, Any],
    plan: dict[str, Any],
    progress: Callable[[float, str], None] | None = None,
    rows: int = 0,
) -> Dataset:
    """Import as a job does; an upload's inbox is removed once it is a dataset.

    Parameters
    ----------
    workspace : Workspace
        Where the dataset is kept.
    source : dict
        ``path``, and where given ``table``, ``encoding``, ``separator``, ``header``.
    plan : dict
        As :meth:`Plan.as_dict` writes it.
    rows : int
        How many rows there are, for the rate that is shown; 0 when unknown.

    Raises
    ------
    NotFound, BadInput
        As :func:`open_source` and :func:`import_dataset`.
    """
    with opened(**source) as found:
        dataset = import_dataset(workspace, found, Plan.from_dict(plan), progress=progress)
    inbox = workspace.root / "inbox"
    given = Path(source["path"])
    if given.is_relative_to(inbox) and given != inbox:
        shutil.rmtree(inbox / given.relative_to(inbox).parts[0], ignore_errors=True)
    return dataset


@contextmanager
def opened(
    path: str,
    table: str | None = None,
    encoding: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
) -> Iterator[Source]:
    """Open a source by plain values, as a job's parameters or a command line hold them."""
    hub = _HUB.fullmatch(path)
    folder = hub_dataset(hub.group(1), hub.group(2)) if hub else Path(path)
    try:
        with open_source(
            folder, text=TextOptions(encoding, separator, header), table=table
        ) as source:
            yield source
    finally:
        if hub:
            shutil.rmtree(folder.parent, ignore_errors=True)


def hub_dataset(name: str, split: str | None = None) -> Path:
    """Load a data set by name with the ``datasets`` library and save it as a folder.

    Raises
    ------
    BadInput
        The library is not installed, or cannot load the set; its own reason is given.
    """
    try:
        import datasets
    except ImportError as err:
        raise BadInput(
            f"{name} is a name on the hub, and the package `datasets` is not installed.",
            "Install it (pip install datasets), or give a folder saved with save_to_disk.",
        ) from err
    folder = Path(tempfile.mkdtemp(prefix="theodolite-")) / name.rpartition("/")[2]
    try:
        loaded = datasets.load_dataset(name, split=split)
        loaded.save_to_disk(str(folder))
    # The library raises its own kinds for "no such set", "no network" and "needs a script".
    except (OSError, ValueError, RuntimeError, KeyError) as err:
        with suppress(OSError):
            shutil.rmtree(folder.parent)
        raise BadInput(
            f"{name} could not be loaded: {str(err)[:300]}",
            "Check the name and the network, or fetch it elsewhere and give its folder.",
        ) from err
    return folder


def allowed_folders() -> list[Path]:
    """Return the folders of the server that its pages may import from.

    They are an administrator's choice: ``THEODOLITE_IMPORT_DIRS``, separated like ``PATH``.
    """
    given = os.environ.get("THEODOLITE_IMPORT_DIRS", "")
    return [Path(part).expanduser().resolve() for part in given.split(os.pathsep) if part.strip()]


def allowed_path(given: str) -> Path:
    """Return a path of the server that a page may import.

    Raises
    ------
    NotFound
        There is nothing at that path.
    BadInput
        It lies in none of the allowed folders, links followed.
    """
    folders = allowed_folders()
    if not folders:
        raise BadInput(
            "No folder of this server may be imported from its pages.",
            "An administrator sets THEODOLITE_IMPORT_DIRS; or use the command line there.",
        )
    path = Path(given.strip()).expanduser()
    path = (path if path.is_absolute() else folders[0] / path).resolve()
    if not any(path == folder or path.is_relative_to(folder) for folder in folders):
        names = ", ".join(map(str, folders))
        raise BadInput(f"{given.strip()[:200]!r} lies outside of {names}.", "Choose a path below.")
    if not path.exists():
        raise NotFound(f"There is nothing at {path}.", "Check the path.")
    return path
