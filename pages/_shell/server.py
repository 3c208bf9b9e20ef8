"""What the server does besides pages: thumbnails, uploads, readiness, and laying the demo ready."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

import core
from core.compare import warm
from core.errors import UserError
from core.workspace import Workspace, default_root, open_workspace
from pages._shell import rights
from pages._shell.map_routes import MAP_ROUTES
from pages._shell.uploads import upload

_SHA = re.compile(r"[0-9a-f]{64}")
_FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}

# The process that lays the demo ready, one a server.
_demo: list[subprocess.Popen[bytes]] = []

DemoState = Literal["off", "running", "done", "failed"]


@lru_cache(maxsize=4)
def _workspace(root: str) -> Workspace:
    return open_workspace(root)


async def thumb(request: Request) -> Response:
    """Answer one thumbnail by the digest of its picture; its bytes never change."""
    sha = request.path_params["sha"]
    if not rights.allowed(request):
        return PlainTextResponse("please sign in", status_code=401)
    if not _SHA.fullmatch(sha):
        return PlainTextResponse("no such picture", status_code=404)
    try:
        path = await asyncio.to_thread(lambda: _workspace(str(default_root())).thumb_path(sha))
    except UserError:
        return PlainTextResponse("no such picture", status_code=404)
    return FileResponse(path, media_type="image/webp", headers=_FOREVER)


async def ready(_request: Request) -> Response:
    """Say whether the workspace opens and answers."""
    try:
        names = await asyncio.to_thread(lambda: _workspace(str(default_root())).dataset_names())
    except UserError as error:
        return JSONResponse({"ready": False, "reason": str(error)}, status_code=503)
    return JSONResponse({"ready": True, "datasets": len(names), "demo": demo_state()})


ROUTES = [
    Route("/thumb/{sha}", thumb),
    Route("/ready", ready),
    Route("/upload/{inbox}", upload, methods=["POST"]),
    *MAP_ROUTES,
]


def demo_state() -> DemoState:
    """Say how far the demo is in this server."""
    if not _demo:
        return "off"
    code = _demo[0].poll()
    if code is None:
        return "running"
    return "done" if code == 0 else "failed"


def demo_log() -> Path:
    """Return where the process that lays the demo ready writes."""
    return default_root() / "demo.log"


def start_demo() -> None:
    """Start laying the demo ready beside the server; finished parts are not done again.

    A process of its own, so that the first page is not slowed; ``THEODOLITE_DEMO=0`` leaves
    the workspace as it is.
    """
    if _demo or os.environ.get("THEODOLITE_DEMO", "1") == "0":
        return
    source = str(Path(core.__file__).resolve().parent.parent)
    known = os.environ.get("PYTHONPATH", "")
    env = dict(os.environ, PYTHONPATH=f"{source}{os.pathsep}{known}" if known else source)
    command = [sys.executable, "-m", "core", "demo", "--prepare", "--json"]
    command += ["--workspace", str(default_root())]
    try:
        log = demo_log()
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as out:
            _demo.append(
                subprocess.Popen(
                    command, stdout=out, stderr=subprocess.STDOUT, env=env, cwd=str(log.parent)
                )
            )
    except OSError as error:
        # A read-only home must not keep the server from saying so on its pages.
        print(f"The demo cannot be laid ready: {error}", file=sys.stderr)


@asynccontextmanager
async def lifespan(_app: Any) -> AsyncIterator[None]:
    """Start the demo with the server and stop it with the server."""
    await asyncio.to_thread(start_demo)
    try:
        yield
    finally:
        warm.stop(default_root())
        for process in _demo:
            if process.poll() is None:
                process.terminate()
