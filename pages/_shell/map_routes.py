"""What a map asks the server for beside the page: blocks, the item under the pointer, code."""

from __future__ import annotations

import asyncio
import json
import re
from functools import lru_cache

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from core.compare.map_points import MapPoints, map_points
from core.data.dataset import Dataset
from core.errors import UserError
from core.paths import assets_dir
from core.workspace import Workspace, default_root, open_workspace
from pages._shell import rights
from pages._shell.blocks import BLOCKS

_FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}
# Noise does not shrink: packing four megabytes of positions would only keep them waiting.
_AS_IS = {**_FOREVER, "Content-Encoding": "identity"}
_HOUR = {"Cache-Control": "private, max-age=3600"}
_SHA = re.compile(r"[0-9a-f]{64}")
LIBRARY = "regl-scatterplot"


@lru_cache(maxsize=1)
def library_digest() -> str:
    """Return the digest of the vendored library, which is part of its address."""
    about = json.loads((assets_dir() / "vendor" / LIBRARY / "source.json").read_text("utf-8"))
    return str(about["sha256"])


@lru_cache(maxsize=4)
def _opened(root: str) -> Workspace:
    return open_workspace(root)


@lru_cache(maxsize=4)
def stored_map(root: str, key: str) -> MapPoints:
    """Return the points of a stored map; the four used last are kept."""
    return map_points(_opened(root).results.get(key))


@lru_cache(maxsize=4)
def shared_dataset(root: str, name: str, digest: str) -> Dataset:
    """Return a dataset whose table is read once for all pages and requests."""
    found = _opened(root).dataset(name)
    if found.digest != digest:
        raise UserError(f"Dataset {name!r} has changed.", "Load the page again.")
    return found


def _answer(found: bytes | dict[str, object] | None, what: str) -> Response:
    if found is None:
        return PlainTextResponse(f"no such {what}", status_code=404)
    if isinstance(found, bytes):
        return Response(found, media_type="application/octet-stream", headers=_AS_IS)
    return JSONResponse(found, headers=_HOUR)


async def block(request: Request) -> Response:
    """Answer one block by its digest."""
    if not rights.allowed(request):
        return PlainTextResponse("please sign in", status_code=401)
    return _answer(BLOCKS.get(request.path_params["name"]), "block")


async def library(request: Request) -> Response:
    """Answer the vendored library: code that everyone may read."""
    if request.path_params["digest"] != library_digest():
        return PlainTextResponse("no such library", status_code=404)
    path = assets_dir() / "vendor" / LIBRARY / f"{LIBRARY}.js"
    return FileResponse(path, media_type="text/javascript", headers=_FOREVER)


async def map_item(request: Request) -> Response:
    """Answer what lies under the pointer: an item by its row on a stored map, or by its id."""
    if not rights.allowed(request):
        return PlainTextResponse("please sign in", status_code=401)
    asked = dict(request.query_params)
    return _answer(await asyncio.to_thread(_item, asked), "item")


def _item(asked: dict[str, str]) -> dict[str, object] | None:
    root = str(default_root())
    try:
        if "map" in asked:
            if not _SHA.fullmatch(asked["map"]):
                return None
            points = stored_map(root, asked["map"])
            name, item = points.dataset, int(points.ids[_whole(asked["row"], len(points))])
        else:
            name, item = asked["dataset"], int(asked["id"])
        digest = _opened(root).dataset(name).digest
        row = shared_dataset(root, name, digest).row(item)
    except (UserError, KeyError, ValueError):
        return None
    words = {part: str(row[part]) for part in ("caption", "label", "domain") if row[part]}
    return {"id": item, "sha": str(row["sha256"]), **words}


def _whole(text: str, n: int) -> int:
    row = int(text)
    if not 0 <= row < n:
        raise ValueError(text)
    return row


MAP_ROUTES = [
    Route("/block/{name}", block),
    Route("/vendor/{digest}/regl-scatterplot.js", library),
    Route("/map-item", map_item),
]
