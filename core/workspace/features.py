"""The feature store: layerwise features by the key of their recipe.

A finished set is one safetensors file, ids first and then layer after layer, so that one
layer is one run of bytes. Reading maps it and copies nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.digest import canonical, file_digest, recipe_key
from core.errors import BadInput, NotFound, WorkspaceError
from core.types import Features
from core.workspace.catalogue import Catalogue, now
from core.workspace.files import remove_tree, storing, sync_path, temp_beside, write_bytes
from core.workspace.tensors import damaged, open_tensors

if TYPE_CHECKING:
    from core.workspace.feature_writer import FeatureWriter

IDS = "ids"


class FeatureStore:
    """Find, read, write and import feature sets."""

    def __init__(self, root: Path, catalogue: Catalogue) -> None:
        self.folder = root / "features"
        self._catalogue = catalogue
        # Files already checked in this process: path -> (size, mtime) at that time.
        self._checked: dict[Path, tuple[int, int]] = {}

    def path(self, key: str) -> Path:
        """Return where the file of a feature set lies, or would lie."""
        return self.folder / f"{key}.safetensors"

    def parts(self, key: str) -> Path:
        """Return the folder of the unfinished shards of a feature set."""
        return self.folder / f"{key}.parts"

    def writer(
        self,
        recipe: Mapping[str, Any],
        *,
        dataset: str,
        model: str,
        default_layer: str,
        n: int,
        shard_size: int = 512,
        dtype: str = "float32",
        meta: Mapping[str, Any] | None = None,
    ) -> FeatureWriter:
        """Begin, or go on with, a feature set.

        Parameters
        ----------
        recipe : mapping
            All that decides the numbers: ``dataset_digest``, model id, revision, weights
            digest, layers, pooling, transform, dtype, code version. Its key names the set.
        dataset, model : str
            Names of the dataset and of the encoder.
        default_layer : str
            The layer a method takes when none is named.
        n : int
            Number of items the shards are cut from, left-out ones included.
        shard_size : int
            Items a shard.
        dtype : {"float32", "float16"}
            How values are stored.
        meta : mapping, optional
            Plain JSON; comes back as ``Features.meta``.

        Raises
        ------
        BadInput
            ``n`` or ``shard_size`` below one, an unknown dtype, a recipe that is not plain.
        """
        from core.workspace.feature_writer import FeatureWriter

        return FeatureWriter(
            self,
            recipe,
            dataset=dataset,
            model=model,
            default_layer=default_layer,
            n=n,
            shard_size=shard_size,
            dtype=dtype,
            meta=dict(meta or {}),
        )

    def find(self, dataset: str, model: str) -> Features | None:
        """Return the newest features of ``model`` on the present items of ``dataset``, or None.

        Features of an older content of the dataset do not count.

        Raises
        ------
        WorkspaceError
            The file is missing or damaged.
        """
        with self._catalogue.read() as db:
            row = db.execute(
                "SELECT f.* FROM features f LEFT JOIN datasets d ON d.name = ?1 "
                "WHERE f.model = ?2 AND CASE WHEN f.dataset_digest = '' OR d.digest IS NULL "
                "THEN f.dataset = ?1 ELSE f.dataset_digest = d.digest END "
                "ORDER BY f.created DESC, f.rowid DESC LIMIT 1",
                (dataset, model),
            ).fetchone()
        return None if row is None else self._open(row, dataset)

    def get(self, dataset: str, model: str) -> Features:
        """Return the features of ``model`` on ``dataset``.

        Raises
        ------
        NotFound
            There are none; the command that makes them is named.
        """
        found = self.find(dataset, model)
        if found is None:
            raise NotFound(
                f"There are no features of {model!r} on dataset {dataset!r}.",
                f"Run `theodolite extract {dataset} {model}`, or start it on the Models page.",
            )
        return found

    def by_key(self, key: str) -> Features | None:
        """Return the feature set of a recipe key, or None."""
        with self._catalogue.read() as db:
            row = db.execute("SELECT * FROM features WHERE key = ?", (key,)).fetchone()
        return None if row is None else self._open(row, row["dataset"])

    def list(self) -> list[dict[str, Any]]:
        """Return one dict a feature set, oldest first: key, dataset, model, layers, n, bytes ..."""
        with self._catalogue.read() as db:
            rows = db.execute("SELECT * FROM features ORDER BY created, rowid").fetchall()
        return [_describe(row) for row in rows]

    def remove(self, key: str) -> None:
        """Remove a feature set and its shards.

        Raises
        ------
        NotFound
            No set of that key.
        """
        with self._catalogue.write() as db:
            gone = db.execute("DELETE FROM features WHERE key = ?", (key,)).rowcount
        if not gone:
            raise NotFound(f"There is no feature set {key!r}.", "See workspace.features.list().")
        remove_tree(self.path(key))
        remove_tree(self.parts(key))

    def import_file(
        self, path: Path, sidecar: Mapping[str, Any] | Path | None = None, *, link: bool = True
    ) -> Features:
        """Register a ready-made feature file.

        Parameters
        ----------
        path : Path
            A safetensors file with the tensor ``ids`` and one tensor a layer.
        sidecar : mapping or Path, optional
            What :meth:`sidecar` gives: recipe, dataset, model, default_layer, layers, digest,
            meta. By default the ``.json`` file beside ``path``.
        link : bool
            Hard-link instead of copying where the file system allows it.

        Raises
        ------
        NotFound
            The file or its sidecar is missing.
        BadInput
            The sidecar is incomplete, or the file does not match its digest.
        """
        about = _read_sidecar(path, sidecar)
        if not path.is_file():
            raise NotFound(f"There is no feature file {path}.", "Check the path.")
        digest = file_digest(path)
        if digest != about["digest"]:
            raise BadInput(
                f"{path} does not match the digest in its sidecar.",
                "Fetch or build the file again.",
            )
        key = recipe_key(about["recipe"])
        arrays = open_tensors(path)
        layers = [str(name) for name in about["layers"]]
        if set(arrays) != {IDS, *layers} or about["default_layer"] not in layers:
            raise BadInput(
                f"{path} holds the tensors {', '.join(arrays)}; its sidecar names the layers "
                f"{', '.join(layers)}.",
                "Build the file again.",
            )
        target = self.path(key)
        if not (target.is_file() and file_digest(target) == digest):
            self._place(path, target, link=link)
        self.register(
            key,
            {**about, "layers": layers, "n": len(arrays[IDS]), "digest": digest},
        )
        found = self.by_key(key)
        assert found is not None
        return found

    def sidecar(self, key: str) -> dict[str, Any]:
        """Return what :meth:`import_file` needs to register the file of ``key`` elsewhere.

        Raises
        ------
        NotFound
            No set of that key.
        """
        with self._catalogue.read() as db:
            row = db.execute("SELECT * FROM features WHERE key = ?", (key,)).fetchone()
        if row is None:
            raise NotFound(f"There is no feature set {key!r}.", "See workspace.features.list().")
        about = _describe(row)
        names = ("dataset", "model", "default_layer", "layers", "recipe", "meta", "digest")
        return {name: about[name] for name in names}

    def export(self, key: str, folder: Path) -> Path:
        """Copy a feature set as ``.safetensors`` and ``.json`` sidecar, ready to import.

        Returns
        -------
        Path
            The safetensors file, named after dataset and model.
        """
        about = self.sidecar(key)
        stem = f"{about['dataset']}--{about['model'].replace('/', '--')}"
        target = folder / f"{stem}.safetensors"
        self._place(self.path(key), target, link=False)
        text = json.dumps(about, indent=1, sort_keys=True)
        write_bytes(target.with_suffix(".json"), text.encode())
        return target

    def register(self, key: str, about: Mapping[str, Any]) -> None:
        """Write the catalogue row of a file that lies in its place."""
        recipe = dict(about["recipe"])
        stat = self.path(key).stat()
        row = (
            key,
            about["dataset"],
            str(recipe.get("dataset_digest", "")),
            about["model"],
            about["default_layer"],
            json.dumps(list(about["layers"])),
            int(about["n"]),
            json.dumps(canonical(recipe)),
            json.dumps(canonical(about.get("meta") or {})),
            about["digest"],
            stat.st_size,
            now(),
            stat.st_mtime_ns,
        )
        with self._catalogue.write() as db:
            db.execute(
                "INSERT OR REPLACE INTO features VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )

    def verify(self, key: str) -> str:
        """Return "" when the file of ``key`` is as it was written, else what is wrong."""
        with self._catalogue.read() as db:
            row = db.execute("SELECT * FROM features WHERE key = ?", (key,)).fetchone()
        path = self.path(key)
        if row is None or not path.is_file():
            return "missing"
        if path.stat().st_size != row["bytes"] or file_digest(path) != row["file_digest"]:
            return "its bytes do not match the recorded digest"
        return ""

    def _open(self, row: sqlite3.Row, dataset: str) -> Features:
        path = self.path(row["key"])
        self._check_once(path, row)
        arrays = open_tensors(path)
        ids = np.array(arrays[IDS])
        ids.flags.writeable = False
        return Features(
            ids=ids,
            arrays={name: arrays[name] for name in json.loads(row["layers"])},
            dataset=dataset,
            model=row["model"],
            default_layer=row["default_layer"],
            key=row["key"],
            meta=json.loads(row["meta"]),
        )

    def _check_once(self, path: Path, row: sqlite3.Row) -> None:
        # The digest is checked whenever the file was touched since it was written or checked
        # (a copied workspace, a stray hand); not at each use, for a file may have many GB.
        try:
            stat = path.stat()
        except FileNotFoundError as err:
            raise WorkspaceError(
                f"The feature file {path} is missing.",
                f"Run `theodolite extract {row['dataset']} {row['model']}` to make it again.",
            ) from err
        seen = (stat.st_size, stat.st_mtime_ns)
        if seen in {(row["bytes"], row["mtime_ns"]), self._checked.get(path)}:
            return
        if stat.st_size != row["bytes"] or file_digest(path) != row["file_digest"]:
            raise damaged(path, "its bytes do not match the recorded digest")
        self._checked[path] = seen

    def _place(self, source: Path, target: Path, *, link: bool) -> None:
        temp = temp_beside(target)
        with storing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                if not (link and _linked(source, temp)):
                    shutil.copyfile(source, temp)
                    with temp.open("rb+") as handle:
                        os.fsync(handle.fileno())
                os.replace(temp, target)
                sync_path(target.parent)
            finally:
                with suppress(OSError):
                    temp.unlink(missing_ok=True)


def _linked(source: Path, target: Path) -> bool:
    try:
        os.link(source.resolve(), target)
    except OSError:
        # Another file system, or one without links: copied instead.
        return False
    return True


def _read_sidecar(path: Path, sidecar: Mapping[str, Any] | Path | None) -> dict[str, Any]:
    if isinstance(sidecar, Mapping):
        about = dict(sidecar)
    else:
        file = sidecar or path.with_suffix(".json")
        try:
            about = json.loads(file.read_text("utf-8"))
        except FileNotFoundError as err:
            raise NotFound(
                f"The feature file {path} has no sidecar {file}.", "Export the features again."
            ) from err
        except (ValueError, OSError) as err:
            raise BadInput(f"The sidecar {file} cannot be read ({err}).", "Export again.") from err
    needed = {"dataset", "model", "default_layer", "layers", "recipe", "digest"}
    if not isinstance(about, dict) or not needed <= set(about):
        missing = needed - set(about)
        raise BadInput(
            f"The sidecar of {path} lacks {', '.join(sorted(missing))}.",
            "Write what workspace.features.sidecar(key) gives.",
        )
    return about


def _describe(row: sqlite3.Row) -> dict[str, Any]:
    return {
        "key": row["key"],
        "dataset": row["dataset"],
        "dataset_digest": row["dataset_digest"],
        "model": row["model"],
        "default_layer": row["default_layer"],
        "layers": json.loads(row["layers"]),
        "n": row["n"],
        "recipe": json.loads(row["recipe"]),
        "meta": json.loads(row["meta"]),
        "digest": row["file_digest"],
        "bytes": row["bytes"],
        "created": row["created"],
    }
