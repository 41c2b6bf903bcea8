"""Commits for ever, printing the number of each commit once it is durable; started and killed by test_migrations."""

from __future__ import annotations

import itertools
import sys

from holdfast.domain.job import Attempt, Job, JobState, Run
from holdfast.domain.lifecycle import AttemptStatus, EntityKind, HistoryRow, Outcome, attempt_id
from holdfast.domain.record import evolve
from holdfast.ports.store import Changes, Submission
from holdfast.storage.sql import open_store

JOBS = 50


def main() -> None:
    """Write until killed."""
    store = open_store(sys.argv[1])
    ids = [f"job-{number:04}" for number in range(JOBS)]
    store.submit(Submission([Job(job_id, "a", "default", 0, 1.0, "{}") for job_id in ids]))
    jobs = store.jobs_by_id(ids)
    for number in itertools.count(1):
        changes = Changes()
        for job in jobs:
            attempt = Attempt(job.id, number)
            run = Run(f"{job.id}-{number}-0-1", job.id, number, 0)
            changes.jobs[job.id] = evolve(job, state=JobState.RUNNING, attempt=number)
            changes.attempts[attempt.key] = attempt
            changes.runs[run.uid] = run
            statuses = AttemptStatus.PENDING, AttemptStatus.SCHEDULED
            name = attempt_id(job.id, number)
            row = HistoryRow(EntityKind.ATTEMPT, name, 0, "Start", *statuses, Outcome.SUCCESS, 1.0, 1.0)
            changes.history[row.key] = row
        store.commit(changes)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
