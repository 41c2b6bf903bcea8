"""What was accepted and committed, kept beside the store: the state every invariant is checked against."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.chronicle import submitted
from holdfast.sim.promises import refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.events import Occurrence
    from holdfast.domain.job import Attempt, Job, Run
    from holdfast.ports.store import Changes, Store


class Record:
    """A plain fold of all submissions and commits."""

    def __init__(self) -> None:
        """Begin empty."""
        self.jobs: dict[str, Job] = {}
        self.attempts: dict[str, dict[int, Attempt]] = {}
        self.runs: dict[str, Run] = {}
        self.events: dict[str, list[Occurrence]] = {}
        self.released: set[str] = set()
        """Jobs that a person let go on, whose retries therefore need not wait."""
        self.decisions = 0
        self.pods: set[str] = set()
        """Ids of jobs made of pods; what else must hold of these is checked in ``pods`` and ``sets``."""

    def accept(self, jobs: Sequence[Job]) -> None:
        """Take in jobs that were accepted."""
        for job in jobs:
            self.jobs[job.id] = job
            self.attempts[job.id] = {}
            self.events[job.id] = [submitted(job)]

    def fold(self, changes: Changes) -> None:
        """Take in a commit."""
        self.jobs.update(changes.jobs)
        self.runs.update(changes.runs)
        for (job_id, number), attempt in changes.attempts.items():
            self.attempts[job_id][number] = attempt
        for occurrence in changes.events.values():
            if occurrence.job_id is not None:
                self.events[occurrence.job_id].append(occurrence)

    def unfinished(self) -> list[Job]:
        """List the jobs that have not ended."""
        return [job for job in self.jobs.values() if not job.terminal]

    def compare(self, store: Store) -> None:
        """Require the store to hold exactly this."""
        for job in store.jobs_by_id(list(self.jobs)):
            if job != self.jobs[job.id]:
                refuse("durable", f"job {job.id} is stored as {job}, and was committed as {self.jobs[job.id]}")
            stored = {attempt.number: attempt for attempt in store.attempts(job.id)}
            if stored != self.attempts[job.id]:
                refuse("durable", f"attempts of {job.id} are stored as {stored}, not as {self.attempts[job.id]}")
        if store.job_states(list(self.jobs)).keys() != self.jobs.keys():
            refuse("no-job-lost", "an accepted job is not in the store")
        snapshot = store.load()
        live = [job.id for job in self.unfinished()]
        if sorted(job.id for job in snapshot.jobs) != sorted(live):
            refuse("durable", f"a restart would go on with {[job.id for job in snapshot.jobs]}, not with {live}")
