"""Bringing features of another tool into the workspace: joined to a dataset by id, never by luck.

A file that carries ids is matched by them, in whatever order; one that does not is taken only
where the user says that its rows are in the dataset's order and the counts agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.data.feature_files import FeatureFile, Rows, open_features
from core.digest import file_digest
from core.errors import BadInput
from core.types import Features, LeftOut

if TYPE_CHECKING:
    from core.data.dataset import Dataset
    from core.workspace import Workspace

PREFIX = "imported/"
BLOCK = 4096
#: Rows named in a refusal or a report.
NAMED = 8

Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class FeaturePreview:
    """What a file holds, before it is imported.

    Attributes
    ----------
    n : int
        Rows.
    layers : dict of str to (int, str)
        Width and dtype of every layer.
    id_name : str
        The array that carries ids; empty when there is none.
    skipped : dict of str to str
        Arrays that are not features, and why.
    n_matched : int
        Rows whose id is an item of the dataset (0 when there are no ids).
    """

    n: int
    layers: dict[str, tuple[int, str]]
    id_name: str
    skipped: dict[str, str]
    n_matched: int


def preview_features(workspace: Workspace, dataset: str, path: Path) -> FeaturePreview:
    """Return what an import would find; nothing is stored.

    Raises
    ------
    BadInput, NotFound
        As :func:`import_features`, for what can be known without reading all rows.
    """
    data = workspace.dataset(dataset)
    with open_features(path) as file:
        matched = 0
        if file.ids is not None:
            matched = int(np.isin(_keys(file.ids), list(_item_keys(data, file.ids))).sum())
        layers = {n: (int(a.shape[1]), str(np.dtype(a.dtype))) for n, a in file.layers.items()}
        return FeaturePreview(file.n, layers, file.id_name, file.skipped, matched)


def import_features(
    workspace: Workspace,
    *,
    dataset: str,
    path: str | Path,
    name: str,
    in_order: bool = False,
    default_layer: str = "",
    progress: Progress | None = None,
) -> Features:
    """Store the features of a file under ``imported/<name>``.

    Parameters
    ----------
    workspace : Workspace
    dataset : str
        The dataset whose items the rows are.
    path : path
        .npy, .npz, .safetensors, .parquet, .h5 or .hdf5.
    name : str
        Letters, digits, dots, dashes: the model's name.
    in_order : bool
        The rows are the dataset's items in their order; needed when the file has no ids.
    default_layer : str
        The layer methods take when none is named (default: the last).
    progress : callable, optional
        Called with a fraction and a message; it may raise ``Cancelled``.

    Returns
    -------
    Features
        Memory-mapped, float32. Rows that are not finite are left out and named in
        ``meta["left_out"]``, and so are items without a row.

    Raises
    ------
    NotFound
        No such dataset, file or layer.
    BadInput
        Ids are doubled, unknown or fewer than half are items; counts differ; nothing is left.
    """
    data = workspace.dataset(dataset)
    model = _model_name(name)
    source = Path(path)
    with open_features(source) as file:
        rows, lines = _match(data, file, in_order=in_order, source=source.name)
        layers = dict(file.layers)
        chosen = default_layer or list(layers)[-1]
        if chosen not in layers:
            raise BadInput(
                f"default_layer={chosen!r} is not in {source.name}.",
                f"Choose one of: {', '.join(layers)}.",
            )
        writer = workspace.features.writer(
            {"dataset_digest": data.digest, "model": model, "file": file_digest(source),
             "in_order": in_order, "import": 1},
            dataset=dataset, model=model, default_layer=_layer(chosen), n=max(1, len(rows)),
            shard_size=BLOCK, meta=_about(source, file, in_order),
        )  # fmt: skip
        found = writer.existing()
        if found is not None:
            return found
        ids = data.items["id"].to_numpy(dtype=np.int64)
        for shard in range(writer.n_shards):
            at = slice(shard * BLOCK, (shard + 1) * BLOCK)
            _write(writer, shard, ids[rows[at, 0]], rows[at, 1], layers)
            if progress is not None:
                done = min(len(rows), (shard + 1) * BLOCK)
                progress(done / len(rows), f"{done:,} of {len(rows):,} rows")
        return writer.finish(lines)


def _write(
    writer: Any, shard: int, ids: np.ndarray, at: np.ndarray, layers: dict[str, Rows]
) -> None:
    arrays = {_layer(name): _block(array, at) for name, array in layers.items()}
    good = np.ones(len(ids), dtype=bool)
    lines = []
    for name, array in arrays.items():
        finite = np.isfinite(array).all(axis=1)
        for i in np.flatnonzero(good & ~finite):
            lines.append(LeftOut(f"item {ids[i]}", f"row {at[i]}, layer {name}: NaN or infinite"))
        good &= finite
    zero = {name: int((~array[good].any(axis=1)).sum()) for name, array in arrays.items()}
    for name, count in zero.items():
        if count:
            lines.append(
                LeftOut(f"layer {name}", "rows that are all zero were kept, and are flagged by "
                        "the methods", count)
            )  # fmt: skip
    kept = {name: array[good] for name, array in arrays.items()} if good.any() else {}
    writer.write_shard(shard, ids[good], kept, lines)


def _block(array: Rows, at: np.ndarray) -> np.ndarray:
    """Return the rows ``at`` in native float32; the file is read in runs, never at random."""
    low, high = int(at.min()), int(at.max()) + 1
    if high - low <= 4 * len(at):
        taken = np.asarray(array[low:high])[at - low]
    else:
        order = np.argsort(at, kind="stable")
        taken = np.empty((len(at), array.shape[1]), dtype=np.dtype(array.dtype))
        for start in range(0, len(at), 64):
            some = order[start : start + 64]
            first, last = int(at[some[0]]), int(at[some[-1]]) + 1
            if last - first <= 64 * BLOCK:
                taken[some] = np.asarray(array[first:last])[at[some] - first]
            else:
                for i in some:
                    taken[i] = np.asarray(array[int(at[i]) : int(at[i]) + 1])[0]
    with np.errstate(over="ignore"):
        return taken.astype(np.float32)


def _layer(name: str) -> str:
    # "ids" is the store's own name for the identity of the rows.
    return "layer ids" if name == "ids" else name


def _model_name(name: str) -> str:
    plain = name.removeprefix(PREFIX).strip()
    allowed = plain.replace("-", "").replace("_", "").replace(".", "").replace("/", "")
    if not plain or not allowed.isalnum() or len(plain) > 80 or ".." in plain:
        raise BadInput(
            f"name={name!r} cannot name a model.",
            "Use letters, digits, dots, dashes and underscores, at most 80.",
        )
    return f"{PREFIX}{plain}"


def _about(source: Path, file: FeatureFile, in_order: bool) -> dict[str, Any]:
    how = "the dataset's order, as the user said" if in_order and file.ids is None else file.id_name
    return {
        "source": source.name,
        "joined_by": how,
        "skipped": dict(file.skipped),
        "dtypes": {name: str(np.dtype(a.dtype)) for name, a in file.layers.items()},
    }


def _keys(ids: np.ndarray) -> np.ndarray:
    """Return ids as integers, or as the last part of a path in NFC."""
    if ids.dtype.kind in "iu":
        return ids.astype(np.int64)
    return np.array([_tail(str(v)) for v in ids], dtype=object)


def _tail(text: str) -> str:
    import unicodedata

    return unicodedata.normalize("NFC", text.replace("\\", "/").strip())


def _item_keys(data: Dataset, ids: np.ndarray) -> dict[Any, int]:
    """Return key -> item row for the kind of ids the file has."""
    items = data.items
    if ids.dtype.kind in "iu":
        return {int(v): at for at, v in enumerate(items["id"])}
    for column in ("file", "file_name", "path", "filename", "sha256", "concept_style"):
        if column in items:
            keys = [_tail(str(v)) for v in items[column]]
            found = {key: at for at, key in enumerate(keys)}
            if len(found) == len(keys) and any(_tail(str(v)) in found for v in ids[:1000]):
                return found
    texts = {str(v): at for at, v in enumerate(items["id"])}
    if any(_tail(str(v)) in texts for v in ids[:1000]):
        return texts
    return _by_name(data)


def _by_name(data: Dataset) -> dict[Any, int]:
    """Return bare file names where they are unique: a tool that wrote absolute paths."""
    for column in ("file", "file_name", "path", "filename"):
        if column in data.items:
            names = [_tail(str(v)).rsplit("/", 1)[-1] for v in data.items[column]]
            if len(set(names)) == len(names):
                return {name: at for at, name in enumerate(names)}
    return {}


def _match(
    data: Dataset, file: FeatureFile, *, in_order: bool, source: str
) -> tuple[np.ndarray, list[LeftOut]]:
    """Return pairs (item row, file row) in the items' order, and the report's lines."""
    if file.ids is None:
        if not in_order:
            raise BadInput(
                f"{source} carries no ids, so its rows cannot be joined to {data.name!r}.",
                f"Add an array named 'ids', or say that its rows are in the dataset's order "
                f"({data.n:,} items).",
            )
        if file.n != data.n:
            raise BadInput(
                f"{source} has {file.n:,} rows; {data.name!r} has {data.n:,} items.",
                "Rows without ids must be as many as the items. Write ids beside them.",
            )
        at = np.arange(file.n)
        return np.c_[at, at], []
    keys = _keys(file.ids)
    values, counts = np.unique(keys.astype(str), return_counts=True)
    if (counts > 1).any():
        twice = set(values[counts > 1])
        rows = [i for i, key in enumerate(keys) if str(key) in twice]
        raise BadInput(
            f"{source}: {int((counts > 1).sum()):,} ids occur more than once, for instance "
            f"{sorted(twice)[0]!r} in rows {', '.join(map(str, rows[:NAMED]))}.",
            "Give each item one row.",
        )
    table = _item_keys(data, file.ids)
    if table and not any(key in table for key in keys):
        bare = {str(k).rsplit("/", 1)[-1] for k in keys} if keys.dtype == object else set()
        if len(bare) == len(keys):
            table, keys = (
                _by_name(data),
                np.array([str(k).rsplit("/", 1)[-1] for k in keys], object),
            )
    place = np.array([table.get(key, -1) for key in keys], dtype=np.int64)
    unknown = np.flatnonzero(place < 0)
    if len(unknown) > len(keys) / 2 or len(unknown) == len(keys):
        shown = ", ".join(f"{keys[i]!r} (row {i})" for i in unknown[:3])
        raise BadInput(
            f"{source}: {len(unknown):,} of {len(keys):,} ids are not items of {data.name!r}, "
            f"for instance {shown}.",
            "Check that the file belongs to this dataset.",
        )
    return _joined(data, keys, place, unknown)


def _joined(
    data: Dataset, keys: np.ndarray, place: np.ndarray, unknown: np.ndarray
) -> tuple[np.ndarray, list[LeftOut]]:
    lines = [
        LeftOut(f"row {i}", f"id {keys[i]!r} is not an item of {data.name}")
        for i in unknown[:NAMED]
    ]
    if len(unknown) > NAMED:
        lines.append(LeftOut("further rows", "ids that are not items", len(unknown) - NAMED))
    known = np.flatnonzero(place >= 0)
    order = known[np.argsort(place[known], kind="stable")]
    lacking = np.setdiff1d(np.arange(data.n), place[known])
    names = data.items["id"].to_numpy()
    lines += [LeftOut(f"item {names[i]}", "the file has no row for it") for i in lacking[:NAMED]]
    if len(lacking) > NAMED:
        lines.append(LeftOut("further items", "no row in the file", len(lacking) - NAMED))
    return np.c_[place[order], order], lines


def run_feature_import(
    workspace: Workspace, *, progress: Progress | None = None, **params: Any
) -> Any:
    """Do a job of kind "import-features"; see :func:`import_features`."""
    return import_features(workspace, progress=progress, **params)
