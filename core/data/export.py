"""Tables that leave as CSV: no cell of theirs is run as a formula by a spreadsheet.

A text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break gets an apostrophe in
front, which spreadsheets show as the text it is. Numbers stay numbers; Parquet and JSON leave
as they are.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd

from core.workspace.files import storing

_FORMULA = re.compile(r"^[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"^[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?$")


def plain_cell(value: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula.

    Examples
    --------
    >>> plain_cell("=1+1"), plain_cell("-3.5"), plain_cell("a=b"), plain_cell(-3)
    ("'=1+1", '-3.5', 'a=b', -3)
    """
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.match(value):
        return f"'{value}"
    return value


def csv_text(frame: pd.DataFrame) -> str:
    r"""Return a table as CSV without formula cells.

    Examples
    --------
    >>> csv_text(pd.DataFrame({"@a": ["=x", "y"], "b": [-1, 2]}))
    "'@a,b\r\n'=x,-1\r\ny,2\r\n"
    """
    plain = frame.copy()
    plain.columns = [plain_cell(name) for name in frame.columns]
    for at, dtype in enumerate(frame.dtypes):
        if dtype.kind not in "biufcmM":
            plain.isetitem(at, frame.iloc[:, at].map(plain_cell))
    # With both line-end characters as the end of a row, a cell that holds either is quoted.
    return str(plain.to_csv(index=False, lineterminator="\r\n"))


def write_csv(frame: pd.DataFrame, path: Path) -> Path:
    """Write a table as CSV without formula cells.

    Raises
    ------
    WorkspaceError
        The file cannot be written.
    """
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(csv_text(frame), "utf-8", errors="replace", newline="")
    return path
