"""What who calls sees of the work there is, most of which is somebody else's."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from holdfast.compiled.codec import load_array, load_set_spec
from holdfast.domain.access.grants import Right, Seen, Sight
from holdfast.domain.audit import Subject
from holdfast.domain.record import evolve
from holdfast.domain.rights import Grants, Reach, Thing, decide, reach, sight_of
from holdfast.domain.workloads.array.model import Array
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.errors import NotFound, UnreadableSpec
from holdfast.ports.overview import Latest
from holdfast.service.access.asking import ACTS, forbidden
from holdfast.service.access.hiding import ANOTHERS, masked, without_environment, without_logs
from holdfast.service.query import JobDetail

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Job, Run
    from holdfast.ports.store import Store
    from holdfast.ports.workloads import WorkloadFilter
    from holdfast.service.access.book import AccessBook

W = TypeVar("W", Array, JobSet)
_KINDS = {Array: Subject.ARRAY, JobSet: Subject.JOB_SET}
_OPEN = {Sight.DETAILS, Sight.EVERYTHING}


class Seeing:
    """What one caller may see and do; made for one request."""

    def __init__(self, store: Store, access: AccessBook | None, caller: Caller) -> None:
        """Look with the eyes of a caller; where nobody knows what was given to it, it sees its own only."""
        self._store = store
        self._access = access
        self._caller = caller
        self._who = caller.principal

    @cached_property
    def _grants(self) -> Grants:
        return Grants(others_see=Sight.NOTHING) if self._access is None else self._access.grants()

    def everything(self) -> bool:
        """Whether nothing at all is hidden from it."""
        return reach(self._who, Right.LOGS, Subject.JOB) is Reach.ALL

    def details(self) -> bool:
        """Whether it sees the details of all work, if not what that printed."""
        return reach(self._who, Right.WATCH, Subject.JOB) is Reach.ALL or self._grants.others_see in _OPEN

    def only(self) -> Seen | None:
        """Return whose jobs it sees, and those of which queues; ``None``: all, or that they are there."""
        return None if self.details() or self._grants.others_see is Sight.EXISTENCE else self.known()

    def known(self) -> Seen | None:
        """Return of whose jobs, and of those in which queues, it sees more than that they are there; ``None``: all."""
        if self.details():
            return None
        queues = [
            queue
            for queue in self._grants.permissions
            if self._grants.gives(self._who, Right.WATCH, queue) or self._grants.gives(self._who, Right.LOGS, queue)
        ]
        return Seen(self._who.name, frozenset(queues))

    def workloads(self, where: WorkloadFilter) -> WorkloadFilter | None:
        """Return which of the arrays or job sets that are asked for it sees; ``None``: none."""
        if self.details():
            return where
        if where.submitted_by not in {None, self._who.name}:
            return None
        return evolve(where, submitted_by=self._who.name)

    def job(self, right: Right, reference: str) -> str:
        """Return what names a job, for whoever may do so to it.

        Raises:
            NotFound: There is none that it may know of.
            Forbidden: It has no such right.
        """
        if reach(self._who, right, Subject.JOB) is Reach.ALL:
            return reference
        try:
            job = self._store.job(reference)
        except NotFound as error:
            raise error if self.details() else _no_such(Subject.JOB, reference) from None
        self._require(right, thing_of(job), reference)
        return job.id

    def require(self, right: Right, jobs: Iterable[Job]) -> None:
        """Check that it may do so to each of these jobs.

        Raises:
            Forbidden: It has no such right to one of them.
        """
        for job in jobs if reach(self._who, right, Subject.JOB) is not Reach.ALL else ():
            self._require(right, thing_of(job), job.id)

    def workload(self, right: Right, kind: type[W], reference: str) -> str:
        """Return what names an array or a job set, for whoever may do so to it; see ``job``."""
        subject = _KINDS[kind]
        if reach(self._who, right, subject) is Reach.ALL:
            return reference
        try:
            found = self._store.workload(kind, reference)
        except NotFound as error:
            raise error if self.details() else _no_such(subject, reference) from None
        self._require(right, Thing(subject, _queue_of(found), found.submitted_by, found.submitter_uid), reference)
        return found.id

    def _require(self, right: Right, thing: Thing, reference: str) -> None:
        refused = decide(self._who, right, thing, self._grants)
        sight = sight_of(self._who, thing, self._grants)
        enough = {Right.WATCH: _OPEN, Right.LOGS: {Sight.EVERYTHING}}.get(right, set())
        if refused is None or sight in enough:
            return
        if sight is Sight.NOTHING:
            raise _no_such(thing.kind, reference)
        raise forbidden(self._store, self._caller, ACTS[right], thing.kind, reference, refused)

    def sight(self, job: Job) -> Sight:
        """Return how much it sees of a job."""
        return Sight.EVERYTHING if self.everything() else sight_of(self._who, thing_of(job), self._grants)

    def jobs(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """Return jobs as it sees them."""
        return jobs if self.everything() else [self._shown(job) for job in jobs]

    def _shown(self, job: Job) -> Job:
        sight = self.sight(job)
        if sight is Sight.EVERYTHING:
            return job
        return evolve(job, spec=without_environment(job.spec)) if sight is Sight.DETAILS else masked(job)

    def job_set(self, found: JobSet) -> JobSet:
        """Return a job set as it sees that."""
        if self.everything():
            return found
        thing = Thing(Subject.JOB_SET, _queue_of(found), found.submitted_by, found.submitter_uid)
        if sight_of(self._who, thing, self._grants) is Sight.EVERYTHING:
            return found
        spec, manifest = without_environment(found.spec), without_environment(found.manifest)
        return evolve(found, spec=spec, manifest=manifest)

    def detail(self, found: JobDetail) -> JobDetail:
        """Return a job as it sees that, with what is known of it."""
        sight = self.sight(found.job)
        if sight is Sight.EVERYTHING:
            return found
        if sight is not Sight.DETAILS:
            return JobDetail(masked(found.job), (), ())
        attempts = [without_logs(attempt) for attempt in found.attempts]
        runs = [without_logs(run) for run in found.runs]
        return evolve(found, job=self._shown(found.job), attempts=attempts, runs=runs, pods=None)

    def holders(self, runs: Sequence[Run], jobs: Sequence[Job]) -> tuple[Sequence[Run], Mapping[str, str]]:
        """Return what has devices, and the names of these jobs by id, as far as it sees whose they are."""
        if self.details():
            return runs, {job.id: job.name for job in jobs}
        shown = {job.id: job for job in self.jobs(jobs)}
        names = {key: job.name for key, job in shown.items() if job.name != ANOTHERS}
        hidden = [evolve(run, job_id="", uid="") if run.job_id not in names else run for run in runs]
        return hidden, {**names, "": ANOTHERS}

    def latest(self, jobs: Sequence[Job], known: Mapping[str, Latest]) -> Mapping[str, Latest]:
        """Return how the last attempts of jobs went, as far as it sees that."""
        if self.everything():
            return known
        found = dict[str, Latest]()
        for job in jobs:
            sight, last = self.sight(job), known.get(job.id)
            if last is None or sight in {Sight.NOTHING, Sight.EXISTENCE}:
                continue
            attempt = None if last.attempt is None else without_logs(last.attempt)
            runs = [without_logs(run) for run in last.runs]
            found[job.id] = last if sight is Sight.EVERYTHING else evolve(last, attempt=attempt, runs=runs)
        return found


def thing_of(job: Job) -> Thing:
    """Return what rights to a job depend on."""
    return Thing(Subject.JOB, job.queue, job.submitted_by, job.submitter_uid)


def _queue_of(workload: Array | JobSet) -> str:
    try:
        if isinstance(workload, Array):
            return load_array(workload.spec).job.queue
        return load_set_spec(workload.spec).queue_name
    except UnreadableSpec:
        return ""


def _no_such(kind: Subject, reference: str) -> NotFound:
    return NotFound(f"no {kind.replace('-', ' ')} of yours has the id or name {reference!r}")
