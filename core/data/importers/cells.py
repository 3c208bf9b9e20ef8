"""From a cell of a table to the bytes of a picture, or to a text that can be stored.

A picture is a path beside the table, bytes, ``{"bytes": ..., "path": ...}`` as the ``datasets``
library writes it, base64, a data URI, a picture in memory, or (only where the administrator
allows it) a web address.
"""

from __future__ import annotations

import base64
import binascii
import io
import math
import re
from typing import Any

from core.data.importers.limits import ImportLimits, size
from core.data.importers.lookup import Lookup
from core.data.importers.trees import Tree, read
from core.errors import BadInput

_DATA_URI = re.compile(r"data:[\w.+-]*/?[\w.+-]*((?:;[\w=.+-]+)*),", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-\s]+={0,2}\s*")
_SURROGATE = re.compile("[\ud800-\udfff]")


def is_missing(value: Any) -> bool:
    """Say whether a cell holds nothing: null, NaN, or a text of blanks."""
    if value is None:
        return True
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, float):
        return math.isnan(value)
    return type(value).__name__ in {"NAType", "NaTType"}


def text_of(value: Any, names: list[str] | None = None) -> tuple[str, str]:
    r"""Return a cell as text and what was repaired in it ("" when nothing was).

    Parameters
    ----------
    value
        Text, number, true/false, a list of texts (the first is taken), or nothing (which
        becomes "", never the word "null").
    names : list of str, optional
        Names of the classes, when the cell is the number of one.

    Raises
    ------
    BadInput
        A nested value; a class number without a name. The reason is the message.

    Examples
    --------
    >>> text_of(3.0), text_of(None), text_of("a\x00b")
    (('3', ''), ('', ''), ('a�b', 'characters that cannot be stored were replaced by �'))
    """
    if isinstance(value, list | tuple):
        texts = [v for v in value if isinstance(v, str) and v.strip()]
        if not texts and any(not is_missing(v) for v in value):
            raise BadInput("a list that holds no text")
        more = f"the first of {len(texts)} texts was taken" if len(texts) > 1 else ""
        text, repair = text_of(texts[0] if texts else None)
        return text, repair or more
    if is_missing(value):
        return "", ""
    if names is not None and isinstance(value, int | float) and not isinstance(value, bool):
        if value == -1:
            return "", ""
        if not (float(value).is_integer() and 0 <= value < len(names)):
            raise BadInput(f"class number {value} of {len(names)} classes")
        return text_of(names[int(value)])
    if isinstance(value, bool):
        return ("true" if value else "false"), ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value)), ""
    if isinstance(value, bytes | bytearray):
        return text_of(bytes(value).decode("utf-8", "surrogateescape"))
    if isinstance(value, dict):
        raise BadInput("a nested value, a text was expected")
    return cleaned(str(value))


def cleaned(text: str) -> tuple[str, str]:
    """Return a text that UTF-8 can hold, and what was repaired."""
    if "\0" not in text and not _SURROGATE.search(text):
        return text, ""
    plain = _SURROGATE.sub("\ufffd", text.replace("\0", "\ufffd"))
    return plain, "characters that cannot be stored were replaced by �"


def picture_bytes(
    value: Any, limits: ImportLimits, tree: Tree | None, lookup: Lookup | None, base: str = ""
) -> tuple[bytes, str]:
    """Return the bytes of the picture a cell means, and the file's name if it has one.

    Raises
    ------
    BadInput
        Nothing, no picture by its form, too large, not there; the reason is the message.
    """
    if is_missing(value):
        raise BadInput("no picture is named")
    if isinstance(value, dict):
        data, path = value.get("bytes"), value.get("path")
        if isinstance(data, bytes | bytearray) and data:
            return _sized(bytes(data), limits), _name(path)
        if isinstance(data, str) and data:
            return _decoded(data, limits), _name(path)
        if isinstance(path, str) and path.strip():
            return picture_bytes(path, limits, tree, lookup, base)
        raise BadInput("neither bytes nor a path are given")
    if isinstance(value, bytes | bytearray | memoryview):
        return _sized(bytes(value), limits), ""
    if hasattr(value, "save") and hasattr(value, "mode"):
        out = io.BytesIO()
        value.save(out, "PNG" if value.mode not in {"CMYK", "YCbCr", "F"} else "TIFF")
        return _sized(out.getvalue(), limits), ""
    if not isinstance(value, str):
        raise BadInput(f"a {type(value).__name__} is no picture")
    return _from_text(value.strip(), limits, tree, lookup, base)


def form_of(value: Any) -> str:
    """Say in one word what kind of picture a cell may hold, "" when none."""
    if isinstance(value, dict):
        return "bytes" if {"bytes", "path"} & set(value) else ""
    if isinstance(value, bytes | bytearray | memoryview):
        return "bytes" if _is_picture(bytes(value[:16])) else ""
    if hasattr(value, "save") and hasattr(value, "mode"):
        return "picture"
    if not isinstance(value, str):
        return ""
    text = value.strip()
    if text[:5].lower() == "data:":
        return "data URI"
    if re.match(r"https?://", text, re.IGNORECASE):
        return "web address"
    if _path_like(text):
        return "path"
    if len(text) > 60 and _BASE64.fullmatch(text[:2000]):
        try:
            return "base64" if _is_picture(base64.b64decode(text[:32] + "=" * 0)) else ""
        except (binascii.Error, ValueError):
            return ""
    return ""


def _path_like(text: str) -> bool:
    return len(text) < 1024 and bool(
        re.search(r"\.(png|jpe?g|jfif|webp|bmp|gif|tiff?|avif|p[pgn]m)$", text, re.IGNORECASE)
    )


def _is_picture(head: bytes) -> bool:
    marks = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"II*\0", b"MM\0*", b"P5", b"P6")
    return head.startswith(marks) or head[8:12] == b"WEBP" or head[4:8] == b"ftyp"


def _from_text(
    text: str, limits: ImportLimits, tree: Tree | None, lookup: Lookup | None, base: str
) -> tuple[bytes, str]:
    if text[:5].lower() == "data:":
        return _decoded(text, limits), ""
    if re.match(r"[a-z][a-z0-9+.-]*://", text, re.IGNORECASE):
        if not limits.urls:
            raise BadInput("web addresses are not fetched on this server")
        from core.data.importers.addresses import fetch

        return fetch(text, limits), text.rsplit("/", 1)[-1][:200]
    if len(text) > 1024 or (not _path_like(text) and len(text) > 60 and _BASE64.fullmatch(text)):
        return _decoded(text, limits), ""
    if tree is None or lookup is None:
        raise BadInput(f"there are no files beside the table ({text[:80]!r})")
    name = lookup.find(text, base)
    return read(tree, name, limits.file_bytes), name


def _decoded(text: str, limits: ImportLimits) -> bytes:
    form = _DATA_URI.match(text)
    body = text[form.end() :] if form else text
    if form and "base64" not in form.group(1).lower():
        raise BadInput("a data URI that is not base64")
    if len(body) > limits.file_bytes * 4 // 3 + 8:
        raise BadInput(f"more than {size(limits.file_bytes)}")
    plain = re.sub(r"\s+", "", body).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError) as err:
        raise BadInput("neither a file nor base64") from err


def _sized(data: bytes, limits: ImportLimits) -> bytes:
    if not data:
        raise BadInput("the file is empty")
    if len(data) > limits.file_bytes:
        raise BadInput(f"{size(len(data))}, at most {size(limits.file_bytes)} are read")
    return data


def _name(path: Any) -> str:
    return path if isinstance(path, str) else ""
