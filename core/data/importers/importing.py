"""From a source and a plan to a dataset, row by row, with the outcome of every row.

Memory does not grow with the pictures: each is read, decoded once, written and let go.
An item's id is its row's number in the source (from 0), or the source's own whole-number id:
a broken picture leaves a gap and moves no other row.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from core.data.importers.cells import is_missing, text_of
from core.data.importers.outcome import (
    OutcomeReport,
    Repaired,
    short_left_out,
    short_repaired,
)
from core.data.importers.pictures import inspect
from core.data.importers.plan import Plan
from core.data.importers.roles import ROLE_WORDS
from core.data.importers.rows import Row
from core.data.importers.sources import Source, picture_of
from core.data.importers.trees import shown
from core.errors import BadInput
from core.types import LeftOut
from core.workspace.datasets import check_name

if TYPE_CHECKING:
    from core.data.dataset import Dataset
    from core.workspace import Workspace

Progress = Callable[[float, str], None]
_OWN = {"id", "sha256", "label", "domain", "split", "caption", "file"}
_NFC = {"label", "domain", "split"}
_COMPOSED = "written in the composed form of Unicode (NFC)"
# About the characters that 77 tokens hold; encoders count exactly when they read.
_LONG_TEXT = 300


def import_dataset(
    workspace: Workspace, source: Source, plan: Plan, *, progress: Progress | None = None
) -> Dataset:
    """Import a source as a dataset.

    Parameters
    ----------
    workspace : Workspace
        Where the dataset is kept.
    source : Source
        From :func:`core.data.importers.open_source`.
    plan : Plan
        Usually the preview's, corrected.
    progress : callable, optional
        Called with a fraction and a message; may raise ``Cancelled``.

    Returns
    -------
    Dataset
        Its outcome report is ``workspace.datasets.report(name)``.

    Raises
    ------
    BadInput
        The plan does not fit, the name is taken, ids come twice (their rows are named), or
        no row can be used.
    """
    check_name(plan.name)
    plan.check(source.columns)
    if not plan.replace and workspace.datasets.find(plan.name) is not None:
        raise BadInput(
            f"There is a dataset named {plan.name!r} already.",
            "Choose another name, or replace it.",
        )
    work = _Import(source, plan, progress)
    if plan.kind == "image":
        work.shas = workspace.blobs.put_many(work.pictures())
    else:
        for _ in work.pictures():
            continue
    return work.store(workspace)


class _Import:
    """One import while it runs: the columns so far, and what was left out or repaired."""

    def __init__(self, source: Source, plan: Plan, progress: Progress | None) -> None:
        self.source, self.plan = source, plan
        self.shas: list[str] = []
        self.left_out = list(source.left_out)
        self.repaired: list[Repaired] = []
        self._progress = progress
        self._count = source.count()
        self._at = {name: i for i, name in enumerate(source.columns)}
        self._texts = {
            role: plan.column(role) for role in ("label", "domain", "split", "caption", "text")
        }
        self._keep = [name for name, role in plan.roles.items() if role == "keep"]
        self._ids: list[int] = []
        self._given_ids: list[str] = []
        self._rows: list[int] = []
        self._files: list[str] = []
        self._columns: dict[str, list[str]] = {n: [] for n in ("label", "domain", "split")}
        self._columns["caption"] = []
        self._kept: dict[str, list[Any]] = {name: [] for name in self._keep}
        # The same class name ten thousand times is one text in memory.
        self._same: dict[str, str] = {}

    def pictures(self) -> Iterator[bytes]:
        """Go through the rows; give the bytes of each picture that is taken (b"" for a text)."""
        for number, line in enumerate(self.source.rows()):
            if self._progress:
                self._tell(number)
            if isinstance(line, LeftOut):
                self.left_out.append(line)
                continue
            row, base = line
            where = self.source.where(row)
            try:
                texts, repairs = self._read_texts(row)
                data, file, more = self._picture(row, base)
            except BadInput as err:
                self.left_out.append(LeftOut(where, err.message))
                continue
            self.repaired += [Repaired(where, how) for how in dict.fromkeys([*repairs, *more])]
            self._take(row, texts, file)
            yield data

    def store(self, workspace: Workspace) -> Dataset:
        """Write the dataset and its report."""
        import pandas as pd

        missing = sorted(self.source.pictures)
        self.left_out += [LeftOut(shown(name), "no row names it") for name in missing]
        if not self._rows:
            first = f" The first: {self.left_out[0].what}: {self.left_out[0].reason}."
            raise BadInput(
                f"No row of {self.source.title} can be used: {len(self.left_out):,} were left "
                f"out.{first if self.left_out else ''}",
                "See the reasons, and check which column is which.",
            )
        items: dict[str, Any] = {"id": self._item_ids()}
        if self.plan.kind == "image":
            items["sha256"] = self.shas
        items |= self._columns
        if any(self._files):
            items["file"] = self._files
        for name, values in self._kept.items():
            items[self._free(name, items)] = _column(values)
        if self._given_ids and "source_id" not in items:
            items["source_id"] = self._given_ids
        report = self._report()
        dataset = workspace.add_dataset(
            self.plan.name,
            self.plan.title or self.plan.name,
            self.plan.kind,
            pd.DataFrame(items),
            meta={
                "source": f"{self.source.form}: {report.source}",
                "licence": self.plan.licence,
                "note": self.plan.note,
                "repaired": [r.as_dict() for r in short_repaired(self.repaired)],
                "report": workspace.datasets.keep_report(report.as_dict()),
            },
            left_out=short_left_out(self.left_out),
            replace=self.plan.replace,
        )
        if self._progress:
            self._progress(1.0, report.headline)
        return dataset

    def _tell(self, number: int) -> None:
        assert self._progress is not None
        of = f" of {self._count:,}" if self._count else ""
        fraction = min(number / self._count, 0.99) if self._count else 0.0
        left = f", {len(self.left_out):,} left out" if self.left_out else ""
        self._progress(fraction, f"{number:,}{of} rows{left}")

    def _read_texts(self, row: Row) -> tuple[dict[str, str], list[str]]:
        texts: dict[str, str] = {}
        repairs: list[str] = []
        for role, name in self._texts.items():
            if name is None:
                continue
            try:
                text, repair = text_of(row.cells[self._at[name]], self.source.classes.get(name))
            except BadInput as err:
                raise BadInput(f"its {ROLE_WORDS[role]} is {err.message}") from err
            if role in _NFC:
                text, repair = self._one_line(text, repair)
            if len(text) > self.source.limits.caption_chars:
                most = self.source.limits.caption_chars
                raise BadInput(
                    f"its {role} has {len(text):,} characters, at most {most:,} are read"
                )
            texts[role] = text
            repairs += [f"{role}: {repair}"] if repair else []
        if self.plan.kind == "text" and not (texts.get("text") or texts.get("caption", "")).strip():
            raise BadInput("its text is empty")
        return texts, repairs

    def _one_line(self, text: str, repair: str) -> tuple[str, str]:
        # Two spellings of one letter would make two classes that look the same.
        plain = unicodedata.normalize("NFC", text).strip()
        if plain != text and not repair:
            composed = plain != text.strip()
            repair = _COMPOSED if composed else "blanks around it were dropped"
        return self._same.setdefault(plain, plain), repair

    def _picture(self, row: Row, base: str) -> tuple[bytes, str, tuple[str, ...]]:
        column = self.plan.column("image")
        if column is None:
            return b"", "", ()
        cell = row.cells[self._at[column]]
        limits = self.source.limits
        data, file = picture_of(self.source, cell, base, limits)
        self.source.pictures.discard(file)
        ending = PurePosixPath(file).suffix.lower()
        try:
            facts = inspect(data, limits, ending=ending, first_frame=self.plan.first_frame)
        except BadInput as err:
            if self.source.exact or not file:
                raise
            # The row is named by its number; whoever mends it looks for the file.
            raise BadInput(f"{shown(file)}: {err.message}") from err
        return data, file, facts.repairs

    def _take(self, row: Row, texts: dict[str, str], file: str) -> None:
        self._rows.append(row.at)
        id_column = self.plan.column("id")
        if id_column is not None:
            self._given_ids.append(text_of(row.cells[self._at[id_column]])[0])
        for name in ("label", "domain", "split"):
            self._columns[name].append(texts.get(name, ""))
        self._columns["caption"].append(texts.get("caption") or texts.get("text", ""))
        self._files.append(shown(file))
        for name in self._keep:
            self._kept[name].append(_scalar(row.cells[self._at[name]]))

    def _item_ids(self) -> list[int]:
        """Return the ids; the source's own when they are whole numbers.

        Raises
        ------
        BadInput
            An id comes twice or is missing; the rows are named.
        """
        if not self._given_ids:
            return [at - 1 for at in self._rows]
        first: dict[str, int] = {}
        twice: list[str] = []
        for given, at in zip(self._given_ids, self._rows, strict=True):
            if not given:
                twice.append(f"row {at:,} has none")
            elif given in first:
                twice.append(f"{given!r} in rows {first[given]:,} and {at:,}")
            first.setdefault(given, at)
        if twice:
            more = f" and {len(twice) - 5:,} more" if len(twice) > 5 else ""
            raise BadInput(
                f"The column {self.plan.column('id')!r} does not give each row an id of its own: "
                f"{'; '.join(twice[:5])}{more}.",
                "Mend the rows, or do not use that column as the id.",
            )
        if all(_whole(given) for given in self._given_ids):
            return [int(given) for given in self._given_ids]
        return [at - 1 for at in self._rows]

    def _free(self, name: str, items: dict[str, Any]) -> str:
        # A stranger's column must not stand in for the dataset's own.
        plain = f"given_{name}" if name.lower() in _OWN or name in items else name
        while plain in items:
            plain = f"{plain}_"
        return plain

    def _notes(self) -> tuple[str, ...]:
        long = sum(len(text) > _LONG_TEXT for text in self._columns["caption"])
        if not long:
            return tuple(self.source.notes)
        return (
            *self.source.notes,
            f"{long:,} texts are longer than {_LONG_TEXT} characters: they are kept whole, but a "
            "text encoder that reads 64 or 77 tokens will not see their end.",
        )

    def _report(self) -> OutcomeReport:
        roles = {f"column {name}": ROLE_WORDS[role] for name, role in self.plan.roles.items()}
        return OutcomeReport(
            dataset=self.plan.name,
            source=self.source.title.encode("utf-8", "replace").decode(),
            taken=len(self._rows),
            left_out=tuple(self.left_out),
            repaired=tuple(self.repaired),
            facts={"form": self.source.form, **self.source.facts, **roles},
            notes=self._notes(),
        )


def _whole(text: str) -> bool:
    # A number with a leading zero is a code: 007 and 7 are not the same.
    digits = text[1:] if text.startswith("-") else text
    return (
        digits.isascii()
        and digits.isdecimal()
        and len(digits) < 19
        and (digits == "0" or not digits.startswith("0"))
    )


def _scalar(cell: Any) -> Any:
    if is_missing(cell):
        return None
    if isinstance(cell, bool | int | float):
        return cell
    try:
        return text_of(cell)[0]
    except BadInput:
        return None


def _column(values: list[Any]) -> Any:
    """Return a kept column in one plain type: numbers where all are, else text."""
    import pandas as pd

    given = [value for value in values if value is not None]
    if given and all(isinstance(value, bool) for value in given) and len(given) == len(values):
        return pd.Series(values, dtype=bool)
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in given)
    if given and numbers and all(abs(v) < 2**53 for v in given):
        if len(given) == len(values) and all(isinstance(value, int) for value in given):
            return pd.Series(values, dtype="int64")
        return pd.Series(values, dtype="float64")
    return pd.Series([text_of(value)[0] for value in values], dtype=object)
