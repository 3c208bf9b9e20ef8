"""A feature file that brings its own dataset: a matrix, and what is known of its rows.

The rows' labels, domains, splits, captions and ids come from a table beside the file, or from
the file's own columns (of a Parquet file, or arrays with one value a row). The table is read by
the importers of :mod:`core.data.importers`: the same guesses, the same corrections, the same
report.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.data.dataset import FEATURES_FORM
from core.data.feature_files import open_features
from core.data.feature_import import Progress, import_features
from core.data.importers.limits import ImportLimits
from core.data.importers.opening import open_source
from core.data.importers.plan import Plan, clean_name
from core.data.importers.preview import Preview, preview
from core.data.importers.rows import Row
from core.data.importers.sources import Source
from core.errors import BadInput
from core.types import Features, LeftOut

if TYPE_CHECKING:
    from core.workspace import Workspace

#: The column added to every table: an item without a caption is called by its row.
NAME = "name of the row"
_NOTE = (
    "The items came with features and no pictures or texts of their own: where there is no "
    "caption, the row's name stands for it."
)


class _Named(Source):
    """A table's rows with a name for each, so that an item needs neither picture nor text."""

    def __init__(self, base: Source) -> None:
        super().__init__(base.title, base.limits)
        self.form = f"{FEATURES_FORM} {base.form}"
        self.columns = [*base.columns, NAME]
        self.facts, self.classes = base.facts, base.classes
        self.notes = [*base.notes, _NOTE]
        self.left_out = base.left_out
        self._base = base

    def rows(self) -> Iterator[tuple[Row, str] | LeftOut]:
        """Give every row with its name."""
        for line in self._base.rows():
            if isinstance(line, LeftOut):
                yield line
            else:
                row, base = line
                yield Row(row.at, [*row.cells, f"row {row.at - 1}"]), base

    def count(self) -> int | None:
        """Return the number of rows."""
        return self._base.count()

    def where(self, row: Row) -> str:
        """Return what a row is called in a report."""
        return self._base.where(row)


@contextmanager
def _table(path: Path, table: Path | None, layer_axis: int | None, scratch: Path) -> Iterator[Any]:
    """Open the table beside a file, or the file's own columns as one."""
    if table is not None:
        with open_source(table) as source:
            yield source
        return
    import pandas as pd

    with open_features(path, layer_axis=layer_axis, scratch=scratch) as file:
        columns = {name: _plain(array[:]) for name, array in file.columns.items()}
        frame = pd.DataFrame(columns or {"id": np.arange(file.n)})
    limits = ImportLimits.from_environment()
    if len(frame) > limits.rows:
        raise BadInput(
            f"{path.name} has {len(frame):,} rows; at most {limits.rows:,} are read.",
            "Cut it, or raise THEODOLITE_IMPORT_ROWS.",
        )
    with open_source(frame, limits=limits) as source:
        source.title = path.name
        yield source


def _plain(values: np.ndarray) -> Any:
    """Return a column as numbers or texts; bytes are UTF-8."""
    if values.dtype.kind in "iufb":
        return values.astype(values.dtype.newbyteorder("="))
    texts = [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in values.tolist()]
    return np.array(texts, dtype=object)


def preview_feature_dataset(
    path: Path,
    table: Path | None = None,
    *,
    taken_names: list[str] | None = None,
    layer_axis: int | None = None,
    scratch: Path | None = None,
) -> Preview:
    """Show what a feature file and its table would become; nothing is stored.

    Parameters
    ----------
    path : Path
        The feature file.
    table : Path, optional
        A CSV, JSONL, Parquet or Arrow table, a row each; by default the file's own columns.
    taken_names : list of str, optional
        Names of datasets that exist.
    layer_axis, scratch
        As :func:`core.data.feature_files.open_features`.

    Returns
    -------
    Preview
        Its plan has no picture column: a column of file names is kept as it is.

    Raises
    ------
    NotFound, BadInput
        A file cannot be read, or the table has another number of rows than the features.
    """
    temporary = tempfile.TemporaryDirectory(dir=scratch, prefix=".tmp-table-")
    with temporary as folder, _table(path, table, layer_axis, Path(folder)) as source:
        found = preview(source, taken_names=taken_names or ())
    with open_features(path, layer_axis=layer_axis, items=found.n or 0, scratch=scratch) as file:
        _same_count(path, file.n, found.title, found.n)
    roles = {n: _ROLE.get(role, role) for n, role in found.plan.roles.items()}
    plan = replace(
        found.plan, name=clean_name(path.stem, taken_names), title=path.stem[:100], roles=roles
    )
    return replace(found, thumbs=(), plan=plan)


def _same_count(path: Path, n: int, title: str, rows: int | None) -> None:
    if rows is not None and rows != n:
        raise BadInput(
            f"{path.name} has {n:,} rows; {title} has {rows:,}.",
            "Give the table one row for each row of the features.",
        )


def import_feature_dataset(
    workspace: Workspace,
    *,
    path: str | Path,
    plan: Plan | Mapping[str, Any],
    name: str,
    table: str | Path | None = None,
    in_order: bool = False,
    layer_axis: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Features:
    """Make a dataset of a feature file and its table, and store the features on it.

    Parameters
    ----------
    workspace : Workspace
    path : path
        The feature file; see :func:`core.data.feature_import.import_features`.
    plan : Plan or dict
        Name and title of the dataset and the role of each column of the table, usually the
        preview's, corrected.
    name : str
        The model's name, ``imported/<name>``.
    table : path, optional
        The table beside the file; by default the file's own columns.
    in_order : bool
        The rows of file and table are in the same order; needed where the file has no ids.
    layer_axis : {0, 1, 2}, optional
        As :func:`core.data.feature_import.import_features`.
    progress : callable, optional
        Called with a fraction and a message; may raise ``Cancelled``.
    **options
        ``ids``, ``match``, ``keep_flat``, ``layers``, ``default_layer`` of
        :func:`core.data.feature_import.import_features`.

    Returns
    -------
    Features
        On a new text dataset whose captions are the table's, or the rows' names.

    Raises
    ------
    NotFound, BadInput
        A file cannot be read, the table and the features do not fit each other, or the
        dataset's name is taken. Nothing is kept then.
    """
    from core.data.importers.importing import import_dataset

    source = Path(path)
    given = plan if isinstance(plan, Plan) else Plan.from_dict(plan)
    roles = {n: _ROLE.get(role, role) for n, role in given.roles.items()}
    settled = replace(given, roles={**roles, NAME: "text"}, replace=False)
    scratch = tempfile.TemporaryDirectory(dir=workspace.root, prefix=".tmp-table-")
    with scratch as folder, _table(source, _path(table), layer_axis, Path(folder)) as base:
        with open_features(source, ids=str(options.get("ids", "")), layer_axis=layer_axis,
                           items=base.count() or 0, scratch=workspace.root) as file:  # fmt: skip
            _same_count(source, file.n, base.title, base.count())
            ordered = table is None or file.ids is None
        if table is not None and ordered and not in_order:
            raise BadInput(
                f"{source.name} carries no ids, so its rows cannot be joined to {base.title}.",
                "Give ids in both, or say that the rows of both are in the same order.",
            )
        data = import_dataset(workspace, _Named(base), settled, progress=progress)
    with ExitStack() as undo:
        # Cancelled or refused: a dataset without its features is of no use to anybody.
        undo.callback(workspace.remove_dataset, data.name)
        if ordered and data.n != file.n:
            _refuse_gaps(workspace, data.name, data.n, file.n, base.title)
        more = {**options, "ids": "none"} if ordered else options
        found = import_features(
            workspace, dataset=data.name, path=source, name=name, in_order=ordered,
            layer_axis=layer_axis, progress=progress, **more,
        )  # fmt: skip
        undo.pop_all()
    return found


def _refuse_gaps(workspace: Workspace, name: str, n: int, rows: int, title: str) -> None:
    # Rows are joined by their place, which a row that was left out would shift.
    report = workspace.datasets.report(name)
    first = next((f" ({x.what}: {x.reason})" for x in report.left_out), "")
    raise BadInput(
        f"{n:,} of {rows:,} rows of {title} can be used{first}, and without ids their features "
        "cannot be told apart.",
        "Mend the table, or give ids in both.",
    )


# Items are what the features say; a picture's path is a column like others.
_ROLE = {"image": "keep", "text": "caption"}


def _path(table: str | Path | None) -> Path | None:
    return None if table is None else Path(table)
