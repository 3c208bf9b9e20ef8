"""Who may use the server's own routes: the same people who may see its pages.

Streamlit's sign-in guards pages only. Routes read the cookie that its sign-in has signed.
"""

from __future__ import annotations

import json

from starlette.requests import Request
from streamlit.auth_util import get_cookie_with_chunks
from streamlit.web.server.server_util import AUTH_COOKIE_NAME, get_cookie_secret
from streamlit.web.server.starlette.starlette_app_utils import decode_signed_value

from pages._shell import gate


def allowed(request: Request) -> bool:
    """Say whether whoever asks may see what the pages show."""
    return not gate.configured() or _signed_in(request)


def _signed_in(request: Request) -> bool:
    secret = get_cookie_secret()

    def one(name: str) -> bytes | None:
        raw = request.cookies.get(name)
        # Cookies travel as Latin-1.
        return decode_signed_value(secret, name, raw.encode("latin-1", "replace")) if raw else None

    found = get_cookie_with_chunks(one, AUTH_COOKIE_NAME)
    if found is None:
        return False
    try:
        body = json.loads(found)
    except ValueError:
        return False
    return isinstance(body, dict) and body.get("is_logged_in") is True
