"""Jobs and what belongs to them, in memory: tables and queries."""

from __future__ import annotations

from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING

from holdfast.domain.job import JobState
from holdfast.domain.lifecycle import ATTEMPT_TERMINAL, RUN_TERMINAL
from holdfast.ports.store import Snapshot
from holdfast.storage.rules import MOST_NEAR, SHORTEST_PREFIX, ambiguous_job, no_such_job

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from holdfast.domain.access.grants import Seen
    from holdfast.domain.job import Attempt, Job, Node, Run
    from holdfast.domain.lifecycle import HistoryRow
    from holdfast.domain.workloads.base import Quarantined, Workload
    from holdfast.ports.names import NamedJob
    from holdfast.ports.store import JobFilter

_SHOWN = 5
_IN_LINE = frozenset({JobState.QUEUED, JobState.HELD})


def _is_looked_at(job: Job) -> bool:
    return job.state in _IN_LINE and (job.updated_at != job.submitted_at or bool(job.reason))


class JobTable:
    """Every record the controller commits."""

    def __init__(self) -> None:
        """Begin empty."""
        self.by_id: dict[str, Job] = {}
        """In order of submission."""
        self.labels: dict[str, Mapping[str, str]] = {}
        self.attempts: dict[tuple[str, int], Attempt] = {}
        self.runs: dict[str, Run] = {}
        self.history: dict[tuple[str, str, int], HistoryRow] = {}
        self.nodes: dict[tuple[str, str], Node] = {}
        self.workloads: dict[str, Workload] = {}
        self.quarantined: dict[str, Quarantined] = {}
        self.names: dict[str, NamedJob] = {}

    def snapshot(self) -> Snapshot:
        """Return all that is still going on."""
        attempts = {key: each for key, each in sorted(self.attempts.items()) if each.status not in ATTEMPT_TERMINAL}
        current = {(each.job_id, each.number, each.dispatch) for each in attempts.values()}
        jobs = [job for job in self.by_id.values() if not job.terminal]
        going_on = {*attempts, *((job.id, job.attempt + 1) for job in jobs if _is_looked_at(job))}
        last = {row.id: row for _, row in sorted(self.history.items()) if (row.job_id, row.attempt) in going_on}
        ended = {job.id for job in self.by_id.values() if job.terminal}
        workloads = {each.id: each for each in self.sorted_workloads() if each.id not in ended}
        still_needed = {uid for each in workloads.values() for uid in each.last_runs}
        runs = [
            run
            for run in self.sorted_runs()
            if (run.job_id, run.attempt) in attempts
            and ((run.job_id, run.attempt, run.dispatch) in current or run.status not in RUN_TERMINAL)
        ]
        runs += [run for run in self.sorted_runs() if run.uid in still_needed and run not in runs]
        return Snapshot(
            jobs, list(attempts.values()), runs, last, workloads=workloads, quarantined=dict(self.quarantined)
        )

    def sorted_workloads(self) -> list[Workload]:
        """List all workloads by name."""
        return sorted(self.workloads.values(), key=attrgetter("name", "id"))

    def quarantine(self, changes: Mapping[str, Quarantined | None]) -> None:
        """Take in which workloads are quarantined, and which no longer are."""
        for key, each in changes.items():
            if each is None:
                self.quarantined.pop(key, None)
            else:
                self.quarantined[key] = each

    def drop(self, job_ids: Container[str]) -> None:
        """Forget jobs and all that belongs to them."""
        self.by_id = {job_id: job for job_id, job in self.by_id.items() if job_id not in job_ids}
        self.names = {name: one for name, one in self.names.items() if one.job_id not in job_ids}
        self.labels = {job_id: labels for job_id, labels in self.labels.items() if job_id not in job_ids}
        self.attempts = {key: each for key, each in self.attempts.items() if each.job_id not in job_ids}
        self.runs = {uid: each for uid, each in self.runs.items() if each.job_id not in job_ids}
        self.history = {key: row for key, row in self.history.items() if row.job_id not in job_ids}
        self.workloads = {key: each for key, each in self.workloads.items() if key not in job_ids}
        self.quarantined = {key: each for key, each in self.quarantined.items() if key not in job_ids}

    @property
    def name_of(self) -> Mapping[str, str]:
        """What other systems call jobs, by their ids."""
        return {one.job_id: one.name for one in self.names.values()}

    def sorted_runs(self) -> list[Run]:
        """List all runs by job, attempt, dispatch and rank."""
        return sorted(self.runs.values(), key=attrgetter("job_id", "attempt", "dispatch", "rank"))

    def active_runs(self) -> list[Run]:
        """List all runs that have not ended, in the same order."""
        return [run for run in self.sorted_runs() if run.status not in RUN_TERMINAL]

    def find(self, reference: str, seen: Seen | None = None) -> Job:
        """Find a job by id, newest name, unique id prefix, or name and prefix, among those that somebody may know of.

        Raises:
            NotFound: None matches, or a prefix is ambiguous.
        """
        known = {key: job for key, job in self.by_id.items() if is_seen(job, seen)}
        if reference in known:
            return known[reference]
        named = [job for job in known.values() if job.name == reference]
        if named:
            return named[-1]
        ids = [one for one in self._with_prefix(reference) or self._named_with_prefix(reference) if one in known]
        if not ids:
            raise no_such_job(reference, () if seen else self.names_like(reference[:1])[:MOST_NEAR])
        if len(ids) > 1:
            raise ambiguous_job(reference, ids)
        return self.by_id[ids[0]]

    def names_like(self, prefix: str) -> list[str]:
        """List names that begin so, of jobs that belong to no job set or array; each once, in order."""
        return sorted({job.name for job in self.by_id.values() if job.child is None and job.name.startswith(prefix)})

    def _with_prefix(self, prefix: str) -> list[str]:
        if len(prefix) < SHORTEST_PREFIX or not prefix.isascii():
            return []
        return sorted(job_id for job_id in self.by_id if job_id.startswith(prefix))[:_SHOWN]

    def _named_with_prefix(self, reference: str) -> list[str]:
        name, _, prefix = reference.rpartition("@")
        of_name = [job.id for job in self.by_id.values() if job.name == name and prefix]
        return sorted(job_id for job_id in of_name if job_id.startswith(prefix))[:_SHOWN]

    def select(self, where: JobFilter, *, after: int, limit: int | None) -> list[Job]:
        """List jobs in order of submission, those with ``seq > after``."""
        return list(islice(self._matching(where, after), limit))

    def _matching(self, where: JobFilter, after: int) -> Iterator[Job]:
        wanted = frozenset(where.labels)
        names = (
            None if where.named is None else {one.job_id for one in self.names.values() if where.named.holds(one.name)}
        )
        for job in self.by_id.values():
            if (
                job.seq > after
                and (where.states is None or job.state in where.states)
                and where.queue in {None, job.queue}
                and where.name in {None, job.name}
                and (where.job_set is None or in_set(job, where.job_set))
                and (where.ids is None or job.id in where.ids)
                and where.submitted_by in {None, job.submitted_by}
                and (where.group is None or where.group.holds(job.group))
                and (names is None or job.id in names)
                and is_seen(job, where.seen)
                and (where.tasks or job.child is None or job.of_set is not None)
                and (not where.quarantined or job.id in self.quarantined)
                and (not where.reasoned or job.reason)
                and wanted <= self.labels.get(job.id, {}).items()
            ):
                yield job


def in_set(job: Job, set_id: str) -> bool:
    """Whether a job belongs to that job set."""
    return job.child is not None and job.child.set_id == set_id


def is_seen(work: Job | Workload, seen: Seen | None) -> bool:
    """Whether somebody may know of a job or a workload."""
    if seen is None:
        return True
    if seen.places is not None and not any(place.holds(work.queue, work.group, work.id) for place in seen.places):
        return False
    if seen.everyones or work.queue in seen.queues:
        return True
    return work.submitted_by == seen.owner and (seen.uid is None or work.submitter_uid in {None, seen.uid})
