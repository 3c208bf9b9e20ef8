"""Handlers that try the job runner itself, in tests and when a host is in doubt."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.types import Features
    from core.workspace import Workspace


def count(
    workspace: Workspace,
    *,
    n: int = 10,
    pause: float = 0.01,
    note: str = "",
    progress: Callable[[float, str], None] | None = None,
) -> None:
    """Count to ``n``, reporting each step; leave the count in the notes under ``note``."""
    for i in range(n):
        time.sleep(pause)
        if note:
            workspace.notes.put("selftest", note, i + 1)
        if progress:
            progress((i + 1) / n, f"{i + 1} of {n}")


def refuse(workspace: Workspace, *, progress: Any = None) -> None:
    """Fail as on bad input."""
    raise BadInput("The number is too large.", "Give a smaller one.")


def crash(workspace: Workspace, *, progress: Any = None) -> None:
    """Fail as on a bug."""
    raise ZeroDivisionError("a bug for the test")


def stubborn(workspace: Workspace, *, seconds: float = 30.0, progress: Any = None) -> None:
    """Ignore both the flag and SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    workspace.notes.put("selftest", "stubborn", True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.05)


def write_features(
    workspace: Workspace,
    *,
    n: int = 64,
    shard_size: int = 4,
    pause: float = 0.02,
    progress: Callable[[float, str], None] | None = None,
) -> Features:
    """Write made-up features shard by shard, going on where an earlier attempt stopped."""
    writer = workspace.features.writer(
        {"selftest": [n, shard_size]},
        dataset="selftest",
        model="selftest",
        default_layer="last",
        n=n,
        shard_size=shard_size,
    )
    done = writer.done_shards()
    for index in range(writer.n_shards):
        if index not in done:
            time.sleep(pause)
            ids = np.arange(index * shard_size, min(n, (index + 1) * shard_size))
            rows = np.random.default_rng(index).normal(size=(len(ids), 8))
            writer.write_shard(index, ids, {"first": rows[:, :3], "last": rows})
        if progress:
            progress((index + 1) / writer.n_shards, f"shard {index + 1} of {writer.n_shards}")
    return writer.finish()
