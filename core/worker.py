"""``python -m core.worker ID --workspace FOLDER``: do one job and say how it ended."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
import traceback
import uuid
from pathlib import Path
from types import FrameType
from typing import Any

from core.errors import Cancelled, UserError
from core.jobs import handlers, process
from core.jobs.progress import Reporter
from core.workspace import Workspace, open_workspace
from core.workspace.catalogue import now


def main(argv: list[str] | None = None) -> int:
    """Run the job named on the command line; return the exit code of the process."""
    parser = argparse.ArgumentParser(prog="core.worker")
    parser.add_argument("job")
    parser.add_argument("--workspace", required=True, type=Path)
    parser.add_argument("--attempt", required=True, type=int)
    args = parser.parse_args(argv)
    workspace = open_workspace(args.workspace)
    ended = run(workspace, args.job, args.attempt)
    # Whoever ends starts the next: no scheduler has to be awake.
    workspace.jobs.poll()
    return ended


def run(workspace: Workspace, job: str, attempt: int) -> int:
    """Do one attempt at a job and write its end into the catalogue."""
    row = _take(workspace, job, attempt)
    if row is None:
        print(f"Job {job}, attempt {attempt}, is not ours to run.")
        return 3
    params = json.loads(row["params"])
    total, unit = handlers.counted(workspace, row["kind"], params)
    _set(workspace, job, attempt, rate_unit=unit)
    reporter = Reporter(workspace.catalogue, job, attempt, total)
    print(f"{now()} {row['kind']} {row['params']} attempt {attempt} pid {os.getpid()}")
    running = True

    def stop(signum: int, frame: FrameType | None) -> None:
        if running:
            raise Cancelled("The job was stopped.", "What was finished is kept.")

    signal.signal(signal.SIGTERM, stop)
    reporter.start()
    try:
        outcome = _attempt(workspace, row["kind"], params, reporter)
    finally:
        running = False
        reporter.stop()
    _finish(workspace, job, attempt, outcome)
    print(f"{now()} {outcome['state']} {outcome.get('error', '')}")
    return int(outcome["code"])


def _attempt(
    workspace: Workspace, kind: str, params: dict[str, Any], reporter: Reporter
) -> dict[str, Any]:
    try:
        made = handlers.load(kind)(workspace, progress=reporter, **params)
    except Cancelled as err:
        return {"state": "cancelled", "message": "Cancelled", "code": err.exit_code}
    except UserError as err:
        traceback.print_exc()
        return _failed(err.message, err.hint, code=err.exit_code)
    except MemoryError:
        traceback.print_exc()
        return _failed("The job ran out of memory.", "Use a smaller batch or fewer items.")
    # The boundary of the process: whatever else happens is our bug, and the person who
    # waits must learn of it.
    except Exception as err:
        bug = uuid.uuid4().hex[:8]
        print(f"bug {bug}")
        traceback.print_exc()
        failed = _failed(
            f"This is a bug in Theodolite ({type(err).__name__}, id {bug}).",
            "Please report it with the job's log.",
            code=1,
        )
        return {**failed, "bug_id": bug}
    key = made if isinstance(made, str) else str(getattr(made, "key", ""))
    return {"state": "done", "message": "Done", "progress": 1.0, "result_key": key, "code": 0}


def _failed(message: str, hint: str, code: int = 2) -> dict[str, Any]:
    return {
        "state": "failed",
        "message": "Failed",
        "error": message,
        "error_hint": hint,
        "code": code,
    }


def _take(workspace: Workspace, job: str, attempt: int) -> Any:
    pid = os.getpid()
    with workspace.catalogue.write() as db:
        return db.execute(
            "UPDATE jobs SET pid = ?, pid_started = ?, host = ?, heartbeat = ? "
            "WHERE id = ? AND attempt = ? AND state IN ('running', 'lost') "
            "RETURNING kind, params",
            (pid, process.started_at(pid), process.HOST, time.time(), job, attempt),
        ).fetchone()


def _finish(workspace: Workspace, job: str, attempt: int, outcome: dict[str, Any]) -> None:
    values = {name: value for name, value in outcome.items() if name != "code"}
    changed = _set(workspace, job, attempt, **values, finished=now(), rate=None, eta_s=None)
    if changed:
        with workspace.catalogue.write() as db:
            db.execute(
                "INSERT INTO job_events VALUES (?, ?, ?, ?)",
                (job, now(), outcome["state"], outcome.get("error", "")),
            )


def _set(workspace: Workspace, job: str, attempt: int, **values: Any) -> int:
    # Column names come from this file only.
    columns = ", ".join(f"{name} = ?" for name in values)
    with workspace.catalogue.write() as db:
        return db.execute(
            f"UPDATE jobs SET {columns} WHERE id = ? AND attempt = ? "  # noqa: S608
            "AND state IN ('running', 'lost')",
            (*values.values(), job, attempt),
        ).rowcount


if __name__ == "__main__":
    sys.exit(main())
