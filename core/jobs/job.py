"""What is known of one job."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ACTIVE = ("queued", "running")
RESUMABLE = ("failed", "cancelled", "lost")


@dataclass(frozen=True)
class Job:
    """One job, as the catalogue has it now.

    Attributes
    ----------
    id, kind : str
        Identifier, and the kind of handler that does the work.
    params : dict
        What the handler is called with.
    state : {"queued", "running", "done", "failed", "cancelled", "lost"}
        A lost job's process is gone without having said why; it can be resumed.
    progress : float
        0 to 1.
    message : str
        The step it is at, in words.
    rate : float or None
        Items a second (see ``rate_unit``), None while unknown.
    rate_unit : str
        What is counted: "rows" or "".
    eta_s : float or None
        Seconds still to go, as far as one can tell.
    created, started, finished : str or None
        ISO times (UTC).
    result_key : str
        Key of the result or of the features it made.
    error, error_hint : str
        What went wrong and what to do; empty unless failed or lost.
    bug_id : str
        Set when the failure is our bug: the same id stands in the log.
    log_path : Path
        What the process printed.
    device : str
        The lane it runs in: one job a lane at a time.
    attempt : int
        How often it was started.
    cancelling : bool
        Asked to stop, and still running.
    """

    id: str
    kind: str
    params: dict[str, Any]
    state: str
    progress: float
    message: str
    rate: float | None
    rate_unit: str
    eta_s: float | None
    created: str
    started: str | None
    finished: str | None
    result_key: str
    error: str
    error_hint: str
    bug_id: str
    log_path: Path
    device: str
    attempt: int
    cancelling: bool

    @property
    def active(self) -> bool:
        """Whether it waits or runs."""
        return self.state in ACTIVE

    @property
    def resumable(self) -> bool:
        """Whether ``resume`` takes it."""
        return self.state in RESUMABLE

    @property
    def seconds(self) -> float:
        """Seconds since it was last started, to its end or to now; 0 before the start."""
        if self.started is None:
            return 0.0
        end = datetime.fromisoformat(self.finished) if self.finished else datetime.now(UTC)
        return max(0.0, (end - datetime.fromisoformat(self.started)).total_seconds())


@dataclass(frozen=True)
class JobEvent:
    """One line of a job's history: when it entered which state, and a note."""

    at: str
    state: str
    note: str


def from_row(row: sqlite3.Row, folder: Path) -> Job:
    """Return the job of a catalogue row."""
    return Job(
        id=row["id"],
        kind=row["kind"],
        params=json.loads(row["params"]),
        state=row["state"],
        progress=row["progress"],
        message=row["message"],
        rate=row["rate"],
        rate_unit=row["rate_unit"],
        eta_s=row["eta_s"],
        created=row["created"],
        started=row["started"],
        finished=row["finished"],
        result_key=row["result_key"],
        error=row["error"],
        error_hint=row["error_hint"],
        bug_id=row["bug_id"],
        log_path=folder / f"{row['id']}.log",
        device=row["device"],
        attempt=row["attempt"],
        cancelling=row["state"] == "running" and row["cancel_at"] is not None,
    )
