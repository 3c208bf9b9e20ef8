"""The worker in this process: what it writes, and when it refuses."""

from __future__ import annotations

import inspect
import signal
import threading

import numpy as np
import pandas as pd
import pytest

from core import worker
from core.errors import Cancelled, WorkspaceError
from core.jobs import handlers, process, selftest
from core.jobs.progress import Reporter


@pytest.fixture
def claimed(space, monkeypatch):
    """Give a function that submits a job and claims it for this process."""
    monkeypatch.setattr(process, "start", lambda *args: 0)
    before = signal.getsignal(signal.SIGTERM)

    def claim(kind, params=None):
        return space.jobs.submit(kind, params)

    yield claim
    signal.signal(signal.SIGTERM, before)


def test_main_runs_the_job(space, claimed):
    job = claimed("core.jobs.selftest:count", {"n": 3, "pause": 0.0})
    assert worker.main([job, "--attempt", "1", "--workspace", str(space.root)]) == 0
    done = space.jobs.get(job)
    assert (done.state, done.progress, done.eta_s) == ("done", 1.0, None)


def test_stale_attempt_is_not_run(space, claimed):
    job = claimed("core.jobs.selftest:crash")
    assert worker.run(space, job, 2) == 3
    assert worker.run(space, "nope", 1) == 3
    assert space.jobs.get(job).state == "running"


def test_exit_codes(space, claimed, monkeypatch):
    def exhausted(workspace, *, progress):
        raise MemoryError

    def full(workspace, *, progress):
        raise WorkspaceError("The disk is full.", "Free some space.")

    def stopped(workspace, *, progress):
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(selftest, "exhausted", exhausted, raising=False)
    monkeypatch.setattr(selftest, "full", full, raising=False)
    monkeypatch.setattr(selftest, "stopped", stopped, raising=False)
    expected = {
        "crash": (1, "failed", "bug"),
        "refuse": (2, "failed", "too large"),
        "exhausted": (2, "failed", "out of memory"),
        "full": (2, "failed", "disk is full"),
        "stopped": (130, "cancelled", ""),
    }
    for name, (code, state, text) in expected.items():
        job = claimed(f"core.jobs.selftest:{name}")
        assert worker.run(space, job, 1) == code
        ended = space.jobs.get(job)
        assert ended.state == state
        assert text in ended.error


def test_extraction_counts_rows_and_gives_its_key(space, claimed, monkeypatch):
    def extract(workspace, *, dataset, model, progress):
        progress(0.5, "half")
        return "the-key"

    monkeypatch.setitem(handlers.HANDLERS, "extract", "core.jobs.selftest:extract")
    monkeypatch.setattr(selftest, "extract", extract, raising=False)
    space.add_dataset("d", "D", "text", pd.DataFrame({"id": np.arange(40)}))
    job = claimed("extract", {"dataset": "d", "model": "m"})
    assert worker.run(space, job, 1) == 0
    done = space.jobs.get(job)
    assert (done.result_key, done.rate_unit) == ("the-key", "rows")


def test_analysis_goes_through_the_one_door(text_space, doubler, monkeypatch):
    made = handlers.load("analysis")(text_space, name="explore", factor=3, progress=None)
    assert text_space.results.get(made.key).params["factor"] == 3


@pytest.mark.parametrize("kind", handlers.HANDLERS)
def test_every_kind_has_its_handler(kind):
    taken = inspect.signature(handlers.load(kind)).parameters
    assert "progress" in taken
    assert next(iter(taken)) == "workspace"


def test_lanes():
    assert handlers.lane("map", {}) == "map"
    assert handlers.lane("extract", {"device": "cuda:1"}) == "cuda:1"
    assert handlers.lane("extract", {"device": None}) == "auto"


class Clock:
    """A clock that the test moves."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now

    def time(self):
        return self.now


def test_rate_and_eta(space, claimed, monkeypatch):
    clock = Clock()
    monkeypatch.setattr("core.jobs.progress.time", clock)
    job = claimed("core.jobs.selftest:count")
    report = Reporter(space.catalogue, job, 1, total=1000.0)
    # The leap to the shards that were there already is no speed.
    report(0.5, "resumed")
    assert space.jobs.get(job).rate is None
    for fraction in (0.6, 0.7, 0.8):
        clock.now += 10.0
        report(fraction, "on")
    seen = space.jobs.get(job)
    assert seen.rate == pytest.approx(10.0)
    assert seen.eta_s == pytest.approx(20.0)
    assert (seen.progress, seen.message) == (0.8, "on")
    report(0.9, "too soon to be written")
    assert space.jobs.get(job).progress == 0.8
    report(1.7, "the end is always written")
    assert space.jobs.get(job).progress == 1.0


def test_report_raises_once_asked_to_stop(space, claimed):
    job = claimed("core.jobs.selftest:count")
    space.jobs.cancel(job)
    report = Reporter(space.catalogue, job, 1)
    for _ in range(2):
        with pytest.raises(Cancelled):
            report(0.1, "on")
    assert space.jobs.get(job).message == "Stopping"


def test_worker_that_was_given_up_is_told_to_stop(space, claimed):
    job = claimed("core.jobs.selftest:count")
    report = Reporter(space.catalogue, job, 0)
    with pytest.raises(Cancelled):
        report(0.1, "on")
    assert space.jobs.get(job).progress == 0.0


def test_work_goes_on_when_the_catalogue_is_locked(space, claimed, monkeypatch):
    monkeypatch.setattr("core.workspace.catalogue.BUSY_SECONDS", 0.02)
    monkeypatch.setattr("core.jobs.progress.BEAT_EVERY_S", 0.01)
    job = claimed("core.jobs.selftest:count")
    report = Reporter(space.catalogue, job, 1)
    with space.catalogue.write():
        report.start()
        report(0.5, "locked out")
        threading.Event().wait(0.1)
    threading.Event().wait(0.2)
    report.stop()
    assert space.jobs.get(job).state == "running"
    with space.catalogue.write() as db:
        db.execute("UPDATE jobs SET cancel_at = 1")
    beat = Reporter(space.catalogue, job, 1)
    beat._beat_once()
    with pytest.raises(Cancelled):
        beat(0.6, "on")
