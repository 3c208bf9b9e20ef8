"""A UMAP process that stays warm: compiling takes a minute, so one process keeps the code.

The first map of a workspace starts it (:func:`start`); later maps of any process find it by
a file in the workspace. Rows travel as raw bytes over a local, authenticated connection,
never as pickles. It ends by itself when idle or when the workspace is gone.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

import numpy as np

from core.errors import Cancelled, UserError

Progress = Callable[[float, str], None]

IDLE_S = 900.0
_START_S = 60.0
_GONE = (OSError, EOFError, AuthenticationError, ValueError, KeyError)


def _card(root: Path) -> Path:
    return root / "cache" / "warm.json"


def start(root: Path) -> bool:
    """Make sure a warm process runs for this workspace; say whether one answers.

    Parameters
    ----------
    root : Path
        Root of the workspace.
    """
    if _connect(root) is not None:
        return True
    card = _card(root)
    card.parent.mkdir(parents=True, exist_ok=True)
    card.unlink(missing_ok=True)
    source = str(Path(__file__).resolve().parents[2])
    known = os.environ.get("PYTHONPATH", "")
    env = dict(os.environ, PYTHONPATH=f"{source}{os.pathsep}{known}" if known else source)
    env.setdefault("NUMBA_CACHE_DIR", str(root / "cache" / "numba"))
    with (card.parent / "warm.log").open("wb") as log:
        subprocess.Popen(
            [sys.executable, "-m", "core.compare.warm", str(root)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=env,
            start_new_session=True,
        )
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if _connect(root) is not None:
            return True
        time.sleep(0.05)
    return False


def stop(root: Path) -> None:
    """End the warm process of this workspace, if there is one."""
    with suppress(*_GONE):
        pid = int(json.loads(_card(root).read_text())["pid"])
        if _connect(root) is not None:
            os.kill(pid, 15)
        _card(root).unlink(missing_ok=True)


def place(
    root: Path, rows: np.ndarray, settings: dict[str, Any], progress: Progress | None = None
) -> np.ndarray | None:
    """Return UMAP coordinates from the warm process, or None when none answers.

    Parameters
    ----------
    root : Path
        Root of the workspace.
    rows : ndarray of float32, shape (n, d)
    settings : dict
        Keyword arguments of ``umap.UMAP``, plain JSON.
    progress : callable, optional
        Called about twice a second while waiting. When it raises ``Cancelled`` the process
        is ended, because compiled code does not stop half way.
    """
    connection = _connect(root)
    if connection is None:
        return None
    rows = np.ascontiguousarray(rows, dtype=np.float32)
    begun = time.monotonic()
    try:
        connection.send_bytes(json.dumps({"shape": rows.shape, "settings": settings}).encode())
        connection.send_bytes(rows.tobytes())
        while not connection.poll(0.5):
            if progress is not None:
                waited = time.monotonic() - begun
                # Without counts from inside, a fraction that nears its end and never passes it.
                progress(0.3 + 0.6 * waited / (waited + 20.0), f"Placing {len(rows):,} points")
        answer = json.loads(connection.recv_bytes())
        if "error" in answer:
            return None
        return np.frombuffer(connection.recv_bytes()).reshape(answer["shape"])
    except Cancelled:
        stop(root)
        raise
    except _GONE:
        return None
    finally:
        connection.close()


def _connect(root: Path) -> Connection | None:
    try:
        card = json.loads(_card(root).read_text())
        return Client(card["address"], authkey=bytes.fromhex(card["key"]))
    except _GONE:
        return None


class _Server:
    """The process itself: one map at a time."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.key = secrets.token_bytes(32)
        self.used = time.monotonic()
        self.busy = threading.Lock()

    def serve(self, idle: float = IDLE_S) -> None:
        """Answer until idle for too long or the workspace is gone."""
        with Listener(authkey=self.key) as listener:
            self._publish(str(listener.address))
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
            while self.root.is_dir() and (self.busy.locked() or self._idle() < idle):
                time.sleep(1.0)
        self._withdraw()

    def _idle(self) -> float:
        return time.monotonic() - self.used

    def _publish(self, address: str) -> None:
        card = {"address": address, "key": self.key.hex(), "pid": os.getpid()}
        temp = _card(self.root).with_suffix(f".{os.getpid()}")
        handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as out:
            json.dump(card, out)
        os.replace(temp, _card(self.root))

    def _withdraw(self) -> None:
        with suppress(*_GONE):
            if json.loads(_card(self.root).read_text())["pid"] == os.getpid():
                _card(self.root).unlink()

    def _accept(self, listener: Listener) -> None:
        while True:
            try:
                connection = listener.accept()
            except _GONE:
                continue
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: Connection) -> None:
        with connection, suppress(*_GONE):
            ask = json.loads(connection.recv_bytes())
            rows = np.frombuffer(connection.recv_bytes(), dtype=np.float32).reshape(ask["shape"])
            with self.busy:
                reply = _fit(rows, ask["settings"])
                self.used = time.monotonic()
            if isinstance(reply, str):
                connection.send_bytes(json.dumps({"error": reply}).encode())
            else:
                connection.send_bytes(json.dumps({"shape": reply.shape}).encode())
                connection.send_bytes(reply.tobytes())


def _fit(rows: np.ndarray, settings: dict[str, Any]) -> np.ndarray | str:
    from core.compare.maps import fit_umap

    try:
        return fit_umap(rows, settings)
    except (UserError, ValueError, TypeError, MemoryError) as error:
        return str(error)


if __name__ == "__main__":
    _Server(Path(sys.argv[1])).serve()
