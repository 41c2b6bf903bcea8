"""What was accepted and committed, kept beside the store as the state every invariant is checked against."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from holdfast.domain.event_mapping import submitted_event
from holdfast.domain.events.registry import EventRecord
from holdfast.domain.lifecycle import RUN_TERMINAL
from tools.simulate.clocks import A_MOMENT_S
from tools.simulate.promises import refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.job import Attempt, Job, Run
    from holdfast.domain.workloads.jobset.state import SetLogEntry
    from holdfast.ports.store import Changes, Store

_ALL_EVENTS = 1_000_000

UNLESS_STARTED = "unless it has started"
"""The reason of whoever asks for a job to be cancelled on that condition."""


class Record:
    """A plain fold of all submissions and commits."""

    def __init__(self) -> None:
        """Begin empty."""
        self.jobs: dict[str, Job] = {}
        self.attempts: dict[str, dict[int, Attempt]] = {}
        self.runs: dict[str, Run] = {}
        self.live_runs: dict[str, dict[str, Run]] = {}
        """By job id, its runs that have not ended, by uid."""
        self._of_attempts: dict[tuple[str, int], dict[str, Run]] = {}
        self.events: dict[str, list[EventRecord]] = {}
        self.held: set[str] = set()
        """Jobs that a person held."""
        self.released: set[str] = set()
        """Jobs that a person released, whose retries therefore need not wait."""
        self.begun_anew: dict[tuple[str, int], float] = {}
        """By job and attempt, when a retry is due whose delay was begun anew by a clock that had been set back."""
        self.places_asked: Counter[str] = Counter()
        """How often the place of each job was asked for."""
        self._written: dict[int, EventRecord | SetLogEntry] = {}
        """By identity, the committed events and log entries; kept, so that no identity is reused."""
        self.decisions = 0
        self.just_made: set[str] = set()
        """Ids of jobs that the last commit submitted, which the controller is about to take in."""
        self.pods: set[str] = set()
        """Ids of jobs made of pods; what else must hold of these is checked in ``pods`` and ``sets``."""

    def accept(self, jobs: Sequence[Job]) -> None:
        """Take in jobs that were accepted."""
        for job in jobs:
            self.jobs[job.id] = job
            self.attempts[job.id] = {}
            self.events[job.id] = [submitted_event(job)]

    def made(self, jobs: Sequence[Job]) -> None:
        """Take in jobs that a commit submitted; it holds the events of that, too."""
        self.accept(jobs)
        self.just_made = {job.id for job in jobs}
        self.events.update({job.id: [] for job in jobs})

    def fold(self, changes: Changes) -> None:
        """Take in a commit."""
        for job in changes.jobs.values():
            self._note_delay(self.jobs.get(job.id), job)
        self.jobs.update(changes.jobs)
        self.runs.update(changes.runs)
        for uid, run in changes.runs.items():
            live = self.live_runs.setdefault(run.job_id, {})
            live[uid] = run
            self._of_attempts.setdefault((run.job_id, run.attempt), {})[uid] = run
            if run.status in RUN_TERMINAL:
                del live[uid]
        for (job_id, number), attempt in changes.attempts.items():
            self.attempts[job_id][number] = attempt
        for record in changes.events.values():
            self.once(record)
            if record.job_id is not None:
                self.events[record.job_id].append(record)

    def _note_delay(self, before: Job | None, job: Job) -> None:
        """Note a delay that lasts its whole length from a time that is earlier than when it began by another clock."""
        if before is None or before.retry_at is None or job.retry_at is None or before.attempt != job.attempt:
            return
        whole = job.retry_at - job.updated_at >= before.retry_at - before.updated_at - A_MOMENT_S
        if job.updated_at < before.updated_at and whole:
            self.begun_anew[job.id, job.attempt] = job.retry_at

    def once(self, written: EventRecord | SetLogEntry) -> None:
        """Require that something was not committed before; equal things may happen twice, the same one may not."""
        if id(written) in self._written:
            refuse("written-once", f"{written} is committed again")
        self._written[id(written)] = written

    def compare_events(self, store: Store) -> None:
        """Require the store to have each event of a job once."""
        stored: dict[str, list[EventRecord]] = {job_id: [] for job_id in self.events}
        for each in store.events(limit=_ALL_EVENTS):
            if each.job_id is not None:
                stored[each.job_id].append(EventRecord(each.job_id, each.at, each.event))
        for job_id, events in self.events.items():
            if stored[job_id] != events:
                refuse(
                    "written-once", f"the events of {job_id} are stored as {stored[job_id]}, committed were {events}"
                )

    def runs_of(self, job_id: str, attempt: int) -> list[Run]:
        """List the runs of an attempt."""
        return list(self._of_attempts.get((job_id, attempt), {}).values())

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
