"""How a table of text was written: its encoding, its separator, and whether it has a header.

Each guess is shown on the preview and can be corrected there.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from core.errors import BadInput

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
ENCODINGS = ("utf-8", "utf-16", "cp1252", "shift_jis", "gb18030", "euc_jp", "euc_kr", "big5",
             "cp1251", "cp1250", "latin_1")  # fmt: skip
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE = 256 * 1024
_CHUNK = 1 << 20
_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?([eE][-+]?\d+)?")
_NAME = re.compile(r"[^\W\d][\w .\-/()%:]{0,63}")


@dataclass(frozen=True)
class TextForm:
    """How a table of text is read.

    Attributes
    ----------
    encoding : str
        A codec's name.
    separator : str
        One character.
    header : bool
        Whether the first line names the columns.
    why : str
        How the encoding was found.
    """

    encoding: str
    separator: str
    header: bool
    why: str


def encoding_of(path: Path) -> tuple[str, str]:
    """Return the encoding of a text file and how it was found.

    A byte-order mark decides; else the whole file is read as UTF-8; else its first 256 kB are
    compared with other encodings by charset-normalizer.

    Raises
    ------
    BadInput
        The file is no text.
    """
    with path.open("rb") as handle:
        sample = handle.read(_SAMPLE)
    for mark, name in _BOMS:
        if sample.startswith(mark):
            return name, "by its byte-order mark"
    if b"\0" in sample:
        wide = _wide(sample)
        if wide and _reads(sample, wide):
            return wide, "by its zero bytes"
        if sample.count(b"\0") > len(sample) // 1000 + 16:
            raise BadInput(
                f"{path.name} is not a table of text: it holds zero bytes.",
                "Save it as CSV, JSONL or Parquet.",
            )
    if _is_utf8(path):
        return "utf-8", "every byte is valid UTF-8"
    return _guess(sample), "by the frequency of its characters: check the preview"


def _wide(sample: bytes) -> str:
    # UTF-16 without a mark: every other byte of plain text is zero.
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    half = max(1, len(sample) // 2)
    if odd > 0.4 * half and even < 0.05 * half:
        return "utf-16-le"
    if even > 0.4 * half and odd < 0.05 * half:
        return "utf-16-be"
    return ""


def _reads(sample: bytes, encoding: str) -> bool:
    text = sample[: len(sample) // 2 * 2].decode(encoding, "replace")
    fit = sum(letter.isprintable() or letter in "\t\r\n" for letter in text)
    return fit > 0.97 * len(text)


def _is_utf8(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with path.open("rb") as handle:
            while block := handle.read(_CHUNK):
                decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _guess(sample: bytes) -> str:
    from charset_normalizer import from_bytes

    # Only lines with bytes beyond ASCII tell anything.
    lines = [line for line in sample.split(b"\n") if any(byte > 127 for byte in line)]
    text = b"\n".join(lines[:2000])
    candidates = list(ENCODINGS[2:])
    found = list(from_bytes(text, cp_isolation=candidates))
    found = found or list(from_bytes(text, cp_isolation=candidates, threshold=0.6))
    if not found:
        return "cp1252"
    # Of two that read equally well, and of two that give the same text, the commoner one.
    best = min(found, key=lambda m: (m.chaos, -m.coherence, candidates.index(m.encoding)))
    return "cp1252" if _same(text, best.encoding, "cp1252") else str(best.encoding)


def _same(text: bytes, one: str, other: str) -> bool:
    try:
        return text.decode(one) == text.decode(other)
    except UnicodeDecodeError:
        return False


def separator_of(text: str) -> str:
    r"""Return the separator that gives the first lines the same, largest number of fields.

    Examples
    --------
    >>> separator_of("a;b\n1,5;2\n")
    ';'
    """
    best, score = ",", (0.0, 0)
    for mark in SEPARATORS:
        try:
            rows = [row for row in csv.reader(text.splitlines(True)[:200], delimiter=mark) if row]
        except csv.Error:
            continue
        # The last line of a sample may be cut.
        widths = Counter(len(row) for row in (rows[:-1] if len(rows) > 2 else rows))
        if not widths:
            continue
        width, times = widths.most_common(1)[0]
        found = (times / sum(widths.values()), width)
        if width > 1 and found > score:
            best, score = mark, found
    return best


def has_header(rows: list[list[str]]) -> bool:
    """Guess whether the first row names the columns.

    It does when its cells are short, different from each other and no numbers, and the rows
    below look otherwise (a number below a word, another length, or words that come again).

    Examples
    --------
    >>> has_header([["file", "label"], ["a.png", "cat"], ["b.png", "cat"]])
    True
    >>> has_header([["a.png", "cat"], ["b.png", "cat"], ["c.png", "dog"]])
    False
    """
    if not rows:
        return False
    first, rest = rows[0], rows[1:]
    cells = [cell.strip() for cell in first]
    if len(set(cells)) < len(cells) or any(_NUMBER.fullmatch(cell) for cell in cells):
        return False
    if any(_looks_like_file(cell) or len(cell) > 80 for cell in cells):
        return False
    if not all(_NAME.fullmatch(cell) or not cell for cell in cells):
        return False
    # A first cell that comes again below it is a value.
    return not any(
        cell and any(len(row) > at and row[at].strip() == cell for row in rest)
        for at, cell in enumerate(cells)
    )


def _looks_like_file(cell: str) -> bool:
    return bool(re.search(r"\.(png|jpe?g|webp|gif|bmp|tiff?|avif)$", cell, re.IGNORECASE)) or (
        cell.startswith(("http://", "https://", "data:"))
    )


def text_form(
    path: Path,
    *,
    encoding: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
) -> TextForm:
    """Return how a CSV file is read; what is given is not guessed.

    Raises
    ------
    BadInput
        No text, or an unknown encoding or separator.
    """
    if separator is not None and len(separator) != 1:
        raise BadInput(f"separator={separator!r} is not one character.", "Use , ; tab or |.")
    found, why = (encoding, "as you chose") if encoding else encoding_of(path)
    text = sample_text(path, found)
    mark = separator or ("\t" if path.suffix.lower() == ".tsv" else separator_of(text))
    if header is None:
        rows = list(csv.reader(text.splitlines(True)[:200], delimiter=mark))
        header = has_header([row for row in rows if row])
    return TextForm(found, mark, header, why)


def sample_text(path: Path, encoding: str) -> str:
    """Return the first part of a text file; what cannot be decoded is replaced.

    Raises
    ------
    BadInput
        No such encoding.
    """
    with path.open("rb") as handle:
        sample = handle.read(_SAMPLE)
    try:
        decoder = codecs.getincrementaldecoder(encoding)("replace")
        return str(decoder.decode(sample)).replace("\0", "\ufffd")
    except LookupError as err:
        raise BadInput(
            f"encoding={encoding!r} is not known.", f"Use one of: {', '.join(ENCODINGS)}."
        ) from err
