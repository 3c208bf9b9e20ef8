"""Long work: a queue in the catalogue, each job a process of its own.

Never a pool inside the app: a job survives a closed tab and a stopped server, can be
cancelled for certain, and goes on from its finished shards after a crash.
"""

from __future__ import annotations

from core.jobs.job import ACTIVE, Job, JobEvent
from core.jobs.queue import JobQueue

__all__ = ["ACTIVE", "Job", "JobEvent", "JobQueue"]
