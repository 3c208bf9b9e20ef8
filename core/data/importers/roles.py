"""What a column is: guessed from its name and its cells, and corrected by the person."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.data.importers.cells import form_of, is_missing

# In this order the page offers them.
ROLES = ("image", "label", "domain", "split", "caption", "text", "id", "keep", "ignore")
ROLE_WORDS = {
    "image": "picture", "label": "class", "domain": "domain", "split": "split",
    "caption": "caption of the picture", "text": "text (no pictures)", "id": "id of the row",
    "keep": "keep as it is", "ignore": "leave away",
}  # fmt: skip
# The roles one column at most can have.
SINGLE = ("image", "label", "domain", "split", "caption", "text", "id")
_NAMES: dict[str, tuple[str, ...]] = {
    "image": ("image", "img", "picture", "photo", "file_name", "filename", "file", "filepath",
              "file_path", "path", "image_path", "image_file", "image_url", "url", "jpg", "png",
              "image_id"),
    "label": ("label", "labels", "class", "class_name", "category", "target", "y", "species",
              "fine_label", "coarse_label", "object", "klasse", "etikett"),
    "domain": ("domain", "domains", "source", "style", "site", "hospital", "camera", "environment",
               "env", "dataset", "language", "lang", "locale"),
    "split": ("split", "splits", "subset", "fold", "set", "partition"),
    "caption": ("caption", "captions", "text", "texts", "sentence", "sentences", "description",
                "title", "alt", "alt_text", "prompt", "raw", "txt", "bildtext", "beschreibung"),
    "id": ("id", "ids", "item_id", "uid", "key", "index", "row_id", "sample_id"),
}  # fmt: skip


@dataclass(frozen=True)
class ColumnGuess:
    """One column of a preview.

    Attributes
    ----------
    name, role, why : str
        The column, what it is taken for, and the reason.
    example : str
        Its first cell that is not empty.
    distinct, missing : int
        Different values, and empty cells, among the rows that were looked at.
    """

    name: str
    role: str
    why: str
    example: str
    distinct: int
    missing: int


def guess_roles(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    preset: Mapping[str, tuple[str, str]] | None = None,
) -> list[ColumnGuess]:
    """Guess what each column is.

    Parameters
    ----------
    columns : sequence of str
        Their names.
    rows : sequence of sequence
        The first rows.
    preset : mapping of str to (role, why), optional
        Columns that are already known: folders of a picture, class numbers with names.
    """
    known = dict(preset or {})
    cells = {name: [row[at] for row in rows] for at, name in enumerate(columns)}
    taken = {role: name for name, (role, _) in known.items() if role in SINGLE}
    for role in ("image", "split", "id", "label", "domain", "caption"):
        if role in taken:
            continue
        found = _best(role, [c for c in columns if c not in known], cells)
        if found:
            known[found[0]] = (role, found[1])
            taken[role] = found[0]
    if "image" not in taken and "caption" in taken:
        name = taken["caption"]
        known[name] = ("text", known[name][1])
    return [_guess(name, *known.get(name, _rest(cells[name])), cells[name]) for name in columns]


def _best(role: str, free: list[str], cells: Mapping[str, list[Any]]) -> tuple[str, str] | None:
    if role == "image":
        for name in free:
            forms = [form_of(cell) for cell in cells[name] if not is_missing(cell)]
            if forms and sum(map(bool, forms)) > len(forms) / 2:
                return name, f"its cells are pictures ({next(filter(None, forms))})"
        return None
    words = _NAMES[role]
    for word in words:
        for name in free:
            if _plain(name) == word and _fits(role, cells[name]):
                return name, f"by its name, {name}"
    if role == "caption":
        for name in free:
            texts = [c for c in cells[name] if isinstance(c, str) and c.strip()]
            if texts and sum(" " in text.strip() for text in texts) > len(texts) / 2:
                return name, "its cells are sentences"
    return None


def _fits(role: str, values: list[Any]) -> bool:
    given = [value for value in values if not is_missing(value)]
    if not given or any(isinstance(value, dict | bytes | bytearray) for value in given):
        return False
    if role == "id":
        return len({str(value) for value in given}) == len(values)
    if role in {"label", "domain", "split"}:
        # A class that never comes again in many rows is no class.
        return len(given) < 30 or len({str(value) for value in given}) < 0.9 * len(given)
    return True


def _rest(values: list[Any]) -> tuple[str, str]:
    given = [value for value in values if not is_missing(value)]
    plain = all(isinstance(value, str | int | float | bool) for value in given)
    if not given:
        return "ignore", "every cell looked at is empty"
    if not plain:
        return "ignore", f"its cells are {type(given[0]).__name__} values"
    return "keep", "a further column"


def _guess(name: str, role: str, why: str, values: list[Any]) -> ColumnGuess:
    given = [value for value in values if not is_missing(value)]
    return ColumnGuess(
        name=name,
        role=role,
        why=why,
        example=short(given[0]) if given else "",
        distinct=len({short(value) for value in given}),
        missing=len(values) - len(given),
    )


def short(value: Any, most: int = 80) -> str:
    r"""Return a cell as one short line of text.

    Examples
    --------
    >>> short(b"123"), short({"bytes": b"12", "path": "a.png"}), short("a\nb")
    ('3 bytes', 'a.png', 'a b')
    """
    if is_missing(value):
        return ""
    if isinstance(value, bytes | bytearray):
        return f"{len(value):,} bytes"
    if isinstance(value, dict) and {"bytes", "path"} & set(value):
        return short(value.get("path") or value.get("bytes"))
    text = str(value)[: most * 4].encode("utf-8", "replace").decode().replace("\0", "\ufffd")
    text = re.sub(r"\s+", " ", text).strip()
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _plain(name: str) -> str:
    return re.sub(r"[\s\-]+", "_", name.strip().lower())
