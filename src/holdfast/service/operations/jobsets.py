"""Job sets: list, create, read, apply, explain, suspend, resume, restart and delete them."""

from __future__ import annotations

from collections import deque
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from holdfast.compiled.codec import load_manifest, set_spec_of
from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Subject
from holdfast.domain.record import Struct
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.errors import UnreadableSpec
from holdfast.ports.store import JobFilter
from holdfast.ports.workloads import EVERY
from holdfast.service.access.asking import asks
from holdfast.service.jobsets.explain import explained, whole_log
from holdfast.service.jobsets.sets import Applied, SetWriter, set_named
from holdfast.service.manifests.made_names import with_names
from holdfast.service.manifests.reading import document_named, one_document
from holdfast.service.operations.steering import OwnerPage, Steers
from holdfast.service.quarantined import known_pods_of, readable, shown_set
from holdfast.service.steering.jobsets import JOB_SETS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import ChildOf, Job
    from holdfast.domain.workloads.explanation import Explanation
    from holdfast.domain.workloads.jobset.state import SetLogEntry
    from holdfast.domain.workloads.kubejob.records import KubeJobRecord
    from holdfast.ports.workloads import AskedOf, Unreadable, WorkloadFilter
    from holdfast.service.manifests.text import Text
    from holdfast.service.steering.control import Versions

__all__ = ["Applied"]
LARGEST_PAGE = 1000


class JobOfSet(Struct, frozen=True):
    """One job of a set."""

    job: Job
    at: ChildOf
    pods: KubeJobRecord | None


class JobsOfSet(Struct, frozen=True):
    """A part of the list of a set's jobs."""

    children: Sequence[JobOfSet]
    next_after: int | None
    """Where the list continues; ``None`` on the last page."""


class JobSetOperations(Steers[JobSet], frozen=True):
    """The operations on job sets."""

    rules = JOB_SETS

    def _sets(self, caller: Caller) -> SetWriter:
        return SetWriter(self.backend.store, self.backend.clock, self.backend.ids, finder=self.backend.seeing(caller))

    @asks(Right.WATCH, Subject.JOB_SET)
    def page(
        self, caller: Caller, where: WorkloadFilter = EVERY, *, after: str = "", limit: int = LARGEST_PAGE
    ) -> OwnerPage[JobSet]:
        """List job sets by name, with all pending requests applied."""
        store = self.backend.store
        where = self.backend.seeing(caller).workloads(JobSet, where)
        quarantined = store.quarantined()
        unreadable: list[Unreadable] = []
        pending = store.all_asked_of(JobSet, where, after=after, limit=limit + 1, unreadable=unreadable.append)

        def shown(item: AskedOf[JobSet]) -> JobSet:
            row = shown_set(JOB_SETS.as_accepted(item), quarantined)
            set_spec_of(row)  # without which there is nothing to show
            return row

        last = pending[limit - 1].workload.name if len(pending) > limit else None
        sets = readable(pending[:limit], shown, attrgetter("workload"), unreadable.append)
        return OwnerPage.until(last, sets, unreadable)

    @asks(Right.SUBMIT, Subject.JOB_SET)
    def create(
        self, caller: Caller, body: Text, *, lenient: bool = False, key: str | None = None, dry_run: bool = False
    ) -> Applied:
        """Create a new job set with all of its jobs; see ``SetWriter.create``."""
        [document] = with_names([one_document(body, lenient=lenient)], self.backend.ids, key)
        applied = self._sets(caller).create(document, lenient=lenient, caller=caller, key=key, dry_run=dry_run)
        if applied.result == "created":
            self.backend.count(applied.spec.replicas, 0)
        return applied

    @asks(Right.SUBMIT, Subject.JOB_SET)
    def apply(  # noqa: PLR0913 - what there is to say of it
        self,
        caller: Caller,
        ref: str,
        body: Text,
        *,
        must_exist: bool = False,
        if_match: Versions = None,
        lenient: bool = False,
        dry_run: bool = False,
    ) -> Applied:
        """Create a job set, or change the one of that name; see ``SetWriter.put``."""
        document, create = document_named(body, ref, lenient=lenient), False if must_exist else None
        return self._sets(caller).put(
            document, lenient=lenient, create=create, caller=caller, dry_run=dry_run, if_match=if_match
        )

    @asks(Right.WATCH, Subject.JOB_SET)
    def get(self, caller: Caller, ref: str) -> JobSet:
        """Read a job set, with all pending requests applied.

        Raises:
            NotFound: It does not exist.
        """
        seeing = self.backend.seeing(caller)
        return seeing.job_set(set_named(self.backend.store, seeing.workload(Right.WATCH, JobSet, ref)))

    @asks(Right.WATCH, Subject.JOB_SET)
    def manifest(self, _caller: Caller, job_set: JobSet) -> Mapping[str, Any]:
        """Return a set's last accepted manifest; an unreadable one as it is stored."""
        try:
            return load_manifest(job_set.manifest)
        except UnreadableSpec:
            return {"unreadable": job_set.manifest}

    @asks(Right.WATCH, Subject.JOB_SET)
    def children(self, _caller: Caller, job_set: JobSet, *, after: int = 0, limit: int = LARGEST_PAGE) -> JobsOfSet:
        """List a set's jobs by replicated job and index, with their pods."""
        jobs = self.backend.store.jobs(JobFilter(job_set=job_set.id), after=after, limit=limit + 1)
        shown = jobs[:limit]
        pods = known_pods_of(self.backend.store, shown)
        groups = set_spec_of(job_set).by_name  # a damaged row names another one, and is no job of the set's
        children = [
            JobOfSet(job, job.child, pods.get(job.id)) for job in shown if job.child and job.child.group in groups
        ]
        return JobsOfSet(children, shown[-1].seq if len(jobs) > limit else None)

    @asks(Right.WATCH, Subject.JOB_SET)
    def log(
        self, caller: Caller, ref: str, *, after: int = 0, limit: int = LARGEST_PAGE, tail: int | None = None
    ) -> Sequence[SetLogEntry]:
        """Read a set's log, with the decisions about its failed jobs; with ``tail``, its last entries.

        Raises:
            NotFound: The set does not exist.
        """
        store = self.backend.store
        job_set = set_named(store, self._named(caller, Right.WATCH, ref))
        if tail is None:
            return store.set_log(job_set.id, after=after, limit=limit)
        return list(deque(whole_log(store, job_set.id), maxlen=tail))

    @asks(Right.WATCH, Subject.JOB_SET)
    def why(self, caller: Caller, ref: str, *, job: str | None = None) -> Explanation[JobSet]:
        """Explain a set's state; with a job's name, only the decisions about that job.

        Raises:
            NotFound: The set does not exist, or has no job of that name.
        """
        store, ref = self.backend.store, self._named(caller, Right.WATCH, ref)
        quoting = self.backend.seeing(caller).reads(store.left_of(JobSet, ref))
        return explained(set_named(store, ref), store, self.backend.clock.now(), job=job, quoting=quoting)
