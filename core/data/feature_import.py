"""Bringing features of another tool into the workspace: joined to a dataset by id, never by luck.

A file that carries ids is matched by them, in whatever order; one that does not is taken only
where the user says that its rows are in the dataset's order and the counts agree.
"""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.data.feature_files import FeatureFile, Rows, open_features
from core.data.feature_match import join, match_ids, pairs_in_order, refuse_mismatch
from core.data.feature_rows import Tally, read_rows
from core.digest import file_digest
from core.errors import BadInput
from core.types import Features, LeftOut

if TYPE_CHECKING:
    from core.data.dataset import Dataset
    from core.workspace import Workspace

PREFIX = "imported/"
#: The one slash a name may have: features of a registered model take its place in a study.
LIBRARIES = ("timm/", "torchvision/", "transformers/", "open_clip/")
BLOCK = 4096
_TOWERS = ("image", "text")  # the ends of a dual encoder's two names

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
    columns : tuple of str
        Arrays with one value a row, which may be named as ids.
    layered : dict of str to str
        Three-dimensional arrays, and which axis was taken for the layers.
    matched_by : str
        The dataset's column in which the ids were found.
    problem, hint : str
        Why the rows cannot be joined as they are, and what to do; empty when they can.
    partial : bool
        A part could be joined when it is asked for.
    """

    n: int
    layers: dict[str, tuple[int, str]]
    id_name: str
    skipped: dict[str, str]
    n_matched: int
    columns: tuple[str, ...] = ()
    layered: dict[str, str] = field(default_factory=dict)
    matched_by: str = ""
    problem: str = ""
    hint: str = ""
    partial: bool = False


def preview_features(
    workspace: Workspace,
    dataset: str,
    path: Path,
    *,
    ids: str = "",
    match: str = "",
    layer_axis: int | None = None,
) -> FeaturePreview:
    """Return what an import would find; nothing is stored.

    Parameters
    ----------
    workspace, dataset, path, ids, match, layer_axis
        As :func:`import_features`; ``dataset=""`` looks at the file alone.

    Raises
    ------
    BadInput, NotFound
        As :func:`open_features`; what hinders the join is in ``problem``.
    """
    data = workspace.dataset(dataset) if dataset else None
    with open_features(
        path, ids=ids, layer_axis=layer_axis, items=data.n if data else 0, scratch=workspace.root
    ) as file:
        layers = {n: (rows.shape[1], rows.stored) for n, rows in file.layers.items()}
        found = FeaturePreview(
            file.n, layers, file.id_name, file.skipped, 0, tuple(file.columns), file.layered
        )
        if data is None or file.ids is None:
            return found
        return _with_match(found, data, file.ids, path.name, match)


def _with_match(
    found: FeaturePreview, data: Dataset, ids: np.ndarray, source: str, column: str
) -> FeaturePreview:
    about = dict(vars(found))
    try:
        pairs = match_ids(data, ids, source=source, column=column)
        about |= {"n_matched": pairs.n_matched, "matched_by": pairs.column}
        about["partial"] = bool(pairs.n_matched and not pairs.shifted)
        refuse_mismatch(data, pairs, source=source, partial=False)
    except BadInput as err:
        about |= {"problem": err.message, "hint": err.hint}
    return FeaturePreview(**about)


def import_features(
    workspace: Workspace,
    *,
    dataset: str,
    path: str | Path,
    name: str,
    in_order: bool = False,
    ids: str = "",
    match: str = "",
    partial: bool = False,
    keep_flat: bool = False,
    layers: Sequence[str] = (),
    layer_axis: int | None = None,
    default_layer: str = "",
    replace: bool = False,
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
        Letters, digits, dots, dashes: the model's name. The id of a registered model, as in
        ``timm/resnet18.a1_in1k``, lets its features count for it in a population study.
    in_order : bool
        The rows are the dataset's items in their order; needed when the file has no ids.
    ids : str
        The file's array or column of ids (default: by its name; "none": it has none).
    match : str
        The dataset's column the ids are values of (default: the one that holds them).
    partial : bool
        Take the rows that match although some ids are no items or some items have no row;
        both are reported. Ids that look shifted by one are refused all the same.
    keep_flat : bool
        Take rows that are all zero or all one value; by default they are left out, because
        tools write them where an item could not be embedded.
    layers : sequence of str
        Which layers to take (default: all).
    layer_axis : {0, 1, 2}, optional
        The axis of a three-dimensional array that counts layers.
    default_layer : str
        The layer methods take when none is named (default: the last).
    replace : bool
        Take the place of other features of that name.
    progress : callable, optional
        Called with a fraction and a message; it may raise ``Cancelled``.

    Returns
    -------
    Features
        Memory-mapped, float32. Rows that cannot be used are left out and named in
        ``meta["left_out"]``, and so are items without a row.

    Raises
    ------
    NotFound
        No such dataset or file.
    BadInput
        The file cannot be read; ids are missing, doubled or no items, or items have no row;
        the counts differ where there are no ids; the name is taken by other features.
    """
    model, source = _model_name(name), Path(path)
    data = workspace.dataset(dataset)
    with open_features(
        source, ids=ids, layer_axis=layer_axis, items=data.n, scratch=workspace.root
    ) as file:
        rows, lines, column = _join(data, file, source.name, match, in_order, partial)
        taken = _chosen(file, source.name, layers)
        chosen = _default(taken, source.name, default_layer)
        writer = workspace.features.writer(
            {"dataset_digest": data.digest, "model": model, "file": file_digest(source),
             "rows": file.id_name or "in order", "column": column, "partial": partial,
             "keep_flat": keep_flat, "layers": list(taken), "layer_axis": layer_axis,
             "default_layer": chosen, "import": 2},
            dataset=dataset, model=model, default_layer=chosen, n=max(1, len(rows)),
            shard_size=BLOCK, meta=_about(source, file, column),
        )  # fmt: skip
        other = workspace.features.find(dataset, model)
        if other is not None and other.key == writer.key:
            return other
        if other is not None and not replace:
            raise BadInput(
                f"{model} holds other features of {dataset!r} already, from "
                f"{other.meta.get('source', 'elsewhere')}.",
                "Choose another name, or ask to replace them.",
            )
        found = _store(writer, data, rows, taken, lines, source.name, keep_flat, progress)
    if other is not None:
        workspace.features.remove(other.key)
    return found


def _join(
    data: Dataset, file: FeatureFile, source: str, match: str, ordered: bool, partial: bool
) -> tuple[np.ndarray, list[LeftOut], str]:
    """Return pairs (item row, file row), the report's lines, and the column they met in."""
    if file.ids is None:
        return pairs_in_order(data, file.n, source=source, said=ordered), [], ""
    found = match_ids(data, file.ids, source=source, column=match)
    refuse_mismatch(data, found, source=source, partial=partial)
    pairs, lines = join(data, found)
    return pairs, lines, found.column


def _chosen(file: FeatureFile, source: str, layers: Sequence[str]) -> dict[str, Rows]:
    unknown = [name for name in layers if name not in file.layers]
    if unknown:
        raise BadInput(
            f"layers={unknown[0]!r} is not in {source}.", f"It holds: {', '.join(file.layers)}."
        )
    return {_layer(n): rows for n, rows in file.layers.items() if not layers or n in layers}


def _default(taken: Mapping[str, Rows], source: str, given: str) -> str:
    if given and _layer(given) not in taken:
        raise BadInput(
            f"default_layer={given!r} is not in {source}.", f"Choose one of: {', '.join(taken)}."
        )
    return _layer(given) if given else list(taken)[-1]


def _layer(name: str) -> str:
    # "ids" is the store's own name for the identity of the rows.
    return "layer ids" if name == "ids" else name


def _store(
    writer: Any,
    data: Dataset,
    rows: np.ndarray,
    layers: Mapping[str, Rows],
    lines: list[LeftOut],
    source: str,
    keep_flat: bool,
    progress: Progress | None,
) -> Features:
    """Write the shards and return the finished set."""
    tally = Tally(keep_flat)
    ids = data.ids
    for shard in range(writer.n_shards):
        at = rows[shard * BLOCK : (shard + 1) * BLOCK]
        arrays, good = read_rows(layers, ids[at[:, 0]], at[:, 1], tally)
        kept = {name: array[good] for name, array in arrays.items()} if good.any() else {}
        writer.write_shard(shard, ids[at[good, 0]], kept)
        if progress is not None:
            done = min(len(rows), (shard + 1) * BLOCK)
            progress(done / len(rows), f"{done:,} of {len(rows):,} rows")
    if tally.left == len(rows):
        writer.discard()
        raise BadInput(
            f"No row of {source} can be used: "
            + "; ".join(f"{line.what}: {line.reason}" for line in tally.lines()[:3]) + ".",
            "Mend the file, or take rows of zeros with keep_flat (--keep-flat).",
        )  # fmt: skip
    found: Features = writer.finish([*tally.lines(), *lines])
    return found


def _model_name(name: str) -> str:
    plain = unicodedata.normalize("NFC", name.removeprefix(PREFIX).strip())
    library = next((given for given in LIBRARIES if plain.startswith(given)), "")
    bare = plain.removeprefix(library)
    allowed = bare.replace("-", "").replace("_", "").replace(".", "")
    if (
        not allowed.isalnum()
        or len(plain) > 80
        or len(plain.encode()) > 160
        or bare[0] == "."
        or (library and bare in _TOWERS)
        or ".." in plain
    ):
        raise BadInput(
            f"name={name[:100]!r} cannot name a model.",
            "Use letters, digits, dots, dashes and underscores, at most 80; the first is no dot. "
            "A slash only after a library, as in timm/resnet18.",
        )
    return f"{PREFIX}{plain}"


def _about(source: Path, file: FeatureFile, column: str) -> dict[str, Any]:
    return {
        "source": source.name,
        "joined_by": file.id_name or "the dataset's order, as the user said",
        "matched": column,
        "skipped": dict(file.skipped),
        "layered": dict(file.layered),
        "dtypes": {name: rows.stored for name, rows in file.layers.items()},
    }


def run_feature_import(
    workspace: Workspace, *, progress: Progress | None = None, **params: Any
) -> Any:
    """Do a job of kind "import-features"; an upload's inbox is removed once it is stored.

    With ``plan`` among the parameters the file makes a dataset of its own; see
    :func:`core.data.feature_dataset.import_feature_dataset`, else :func:`import_features`.
    """
    if "plan" in params:
        from core.data.feature_dataset import import_feature_dataset

        found = import_feature_dataset(workspace, progress=progress, **params)
    else:
        found = import_features(workspace, progress=progress, **params)
    inbox, given = workspace.root / "inbox", Path(params["path"])
    if given.is_relative_to(inbox) and given != inbox:
        shutil.rmtree(inbox / given.relative_to(inbox).parts[0], ignore_errors=True)
    return found
