"""What the commands share: the workspace option, printing, progress on one line."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from core.workspace import Workspace


def command(
    commands: Any, name: str, handler: Callable[[argparse.Namespace], int | None], text: str
) -> argparse.ArgumentParser:
    """Add a command with the two options every command has."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.add_argument(
        "--workspace",
        metavar="DIR",
        help="workspace folder (default: $THEODOLITE_HOME, else ~/.theodolite)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON on standard output")
    parser.set_defaults(handler=handler)
    return parser


def workspace(args: argparse.Namespace) -> Workspace:
    """Open the workspace the command names."""
    from core.workspace import open_workspace

    return open_workspace(args.workspace)


def plain(value: Any) -> Any:
    """Turn ``value`` into JSON types; a figure that does not exist becomes null with no guess."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def emit(args: argparse.Namespace, body: Any, lines: Iterable[str]) -> None:
    """Print ``body`` as JSON if asked, else ``lines``."""
    if args.json:
        print(json.dumps(plain(body), indent=2))
    else:
        for line in lines:
            print(line)


def table(rows: list[dict[str, Any]], columns: list[str]) -> list[str]:
    """Format rows as a plain text table.

    Examples
    --------
    >>> table([{"a": 1, "b": "x"}], ["a", "b"])
    ['a  b', '1  x']
    """
    cells = [columns] + [[_cell(row.get(c)) for c in columns] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    padded = (
        "  ".join(text.ljust(w) for text, w in zip(line, widths, strict=True)) for line in cells
    )
    return [line.rstrip() for line in padded]


def _cell(value: Any) -> str:
    if value is None:
        return "n/a"
    if isinstance(value, float):
        return "n/a" if math.isnan(value) else f"{value:.3g}"
    return str(value)


class Progress:
    """Show progress on one line of standard error, at most five times a second."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._tty = sys.stderr.isatty()
        self._last = 0.0

    def __call__(self, fraction: float, message: str = "") -> None:
        """Show ``fraction`` (0..1) and ``message``."""
        now = time.monotonic()
        pause = 0.2 if self._tty else 10.0
        if self._quiet or (now - self._last < pause and fraction < 1):
            return
        self._last = now
        line = f"{100 * fraction:5.1f} %  {message}"
        print(f"\r\033[K{line}" if self._tty else line, end="" if self._tty else "\n",
              file=sys.stderr, flush=True)  # fmt: skip
        if self._tty and fraction >= 1:
            print(file=sys.stderr)
