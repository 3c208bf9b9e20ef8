"""What a running job tells: how far, how fast, that it lives; and hears: stop."""

from __future__ import annotations

import threading
import time

from core.errors import Cancelled, WorkspaceError
from core.workspace.catalogue import Catalogue

BEAT_EVERY_S = 1.0
# A row a batch would make the disk the slowest part of a fast encoder.
_WRITE_EVERY_S = 0.2
# Weight of the newest rate: steady enough to read, quick enough to follow a change.
_FRESH = 0.3


class Reporter:
    """The progress callback of one attempt at a job.

    Parameters
    ----------
    catalogue : Catalogue
        Where the job's row is.
    job : str
        Its id.
    attempt : int
        Only the row's present attempt is written: a worker that was given up and resumed
        elsewhere must not report any more.
    total : float
        Items that progress 1 stands for; 0 when nothing is counted.
    """

    def __init__(self, catalogue: Catalogue, job: str, attempt: int, total: float = 0.0) -> None:
        self.job = job
        self.attempt = attempt
        self.total = total
        self._catalogue = catalogue
        self._written = 0.0
        self._last: tuple[float, float] | None = None
        self._speed: float | None = None
        self._stop = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __call__(self, fraction: float, message: str = "") -> None:
        """Report; raise :class:`Cancelled` when the job was asked to stop."""
        if self._stopped.is_set():
            raise Cancelled("The job was stopped.", "What was finished is kept.")
        moment = time.monotonic()
        if moment - self._written < _WRITE_EVERY_S and fraction < 1.0:
            return
        self._written = moment
        fraction = min(max(float(fraction), 0.0), 1.0)
        speed = self._measure(moment, fraction)
        rate = speed * self.total if speed and self.total else None
        eta = (1.0 - fraction) / speed if speed else None
        try:
            stopped = self._report(fraction, message, rate, eta)
        except WorkspaceError:
            # Hours of work do not fail because the catalogue was locked for a moment.
            return
        if stopped:
            self._stopped.set()
            raise Cancelled("The job was stopped.", "What was finished is kept.")

    def _report(self, fraction: float, message: str, rate: float | None, eta: float | None) -> bool:
        with self._catalogue.write() as db:
            row = db.execute(
                "UPDATE jobs SET progress = ?, message = CASE WHEN cancel_at IS NULL THEN ? "
                "ELSE message END, rate = ?, eta_s = ?, heartbeat = ? WHERE id = ? "
                "AND attempt = ? AND state IN ('running', 'lost') RETURNING cancel_at",
                (fraction, message, rate, eta, time.time(), self.job, self.attempt),
            ).fetchone()
        return row is None or row["cancel_at"] is not None

    def start(self) -> None:
        """Begin the heartbeat."""
        self._thread.start()

    def stop(self) -> None:
        """End the heartbeat."""
        self._stop.set()
        self._thread.join()

    def _measure(self, moment: float, fraction: float) -> float | None:
        # The first report only sets the base: a resumed job begins half-way and that leap
        # is no speed.
        if self._last is not None and fraction > self._last[1] and moment > self._last[0]:
            fresh = (fraction - self._last[1]) / (moment - self._last[0])
            old = fresh if self._speed is None else self._speed
            self._speed = old + _FRESH * (fresh - old)
            self._last = (moment, fraction)
        elif self._last is None or fraction < self._last[1]:
            self._last = (moment, fraction)
        return self._speed

    def _beat(self) -> None:
        while not self._stop.wait(BEAT_EVERY_S):
            try:
                self._beat_once()
            except WorkspaceError:
                # Locked or full for a moment; the next beat comes in a second.
                continue

    def _beat_once(self) -> None:
        with self._catalogue.write() as db:
            # A job taken for lost, a laptop that slept, comes back to life.
            row = db.execute(
                "UPDATE jobs SET heartbeat = ?, state = 'running', finished = CASE state WHEN "
                "'lost' THEN NULL ELSE finished END, error = '', error_hint = '' WHERE id = ? "
                "AND attempt = ? AND state IN ('running', 'lost') RETURNING cancel_at",
                (time.time(), self.job, self.attempt),
            ).fetchone()
        if row is None or row["cancel_at"] is not None:
            self._stopped.set()
