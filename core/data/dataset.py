"""A dataset: a table of items with stable ids, and their pictures or texts.

The digest is taken over the values of the table, not over a file's bytes, so that it is the
same on every machine and with every version of the libraries that store it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.data.images import open_rgb
from core.errors import BadInput, NotFound, WorkspaceError

if TYPE_CHECKING:
    import pandas as pd
    from PIL import Image

    from core.workspace.blobs import BlobStore

KINDS = ("image", "text")
#: How the source of a dataset begins whose items came as features.
FEATURES_FORM = "features with a"
TEXT_COLUMNS = ("sha256", "label", "domain", "split", "caption")


@dataclass(frozen=True)
class Dataset:
    """Items of one kind, with stable integer ids.

    Attributes
    ----------
    name, title : str
        Identifier, and the name people read.
    kind : {"image", "text"}
        What an encoder reads: the picture, or the caption.
    n : int
        Number of items.
    digest : str
        SHA-256 (hex) of kind and items: the same content has the same digest everywhere.
    meta : dict
        ``source``, ``licence``, ``note``, ``left_out`` (list of dicts), ``created`` and others.
    """

    name: str
    title: str
    kind: str
    n: int
    digest: str
    meta: dict[str, Any]
    items_path: Path = field(repr=False)
    blobs: BlobStore = field(repr=False, compare=False)

    def __len__(self) -> int:
        return self.n

    @property
    def of_features(self) -> bool:
        """The items came as features: captions say something of them and were never read."""
        return str(self.meta.get("source", "")).startswith(FEATURES_FORM)

    @cached_property
    def items(self) -> pd.DataFrame:
        """The table: ``id`` (int64), sha256, label, domain, split, caption, further columns.

        Read once and shared: take a copy before changing it.
        """
        return read_items(self.items_path)

    @cached_property
    def _row_of(self) -> dict[int, int]:
        return {int(item): row for row, item in enumerate(self.items["id"])}

    @property
    def ids(self) -> np.ndarray:
        """Item ids, int64, shape (n,)."""
        return self.items["id"].to_numpy()

    def row(self, item: int) -> dict[str, Any]:
        """Return one item as a dict.

        Raises
        ------
        NotFound
            No such id here.
        """
        at = self._row_of.get(int(item))
        if at is None:
            raise NotFound(
                f"id={item} is not an item of dataset {self.name!r}.",
                f"Ids run from {self.ids.min()} to {self.ids.max()}." if self.n else "",
            )
        return dict(self.items.iloc[at])

    def image_bytes(self, item: int) -> bytes:
        """Return the encoded picture of one item.

        Raises
        ------
        BadInput
            The item has no picture, or its file is missing or damaged.
        """
        sha = str(self.row(item)["sha256"])
        if not sha:
            raise BadInput(
                f"Item {item} of dataset {self.name!r} has no picture.",
                "Choose an image dataset.",
            )
        try:
            return self.blobs.get(sha)
        except (NotFound, WorkspaceError) as err:
            raise BadInput(
                f"The picture of item {item} of dataset {self.name!r} cannot be used: "
                f"{err.message}",
                "Import the dataset again.",
            ) from err

    def image(self, item: int) -> Image.Image:
        """Return the picture of one item, RGB, upright, transparent parts on white.

        Raises
        ------
        BadInput
            As :meth:`image_bytes`, or the file is not a readable picture.
        """
        data = self.image_bytes(item)
        name = f"The picture of item {item} of dataset {self.name!r} ({self.row(item)['sha256']})"
        return open_rgb(data, name)

    def texts(self, column: str = "caption") -> list[str]:
        """Return one text column, in the order of the rows.

        Raises
        ------
        NotFound
            No such column.
        """
        if column not in self.items.columns:
            raise NotFound(
                f"column={column!r} is not in dataset {self.name!r}.",
                f"Columns: {', '.join(map(str, self.items.columns))}.",
            )
        return [str(text) for text in self.items[column]]

    def subset(self, ids: Iterable[int]) -> pd.DataFrame:
        """Return the rows of ``ids``, in that order, as a new table.

        Raises
        ------
        BadInput
            An id is not an item here; the first few are named.
        """
        wanted = [int(i) for i in ids]
        missing = [i for i in wanted if i not in self._row_of]
        if missing:
            raise BadInput(
                f"{len(missing)} ids are not items of dataset {self.name!r}: "
                f"{', '.join(map(str, missing[:5]))}.",
                "Choose ids from its items.",
            )
        return self.items.iloc[[self._row_of[i] for i in wanted]].reset_index(drop=True)


def normalise_items(items: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Return ``items`` with the required columns, plain types and checked ids.

    Parameters
    ----------
    items : DataFrame
        ``id`` is required; the text columns are filled with "" when absent.
    kind : {"image", "text"}
        An image item needs ``sha256``, a text item ``caption``.

    Raises
    ------
    BadInput
        Unknown kind, no rows, ids missing, doubled or not whole numbers, an image without
        sha256, a column of mixed or unknown type.
    """
    import pandas as pd

    if kind not in KINDS:
        raise BadInput(f"kind={kind!r} is not a kind of dataset.", "Use 'image' or 'text'.")
    if not len(items):
        raise BadInput("The dataset has no items.", "Give at least one row.")
    columns: dict[str, Any] = {"id": _checked_ids(items)}
    for name in TEXT_COLUMNS:
        columns[name] = _text(items[name]) if name in items.columns else [""] * len(items)
    for name in items.columns:
        if str(name) not in columns:
            columns[str(name)] = _plain_column(items[name])
    table = pd.DataFrame(columns)
    if kind == "image" and (table["sha256"] == "").any():
        first = int(table.loc[table["sha256"] == "", "id"].iloc[0])
        raise BadInput(
            f"Item {first} has no sha256, so it has no picture.",
            "Put the picture into workspace.blobs first, or leave the item out.",
        )
    return table


def _checked_ids(items: pd.DataFrame) -> np.ndarray:
    if "id" not in items.columns:
        raise BadInput("The items have no column 'id'.", "Give one whole number an item.")
    given = items["id"].to_numpy()
    try:
        with np.errstate(invalid="ignore"):
            ids = given.astype(np.int64)
        same = bool(np.all(ids == given))
    except (TypeError, ValueError, OverflowError):
        same = False
    if not same or given.dtype == bool:
        raise BadInput("The column 'id' holds values that are not whole numbers.", "Use int64.")
    values, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        twice = ", ".join(map(str, values[counts > 1][:5]))
        raise BadInput(f"The column 'id' holds some ids twice: {twice}.", "Give each its own.")
    return ids


def _text(column: pd.Series) -> list[str]:
    missing = column.isna().to_numpy()
    return ["" if gone else str(value) for value, gone in zip(column, missing, strict=True)]


def _plain_column(column: pd.Series) -> Any:
    kind = getattr(column.dtype, "kind", "O")
    if kind == "b":
        return column.to_numpy(dtype=bool)
    if kind in "iu":
        return column.to_numpy(dtype=np.int64)
    if kind == "f":
        return column.to_numpy(dtype=np.float64)
    strange = [v for v in column if not isinstance(v, str) and not _is_missing(v)]
    if strange:
        raise BadInput(
            f"The column {column.name!r} holds {type(strange[0]).__name__} values.",
            "A column holds text, numbers or true/false.",
        )
    return _text(column)


def _is_missing(value: object) -> bool:
    return value is None or type(value).__name__ in {"NAType", "NaTType"} or value != value


def items_digest(items: pd.DataFrame, kind: str) -> str:
    """Return the SHA-256 (hex) of kind and normalised items; the order of rows counts."""
    digest = hashlib.sha256(kind.encode())
    for name in sorted(map(str, items.columns)):
        values = items[name].to_numpy()
        digest.update(f"\0{name}\0".encode())
        if values.dtype.kind in "biuf":
            digest.update(values.dtype.newbyteorder("<").str.encode())
            digest.update(np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes())
        else:
            text = json.dumps([str(v) for v in values], ensure_ascii=True, separators=(",", ":"))
            digest.update(text.encode())
    return digest.hexdigest()


def read_items(path: Path) -> pd.DataFrame:
    """Read a stored table of items.

    Raises
    ------
    WorkspaceError
        The file is missing or damaged.
    """
    import pandas as pd
    import pyarrow as pa

    try:
        return pd.read_parquet(path)
    except (OSError, pa.ArrowException) as err:
        raise WorkspaceError(
            f"The items in {path} cannot be read ({err}).",
            "Run `theodolite doctor`, then import the dataset again.",
        ) from err
