"""What who calls sees of the work there is, most of which is somebody else's."""

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
    """What one caller may see and do; made for one request."""

    def __init__(self, store: Store, access: AccessBook | None, caller: Caller) -> None:
        """Look with the eyes of a caller; where nobody knows what was given to it, it sees its own only."""
        self._store = store
        self._access = access
        self._caller = caller
        self._principal = caller.principal

    @cached_property
    def _grants(self) -> Grants:
        return Grants(others_see=Sight.NOTHING) if self._access is None else self._access.grants()

    def everything(self) -> bool:
        """Whether nothing at all is hidden from it."""
        return all(reach(self._principal, right, Subject.JOB) is Reach.ALL for right in (Right.LOGS, Right.WATCH))

    def details(self, kind: SubjectName = Subject.JOB) -> bool:
        """Whether it sees the details of all work, if not what that printed."""
        return self._of_all(kind) and self._places(kind, Right.WATCH) is None

    def _of_all(self, kind: SubjectName) -> bool:
        """Whether it sees the details of everybody's work, where its token is for that."""
        return reach(self._principal, Right.WATCH, kind) in _EVERYBODYS or self._grants.others_see in _OPEN

    def _places(self, kind: SubjectName, *rights: Right) -> tuple[WorkScope, ...] | None:
        """Return where its token is for one of these rights; ``None``: everywhere."""
        scopes: list[WorkScope] = []
        for right in rights:
            places = places_of(self._principal, right, kind)
            if places is None:
                return None
            scopes += places
        return tuple(scopes)

    def whole(self, kind: SubjectName = Subject.JOB, right: Right = Right.WATCH) -> Seen | None:
        """Return all work there is where its token is for watching it, or for something else; ``None``: everywhere."""
        places = self._places(kind, Right.WATCH, right)
        return None if places is None else Seen(everyones=True, places=places)

    def only(self) -> Seen | None:
        """Return whose jobs it sees, and those of which queues; ``None``: all, or that they are there."""
        return self.whole() if self._grants.others_see is Sight.EXISTENCE else self.readable()

    def readable(self, kind: SubjectName = Subject.JOB, right: Right = Right.WATCH) -> Seen | None:
        """Return of whose jobs, and of those in which queues, it sees more than that they are there; ``None``: all.

        Args:
            kind: Of arrays or job sets instead.
            right: What else its token may be for, if that is to be found by it.
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
        """Return which of the jobs that are asked for it may know of.

        Where it knows of others' jobs no more than that they are there, none is found by anything that is hidden.
        """
        by_what = (where.name, where.job_set, where.ids, where.group, where.named, where.submitted_by)
        hidden = bool(where.labels) or any(criterion is not None for criterion in by_what)
        return evolve(where, seen=self.readable() if hidden else self.only())

    def owner(self, kind: type[Owner], reference: str) -> str:
        """Return the id of an array or a job set whose jobs are asked for, also of one that is gone.

        Raises:
            NotFound: There is none that it may know of, nor a job of it.
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
        """Return which of the arrays or job sets that are asked for it sees."""
        return evolve(where, seen=self.readable(_subject(kind)))

    def job(self, right: Right, reference: str) -> str:
        """Return what names a job, for whoever may do so to it.

        Raises:
            NotFound: There is none that it may know of.
            Forbidden: It has no such right.
        """
        if reach(self._principal, right, Subject.JOB) is Reach.ALL:
            return reference
        job = self._found(reference, right)
        self._require(right, thing_of(job), reference, plainly=reference == job.id)
        return job.id

    def require(self, right: Right, jobs: Iterable[Job]) -> None:
        """Check that it may do so to each of these jobs.

        Raises:
            Forbidden: It has no such right to one of them.
        """
        for job in jobs if reach(self._principal, right, Subject.JOB) is not Reach.ALL else ():
            self._require(right, thing_of(job), job.id, plainly=False)

    def able(self, right: Right, jobs: Sequence[Job]) -> list[Job]:
        """Return those of these jobs to which it may do so."""
        if reach(self._principal, right, Subject.JOB) is Reach.ALL:
            return [*jobs]
        return [job for job in jobs if decide(self._principal, right, thing_of(job), self._grants) is None]

    def _found(self, reference: str, right: Right = Right.WATCH) -> Job:
        """Find a job: of several that a name or a prefix may mean, its own comes first, whoever made others since."""
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
        """Find a job that it may watch; see ``Finder``."""
        if reach(self._principal, Right.WATCH, Subject.JOB) is Reach.ALL:
            return self._store.job(reference)
        job = self._found(reference)
        if sight_of(self._principal, thing_of(job), self._grants) not in _OPEN:
            raise self._no_such(Subject.JOB, reference)
        return job

    def find_own(self, name: str) -> Job | None:
        """Return the newest job of a name that is its own to change; see ``Finder``."""
        try:
            job = self._store.job(name, seen=None if self.everything() else self._own(Right.SUBMIT))
        except NotFound:
            return None
        return job if job.name == name else None

    def find_workload(self, kind: type[Owner], reference: str) -> Owner:
        """Find an array or a job set that it may watch; see ``Finder``."""
        try:
            workload = self._store.workload(kind, reference)
        except NotFound:
            raise self._no_such(_subject(kind), reference) from None
        if not self.knows(workload):
            raise self._no_such(_subject(kind), reference)
        return workload

    def knows(self, owner: Owner) -> bool:
        """Whether it may know more of an array or a job set than that it is there."""
        return self.sight_of(owner) in _OPEN

    def names(self, kind: type[Owner], *, limit: int) -> Sequence[str]:
        """List some names of arrays or of job sets; see ``Finder``."""
        return [workload.name for workload in self._store.workloads(kind, self.workloads(kind), limit=limit)]

    def reads(self, owner: Owner) -> bool:
        """Whether it may read what an array or a job set printed."""
        return self.sight_of(owner) is Sight.EVERYTHING

    def require_own(self, owner: Owner, right: Right = Right.SUBMIT, *, must_exist: bool = False) -> None:
        """Check that it may change what an array or a job set runs; see ``Finder``."""
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
        """Return how much it sees of an array or a job set."""
        return Sight.EVERYTHING if self.everything() else sight_of(self._principal, _thing_of(owner), self._grants)

    def named(self, right: Right, kind: type[Job | Owner], reference: str) -> str:
        """Return what names work of any kind, for whoever may do so to it; see ``job``."""
        return self.workload(right, kind, reference) if issubclass(kind, Owner) else self.job(right, reference)

    def workload(self, right: Right, kind: type[Owner], reference: str) -> str:
        """Return what names an array or a job set, for whoever may do so to it; see ``job``."""
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
        """Refuse who may not do so; ``plainly`` where it may know of what it named, by its id."""
        refused = decide(self._principal, right, thing, self._grants)
        sight = sight_of(self._principal, thing, self._grants)
        enough = {Right.WATCH: _OPEN, Right.LOGS: {Sight.EVERYTHING}}.get(right, set())
        if refused is None or sight in enough:
            return
        if sight is Sight.NOTHING or (sight is Sight.EXISTENCE and not plainly):
            raise self._no_such(thing.kind, reference)
        raise forbidden(self._store, self._caller, ACTS[right], thing.kind, reference, refused)

    def sight(self, job: Job) -> Sight:
        """Return how much it sees of a job."""
        return Sight.EVERYTHING if self.everything() else sight_of(self._principal, thing_of(job), self._grants)

    def jobs(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """Return jobs as it sees them."""
        return jobs if self.everything() else [self._shown(job) for job in jobs]

    def _shown(self, job: Job) -> Job:
        sight, job = self.sight(job), self._unnamed(job)
        if sight is Sight.EVERYTHING:
            return job
        if sight is not Sight.DETAILS:
            return masked(job)
        return evolve(job, spec=without_environment(job.spec), reason=unquoted(job.reason))

    def _unnamed(self, job: Job) -> Job:
        """Leave out what else has a place, where its token is for some places only."""
        return job if self.whole() is None else evolve(job, reason=unnamed(job.reason))

    def events(self, events: Sequence[StoredEvent]) -> Sequence[StoredEvent]:
        """Return events as it sees them, of jobs that it may know of."""
        events = events if self.whole() is None else [*map(event_without_names, events)]
        quotes_all = self._grants.others_see is Sight.EVERYTHING and self._places(Subject.JOB, Right.LOGS) is None
        if self.everything() or quotes_all:
            return events
        silent = [event_without_logs(event) for event in events]
        ids = {event.job_id for event, other in zip(events, silent, strict=True) if event is not other}
        whole = self.read_of({job_id for job_id in ids if job_id is not None})
        return [event if event.job_id in whole else other for event, other in zip(events, silent, strict=True)]

    def read_of(self, ids: Collection[str]) -> Collection[str]:
        """Return which of these jobs, arrays and job sets it may read what they printed of; of what is gone, none."""
        if not ids or self.everything():
            return ids
        jobs = self._store.jobs(JobFilter(ids=frozenset(ids)))
        read = {job.id for job in jobs if self.sight(job) is Sight.EVERYTHING}
        others = self._store.workloads_by_id(Workload, sorted({*ids} - {job.id for job in jobs}))
        works = (work for work in others.values() if isinstance(work, Owner))
        return read | {work.id for work in works if self.reads(work)}

    def job_set(self, row: JobSet) -> JobSet:
        """Return a job set as it sees that."""
        if self.everything():
            return row
        if self.reads(row):
            return row
        spec, manifest = without_environment(row.spec), without_environment(row.manifest)
        return evolve(row, spec=spec, manifest=manifest)

    def detail(self, seen: JobDetail) -> JobDetail:
        """Return a job as it sees that, with what is known of it."""
        sight = self.sight(seen.job)
        if sight is Sight.EVERYTHING:
            return evolve(seen, job=self._unnamed(seen.job))
        if sight is not Sight.DETAILS:
            return JobDetail(masked(seen.job), (), ())
        attempts = [without_logs(attempt) for attempt in seen.attempts]
        runs = [without_logs(run) for run in seen.runs]
        return evolve(seen, job=self._shown(seen.job), attempts=attempts, runs=runs, pods=None)

    def holders(self, runs: Sequence[Run], jobs: Sequence[Job]) -> tuple[Sequence[Run], Mapping[str, str]]:
        """Return what has devices, and the names of these jobs by id, as far as it sees whose they are."""
        if self.details():
            return runs, {job.id: job.name for job in jobs}
        shown = {job.id: job for job in self.jobs(jobs)}
        names = {key: job.name for key, job in shown.items() if job.name != ANOTHERS}
        hidden = [evolve(run, job_id="", uid="") if run.job_id not in names else run for run in runs]
        return hidden, {**names, "": ANOTHERS}

    def latest(self, jobs: Sequence[Job], last_known: Mapping[str, Latest]) -> Mapping[str, Latest]:
        """Return how the last attempts of jobs went, as far as it sees that."""
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
        """Say that there is none; whether there is one that its token is not for is not told."""
        limit = self._principal.limit
        scopes = "" if limit is None else " ".join(map(str, limit.scopes))
        hint = f"it may be one that this token is not for: its scope is {scopes}" if scopes else ""
        return NotFound(f"no {kind.replace('-', ' ')} of yours has the id or name {reference!r}", hint=hint or None)


def thing_of(job: Job) -> Thing:
    """Return what rights to a job depend on."""
    return Thing(Subject.JOB, job.queue, job.submitted_by, job.submitter_uid, job.group, job.id)


def _subject(kind: type[Owner]) -> SubjectName:
    return kind.info.subject


def _thing_of(owner: Owner) -> Thing:
    return Thing(_subject(type(owner)), owner.queue, owner.submitted_by, owner.submitter_uid, owner.group, owner.id)
