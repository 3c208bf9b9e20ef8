"""The queue: jobs are rows; whoever looks after it starts what can start and finds the lost.

At most ``max_running`` jobs of one device run at once. The rows in state "running" are the
lock: claiming one is a single write transaction, so two processes never claim the same.
"""

from __future__ import annotations

import json
import sqlite3
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.digest import canonical, recipe_key
from core.errors import BadInput, NotFound
from core.jobs import handlers, process
from core.jobs.job import ACTIVE, RESUMABLE, Job, JobEvent, from_row
from core.workspace.catalogue import Catalogue, now
from core.workspace.files import storage_error

HEARTBEAT_LIMIT_S = 15.0
TERM_AFTER_S = 2.0
KILL_AFTER_S = 4.0
_POLL_EVERY_S = 1.0


# The method `list` below hides the type of that name inside the class.
Events = list[JobEvent]


class JobQueue:
    """Submit, watch, cancel and resume jobs of one workspace.

    Parameters
    ----------
    root : Path
        Root of the workspace.
    catalogue : Catalogue
        Its catalogue.
    max_running : int
        Jobs that run at once on one device.
    """

    def __init__(self, root: Path, catalogue: Catalogue, max_running: int = 1) -> None:
        self.root = root
        self.folder = root / "jobs"
        self.max_running = max_running
        self._catalogue = catalogue
        self._polled = 0.0

    def submit(
        self,
        kind: str,
        params: Mapping[str, Any] | None = None,
        *,
        device: str | None = None,
        start: bool = True,
    ) -> str:
        """Queue a job, start it when its device is free, and return its id.

        The same kind and parameters queued or running already give that job's id: a page
        that runs twice does not do the work twice.

        Parameters
        ----------
        kind : str
            "extract", "analysis", "map", "demo", or "core.module:function".
        params : mapping, optional
            Keyword arguments of the handler, plain JSON types.
        device : str, optional
            The lane to run in; by default the kind's.
        start : bool
            Off: leave the starting to the next :meth:`poll`.

        Raises
        ------
        BadInput
            Unknown kind, or parameters that are not plain JSON.
        WorkspaceError
            The workspace cannot be written.
        """
        handlers.check(kind)
        params = dict(params or {})
        try:
            mark = recipe_key({"kind": kind, "params": params})
            text = json.dumps(canonical(params), allow_nan=False)
        except (TypeError, ValueError) as err:
            raise BadInput(f"params of the {kind} job are not plain JSON ({err}).") from err
        job = self._enqueue(kind, text, mark, device or handlers.lane(kind, params))
        if start:
            self.poll()
        return job

    def get(self, job: str) -> Job:
        """Return a job as it is now.

        Raises
        ------
        NotFound
            No job of that id.
        """
        self._poll_if_due()
        return from_row(self._row(job), self.folder)

    def list(self, *, active: bool | None = None) -> list[Job]:
        """Return the jobs, newest first; only (in)active ones when asked."""
        self._poll_if_due()
        with self._catalogue.read() as db:
            rows = db.execute("SELECT * FROM jobs ORDER BY created DESC, rowid DESC").fetchall()
        jobs = [from_row(row, self.folder) for row in rows]
        return jobs if active is None else [job for job in jobs if job.active == active]

    def history(self, job: str) -> Events:
        """Return what happened to a job, oldest first.

        Raises
        ------
        NotFound
            No job of that id.
        """
        self._row(job)
        with self._catalogue.read() as db:
            rows = db.execute(
                "SELECT at, state, note FROM job_events WHERE job = ? ORDER BY at, rowid", (job,)
            ).fetchall()
        return [JobEvent(row["at"], row["state"], row["note"]) for row in rows]

    def wait(self, job: str, timeout: float | None = None) -> Job:
        """Look after the queue until a job has ended, or ``timeout`` seconds are over."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            self.poll()
            found = from_row(self._row(job), self.folder)
            if not found.active or (deadline is not None and time.monotonic() > deadline):
                return found
            time.sleep(0.05)

    def cancel(self, job: str, wait: float | None = None) -> Job:
        """Ask a job to stop; what it finished is kept.

        A running job sees the flag at its next progress report; after 2 s its process group
        gets SIGTERM, after 4 s SIGKILL. With ``wait``, stay up to that many seconds to see
        to it; else the next :meth:`poll` does. A job that has ended is left as it is.

        Raises
        ------
        NotFound
            No job of that id.
        """
        with self._catalogue.write() as db:
            db.execute(
                "UPDATE jobs SET cancel_at = ?, message = 'Stopping' "
                "WHERE id = ? AND state = 'running' AND cancel_at IS NULL",
                (time.time(), job),
            )
            stopped = db.execute(
                "UPDATE jobs SET state = 'cancelled', finished = ?, message = 'Cancelled' "
                "WHERE id = ? AND state = 'queued'",
                (now(), job),
            ).rowcount
            if stopped:
                _note(db, job, "cancelled", "before it started")
        return self.wait(job, wait) if wait else self.get(job)

    def resume(self, job: str, *, start: bool = True) -> str:
        """Queue a failed, cancelled or lost job again; finished shards are not done again.

        Raises
        ------
        NotFound
            No job of that id.
        BadInput
            The job is queued, running or done.
        """
        row = self._row(job)
        if row["state"] not in RESUMABLE:
            raise BadInput(
                f"Job {job} is {row['state']}; only a failed, cancelled or lost job is resumed.",
                "Submit a new one instead.",
            )
        if _is_here(row) and process.alive(row["pid"], row["pid_started"]):
            # Lost by its heartbeat and yet alive: two workers must not write one set.
            process.stop(row["pid"], force=True)
        with self._catalogue.write() as db:
            db.execute(
                "UPDATE jobs SET state = 'queued', cancel_at = NULL, finished = NULL, pid = NULL, "
                "error = '', error_hint = '', bug_id = '', rate = NULL, eta_s = NULL, "
                "message = 'Waiting' WHERE id = ? AND state IN ('failed', 'cancelled', 'lost')",
                (job,),
            )
            _note(db, job, "queued", "resumed")
        if start:
            self.poll()
        return job

    def retry(self, job: str) -> str:
        """Submit a new job with the kind and parameters of an old one; return its id."""
        row = self._row(job)
        return self.submit(row["kind"], json.loads(row["params"]), device=row["device"])

    def remove(self, job: str) -> None:
        """Forget a job that has ended, with its log.

        Raises
        ------
        NotFound
            No job of that id.
        BadInput
            The job is queued or running.
        """
        if self._row(job)["state"] in ACTIVE:
            raise BadInput(f"Job {job} has not ended.", "Cancel it first.")
        with self._catalogue.write() as db:
            db.execute(
                "DELETE FROM jobs WHERE id = ? AND state NOT IN ('queued','running')", (job,)
            )
        (self.folder / f"{job}.log").unlink(missing_ok=True)

    def poll(self) -> None:
        """Look after the queue: escalate cancels, find lost jobs, start what can start."""
        self._polled = time.monotonic()
        process.reap()
        with self._catalogue.read() as db:
            rows = db.execute("SELECT * FROM jobs WHERE state IN ('queued', 'running')").fetchall()
        for row in rows:
            if row["state"] == "running":
                self._look_after(row)
        if any(row["state"] == "queued" for row in rows):
            while self._start_next():
                pass

    def _enqueue(self, kind: str, text: str, mark: str, lane: str) -> str:
        job = uuid.uuid4().hex[:12]
        with self._catalogue.write() as db:
            same = db.execute(
                "SELECT id FROM jobs WHERE kind = ? AND params_key = ? "
                "AND state IN ('queued', 'running') AND cancel_at IS NULL",
                (kind, mark),
            ).fetchone()
            if same is not None:
                return str(same["id"])
            db.execute(
                "INSERT INTO jobs (id, kind, params, params_key, device, state, created, "
                "message) VALUES (?, ?, ?, ?, ?, 'queued', ?, 'Waiting')",
                (job, kind, text, mark, lane, now()),
            )
            _note(db, job, "queued", "")
        return job

    def _poll_if_due(self) -> None:
        if time.monotonic() - self._polled > _POLL_EVERY_S:
            self.poll()

    def _row(self, job: str) -> sqlite3.Row:
        with self._catalogue.read() as db:
            row: sqlite3.Row | None = db.execute(
                "SELECT * FROM jobs WHERE id = ?", (job,)
            ).fetchone()
        if row is None:
            raise NotFound(f"There is no job {job!r}.", "List them with `theodolite jobs`.")
        return row

    def _look_after(self, row: sqlite3.Row) -> None:
        here = _is_here(row)
        if here and not process.alive(row["pid"], row["pid_started"]):
            self._lose(row, "its process is gone: killed, out of memory, or the host restarted")
            return
        if here and row["cancel_at"] is not None:
            waited = time.time() - row["cancel_at"]
            if waited > KILL_AFTER_S:
                process.stop(row["pid"], force=True)
                self._close(row, "cancelled", "", "", "it did not stop when asked and was killed")
                return
            if waited > TERM_AFTER_S:
                process.stop(row["pid"], force=False)
        if time.time() - row["heartbeat"] > HEARTBEAT_LIMIT_S:
            self._lose(row, f"it gave no sign of life for {HEARTBEAT_LIMIT_S:.0f} seconds")

    def _lose(self, row: sqlite3.Row, why: str) -> None:
        if row["cancel_at"] is not None:
            self._close(row, "cancelled", "", "", why)
            return
        hint = "Resume it: what was finished is kept."
        self._close(row, "lost", f"The job was lost: {why}.", hint, why)

    def _close(self, row: sqlite3.Row, state: str, error: str, hint: str, note: str) -> None:
        # The attempt and the heartbeat tell that nothing happened since the row was read.
        with self._catalogue.write() as db:
            changed = db.execute(
                "UPDATE jobs SET state = ?, finished = ?, error = ?, error_hint = ?, "
                "message = ?, rate = NULL, eta_s = NULL "
                "WHERE id = ? AND attempt = ? AND state = 'running' AND heartbeat = ?",
                (
                    state,
                    now(),
                    error,
                    hint,
                    state.capitalize(),
                    row["id"],
                    row["attempt"],
                    row["heartbeat"],
                ),
            ).rowcount
            if changed:
                _note(db, row["id"], state, note)

    def _start_next(self) -> bool:
        claimed = self._claim()
        if claimed is None:
            return False
        job, attempt = claimed
        log = self.folder / f"{job}.log"
        try:
            pid = process.start(self.root, job, attempt, log)
        except OSError as err:
            problem = storage_error(err, log, "Starting a worker with log")
            with self._catalogue.write() as db:
                db.execute(
                    "UPDATE jobs SET state = 'failed', finished = ?, error = ?, error_hint = ?, "
                    "message = 'Failed' WHERE id = ? AND attempt = ?",
                    (now(), problem.message, problem.hint, job, attempt),
                )
                _note(db, job, "failed", problem.message)
            return True
        with self._catalogue.write() as db:
            db.execute(
                "UPDATE jobs SET pid = ?, pid_started = ? WHERE id = ? AND attempt = ?",
                (pid, process.started_at(pid), job, attempt),
            )
        return True

    def _claim(self) -> tuple[str, int] | None:
        with self._catalogue.write() as db:
            row = db.execute(
                "SELECT id, attempt FROM jobs q WHERE state = 'queued' AND "
                "(SELECT count(*) FROM jobs r WHERE r.state = 'running' AND r.device = q.device) "
                "< ? ORDER BY created, rowid LIMIT 1",
                (self.max_running,),
            ).fetchone()
            if row is None:
                return None
            attempt = row["attempt"] + 1
            db.execute(
                "UPDATE jobs SET state = 'running', attempt = ?, started = ?, heartbeat = ?, "
                "host = ?, pid = NULL, pid_started = '', message = 'Starting' WHERE id = ?",
                (attempt, now(), time.time(), process.HOST, row["id"]),
            )
            _note(db, row["id"], "running", f"attempt {attempt}")
        return str(row["id"]), int(attempt)


def _is_here(row: sqlite3.Row) -> bool:
    return row["pid"] is not None and row["host"] == process.HOST


def _note(db: sqlite3.Connection, job: str, state: str, note: str) -> None:
    db.execute("INSERT INTO job_events VALUES (?, ?, ?, ?)", (job, now(), state, note))
