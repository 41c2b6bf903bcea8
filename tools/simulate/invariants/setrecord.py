"""What was accepted and committed of job sets and of jobs made of pods, beside the record of all jobs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_set_spec
from holdfast.domain.events.workloads import JobSetChanged
from holdfast.domain.record import evolve
from holdfast.domain.workloads.jobset.state import JobSet, SetDecision
from holdfast.domain.workloads.kubejob.records import KubeJobRecord
from tools.simulate.promises import refuse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.domain.job import Job
    from holdfast.domain.workloads.jobset.model import JobSetSpec
    from holdfast.domain.workloads.jobset.state import SetLogEntry
    from holdfast.domain.workloads.kubejob.records import PodRecord
    from holdfast.ports.store import Changes, Store
    from tools.simulate.invariants.record import Record


class SetRecord:
    """A plain fold of submissions and commits, as far as they are about job sets and pods."""

    def __init__(self, record: Record) -> None:
        """Begin empty, beside the record of all jobs."""
        self.record = record
        self.rows: dict[str, JobSet] = {}
        """The existing sets."""
        self.accepted: dict[str, JobSet] = {}
        """Every set that ever was, as last seen."""
        self.jobs: dict[str, dict[str, Job]] = {}
        """By set, its jobs by name, as submitted."""
        self.kube_jobs: dict[str, KubeJobRecord] = {}
        self.log: dict[str, list[SetLogEntry]] = {}
        self.by_hand: dict[str, Counter[str]] = {}
        """By set, how often people restarted it, a replicated job (``group``) or a job (``group/index``)."""
        self.generations: dict[tuple[str, int], int] = {}
        """By attempt, the restarts of its set before it."""
        self.in_place: dict[str, int] = {}
        """By run, how often its pod had restarted in place before it."""
        self.runs: set[str] = set()
        """Uids of all runs that were committed."""

    def accept_set(self, row: JobSet, jobs: Sequence[Job]) -> None:
        """Take in a set that was accepted."""
        self.rows[row.id] = self.accepted[row.id] = row
        self.jobs[row.id] = {job.name: job for job in jobs}
        self.log[row.id] = []
        self.by_hand[row.id] = Counter()
        self.record.accept(jobs)
        self.record.pods.update(job.id for job in jobs)

    def accept_job(self, job: Job) -> None:
        """Take in a job made of pods that was accepted, of no set."""
        self.record.accept([job])
        self.record.pods.add(job.id)

    def spec(self, row: JobSet) -> JobSetSpec:
        """Read what a set asks for."""
        return load_set_spec(row.spec)

    def set_of(self, job_id: str) -> JobSet | None:
        """Return the set of a job, as last seen; ``None`` when it has none."""
        child = self.record.jobs[job_id].of_set
        return None if child is None else self.accepted[child.set_id]

    def pods_of(self, job_id: str) -> Sequence[PodRecord]:
        """Return what is remembered of a job's pods; none when it has none."""
        kept = self.kube_jobs.get(job_id)
        return () if kept is None else kept.pods

    def decisions(self, set_id: str) -> Iterator[SetDecision]:
        """Go through the decisions about a set's jobs, in order."""
        return (entry.what for entry in self.log[set_id] if isinstance(entry.what, SetDecision))

    def fold(self, changes: Changes) -> None:
        """Take in a commit; the record of all jobs has it already."""
        changed = changes.of(KubeJobRecord)
        self.kube_jobs.update(changed)
        pods = (pod for kept in changed.values() for pod in kept.pods)
        self.in_place.update((pod.run, pod.in_place) for pod in pods if pod.run not in self.in_place)
        for row in changes.of(JobSet).values():
            self.rows[row.id] = self.accepted[row.id] = row
        for set_id in changes.forgotten:
            self.rows.pop(set_id, None)
        for entry in changes.set_log:
            self.record.once(entry)
            self.log[entry.set_id].append(entry)
        for record in changes.events.values():
            if isinstance(record.event, JobSetChanged) and record.event.change == "restarted":
                self.by_hand[record.event.job_set][record.event.detail] += 1
        for job_id, number in changes.attempts:
            kept = self.kube_jobs.get(job_id)
            if kept is not None:
                self.generations.setdefault((job_id, number), kept.restart)

    def compare(self, store: Store) -> None:
        """Require the store to hold exactly this."""
        # Versions are the store's own: they grow with what is asked for, too.
        stored = {row.id: evolve(row, version=0) for row in store.workloads(JobSet)}
        committed = {set_id: evolve(row, version=0) for set_id, row in self.rows.items()}
        if stored != committed:
            refuse("durable", f"job sets are stored as {stored}, and were committed as {committed}")
        pods = store.workloads_by_id(KubeJobRecord, list(self.record.pods))
        if dict(pods) != self.kube_jobs:
            refuse("durable", f"pods are stored as {pods}, and were committed as {self.kube_jobs}")
        for set_id in self.rows:
            kept, told = [(one.at, one.what) for one in self.log[set_id]], store.set_log(set_id)
            if [(one.at, one.what) for one in told] != kept:
                refuse("durable", f"the log of {set_id} is stored as {told}, and was committed as {kept}")
