"""Limits queries and answers to the work that a caller may see."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from holdfast.domain.access.grants import Right, Seen, Sight
from holdfast.domain.audit import Act, Subject
from holdfast.domain.record import evolve
from holdfast.domain.rights import ANOTHERS, Grants, Reach, Thing, decide, places_of, reach, sight_of
from holdfast.domain.workloads.base import Owner, Workload
from holdfast.errors import AlreadyExists, Forbidden, NotFound
from holdfast.ports.overview import Latest
from holdfast.ports.store import JobFilter
from holdfast.ports.workloads import EVERY
from holdfast.service.access.asking import ACTS, forbidden
from holdfast.service.access.hiding import (
    event_without_logs,
    event_without_names,
    masked,
    unnamed,
    unquoted,
    without_environment,
    without_logs,
)
from holdfast.service.detail import JobDetail
from holdfast.service.naming import owner_id_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from holdfast.domain.access.places import WorkScope
    from holdfast.domain.audit import Caller
    from holdfast.domain.events.registry import StoredEvent
    from holdfast.domain.job import Job, Run
    from holdfast.domain.terms.kinds import SubjectName
    from holdfast.domain.workloads.jobset.state import JobSet
    from holdfast.ports.store import Store
    from holdfast.ports.workloads import WorkloadFilter
    from holdfast.service.access.book import AccessBook

_OPEN = {Sight.DETAILS, Sight.EVERYTHING}
_EVERYBODYS = {Reach.SOME, Reach.ALL}


class Seeing:
    """What one caller may see and do; created for one request."""

    def __init__(self, store: Store, access: AccessBook | None, caller: Caller) -> None:
        """Restrict queries to what ``caller`` may see; without ``access``, that is the caller's own work only."""
        self._store = store
        self._access = access
        self._caller = caller
        self._principal = caller.principal

    @cached_property
    def _grants(self) -> Grants:
        return Grants(others_see=Sight.NOTHING) if self._access is None else self._access.grants()

    def everything(self) -> bool:
        """Whether the caller sees everything."""
        return all(reach(self._principal, right, Subject.JOB) is Reach.ALL for right in (Right.LOGS, Right.WATCH))

    def details(self, kind: SubjectName = Subject.JOB) -> bool:
        """Whether the caller sees the details of all work, apart from program output."""
        return self._of_all(kind) and self._places(kind, Right.WATCH) is None

    def _of_all(self, kind: SubjectName) -> bool:
        """Whether the caller sees the details of all users' work, within the scope of its token."""
        return reach(self._principal, Right.WATCH, kind) in _EVERYBODYS or self._grants.others_see in _OPEN

    def _places(self, kind: SubjectName, *rights: Right) -> tuple[WorkScope, ...] | None:
        """Return the places that its token covers for one of these rights; ``None``: everywhere."""
        scopes: list[WorkScope] = []
        for right in rights:
            places = places_of(self._principal, right, kind)
            if places is None:
                return None
            scopes += places
        return tuple(scopes)

    def whole(self, kind: SubjectName = Subject.JOB, right: Right = Right.WATCH) -> Seen | None:
        """Return all work in the places that its token covers for watching or ``right``; ``None``: everywhere."""
        places = self._places(kind, Right.WATCH, right)
        return None if places is None else Seen(everyones=True, places=places)

    def only(self) -> Seen | None:
        """Return the jobs that the caller knows to exist; ``None``: all."""
        return self.whole() if self._grants.others_see is Sight.EXISTENCE else self.readable()

    def readable(self, kind: SubjectName = Subject.JOB, right: Right = Right.WATCH) -> Seen | None:
        """Return the work of which the caller sees more than that it exists; ``None``: all.

        Args:
            kind: Jobs, arrays or job sets.
            right: A right that makes work visible to a token that has no right to watch it.
        """
        if self._of_all(kind):
            return self.whole(kind, right)
        queues = [
            queue
            for queue in self._grants.permissions
            if self._grants.gives(self._principal, Right.WATCH, queue)
            or self._grants.gives(self._principal, Right.LOGS, queue)
        ]
        return evolve(self._own(right, kind), queues=frozenset(queues))

    def _own(self, right: Right, kind: SubjectName = Subject.JOB) -> Seen:
        return Seen(self._principal.name, uid=self._principal.uid, places=self._places(kind, Right.WATCH, right))

    def listed(self, where: JobFilter) -> JobFilter:
        """Limit a filter to jobs that the caller may see.

        If the caller only knows that others' jobs exist, they are not found by any hidden property.
        """
        by_what = (where.name, where.job_set, where.ids, where.group, where.named, where.submitted_by)
        hidden = bool(where.labels) or any(criterion is not None for criterion in by_what)
        return evolve(where, seen=self.readable() if hidden else self.only())

    def owner(self, kind: type[Owner], reference: str) -> str:
        """Return the id of an array or a job set for a filter of its jobs, also if it was deleted.

        Raises:
            NotFound: The caller may see neither it nor one of its jobs.
        """
        if self.details(_subject(kind)):
            return owner_id_of(self._store, kind, reference)
        try:
            return self.workload(Right.WATCH, kind, reference)
        except (NotFound, Forbidden):
            if self._store.jobs(JobFilter(job_set=reference, seen=self.readable()), limit=1):
                return reference
            raise self._no_such(_subject(kind), reference) from None

    def workloads(self, kind: type[Owner], where: WorkloadFilter = EVERY) -> WorkloadFilter:
        """Limit a filter to arrays or job sets that the caller may see."""
        return evolve(where, seen=self.readable(_subject(kind)))

    def job(self, right: Right, reference: str) -> str:
        """Check the caller's right to a job; returns a reference that names it.

        Raises:
            NotFound: The caller sees no such job.
            Forbidden: The caller does not have the right.
        """
        if reach(self._principal, right, Subject.JOB) is Reach.ALL:
            return reference
        job = self._found(reference, right)
        self._require(right, thing_of(job), reference, plainly=reference == job.id)
        return job.id

    def require(self, right: Right, jobs: Iterable[Job]) -> None:
        """Check the caller's right to each of these jobs.

        Raises:
            Forbidden: The caller does not have the right to one of them.
        """
        for job in jobs if reach(self._principal, right, Subject.JOB) is not Reach.ALL else ():
            self._require(right, thing_of(job), job.id, plainly=False)

    def able(self, right: Right, jobs: Sequence[Job]) -> list[Job]:
        """Return the jobs to which the caller has a right."""
        if reach(self._principal, right, Subject.JOB) is Reach.ALL:
            return [*jobs]
        return [job for job in jobs if decide(self._principal, right, thing_of(job), self._grants) is None]

    def _found(self, reference: str, right: Right = Right.WATCH) -> Job:
        """Find a job. If a name or a prefix is ambiguous, the caller's own jobs come before newer ones of others."""
        with suppress(NotFound):
            return self._store.job(reference, seen=self._own(right))
        try:
            return self._store.job(reference, seen=self.readable(right=right))
        except NotFound:
            if self.details():
                raise
        if self._grants.others_see is Sight.EXISTENCE:
            for job in self._store.jobs(JobFilter(ids=frozenset({reference})), limit=1):
                if masked(job).id == reference:
                    return job
        raise self._no_such(Subject.JOB, reference)

    def find_job(self, reference: str) -> Job:
        """Find a job that the caller may watch; see ``Finder``."""
        if reach(self._principal, Right.WATCH, Subject.JOB) is Reach.ALL:
            return self._store.job(reference)
        job = self._found(reference)
        if sight_of(self._principal, thing_of(job), self._grants) not in _OPEN:
            raise self._no_such(Subject.JOB, reference)
        return job

    def find_own(self, name: str) -> Job | None:
        """Return the newest job of a name that the caller may change; see ``Finder``."""
        try:
            job = self._store.job(name, seen=None if self.everything() else self._own(Right.SUBMIT))
        except NotFound:
            return None
        return job if job.name == name else None

    def find_workload(self, kind: type[Owner], reference: str) -> Owner:
        """Find an array or a job set that the caller may watch; see ``Finder``."""
        try:
            workload = self._store.workload(kind, reference)
        except NotFound:
            raise self._no_such(_subject(kind), reference) from None
        if not self.knows(workload):
            raise self._no_such(_subject(kind), reference)
        return workload

    def knows(self, owner: Owner) -> bool:
        """Whether the caller may see more of an array or a job set than that it exists."""
        return self.sight_of(owner) in _OPEN

    def names(self, kind: type[Owner], *, limit: int) -> Sequence[str]:
        """List some names of arrays or of job sets; see ``Finder``."""
        return [workload.name for workload in self._store.workloads(kind, self.workloads(kind), limit=limit)]

    def reads(self, owner: Owner) -> bool:
        """Whether the caller may read the output of an array or a job set."""
        return self.sight_of(owner) is Sight.EVERYTHING

    def require_own(self, owner: Owner, right: Right = Right.SUBMIT, *, must_exist: bool = False) -> None:
        """Check that the caller may change what an array or a job set runs; see ``Finder``."""
        thing = _thing_of(owner)
        refused = decide(self._principal, right, thing, self._grants)
        if refused is None:
            return
        if self.knows(owner):
            raise forbidden(self._store, self._caller, Act.UPDATE, thing.kind, owner.name, refused)
        if must_exist:
            raise self._no_such(thing.kind, owner.name)
        msg = f"{owner.noun} {owner.name!r} exists already"
        raise AlreadyExists(msg, hint="use another name")

    def sight_of(self, owner: Owner) -> Sight:
        """Return how much the caller sees of an array or a job set."""
        return Sight.EVERYTHING if self.everything() else sight_of(self._principal, _thing_of(owner), self._grants)

    def named(self, right: Right, kind: type[Job | Owner], reference: str) -> str:
        """Check the caller's right to work of any kind; see ``job``."""
        return self.workload(right, kind, reference) if issubclass(kind, Owner) else self.job(right, reference)

    def workload(self, right: Right, kind: type[Owner], reference: str) -> str:
        """Check the caller's right to an array or a job set; see ``job``."""
        subject = _subject(kind)
        if reach(self._principal, right, subject) is Reach.ALL:
            return reference
        try:
            row = self._store.workload(kind, reference)
        except NotFound as error:
            raise error if self.details(subject) else self._no_such(subject, reference) from None
        self._require(right, _thing_of(row), reference, plainly=reference == row.id)
        return row.id

    def _require(self, right: Right, thing: Thing, reference: str, *, plainly: bool) -> None:
        """Refuse a caller without the right; ``plainly``: the caller gave the id, and so may know that it exists."""
        refused = decide(self._principal, right, thing, self._grants)
        sight = sight_of(self._principal, thing, self._grants)
        enough = {Right.WATCH: _OPEN, Right.LOGS: {Sight.EVERYTHING}}.get(right, set())
        if refused is None or sight in enough:
            return
        if sight is Sight.NOTHING or (sight is Sight.EXISTENCE and not plainly):
            raise self._no_such(thing.kind, reference)
        raise forbidden(self._store, self._caller, ACTS[right], thing.kind, reference, refused)

    def sight(self, job: Job) -> Sight:
        """Return how much the caller sees of a job."""
        return Sight.EVERYTHING if self.everything() else sight_of(self._principal, thing_of(job), self._grants)

    def jobs(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """Return jobs as the caller sees them."""
        return jobs if self.everything() else [self._shown(job) for job in jobs]

    def _shown(self, job: Job) -> Job:
        sight, job = self.sight(job), self._unnamed(job)
        if sight is Sight.EVERYTHING:
            return job
        if sight is not Sight.DETAILS:
            return masked(job)
        return evolve(job, spec=without_environment(job.spec), reason=unquoted(job.reason))

    def _unnamed(self, job: Job) -> Job:
        """Leave out the names of other jobs if the caller's token covers some places only."""
        return job if self.whole() is None else evolve(job, reason=unnamed(job.reason))

    def events(self, events: Sequence[StoredEvent]) -> Sequence[StoredEvent]:
        """Return events, of jobs that the caller may see, as the caller sees them."""
        events = events if self.whole() is None else [*map(event_without_names, events)]
        quotes_all = self._grants.others_see is Sight.EVERYTHING and self._places(Subject.JOB, Right.LOGS) is None
        if self.everything() or quotes_all:
            return events
        silent = [event_without_logs(event) for event in events]
        ids = {event.job_id for event, other in zip(events, silent, strict=True) if event is not other}
        whole = self.read_of({job_id for job_id in ids if job_id is not None})
        return [event if event.job_id in whole else other for event, other in zip(events, silent, strict=True)]

    def read_of(self, ids: Collection[str]) -> Collection[str]:
        """Return the jobs, arrays and job sets whose output the caller may read; no deleted ones."""
        if not ids or self.everything():
            return ids
        jobs = self._store.jobs(JobFilter(ids=frozenset(ids)))
        read = {job.id for job in jobs if self.sight(job) is Sight.EVERYTHING}
        others = self._store.workloads_by_id(Workload, sorted({*ids} - {job.id for job in jobs}))
        works = (work for work in others.values() if isinstance(work, Owner))
        return read | {work.id for work in works if self.reads(work)}

    def job_set(self, row: JobSet) -> JobSet:
        """Return a job set as the caller sees it."""
        if self.everything():
            return row
        if self.reads(row):
            return row
        spec, manifest = without_environment(row.spec), without_environment(row.manifest)
        return evolve(row, spec=spec, manifest=manifest)

    def detail(self, seen: JobDetail) -> JobDetail:
        """Return the detail of a job as the caller sees it."""
        sight = self.sight(seen.job)
        if sight is Sight.EVERYTHING:
            return evolve(seen, job=self._unnamed(seen.job))
        if sight is not Sight.DETAILS:
            return JobDetail(masked(seen.job), (), ())
        attempts = [without_logs(attempt) for attempt in seen.attempts]
        runs = [without_logs(run) for run in seen.runs]
        return evolve(seen, job=self._shown(seen.job), attempts=attempts, runs=runs, pods=None)

    def holders(self, runs: Sequence[Run], jobs: Sequence[Job]) -> tuple[Sequence[Run], Mapping[str, str]]:
        """Return the runs that hold devices and the names of their jobs by id, as far as the caller sees these."""
        if self.details():
            return runs, {job.id: job.name for job in jobs}
        shown = {job.id: job for job in self.jobs(jobs)}
        names = {key: job.name for key, job in shown.items() if job.name != ANOTHERS}
        hidden = [evolve(run, job_id="", uid="") if run.job_id not in names else run for run in runs]
        return hidden, {**names, "": ANOTHERS}

    def latest(self, jobs: Sequence[Job], last_known: Mapping[str, Latest]) -> Mapping[str, Latest]:
        """Return the last attempts of jobs as the caller sees them."""
        if self.everything():
            return last_known
        by_job = dict[str, Latest]()
        for job in jobs:
            sight, last = self.sight(job), last_known.get(job.id)
            if last is None or sight in {Sight.NOTHING, Sight.EXISTENCE}:
                continue
            attempt = None if last.attempt is None else without_logs(last.attempt)
            runs = [without_logs(run) for run in last.runs]
            by_job[job.id] = last if sight is Sight.EVERYTHING else evolve(last, attempt=attempt, runs=runs)
        return by_job

    def _no_such(self, kind: SubjectName, reference: str) -> NotFound:
        """Return the error for work that does not exist, or that is outside the scope of the caller's token."""
        limit = self._principal.limit
        scopes = "" if limit is None else " ".join(map(str, limit.scopes))
        hint = f"it may be outside this token's scope: {scopes}" if scopes else ""
        return NotFound(f"no {kind.replace('-', ' ')} of yours has the id or name {reference!r}", hint=hint or None)


def thing_of(job: Job) -> Thing:
    """Return the properties of a job that rights depend on."""
    return Thing(Subject.JOB, job.queue, job.submitted_by, job.submitter_uid, job.group, job.id)


def _subject(kind: type[Owner]) -> SubjectName:
    return kind.info.subject


def _thing_of(owner: Owner) -> Thing:
    return Thing(_subject(type(owner)), owner.queue, owner.submitted_by, owner.submitter_uid, owner.group, owner.id)
