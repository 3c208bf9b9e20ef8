"""The datasets of a workspace: a row in the catalogue, the items as Parquet."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.data.dataset import Dataset, items_digest, normalise_items
from core.digest import bytes_digest, canonical
from core.errors import BadInput, NotFound, WorkspaceError
from core.types import LeftOut
from core.workspace.blobs import BlobStore
from core.workspace.catalogue import Catalogue, now
from core.workspace.files import write_bytes

if TYPE_CHECKING:
    import pandas as pd

    from core.data.importers.outcome import OutcomeReport

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")


def check_name(name: str) -> str:
    """Return ``name`` when it can name a dataset.

    Raises
    ------
    BadInput
        Anything but lower-case letters, digits, dot, dash and underscore.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadInput(
            f"name={name!r} cannot name a dataset.",
            "Use up to 100 lower-case letters, digits, dots, dashes and underscores, "
            "beginning with a letter or digit.",
        )
    return name


class DatasetStore:
    """Add, find and remove datasets."""

    def __init__(self, root: Path, catalogue: Catalogue, blobs: BlobStore) -> None:
        self.folder = root / "datasets"
        self._catalogue = catalogue
        self._blobs = blobs

    def names(self) -> list[str]:
        """Return the names, oldest first."""
        with self._catalogue.read() as db:
            rows = db.execute("SELECT name FROM datasets ORDER BY created, name").fetchall()
        return [row["name"] for row in rows]

    def find(self, name: str) -> Dataset | None:
        """Return a dataset, or None when there is none of that name."""
        with self._catalogue.read() as db:
            row = db.execute("SELECT * FROM datasets WHERE name = ?", (name,)).fetchone()
        return None if row is None else self._from_row(row)

    def get(self, name: str) -> Dataset:
        """Return a dataset.

        Raises
        ------
        NotFound
            None of that name; the names that exist are listed.
        """
        found = self.find(name)
        if found is None:
            names = self.names()
            raise NotFound(
                f"There is no dataset {name!r} in this workspace.",
                f"Datasets: {', '.join(names)}."
                if names
                else "Run `theodolite demo`, or import one with `theodolite import`.",
            )
        return found

    def add(
        self,
        name: str,
        title: str,
        kind: str,
        items: pd.DataFrame,
        *,
        meta: dict[str, Any] | None = None,
        left_out: Iterable[LeftOut] = (),
        replace: bool = False,
    ) -> Dataset:
        """Store a dataset; see :meth:`core.workspace.Workspace.add_dataset`."""
        check_name(name)
        table = normalise_items(items, kind)
        self._check_blobs(table)
        digest = items_digest(table, kind)
        path = self.folder / f"{digest}.parquet"
        data = _parquet_bytes(table)
        meta_text = json.dumps(canonical({**(meta or {}), "left_out": _reports(left_out)}))
        self._refuse_other(name, digest, replace)
        # Written anew even when it is there: it costs little and mends a damaged file.
        write_bytes(path, data)
        row = (name, title, kind, len(table), digest, meta_text, now())
        with self._catalogue.write() as db:
            found = db.execute("SELECT digest FROM datasets WHERE name = ?", (name,)).fetchone()
            if found is not None and found["digest"] != digest and not replace:
                raise _taken(name)
            db.execute("DELETE FROM datasets WHERE name = ?", (name,))
            db.execute("INSERT INTO datasets VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        return self.get(name)

    def remove(self, name: str) -> None:
        """Remove a dataset from the catalogue; its files go with the next ``gc``.

        Raises
        ------
        NotFound
            None of that name.
        """
        self.get(name)
        with self._catalogue.write() as db:
            db.execute("DELETE FROM datasets WHERE name = ?", (name,))

    def keep_report(self, body: dict[str, Any]) -> str:
        """Write an import's outcome report beside the datasets and return its digest."""
        data = json.dumps(body, ensure_ascii=True, separators=(",", ":")).encode()
        digest = bytes_digest(data)
        write_bytes(self.folder / f"{digest}.report.json", data)
        return digest

    def report(self, name: str) -> OutcomeReport:
        """Return what the import of a dataset took, left out and repaired.

        Raises
        ------
        NotFound
            No such dataset.
        WorkspaceError
            The report's file is missing or damaged.
        """
        from core.data.importers.outcome import OutcomeReport

        data = self.get(name)
        digest = data.meta.get("report")
        if digest is None:
            left_out = tuple(LeftOut(**line) for line in data.meta.get("left_out", []))
            return OutcomeReport(name, str(data.meta.get("source", "")), data.n, left_out)
        path = self.folder / f"{digest}.report.json"
        try:
            text = path.read_bytes()
        except OSError as err:
            raise WorkspaceError(
                f"The outcome report {path} cannot be read ({err.strerror}).",
                "Run `theodolite doctor`; the dataset itself is not touched.",
            ) from err
        if bytes_digest(text) != digest:
            raise WorkspaceError(
                f"The outcome report {path} is damaged: its bytes do not match its name.",
                "Import the dataset again to have it anew.",
            )
        return OutcomeReport.from_dict(json.loads(text))

    def _refuse_other(self, name: str, digest: str, replace: bool) -> None:
        found = self.find(name)
        if found is not None and found.digest != digest and not replace:
            raise _taken(name)

    def _check_blobs(self, table: pd.DataFrame) -> None:
        missing = [
            (item, sha)
            for item, sha in zip(table["id"], table["sha256"], strict=True)
            if sha and not self._blobs.has(sha)
        ]
        if missing:
            item, sha = missing[0]
            raise BadInput(
                f"{len(missing)} pictures are not in the workspace; the first is that of item "
                f"{item} ({sha}).",
                "Put them with workspace.blobs.put before adding the dataset.",
            )

    def _from_row(self, row: sqlite3.Row) -> Dataset:
        meta = json.loads(row["meta"])
        meta["created"] = row["created"]
        return Dataset(
            name=row["name"],
            title=row["title"],
            kind=row["kind"],
            n=row["n"],
            digest=row["digest"],
            meta=meta,
            items_path=self.folder / f"{row['digest']}.parquet",
            blobs=self._blobs,
        )


def _reports(left_out: Iterable[LeftOut]) -> list[dict[str, Any]]:
    return [line.as_dict() for line in left_out]


def _taken(name: str) -> BadInput:
    return BadInput(
        f"There is another dataset named {name!r}, with other items.",
        "Choose another name, or pass replace=True to replace it.",
    )


def _parquet_bytes(table: pd.DataFrame) -> bytes:
    import io

    out = io.BytesIO()
    table.to_parquet(out, index=False, compression="zstd")
    return out.getvalue()
