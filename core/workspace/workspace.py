"""One workspace: where everything that is kept lies."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import WorkspaceError
from core.types import LeftOut
from core.workspace.blobs import BlobStore, ThumbStore
from core.workspace.catalogue import Catalogue
from core.workspace.datasets import DatasetStore
from core.workspace.features import FeatureStore
from core.workspace.files import storing, write_bytes
from core.workspace.notes import NoteStore
from core.workspace.results import ResultStore

if TYPE_CHECKING:
    import pandas as pd

    from core.data.dataset import Dataset
    from core.jobs.queue import JobQueue
    from core.workspace.upkeep import Finding, Garbage


def default_root() -> Path:
    """Return ``$THEODOLITE_HOME``, else ``~/.theodolite``."""
    given = os.environ.get("THEODOLITE_HOME", "")
    return Path(given).expanduser() if given else Path.home() / ".theodolite"


def open_workspace(path: str | Path | None = None) -> Workspace:
    """Open a workspace, made when absent.

    Parameters
    ----------
    path : str or Path, optional
        The folder. By default ``$THEODOLITE_HOME``, else ``~/.theodolite``.

    Raises
    ------
    WorkspaceError
        Not a folder, read-only, full, locked, or made by a newer version.

    Examples
    --------
    >>> import tempfile
    >>> open_workspace(tempfile.mkdtemp()).dataset_names()
    []
    """
    return Workspace(default_root() if path is None else Path(path).expanduser())


class Workspace:
    """Datasets, features, results, notes and jobs in one folder.

    Several processes and threads may use the same folder at once.

    Parameters
    ----------
    root : Path
        The folder; made when absent.

    Attributes
    ----------
    root : Path
        The folder, absolute.
    blobs, thumbs, datasets, features, results, notes, jobs
        The stores.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        with storing(self.root, "Opening"):
            self.root.mkdir(parents=True, exist_ok=True)
        self._check_writable()
        self.catalogue = Catalogue(self.root / "catalogue.sqlite")
        self.blobs = BlobStore(self.root)
        self.thumbs = ThumbStore(self.root, self.blobs)
        self.datasets = DatasetStore(self.root, self.catalogue, self.blobs)
        self.features = FeatureStore(self.root, self.catalogue)
        self.results = ResultStore(self.root, self.catalogue)
        self.notes = NoteStore(self.catalogue)

    def __repr__(self) -> str:
        return f"Workspace({str(self.root)!r})"

    @cached_property
    def jobs(self) -> JobQueue:
        """The queue of long work."""
        from core.jobs.queue import JobQueue

        return JobQueue(self.root, self.catalogue)

    def close(self) -> None:
        """Let go of the catalogue."""
        self.catalogue.close()

    def dataset_names(self) -> list[str]:
        """Return the names of the datasets, oldest first."""
        return self.datasets.names()

    def dataset(self, name: str) -> Dataset:
        """Return one dataset.

        Raises
        ------
        NotFound
            None of that name; the names that exist are listed.
        """
        return self.datasets.get(name)

    def add_dataset(
        self,
        name: str,
        title: str,
        kind: str,
        items: pd.DataFrame,
        meta: dict[str, Any] | None = None,
        left_out: Iterable[LeftOut] = (),
        *,
        replace: bool = False,
    ) -> Dataset:
        """Store a dataset whose pictures are already in ``blobs``.

        Parameters
        ----------
        name : str
            Lower-case letters, digits, dot, dash, underscore.
        title : str
            The name people read.
        kind : {"image", "text"}
            What an encoder reads: the picture (``sha256``) or the text (``caption``).
        items : DataFrame
            ``id`` (unique whole numbers); ``sha256``, ``label``, ``domain``, ``split`` and
            ``caption`` are "" when absent; further columns of text, numbers or true/false.
        meta : dict, optional
            ``source``, ``licence``, ``note`` and others, plain JSON.
        left_out : iterable of LeftOut
            The outcome report: what was not taken, and why.
        replace : bool
            Replace a dataset of that name with other items.

        Raises
        ------
        BadInput
            A name, id, column or picture that cannot be used, or a name that is taken.
        WorkspaceError
            The disk is full or read-only.
        """
        return self.datasets.add(
            name, title, kind, items, meta=meta, left_out=left_out, replace=replace
        )

    def remove_dataset(self, name: str) -> None:
        """Remove a dataset; its files go with the next ``gc``.

        Raises
        ------
        NotFound
            None of that name.
        """
        self.datasets.remove(name)

    def thumb_path(self, sha: str) -> Path:
        """Return the WebP thumbnail (at most 160 pixels) of a picture, made when needed.

        Raises
        ------
        NotFound
            No such picture.
        BadInput
            ``sha`` is no digest, or the picture cannot be read.
        """
        return self.thumbs.path(sha)

    def doctor(self, *, fix: bool = False) -> list[Finding]:
        """Check every stored file against its digest; see :func:`core.workspace.upkeep.doctor`."""
        from core.workspace.upkeep import doctor

        return doctor(self, fix=fix)

    def gc(self, dry_run: bool = False, *, min_age_s: float = 86_400.0) -> list[Garbage]:
        """Remove what nothing refers to; see :func:`core.workspace.upkeep.collect`."""
        from core.workspace.upkeep import collect

        return collect(self, dry_run=dry_run, min_age_s=min_age_s)

    def _check_writable(self) -> None:
        probe = self.root / f".probe-{os.getpid()}-{id(self):x}"
        try:
            write_bytes(probe, b"", durable=False)
        except WorkspaceError as err:
            raise WorkspaceError(
                f"The workspace {self.root} cannot be written. {err.message}", err.hint
            ) from err
        with storing(probe, "Removing"):
            probe.unlink(missing_ok=True)
