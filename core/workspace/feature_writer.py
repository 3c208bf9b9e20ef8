"""Writing features shard by shard, so that a killed extraction goes on where it was.

A shard is a safetensors file and a sidecar with its digest; the sidecar is written last, so
a half-written shard has none and is never read. ``finish`` joins the shards in their order
into the one file that is read afterwards: its bytes depend on the rows only, not on how
often the work was interrupted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.digest import canonical, file_digest, recipe_key
from core.errors import BadInput, WorkspaceError
from core.types import Features, LeftOut
from core.workspace.features import IDS
from core.workspace.files import remove_tree, replacing, storing, write_bytes
from core.workspace.tensors import open_tensors, write_header, write_rows

if TYPE_CHECKING:
    from core.workspace.features import FeatureStore

DTYPES: dict[str, np.dtype[Any]] = {"float32": np.dtype("<f4"), "float16": np.dtype("<f2")}


class FeatureWriter:
    """One feature set being written; made by :meth:`FeatureStore.writer`.

    Attributes
    ----------
    key : str
        Content key of the recipe.
    n, shard_size, n_shards : int
        Items, items a shard, and how many shards that makes.
    """

    def __init__(
        self,
        store: FeatureStore,
        recipe: Mapping[str, Any],
        *,
        dataset: str,
        model: str,
        default_layer: str,
        n: int,
        shard_size: int,
        dtype: str,
        meta: dict[str, Any],
    ) -> None:
        if n < 1 or shard_size < 1:
            raise BadInput(
                f"n={n} and shard_size={shard_size}; both are at least 1.", "Give the item count."
            )
        if dtype not in DTYPES:
            raise BadInput(f"dtype={dtype!r} is not stored.", f"Use {' or '.join(DTYPES)}.")
        try:
            self.key = recipe_key(dict(recipe))
            canonical(meta)
        except (TypeError, ValueError) as err:
            raise BadInput(f"recipe or meta is not plain ({err}).", "Use JSON types.") from err
        self.recipe = dict(recipe)
        self.dataset = dataset
        self.model = model
        self.default_layer = default_layer
        self.n = n
        self.shard_size = shard_size
        self.n_shards = -(-n // shard_size)
        self.dtype = DTYPES[dtype]
        self.meta = meta
        self._store = store
        self._folder = store.parts(self.key)

    def done_shards(self) -> set[int]:
        """Return the numbers of the shards that are complete and match their digest.

        Shards of another ``shard_size`` do not count.
        """
        return {i for i in range(self.n_shards) if self._intact(i)}

    def shard_ids(self, index: int) -> np.ndarray:
        """Return the item ids a complete shard holds, int64."""
        return np.array(open_tensors(self._shard(index))[IDS])

    def write_shard(
        self,
        index: int,
        ids: Iterable[int] | np.ndarray,
        layers: Mapping[str, np.ndarray],
        left_out: Iterable[LeftOut] = (),
    ) -> None:
        """Store one shard; a complete one that is already there is kept.

        Parameters
        ----------
        index : int
            Number of the shard, 0 to ``n_shards - 1``.
        ids : int64, shape (m,)
            Item ids of the rows; may be empty when all items of the shard were left out.
        layers : mapping of str to ndarray, shape (m, d_l)
            Every layer, in layer order; may be empty when ``ids`` is.
        left_out : iterable of LeftOut
            Items of this shard without a row, and why: kept with the shard, so that a resumed
            extraction still reports them.

        Raises
        ------
        BadInput
            Wrong shard number, shapes, doubled ids, or NaN or infinite values, which are
            named by id and layer.
        WorkspaceError
            The disk is full or read-only; the shard is then absent.
        """
        if not 0 <= index < self.n_shards:
            raise BadInput(
                f"shard index={index} is outside 0 to {self.n_shards - 1}.",
                "Cut the items into shards of shard_size.",
            )
        rows = np.asarray(ids if isinstance(ids, np.ndarray) else list(ids), dtype="<i8")
        if len(rows) > self.shard_size:
            raise BadInput(
                f"Shard {index} has {len(rows)} rows; shard_size is {self.shard_size}.",
                "Cut the items into shards of shard_size.",
            )
        _refuse_doubled(rows)
        arrays: dict[str, np.ndarray] = {}
        if len(rows):
            arrays = {name: self._checked(name, value, rows) for name, value in layers.items()}
        if IDS in arrays or (len(rows) and self.default_layer not in arrays):
            raise BadInput(
                f"layers={list(arrays)} must hold default_layer={self.default_layer!r} and none "
                f"named {IDS!r}.",
                "Rename the layer.",
            )
        if not self._intact(index):
            self._store_shard(index, {IDS: rows, **arrays}, left_out)

    def finish(self, left_out: Iterable[LeftOut] = ()) -> Features:
        """Join the shards, register the set and return it.

        Parameters
        ----------
        left_out : iterable of LeftOut
            Further items without features, and why; with those of the shards they are stored
            in ``meta["left_out"]``.

        Raises
        ------
        WorkspaceError
            A shard is missing or damaged.
        BadInput
            Shards disagree in layers or widths, an id is in two shards, or no row is left.
        """
        missing = sorted(set(range(self.n_shards)) - self.done_shards())
        if missing:
            # Another process may have finished the same set and removed the shards.
            found = self.existing()
            if found is not None:
                return found
            raise WorkspaceError(
                f"{len(missing)} of {self.n_shards} shards of {self.model} on {self.dataset} are "
                f"missing or damaged, the first is number {missing[0]}.",
                "Resume the extraction.",
            )
        shards = [open_tensors(self._shard(i)) for i in range(self.n_shards)]
        full = [shard for shard in shards if len(shard[IDS])]
        if not full:
            raise BadInput(
                f"No item of {self.dataset} was left for {self.model}.", "See the outcome report."
            )
        widths = self._same_layers(full)
        ids = np.concatenate([shard[IDS] for shard in full])
        _refuse_doubled(ids)
        self._join(ids, widths, full)
        about = {
            "recipe": self.recipe,
            "dataset": self.dataset,
            "model": self.model,
            "default_layer": self.default_layer,
            "layers": list(widths),
            "n": len(ids),
            "meta": {**self.meta, "left_out": self._reports(left_out)},
            "digest": file_digest(self._store.path(self.key)),
        }
        self._store.register(self.key, about)
        del shards, full
        with suppress(WorkspaceError):
            # The set is complete; shards that cannot go now go with the next gc.
            remove_tree(self._folder)
        found = self._store.by_key(self.key)
        assert found is not None
        return found

    def existing(self) -> Features | None:
        """Return the finished set of this recipe when it is there and whole, else None."""
        try:
            return self._store.by_key(self.key)
        except WorkspaceError:
            return None

    def discard(self) -> None:
        """Remove the shards written so far."""
        remove_tree(self._folder)

    def _store_shard(
        self, index: int, tensors: Mapping[str, np.ndarray], left_out: Iterable[LeftOut]
    ) -> None:
        path = self._shard(index)
        with storing(path):
            path.with_suffix(".json").unlink(missing_ok=True)
        with replacing(path) as handle:
            write_header(handle, {n: (a.dtype, a.shape) for n, a in tensors.items()})
            for array in tensors.values():
                write_rows(handle, [array])
        about = {
            "digest": file_digest(path),
            "n": len(tensors[IDS]),
            "shard_size": self.shard_size,
            "left_out": [line.as_dict() for line in left_out],
        }
        write_bytes(path.with_suffix(".json"), json.dumps(about).encode())

    def _join(
        self, ids: np.ndarray, widths: Mapping[str, int], shards: list[dict[str, np.ndarray]]
    ) -> None:
        with replacing(self._store.path(self.key)) as handle:
            shapes = {name: (self.dtype, (len(ids), width)) for name, width in widths.items()}
            write_header(handle, {IDS: (ids.dtype, ids.shape), **shapes})
            write_rows(handle, [ids])
            for name in widths:
                write_rows(handle, (shard[name] for shard in shards))

    def _reports(self, further: Iterable[LeftOut]) -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = []
        for index in range(self.n_shards):
            lines += self._sidecar(index)["left_out"]
        lines += [line.as_dict() for line in further]
        return [line for at, line in enumerate(lines) if line not in lines[:at]]

    def _sidecar(self, index: int) -> dict[str, Any]:
        text = self._shard(index).with_suffix(".json").read_text("utf-8")
        about: dict[str, Any] = json.loads(text)
        return about

    def _shard(self, index: int) -> Path:
        return self._folder / f"shard-{index:06d}.safetensors"

    def _intact(self, index: int) -> bool:
        try:
            about = self._sidecar(index)
            whole = about["digest"] == file_digest(self._shard(index))
            return whole and about["shard_size"] == self.shard_size
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def _checked(self, layer: str, value: np.ndarray, ids: np.ndarray) -> np.ndarray:
        array = np.asarray(value)
        if array.ndim != 2 or len(array) != len(ids) or not array.shape[1]:
            raise BadInput(
                f"Layer {layer!r} has shape {array.shape}; ({len(ids)}, d) was expected.",
                "Give one row an id.",
            )
        with np.errstate(over="ignore"):
            array = array.astype(self.dtype, copy=False)
        bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
        if len(bad):
            raise BadInput(
                f"Layer {layer!r} of item {ids[bad[0]]} holds NaN or infinite values "
                f"({len(bad)} items in this shard).",
                "Leave these items out, or extract in float32.",
            )
        return array

    def _same_layers(self, shards: list[dict[str, np.ndarray]]) -> dict[str, int]:
        widths = {n: a.shape[1] for n, a in shards[0].items() if n != IDS}
        for number, shard in enumerate(shards):
            found = {n: a.shape[1] for n, a in shard.items() if n != IDS}
            if found != widths or any(shard[n].dtype != self.dtype for n in widths):
                raise BadInput(
                    f"Shard {number} of {self.model} on {self.dataset} has layers and widths "
                    f"{found}, others have {widths}.",
                    "Call discard() and extract again.",
                )
        return widths


def _refuse_doubled(ids: np.ndarray) -> None:
    values, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        twice = ", ".join(map(str, values[counts > 1][:5]))
        raise BadInput(f"ids hold some items twice: {twice}.", "Give each item one row.")
