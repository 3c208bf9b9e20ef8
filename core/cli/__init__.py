"""The command line: the same calls as the page and the Python API, with the same keys.

Exit codes: 0 done, 1 a bug, 2 bad input, 3 not found, 130 cancelled.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from core.errors import UserError

__all__ = ["build_parser", "main"]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser with every command."""
    from core.cli import analyses, data, house, imports

    parser = argparse.ArgumentParser(
        prog="theodolite",
        description="Decide between encoders and between data sources before you spend GPU-weeks.",
        epilog="Every command takes --json for machines and --workspace for another folder.",
    )
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    house.add(commands)
    data.add(commands)
    imports.add(commands)
    analyses.add(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Examples
    --------
    >>> code = main(["jobs", "list", "--workspace", "/proc/none", "--json"])
    {"error": {"kind": "WorkspaceError", ...}}
    >>> code in (2, 3)
    True
    """
    args = build_parser().parse_args(argv)
    try:
        return int(args.handler(args) or 0)
    except UserError as err:
        _say_error(err, as_json=getattr(args, "json", False))
        return err.exit_code
    except KeyboardInterrupt:
        print("Stopped. What was finished is kept.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader (head, less) went away: not an error of ours.
        sys.stderr.close()
        return 0


def _say_error(err: UserError, *, as_json: bool) -> None:
    if as_json:
        body = {"kind": type(err).__name__, "message": err.message, "hint": err.hint}
        print(json.dumps({"error": body}))
        return
    print(f"theodolite: {err.message}", file=sys.stderr)
    if err.hint:
        print(f"            {err.hint}", file=sys.stderr)


def _version() -> str:
    from core import __version__

    return f"theodolite {__version__}"
