"""The result store: a folder a result, found by the key of what it was computed from."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.digest import canonical, file_digest, recipe_key
from core.errors import BadInput, NotFound, WorkspaceError
from core.workspace.catalogue import Catalogue, now
from core.workspace.files import TEMP_PREFIX, remove_tree, storing, sync_path
from core.workspace.result_files import FILE, copy_verified, load_result, save_result

if TYPE_CHECKING:
    import sqlite3

    from core.results import Result


@dataclass(frozen=True)
class ResultInfo:
    """What is known of a stored result without reading it.

    Attributes
    ----------
    kind, key, headline, created : str
        As in :class:`core.results.Result`.
    params : dict
        Parameters, defaults filled in.
    inputs : dict
        Digests of what it was computed from.
    seconds : float
        Wall time of the computation.
    """

    kind: str
    key: str
    params: dict[str, Any]
    headline: str
    created: str
    seconds: float
    inputs: dict[str, str]


# The method `list` below hides the type of that name inside the class.
Infos = list[ResultInfo]
Paths = list[Path]


def code_version(kind: str) -> int:
    """Return the present code version of a kind of result."""
    from core.results import CODE_VERSION

    return CODE_VERSION.get(kind, 1)


class ResultStore:
    """Put, find, list, export and import results."""

    def __init__(self, root: Path, catalogue: Catalogue) -> None:
        self.folder = root / "results"
        self._catalogue = catalogue

    def path(self, key: str) -> Path:
        """Return the folder of a result."""
        return self.folder / key

    def key(
        self, kind: str, params: Mapping[str, Any], inputs: Mapping[str, str] | None = None
    ) -> str:
        """Return the content key: kind, parameters, code version and digests of the inputs.

        Raises
        ------
        BadInput
            The parameters hold something that is not plain JSON.
        """
        try:
            return recipe_key(
                {
                    "kind": kind,
                    "params": dict(params),
                    "inputs": dict(inputs or {}),
                    "code": code_version(kind),
                }
            )
        except (TypeError, ValueError) as err:
            raise BadInput(f"params of {kind!r} are not plain JSON ({err}).") from err

    def put(self, result: Result, inputs: Mapping[str, str] | None = None) -> Result:
        """Store a result and return it with its key.

        Parameters
        ----------
        result : Result
            Tables are stored as Parquet, arrays as safetensors.
        inputs : mapping of str to str, optional
            Digests of what it was computed from; ``"dataset"`` is the dataset's digest.

        Raises
        ------
        BadInput
            Summary, table or array of a type that is not stored.
        WorkspaceError
            The disk is full or read-only; an older result of the key is then untouched.
        """
        inputs = dict(inputs or {})
        stored = replace(
            result,
            key=self.key(result.kind, result.params, inputs),
            created=result.created or now(),
        )
        self.folder_ready()
        temp = self.folder / f"{TEMP_PREFIX}{uuid.uuid4().hex}"
        try:
            digest = save_result(temp, stored, inputs, code_version(stored.kind))
            self._settle(temp, stored, inputs, code_version(stored.kind), digest)
        finally:
            with suppress(WorkspaceError):
                remove_tree(temp)
        return stored

    def get(self, key: str) -> Result:
        """Return a stored result, every file checked against its digest.

        Raises
        ------
        NotFound
            No result of that key.
        WorkspaceError
            A file of it is missing or damaged.
        """
        with self._catalogue.read() as db:
            digest = _digest_of(db, key)
        try:
            return load_result(self.path(key), digest)
        except WorkspaceError:
            # Another process may be putting the same key just now: read once more while
            # none can.
            with self._catalogue.write() as db:
                return load_result(self.path(key), _digest_of(db, key))

    def find(
        self, kind: str, params: Mapping[str, Any], inputs: Mapping[str, str] | None = None
    ) -> Result | None:
        """Return the result of these parameters, or None.

        Without ``inputs``, the newest result of the parameters whose dataset has not changed
        since. Results of an older code version do not count.
        """
        if inputs is not None:
            key = self.key(kind, params, inputs)
            with self._catalogue.read() as db:
                known = db.execute("SELECT 1 FROM results WHERE key = ?", (key,)).fetchone()
            return self.get(key) if known else None
        wanted = self.key(kind, params)
        found = self._rows(kind, params_key=wanted)
        return self.get(found[0].key) if found else None

    def latest(self, kind: str, **match_params: Any) -> Result | None:
        """Return the newest result of a kind whose parameters match, or None.

        Results of an older code version, or of a dataset that has changed, do not count.
        """
        wanted = canonical(match_params)
        for info in self._rows(kind):
            have = canonical(info.params)
            if all(name in have and have[name] == value for name, value in wanted.items()):
                return self.get(info.key)
        return None

    def list(self, kind: str | None = None, *, all_versions: bool = False) -> Infos:
        """Return what is stored and still holds, newest first.

        With ``all_versions``, also results of an older code version or of items that changed.
        """
        return self._rows(kind, all_versions=all_versions)

    def remove(self, key: str) -> None:
        """Remove a result.

        Raises
        ------
        NotFound
            No result of that key.
        """
        with self._catalogue.write() as db:
            gone = db.execute("DELETE FROM results WHERE key = ?", (key,)).rowcount
        if not gone:
            raise NotFound(f"There is no result {key!r}.", "See workspace.results.list().")
        remove_tree(self.path(key))

    def export(self, key: str, folder: Path, *, format: str = "csv") -> Paths:
        """Write the tables of a result and its ``summary.json`` to a folder.

        Parameters
        ----------
        key : str
            Key of a stored result.
        folder : Path
            Where to write; made when absent.
        format : {"csv", "parquet"}
            How tables are written.

        Returns
        -------
        list of Path
            The files written.

        Raises
        ------
        BadInput
            Another format.
        WorkspaceError
            The folder cannot be written.
        """
        from core.data.export import write_csv

        if format not in {"csv", "parquet"}:
            raise BadInput(f"format={format!r} is not written.", "Use 'csv' or 'parquet'.")
        result = self.get(key)
        written = []
        with storing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            for name, table in result.tables.items():
                path = folder / f"{name}.{format}"
                if format == "csv":
                    write_csv(table, path)
                else:
                    table.to_parquet(path, index=False)
                written.append(path)
            about = {
                "kind": result.kind, "key": result.key, "params": result.params,
                "summary": result.summary, "left_out": [x.as_dict() for x in result.left_out],
                "seconds": result.seconds, "created": result.created, "versions": result.versions,
            }  # fmt: skip
            written.append(folder / "summary.json")
            # JSON has no NaN: a figure that does not exist is null for other programs.
            plain = json.loads(json.dumps(about), parse_constant=lambda _name: None)
            written[-1].write_text(json.dumps(plain, indent=1, allow_nan=False), "utf-8")
        return written

    def import_dir(self, path: Path) -> Result:
        """Register a result folder made elsewhere (shipped with the demo).

        Raises
        ------
        NotFound
            No ``result.json`` there.
        BadInput
            It is of another code version, or its key does not follow from its content.
        WorkspaceError
            A file of it is missing or damaged.
        """
        if not (path / FILE).is_file():
            raise NotFound(f"There is no {FILE} in {path}.", "Name the folder of a result.")
        digest = file_digest(path / FILE)
        result = load_result(path, digest)
        about = json.loads((path / FILE).read_text("utf-8"))
        if about["code_version"] != code_version(result.kind) or result.key != self.key(
            result.kind, result.params, about["inputs"]
        ):
            raise BadInput(
                f"The result in {path} was made by another version of the {result.kind} analysis.",
                "Run the analysis again.",
            )
        self.folder_ready()
        temp = self.folder / f"{TEMP_PREFIX}{uuid.uuid4().hex}"
        try:
            copy_verified(path, temp)
            self._settle(temp, result, about["inputs"], about["code_version"], digest)
        finally:
            with suppress(WorkspaceError):
                remove_tree(temp)
        return result

    def verify(self, key: str) -> str:
        """Return "" when every file of ``key`` is as it was written, else what is wrong."""
        try:
            self.get(key)
        except WorkspaceError as err:
            return err.message
        return ""

    def folder_ready(self) -> None:
        """Make the folder of results when it is absent."""
        with storing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)

    def _settle(
        self, temp: Path, result: Result, inputs: Mapping[str, str], version: int, digest: str
    ) -> None:
        target = self.path(result.key)
        old = self.folder / f"{TEMP_PREFIX}{uuid.uuid4().hex}"
        params = json.dumps(canonical(result.params))
        row = (
            result.key,
            result.kind,
            params,
            self.key(result.kind, result.params),
            json.dumps(dict(inputs)),
            version,
            result.headline,
            digest,
            result.seconds,
            result.created,
        )
        try:
            # Inside the write transaction: two processes never swap one folder at once.
            with self._catalogue.write() as db, storing(target):
                db.execute(
                    "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row
                )
                if target.exists():
                    os.replace(target, old)
                os.replace(temp, target)
                sync_path(self.folder)
        except BaseException:
            # The row went back to what it was, so the folder must as well.
            if old.exists():
                if target.exists():
                    os.replace(target, temp)
                os.replace(old, target)
            raise
        with suppress(WorkspaceError):
            remove_tree(old)

    def _rows(
        self, kind: str | None, *, params_key: str | None = None, all_versions: bool = False
    ) -> Infos:
        with self._catalogue.read() as db:
            rows = db.execute(
                "SELECT * FROM results WHERE (?1 IS NULL OR kind = ?1) "
                "AND (?2 IS NULL OR params_key = ?2) ORDER BY created DESC, rowid DESC",
                (kind, params_key),
            ).fetchall()
            digests = dict(db.execute("SELECT name, digest FROM datasets").fetchall())
        return [_info(row) for row in rows if all_versions or _holds(row, digests)]


def _digest_of(db: sqlite3.Connection, key: str) -> str:
    row = db.execute("SELECT digest FROM results WHERE key = ?", (key,)).fetchone()
    if row is None:
        raise NotFound(f"There is no result {key!r}.", "Run the analysis again.")
    return str(row["digest"])


def _holds(row: sqlite3.Row, digests: Mapping[str, str]) -> bool:
    if row["code_version"] != code_version(row["kind"]):
        return False
    name = json.loads(row["params"]).get("dataset")
    used = json.loads(row["inputs"]).get("dataset")
    now_there = digests.get(name) if isinstance(name, str) else None
    return used is None or now_there is None or used == now_there


def _info(row: sqlite3.Row) -> ResultInfo:
    return ResultInfo(
        kind=row["kind"],
        key=row["key"],
        params=json.loads(row["params"]),
        headline=row["headline"],
        created=row["created"],
        seconds=row["seconds"],
        inputs=json.loads(row["inputs"]),
    )
