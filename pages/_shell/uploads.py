"""``POST /upload/<inbox>``: files go from the browser straight to the disk, within the limits.

Streamlit's own uploader keeps every file in memory until the session ends. This one holds at
most one block. The inbox's name is 128 random bits that only the page which made it knows.
"""

from __future__ import annotations

import asyncio

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from core.data.importers.inbox import Inbox, Receiver
from core.data.importers.limits import ImportLimits
from core.errors import BadInput, NotFound, UserError
from core.workspace import default_root
from pages._shell import rights

_BLOCK = 1 << 20


async def upload(request: Request) -> Response:
    """Take a stream of files (see :class:`Receiver`), or with ``?name=`` one file as it is.

    Answers 200 with files, bytes and the names refused; 401 without the right to see the
    pages; 404 for an unknown inbox; 413 past the limits or for a broken stream; 507 when the
    disk is full.
    """
    if not rights.allowed(request):
        return _said("Please sign in.", "Open the page again.", 401)
    limits = ImportLimits.from_environment()
    try:
        inbox = Inbox(default_root(), request.path_params["inbox"], limits)
        receiver = Receiver(inbox, limits)
        name = request.query_params.get("name")
        if name is not None:
            receiver.begin(name, _length(request))
        try:
            await _receive(request, receiver)
        finally:
            await asyncio.to_thread(receiver.close)
    except UserError as err:
        return _said(err.message, err.hint, _status(err))
    except ClientDisconnect:
        return _said("The upload was stopped.", "What has arrived whole is kept.", 400)
    refused = [line.as_dict() for line in receiver.refused]
    return JSONResponse({"files": receiver.files, "bytes": receiver.bytes, "refused": refused})


async def _receive(request: Request, receiver: Receiver) -> None:
    waiting = bytearray()
    async for block in request.stream():
        waiting += block
        if len(waiting) >= _BLOCK:
            # In a thread: the pages go on while the disk works.
            await asyncio.to_thread(receiver.feed, bytes(waiting))
            waiting.clear()
    await asyncio.to_thread(receiver.feed, bytes(waiting))


def _length(request: Request) -> int:
    text = request.headers.get("content-length", "")
    if not text.isdecimal():
        raise BadInput("The upload does not say how long it is.", "Send a Content-Length.")
    return int(text)


def _status(err: UserError) -> int:
    if isinstance(err, NotFound):
        return 404
    return 413 if isinstance(err, BadInput) else 507


def _said(message: str, hint: str, status: int) -> Response:
    return JSONResponse({"error": {"message": message, "hint": hint}}, status_code=status)
