"""What a stranger's data may cost: every limit of an import in one place, each with its setting."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields

from core.errors import BadInput

_PREFIX = "THEODOLITE_IMPORT_"
_MB = 1_000_000


@dataclass(frozen=True)
class ImportLimits:
    """Limits of one import; a setting ``THEODOLITE_IMPORT_<NAME>`` overrides each.

    Attributes
    ----------
    file_bytes : int
        One picture.
    total_bytes : int
        All files of a source together, unpacked; also the most one upload may hold.
    table_bytes : int
        One table.
    pixels : int
        Width times height of one picture.
    min_side : int
        Pixels of the shorter side: a 1 x 1 tracking pixel shows nothing.
    files : int
        Files in a folder or an archive.
    rows : int
        Rows of a table.
    columns : int
        Columns of a table.
    ratio : int
        Unpacked bytes for one packed byte of an archive's entry larger than a megabyte.
    caption_chars : int
        Characters of one text.
    url_bytes : int
        One picture fetched from an address.
    url_seconds : int
        Seconds one address may take.
    urls : int
        1 lets tables name pictures by web address; an administrator's choice.

    Examples
    --------
    >>> ImportLimits.from_environment({"THEODOLITE_IMPORT_FILES": "10"}).files
    10
    """

    file_bytes: int = 64 * _MB
    total_bytes: int = 20_000 * _MB
    table_bytes: int = 4_000 * _MB
    pixels: int = 50_000_000
    min_side: int = 2
    files: int = 250_000
    rows: int = 2_000_000
    columns: int = 500
    ratio: int = 200
    caption_chars: int = 100_000
    url_bytes: int = 20 * _MB
    url_seconds: int = 20
    urls: int = 0

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> ImportLimits:
        """Return the limits with what the environment sets.

        Raises
        ------
        BadInput
            A setting that is not a whole number of 0 or more.
        """
        given = os.environ if environ is None else environ
        values: dict[str, int] = {}
        for field in fields(cls):
            name = _PREFIX + field.name.upper()
            text = given.get(name, "").strip().replace("_", "")
            if not text:
                continue
            if not text.isdecimal():
                raise BadInput(
                    f"{name}={given[name]!r} is not a whole number.", "Give 0 or a larger one."
                )
            values[field.name] = int(text)
        return cls(**values)

    def in_words(self) -> list[str]:
        """Return one line a limit, as the page states them."""
        return [
            f"a picture: {size(self.file_bytes)} and {self.pixels / 1e6:g} megapixels",
            f"a table: {size(self.table_bytes)}, {self.rows:,} rows, {self.columns:,} columns",
            f"all together: {size(self.total_bytes)} and {self.files:,} files, unpacked",
            f"an archive's entry: {self.ratio:,} bytes from one packed byte",
            f"a text: {self.caption_chars:,} characters",
            "pictures by web address: "
            + (f"up to {size(self.url_bytes)} each" if self.urls else "not on this server"),
        ]


def size(n_bytes: float) -> str:
    """Write a number of bytes as people read it.

    Examples
    --------
    >>> size(64_000_000), size(1_500), size(20e9)
    ('64 MB', '1.5 kB', '20 GB')
    """
    value = float(n_bytes)
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.3g} {unit}" if value < 1000 else f"{value:,.0f} {unit}"
        value /= 1000
    return ""
