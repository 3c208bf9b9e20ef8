"""The queue, with real worker processes."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from core.errors import BadInput, NotFound
from core.jobs import process
from core.jobs import queue as queue_module
from core.workspace import open_workspace

COUNT = "core.jobs.selftest:count"
FEATURES = "core.jobs.selftest:write_features"
LIMIT = 60.0


def until(what, limit=LIMIT):
    """Wait for a condition with a deadline; what the deadline guards is another process."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("It did not happen in time.")


def pid_of(space, job):
    with space.catalogue.read() as db:
        return db.execute("SELECT pid FROM jobs WHERE id = ?", (job,)).fetchone()["pid"]


def change(space, job, **values):
    with space.catalogue.write() as db:
        for name, value in values.items():
            db.execute(f"UPDATE jobs SET {name} = ? WHERE id = ?", (value, job))


def states(space, job):
    return [event.state for event in space.jobs.history(job)]


def test_a_job_runs_to_its_end(space):
    job = space.jobs.submit(COUNT, {"n": 5, "note": "five"})
    done = space.jobs.wait(job, LIMIT)
    assert (done.state, done.progress, done.message, done.error) == ("done", 1.0, "Done", "")
    assert (done.kind, done.params, done.attempt) == (COUNT, {"n": 5, "note": "five"}, 1)
    assert not done.active
    assert done.seconds > 0
    assert states(space, job) == ["queued", "running", "done"]
    assert space.notes.get("selftest", "five") == 5
    assert "attempt 1" in done.log_path.read_text()
    assert pid_of(space, job) != os.getpid()


def test_one_runs_the_others_wait_and_each_starts_the_next(space):
    jobs = [space.jobs.submit(COUNT, {"n": 3, "note": f"{i}"}) for i in range(3)]
    assert [space.jobs.get(job).state for job in jobs].count("running") <= 1
    # Only the catalogue is read from here on: the workers start one another.
    read = open_workspace(space.root)
    until(lambda: len(read.notes.all("selftest")) == 3)
    done = [space.jobs.wait(job, LIMIT) for job in jobs]
    assert [job.state for job in done] == ["done"] * 3
    starts, ends = [job.started for job in done], [job.finished for job in done]
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))
    assert [job.id for job in space.jobs.list()] == jobs[::-1]
    assert space.jobs.list(active=True) == []
    assert len(space.jobs.list(active=False)) == 3


def test_lanes_run_side_by_side(space):
    slow = space.jobs.submit(COUNT, {"n": 1000, "pause": 0.05})
    quick = space.jobs.submit(COUNT, {"n": 1}, device="map")
    assert space.jobs.wait(quick, LIMIT).state == "done"
    assert space.jobs.get(slow).state == "running"
    assert space.jobs.cancel(slow, wait=LIMIT).state == "cancelled"


def test_the_same_work_is_not_queued_twice(space):
    first = space.jobs.submit(COUNT, {"n": 2.0}, start=False)
    assert space.jobs.submit(COUNT, {"n": 2}, start=False) == first
    assert space.jobs.submit(COUNT, {"n": 3}, start=False) != first
    space.jobs.cancel(first)
    assert space.jobs.submit(COUNT, {"n": 2}, start=False) != first


def test_refusal_and_bug(space):
    refused = space.jobs.wait(space.jobs.submit("core.jobs.selftest:refuse"), LIMIT)
    assert refused.state == "failed"
    assert refused.error == "The number is too large."
    assert refused.error_hint == "Give a smaller one."
    assert refused.bug_id == ""
    crashed = space.jobs.wait(space.jobs.submit("core.jobs.selftest:crash"), LIMIT)
    assert crashed.state == "failed"
    assert crashed.bug_id
    assert crashed.bug_id in crashed.error
    log = crashed.log_path.read_text()
    assert f"bug {crashed.bug_id}" in log
    assert "a bug for the test" in log
    assert crashed.resumable


def test_handler_that_is_not_there(space):
    failed = space.jobs.wait(space.jobs.submit("core.jobs.selftest:nothing"), LIMIT)
    assert failed.state == "failed"
    assert "cannot be loaded" in failed.error


def test_cancel_by_the_flag(space):
    job = space.jobs.submit(COUNT, {"n": 10_000, "pause": 0.02, "note": "c"})
    until(lambda: space.notes.get("selftest", "c"))
    space.jobs.cancel(job)
    assert space.jobs.get(job).cancelling
    ended = space.jobs.wait(job, LIMIT)
    assert (ended.state, ended.message, ended.error) == ("cancelled", "Cancelled", "")
    assert 0 < ended.progress < 1
    assert space.jobs.cancel(job).state == "cancelled"
    with pytest.raises(NotFound):
        space.jobs.cancel("nope")


def test_cancel_before_the_start(space):
    job = space.jobs.submit(COUNT, start=False)
    assert space.jobs.cancel(job).state == "cancelled"
    space.jobs.poll()
    assert states(space, job) == ["queued", "cancelled"]


def test_a_stubborn_job_is_killed_with_its_group(space):
    job = space.jobs.submit("core.jobs.selftest:stubborn")
    until(lambda: space.notes.get("selftest", "stubborn"))
    pid = pid_of(space, job)
    start = time.monotonic()
    ended = space.jobs.cancel(job, wait=LIMIT)
    assert ended.state == "cancelled"
    assert time.monotonic() - start > queue_module.TERM_AFTER_S
    until(lambda: not process.alive(pid, ""))
    assert "killed" in space.jobs.history(job)[-1].note


def test_kill_nine_is_found_and_resumed_to_the_same_bytes(space, tmp_path):
    params = {"n": 120, "shard_size": 3, "pause": 0.04}
    other = open_workspace(tmp_path / "undisturbed")
    straight = other.jobs.wait(other.jobs.submit(FEATURES, {**params, "pause": 0.0}), LIMIT)
    job = space.jobs.submit(FEATURES, params)
    for least in (2, 8):
        until(lambda least=least: len(list(space.root.glob("features/*.parts/*.json"))) >= least)
        os.kill(pid_of(space, job), signal.SIGKILL)
        lost = space.jobs.wait(job, LIMIT)
        assert lost.state == "lost"
        assert lost.resumable
        assert "its process is gone" in lost.error
        assert "Resume" in lost.error_hint
        assert [f.problem for f in space.doctor() if "job" in f.what] == ["lost"]
        assert space.jobs.resume(job) == job
    done = space.jobs.wait(job, LIMIT)
    assert (done.state, done.attempt, done.error) == ("done", 3, "")
    assert done.result_key == straight.result_key
    ours, theirs = (w.features.path(done.result_key).read_bytes() for w in (space, other))
    assert ours == theirs
    assert states(space, job) == [
        *("queued", "running", "lost"),
        *("queued", "running", "lost"),
        *("queued", "running", "done"),
    ]


def test_silent_heartbeat_is_lost(space, monkeypatch):
    monkeypatch.setattr(process, "start", lambda *args: os.getpid())
    job = space.jobs.submit(COUNT)
    assert space.jobs.get(job).state == "running"
    change(space, job, heartbeat=time.time() - queue_module.HEARTBEAT_LIMIT_S - 1)
    space.jobs.poll()
    lost = space.jobs.get(job)
    assert lost.state == "lost"
    assert "no sign of life" in lost.error


def test_job_of_another_host_is_judged_by_its_heartbeat(space, monkeypatch):
    monkeypatch.setattr(process, "start", lambda *args: 2**22 + 1)
    job = space.jobs.submit(COUNT)
    change(space, job, host="elsewhere", pid=2**22 + 1)
    space.jobs.poll()
    assert space.jobs.get(job).state == "running"
    space.jobs.cancel(job)
    change(space, job, heartbeat=0.0)
    space.jobs.poll()
    assert space.jobs.get(job).state == "cancelled"


def test_resuming_stops_a_worker_that_was_only_silent(space):
    job = space.jobs.submit(COUNT, {"n": 10_000, "pause": 0.02, "note": "r"})
    until(lambda: space.notes.get("selftest", "r"))
    pid = pid_of(space, job)
    change(space, job, state="lost")
    space.jobs.resume(job, start=False)
    until(lambda: not process.alive(pid, ""))
    assert space.jobs.get(job).state in {"queued", "running"}
    space.jobs.cancel(job, wait=LIMIT)


def test_a_silent_worker_that_lives_comes_back(space):
    job = space.jobs.submit(COUNT, {"n": 10_000, "pause": 0.02, "note": "s"})
    until(lambda: space.notes.get("selftest", "s"))
    change(space, job, state="lost")
    until(lambda: space.jobs.get(job).state == "running")
    assert space.jobs.cancel(job, wait=LIMIT).state == "cancelled"


def test_retry_is_a_new_job(space):
    old = space.jobs.submit(COUNT, {"n": 1})
    space.jobs.wait(old, LIMIT)
    with pytest.raises(BadInput, match="is done"):
        space.jobs.resume(old)
    new = space.jobs.retry(old)
    assert new != old
    assert space.jobs.wait(new, LIMIT).params == {"n": 1}
    space.jobs.remove(old)
    assert [job.id for job in space.jobs.list()] == [new]
    with pytest.raises(NotFound):
        space.jobs.history(old)


def test_what_is_refused(space):
    for kind in ("nope", "os:system", "core.x:_private", "core.x:a.b", "core:run", ""):
        with pytest.raises(BadInput, match="not a kind of job"):
            space.jobs.submit(kind)
    with pytest.raises(BadInput, match="not plain JSON"):
        space.jobs.submit(COUNT, {"n": object()})
    job = space.jobs.submit(COUNT, start=False)
    with pytest.raises(BadInput, match="has not ended"):
        space.jobs.remove(job)
    for call in (space.jobs.get, space.jobs.resume, space.jobs.retry, space.jobs.remove):
        with pytest.raises(NotFound, match="no job 'nope'"):
            call("nope")


def test_worker_that_cannot_be_started(space, monkeypatch):
    def refuse(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(process, "start", refuse)
    failed = space.jobs.get(space.jobs.submit(COUNT))
    assert failed.state == "failed"
    assert "disk is full" in failed.error
    assert failed.error_hint


def test_two_pollers_never_claim_one_job_twice(space, monkeypatch):
    started = []

    def start(root, job, attempt, log):
        started.append((job, attempt))
        return os.getpid()

    monkeypatch.setattr(process, "start", start)
    jobs = [space.jobs.submit(COUNT, {"n": i}, device=f"{i}", start=False) for i in range(1, 13)]
    threads = [threading.Thread(target=open_workspace(space.root).jobs.poll) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(started) == sorted((job, 1) for job in jobs)
