"""Binary blocks that a map asks the server for: points, colours, which of them are lit.

A block is named by its digest, kept in memory and answered by ``GET /block/<digest>``: it
travels once, beside Streamlit's messages, and the browser keeps it. What was not asked for
in a while is dropped; the next run of the page puts it back.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from hashlib import sha256

import streamlit as st

# Twenty maps of a million points with their colours; one block is always kept.
MOST_BYTES = 128_000_000


class Blocks:
    """A store of blocks by digest, the least recently used dropped first."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, block: bytes) -> str:
        """Keep a block and return its digest."""
        name = sha256(block).hexdigest()
        with self._lock:
            self._kept[name] = block
            self._kept.move_to_end(name)
            while len(self._kept) > 1 and sum(map(len, self._kept.values())) > self._most:
                self._kept.popitem(last=False)
        return name

    def get(self, name: str) -> bytes | None:
        """Return a block, or None when it is not kept."""
        with self._lock:
            found = self._kept.get(name)
            if found is not None:
                self._kept.move_to_end(name)
            return found


BLOCKS = Blocks()


def address(*parts: str) -> str:
    """Return an address of one of the server's own routes, below the app's base path."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return "/" + "/".join([*([base] if base else []), *parts])


def block_url(block: bytes) -> str:
    """Keep a block and return its address."""
    return address("block", BLOCKS.put(block))
