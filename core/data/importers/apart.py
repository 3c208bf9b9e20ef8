"""The preview in a process of its own: a file that ends its reader does not end the server.

Decoders are written in C; a made-up file can crash one. The import runs as a job and so has a
process of its own already.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import core
from core.data.importers.preview import Preview, preview
from core.data.importers.work import opened
from core.errors import BadInput, NotFound, UserError

_SECONDS = 120.0
_KINDS = {"NotFound": NotFound}


def preview_apart(given: dict[str, Any], *, timeout: float = _SECONDS) -> Preview:
    """Return the preview of a source, made by another process.

    Parameters
    ----------
    given : dict
        As :func:`core.data.importers.work.opened` takes it.
    timeout : float
        Seconds it may take.

    Raises
    ------
    UserError
        What the preview itself would raise.
    BadInput
        The other process crashed or took too long.
    """
    home = str(Path(core.__file__).resolve().parent.parent)
    known = os.environ.get("PYTHONPATH", "")
    env = dict(os.environ, PYTHONPATH=f"{home}{os.pathsep}{known}" if known else home)
    command = [sys.executable, "-m", "core.data.importers.apart"]
    try:
        done = subprocess.run(
            command, input=json.dumps(given).encode(), capture_output=True, env=env,
            timeout=timeout, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as err:
        raise BadInput(
            f"Looking at the first rows took more than {timeout:.0f} seconds.",
            "Import it with the command line, or give a smaller part.",
        ) from err
    lines = done.stdout.splitlines()
    if done.returncode != 0 or not lines:
        raise BadInput(
            "The file ended the program that reads it: it is damaged, or made to do so.",
            "Save it again with another program; nothing of it was taken.",
        )
    body = json.loads(lines[-1])
    if "error" in body:
        kind = _KINDS.get(body["error"]["kind"], BadInput)
        raise kind(body["error"]["message"], body["error"]["hint"])
    return Preview.from_dict(body)


def main() -> int:
    """Read a source's description from standard input and print its preview as one line."""
    try:
        with opened(**json.load(sys.stdin)) as source:
            body = preview(source).as_dict(thumbs=True)
    except UserError as err:
        kind = type(err).__name__
        body = {"error": {"kind": kind, "message": err.message, "hint": err.hint}}
    print(json.dumps(body))
    return 0


if __name__ == "__main__":
    sys.exit(main())
