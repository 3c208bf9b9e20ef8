"""Processes of jobs: started apart from ours, known again by pid and start time, stopped."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import core

HOST = platform.node()

# Kept so that finished children are reaped, and none is taken for alive as a zombie.
_children: dict[int, subprocess.Popen[bytes]] = {}


def start(root: Path, job: str, attempt: int, log: Path) -> int:
    """Start the worker of a job in a session of its own and return its pid.

    Raises
    ------
    OSError
        The process or its log cannot be made.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    home = Path(core.__file__).resolve().parent.parent
    env = dict(os.environ, PYTHONUNBUFFERED="1", THEODOLITE_HOME=str(root))
    # Threads that spin while they wait starve the app on a machine with few cores.
    env.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if home.name in {"site-packages", "dist-packages"}:
        # Installed: `core` is found anyway, and that folder first on the path would shadow
        # modules of the standard library.
        env["PYTHONSAFEPATH"] = "1"
        home = root
    command = [sys.executable, "-m", "core.worker", job, "--attempt", str(attempt)]
    with log.open("ab") as out:
        child = subprocess.Popen(
            [*command, "--workspace", str(root)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=home,
            env=env,
            start_new_session=True,
        )
    _children[child.pid] = child
    return child.pid


def reap() -> None:
    """Collect children that have ended."""
    for pid, child in list(_children.items()):
        if child.poll() is not None:
            _children.pop(pid, None)


def started_at(pid: int) -> str:
    """Return a mark of when a process started, "" where the system does not tell."""
    fields = _stat(pid)
    return fields[19] if len(fields) > 19 else ""


def alive(pid: int, mark: str) -> bool:
    """Say whether the process ``pid`` that started at ``mark`` still runs on this host."""
    reap()
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # Another user's: it lives, and the mark below tells whether it is the one we mean.
        pass
    fields = _stat(pid)
    if not fields:
        return True
    # Pids are used again: the same number with another start time is another process.
    return fields[0] not in {"Z", "X"} and (not mark or fields[19] == mark)


def stop(pid: int, *, force: bool) -> None:
    """Send SIGTERM, or with ``force`` SIGKILL, to the whole process group of a worker."""
    # 0 and 1 mean "everyone" to the system, and our own group is never a worker's.
    if pid <= 1 or pid == os.getpgrp():
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL if force else signal.SIGTERM)
    reap()


def _stat(pid: int) -> list[str]:
    """Return the fields of ``/proc/PID/stat`` from the state on; empty without /proc."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("ascii", errors="replace")
    except OSError:
        return []
    # The name in parentheses may hold blanks and parentheses itself.
    return text.rpartition(")")[2].split()
