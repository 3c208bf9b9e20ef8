"""The first rows of a source, what each column seems to be, and what will not be taken."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from core.data.images import thumbnail_bytes
from core.data.importers.cells import is_missing, text_of
from core.data.importers.limits import ImportLimits
from core.data.importers.pictures import inspect
from core.data.importers.plan import Plan, clean_name, title_without_ending
from core.data.importers.roles import ColumnGuess, guess_roles, short
from core.data.importers.rows import Row
from core.data.importers.sources import Source, picture_of
from core.errors import BadInput
from core.types import LeftOut

LOOKED_AT, SHOWN, THUMBS = 200, 12, 8


@dataclass(frozen=True)
class Preview:
    """What a source holds, as far as its first rows tell.

    Attributes
    ----------
    title, form : str
        The source's name, and what it is.
    n : int or None
        Rows, None when only reading all of them tells.
    columns : tuple of ColumnGuess
        Each column with its guessed role.
    rows : tuple of dict
        The first rows as short texts.
    thumbs : tuple of (bytes or None)
        WebP thumbnails of the first rows' pictures, None where there is none.
    facts : dict of str to str
        Encoding, separator and the like.
    notes : tuple of str
        What is worth knowing before the import.
    left_out : tuple of LeftOut
        Files that are not looked at, and first rows that cannot be used.
    plan : Plan
        The guessed plan.
    """

    title: str
    form: str
    n: int | None
    columns: tuple[ColumnGuess, ...]
    rows: tuple[dict[str, str], ...]
    thumbs: tuple[bytes | None, ...]
    facts: dict[str, str]
    notes: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    plan: Plan

    def as_dict(self, *, thumbs: bool = False) -> dict[str, Any]:
        """Return the preview as plain JSON types, with its thumbnails in base64 when asked."""
        body: dict[str, Any] = {
            "title": self.title, "form": self.form, "n": self.n,
            "columns": [asdict(column) for column in self.columns], "rows": list(self.rows),
            "facts": self.facts, "notes": list(self.notes),
            "left_out": [line.as_dict() for line in self.left_out], "plan": self.plan.as_dict(),
        }  # fmt: skip
        if thumbs:
            body["thumbs"] = [None if t is None else b64encode(t).decode() for t in self.thumbs]
        return body

    @classmethod
    def from_dict(cls, body: dict[str, Any]) -> Preview:
        """Return the preview that :meth:`as_dict` wrote."""
        return cls(
            title=body["title"], form=body["form"], n=body["n"],
            columns=tuple(ColumnGuess(**column) for column in body["columns"]),
            rows=tuple(body["rows"]),
            thumbs=tuple(None if t is None else b64decode(t) for t in body.get("thumbs", [])),
            facts=body["facts"], notes=tuple(body["notes"]),
            left_out=tuple(LeftOut(**line) for line in body["left_out"]),
            plan=Plan.from_dict(body["plan"]),
        )  # fmt: skip


def preview(source: Source, *, taken_names: Sequence[str] = ()) -> Preview:
    """Look at the first rows of a source and guess how it is to be imported.

    Parameters
    ----------
    source : Source
        From :func:`core.data.importers.open_source`.
    taken_names : sequence of str
        Names of datasets that exist; the proposed name differs from them.

    Raises
    ------
    BadInput
        The source has no rows.
    """
    found: list[tuple[Row, str]] = []
    bad: list[LeftOut] = []
    for line in islice(source.rows(), LOOKED_AT):
        if isinstance(line, LeftOut):
            bad.append(line)
        else:
            found.append(line)
    if not found:
        first = f" The first: {bad[0].what}: {bad[0].reason}." if bad else ""
        raise BadInput(
            f"{source.title} has columns but no rows that can be read.{first}",
            f"Columns: {', '.join(source.columns[:20])}.",
        )
    cells = [row.cells for row, _ in found]
    columns = guess_roles(source.columns, cells, preset=_preset(source))
    plan = Plan(
        name=clean_name(source.title, list(taken_names)),
        title=short(title_without_ending(source.title), 100),
        roles={column.name: column.role for column in columns},
    )
    rows = tuple(
        {name: _shown(source, name, cell) for name, cell in zip(source.columns, line, strict=True)}
        for line in cells[:SHOWN]
    )
    return Preview(
        title=source.title,
        form=source.form,
        n=source.count(),
        columns=tuple(columns),
        rows=rows,
        thumbs=tuple(_thumb(source, plan, row, base) for row, base in found[:THUMBS]),
        facts=source.facts,
        notes=tuple(source.notes),
        left_out=(*source.left_out, *bad),
        plan=plan,
    )


def _preset(source: Source) -> dict[str, tuple[str, str]]:
    known = dict(source.preset)
    roles = {role for role, _ in known.values()}
    for name in source.classes:
        if "label" not in roles and name not in known:
            known[name] = ("label", f"{len(source.classes[name]):,} named classes")
            roles.add("label")
    return known


def _shown(source: Source, name: str, cell: Any) -> str:
    if name in source.classes and not is_missing(cell):
        try:
            return text_of(cell, source.classes[name])[0]
        except BadInput:
            return short(cell)
    return short(cell)


def _thumb(source: Source, plan: Plan, row: Row, base: str) -> bytes | None:
    column = plan.column("image")
    if column is None:
        return None
    cell = row.cells[source.columns.index(column)]
    # A preview fetches nothing from the network.
    quiet = ImportLimits(**{**vars(source.limits), "urls": 0})
    try:
        data, _ = picture_of(source, cell, base, quiet)
        inspect(data, source.limits, first_frame=True)
        return thumbnail_bytes(data, "picture", 96)
    except BadInput:
        return None
