"""Submits jobs and arrays: checks them against the catalogue, assigns ids, stores them in one transaction.

In a bulk submission each job is accepted or refused with its own problems.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING, TypeAlias, cast, overload

from holdfast.compiled.codec import dump_spec
from holdfast.domain.audit import Subject
from holdfast.domain.record import Struct, evolve
from holdfast.domain.sessions.records import first_session
from holdfast.domain.workloads.array.model import Array, ArraySpec, Origin
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import AlreadyExists, HoldfastError, InvalidManifest, NotFound, Problem
from holdfast.ports.store import Submission
from holdfast.service.admission.dependencies import NOTHING, DependencyResolver, SubmissionItem
from holdfast.service.admission.inputs import absent
from holdfast.service.admission.limits import check, check_count, check_key, gate
from holdfast.service.admission.many import all_of
from holdfast.service.admission.records import array_exists, below_its_job, new_array, new_job, rerun_of
from holdfast.service.admission.secrets import withheld_secrets
from holdfast.service.kube_paths import JOB_POD, in_kubernetes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Job, Node
    from holdfast.domain.sessions.model import Session
    from holdfast.ports.blobs import Blobs
    from holdfast.ports.catalogue import Catalogue
    from holdfast.ports.clock import Clock, Ids
    from holdfast.ports.names import ExternalName
    from holdfast.ports.secrets import Secrets
    from holdfast.ports.store import Store
    from holdfast.service.admission.finding import Finder
    from holdfast.service.admission.limits import Gate


class WrittenJob(Struct, frozen=True):
    """A job or array as it was written."""

    spec: JobSpec
    """Its specification; if it could not be read, at least its name, queue and policies."""
    error: HoldfastError | None = None
    """Why it could not be read."""
    flat: bool = False
    """Whether it is in the short form, without ``spec``."""
    warnings: tuple[Problem, ...] = ()
    """Warnings about it."""
    array: ArraySpec | None = None
    """The array, if it is one; ``spec`` is then that of its tasks."""
    manifest: str = ""
    """The manifest of an array."""
    origins: tuple[Origin, ...] = ()
    """The arrays whose tasks an array reruns."""
    taken_over: tuple[str, ...] = ()
    """The ids of those tasks, as far as they still exist."""
    claim: str | None = None
    """An idempotency key of a single job: whatever submission repeats it, the first job with the key is returned."""
    external: ExternalName | None = None
    """The job's external name; if it is taken, the job that has it is returned."""
    parent: str = ""
    """The id of the parent job, with which a child ends."""
    caller: Caller | None = None
    """Who submitted it, if the jobs came in different requests."""
    named: Callable[[str], JobSpec] | None = None
    """Makes the specification from the job's id, if that is part of it."""
    session_name: str = ""
    """The name of the session that it is, if it is one."""
    session_tag: str = ""

    def of(self, job_id: str) -> JobSpec:
        """Return the specification of the job with an id."""
        return self.spec if self.named is None else self.named(job_id)


_Ids: TypeAlias = "Mapping[int, str]"
_Read: TypeAlias = "WrittenJob | HoldfastError"
Item: TypeAlias = "JobSpec | WrittenJob | HoldfastError"
"""A specification, a job or array as written, or the error of reading one."""


class ItemOutcome(Struct, frozen=True):
    """The result of one item of a submission; exactly one of ``created`` and ``error`` is set."""

    index: int
    name: str | None = None
    created: Job | Array | None = None
    error: HoldfastError | None = None
    warnings: tuple[Problem, ...] = ()
    is_new: bool = True
    """Whether this submission created it; otherwise its key or external name belongs to an earlier job."""


class Submitter(Struct, frozen=True):
    """Submits jobs and arrays."""

    store: Store
    clock: Clock
    ids: Ids
    sets: Sequence[SubmissionItem] = ()
    """Job sets that count as existing."""
    nodes: Callable[[], Sequence[Node]] | None = None
    """Lists the nodes that jobs can count on; by default those that were reported."""
    secrets: Secrets | None = None
    """The secrets; ``None`` if there are none."""
    blobs: Blobs | None = None
    """The stored inputs; ``None`` if there are none."""
    caller: Caller | None = None
    """The submitter, who becomes the owner; ``None`` if unknown."""
    finder: Finder | None = None
    """Finds what the submitter may know of; by default everything."""
    catalogue: Catalogue | None = None
    """The catalogue; by default it is read anew."""

    def submit(self, item: JobSpec | WrittenJob, *, key: str | None = None, newest: str | None = None) -> Job:
        """Submit one job.

        Args:
            item: The job.
            key: An idempotency key: a repeated submission stores nothing and returns the first result.
            newest: The expected id of the newest job of its name, empty for none; ``None`` is not checked.

        Raises:
            InvalidManifest: It is invalid, or names something that does not exist; with all problems.
            Refused: A limit of its queue could never be met, or is not met now.
            Conflict: The idempotency key was used for another request, or there is a newer job of its name.
        """
        written = below_its_job(_written(item), self.caller)
        resolver = self._resolver([written])
        for error in self._refused([written], resolver).values():
            raise error
        return cast("Job", self._store({0: written}, {0: self.ids.new()}, resolver, key, newest)[0])

    def submit_array(self, written: WrittenJob, *, key: str | None = None) -> Array:
        """Submit one array.

        Raises:
            InvalidManifest: It is invalid, or names something that does not exist; with all problems.
            Refused: A limit of its queue could never be met by a task, or is not met now.
            AlreadyExists: There is one of that name.
            Conflict: The idempotency key was used for another request.
        """
        resolver = self._resolver([written := below_its_job(written, self.caller)])
        for error in self._refused([written], resolver).values():
            if key is None or not isinstance(error, AlreadyExists):
                raise error
        try:
            return cast("Array", self._store({0: written}, {0: self.ids.new()}, resolver, key)[0])
        except AlreadyExists:
            raise array_exists(written.spec.name) from None

    def submit_many(self, items: Sequence[Item], *, atomic: bool = True, key: str | None = None) -> list[ItemOutcome]:
        """Submit many jobs and arrays in one transaction; they may depend on each other by name.

        Args:
            items: What to submit.
            atomic: Store all or nothing; otherwise store the valid items and return the result of each.
            key: An idempotency key: a repeated submission stores nothing and returns the first result.

        Raises:
            InvalidManifest: An item is invalid and ``atomic`` is set; with the problems of every item.
            QueueFull, RateLimited: A queue has no room for all of it.
            Conflict: The idempotency key was used for another request.
        """
        written = [below_its_job(_written(item), self.caller) for item in items]
        resolver = self._resolver(written)
        errors = self._refused(written, resolver)
        # In a repeated submission, existing work may be what the first call created; the store knows.
        again = {} if key is None else {at: error for at, error in errors.items() if isinstance(error, AlreadyExists)}
        refused = {at: error for at, error in errors.items() if at not in again}
        if refused and atomic:
            raise all_of(errors, len(items))
        try:
            return self._stored(written, resolver, refused, key)
        except AlreadyExists:
            if not again:
                raise
            if atomic:
                raise all_of(again, len(items)) from None
        return self._stored(written, resolver, errors, key)

    def _stored(
        self, items: Sequence[_Read], resolver: DependencyResolver, errors: Mapping[int, HoldfastError], key: str | None
    ) -> list[ItemOutcome]:
        """Store the items that are not refused and do not depend on refused ones."""
        errors = resolver.with_what_waits(errors, len(items)) if errors else errors
        accepted = {at: item for at, item in enumerate(items) if at not in errors and isinstance(item, WrittenJob)}
        ids = {place: self.ids.new() for place in accepted}
        stored = self._store(accepted, ids, resolver, key)
        earlier = {at for at, stored_job in stored.items() if stored_job.id != ids[at]}
        return [
            ItemOutcome(at, _name(item), stored.get(at), errors.get(at), _warnings(item), is_new=at not in earlier)
            for at, item in enumerate(items)
        ]

    def check_many(self, items: Sequence[Item]) -> list[str | None]:
        """Check a submission without storing anything; returns the names of its items.

        Raises:
            InvalidManifest: An item is invalid; with the problems of every item.
            QueueFull, RateLimited: A queue has no room for all of it now.
        """
        errors = self.refusals(items)
        if errors:
            raise all_of(errors, len(items))
        self.require_room([job for item in items if isinstance(job := _written(item), WrittenJob)])
        return [_name(_written(item)) for item in items]

    def require_room(self, items: Sequence[WrittenJob]) -> None:
        """Make sure that queues have room for all of it now; nothing is counted.

        Raises:
            QueueFull, RateLimited: A queue has none.
        """
        limited = self.store.catalogue().limiting
        if not limited or not items:
            return
        now, principal = self.clock.now(), None if self.caller is None else self.caller.principal
        jobs = [new_job(item.spec, "", now, principal) for item in items if item.array is None]
        arrays = [new_array(item.array, NOTHING, "", "", now, principal) for item in items if item.array is not None]
        self.store.require_room(Submission(jobs, also=arrays, limited=limited), now)

    def refusals(self, items: Sequence[Item]) -> dict[int, HoldfastError]:
        """Return the errors of items that cannot be accepted, by their places.

        Raises:
            InvalidRequest: There are no items, or too many.
        """
        written = [below_its_job(_written(item), self.caller) for item in items]
        return self._refused(written, self._resolver(written))

    def _resolver(self, items: Sequence[_Read]) -> DependencyResolver:
        items_read = [SubmissionItem(item.spec, item.array) if isinstance(item, WrittenJob) else None for item in items]
        return DependencyResolver(self.store, [*items_read, *self.sets], self.finder, self.catalogue)

    def _refused(self, items: Sequence[_Read], resolver: DependencyResolver) -> dict[int, HoldfastError]:
        check_count(len(items))
        catalogue, awaited = resolver.catalogue, resolver.problems()
        nodes, closed = cache(self.nodes or self.store.nodes), gate(self.caller, catalogue.queues)
        errors: dict[int, HoldfastError] = {}
        arrays: set[str] = set()
        for place, item in enumerate(items):
            error = (
                item
                if isinstance(item, HoldfastError)
                else _error_of(item, catalogue, self._missing(item.spec, awaited.get(place, ())), nodes, closed)
            )
            if error is None and isinstance(item, WrittenJob):
                error = withheld_secrets(item.spec, self.secrets, self.caller) if item.spec.secrets else None
            if error is None and isinstance(item, WrittenJob) and item.array is not None:
                error = self._taken(item.spec.name, arrays)
            if error is not None:
                errors[place] = error
        return errors

    def _missing(self, spec: JobSpec, awaited: Sequence[Problem]) -> Sequence[Problem]:
        """Add the missing dependencies of an item to its problems."""
        return (
            [*awaited, *absent(spec, self.secrets, self.blobs, self.caller)] if spec.secrets or spec.inputs else awaited
        )

    def _taken(self, name: str, submitted: set[str]) -> HoldfastError | None:
        """Check that an array's name is free, also within the submission."""
        if name in submitted:
            return InvalidManifest(
                problems=[Problem("metadata.name", f"another array of this submission is also named {name!r}")]
            )
        submitted.add(name)
        try:
            existing = self.store.workload(Array, name)
        except NotFound:
            return None
        return array_exists(name) if existing.name == name else None

    def _store(
        self,
        accepted: Mapping[int, WrittenJob],
        ids: _Ids,
        resolver: DependencyResolver,
        key: str | None,
        newest: str | None = None,
    ) -> Mapping[int, Job | Array]:
        """Store the accepted items under these ids; returns them by their places."""
        if not accepted:
            return {}
        check_key(key)
        now = self.clock.now()
        jobs, arrays = dict[int, "Job"](), dict[int, Array]()
        stored_specs: dict[int, Job] = {}
        """By the identity of its specification, which equal items share."""
        others, labels = set[str](), dict[str, "Mapping[str, str]"]()
        principal = None if self.caller is None else self.caller.principal
        for place, item in accepted.items():
            awaited = resolver.resolved(place, ids) if item.spec.after else NOTHING
            others.update(thing.id for thing in awaited.after if not thing.outcome)
            if item.array is None:
                spec = item.of(ids[place])
                if awaited.after:
                    job = new_job(evolve(spec, after=awaited.after), ids[place], now, principal)
                elif spec is not item.spec:
                    job = new_job(spec, ids[place], now, principal)
                elif id(spec) in stored_specs:
                    job = evolve(stored_specs[id(spec)], id=ids[place])
                else:
                    job = stored_specs[id(spec)] = new_job(spec, ids[place], now, principal)
                jobs[place] = awaited.applied(evolve(job, parent=item.parent) if item.parent else job)
                if spec.labels:
                    labels[job.id] = spec.labels
            else:
                array = new_array(item.array, awaited, item.manifest, ids[place], now, principal)
                arrays[place] = evolve(array, origins=item.origins)
        submission = Submission(
            jobs=[*jobs.values()],
            labels=labels,
            idempotency_key=key,
            fingerprint=_fingerprint(accepted, stored_specs) if key else "",
            newest=newest,
            also=[*arrays.values()],
            awaited=others.difference(ids.values()),
            policies={name for item in accepted.values() for name in item.spec.retry_policies},
            limited=resolver.catalogue.limiting,
            caller=self.caller,
            claims={job.id: claim for place, job in jobs.items() if (claim := accepted[place].claim)},
            names={job.id: name for place, job in jobs.items() if (name := accepted[place].external)},
            callers={job.id: caller for place, job in jobs.items() if (caller := accepted[place].caller)},
            sessions=[*_sessions(jobs, accepted)],
            rerun=next(filter(None, (rerun_of(thing, accepted[at].taken_over) for at, thing in arrays.items())), None),
        )
        stored = self.store.submit(submission)
        if submission.claims or submission.names:
            jobs = {place: evolve(job, id=new_id) for (place, job), new_id in zip(jobs.items(), stored, strict=False)}
        elif stored[0] != ids[next(iter((*jobs, *arrays)))]:
            return dict(zip((*jobs, *arrays), self._first_time(stored), strict=True))
        return {**jobs, **arrays}

    def _first_time(self, ids: Sequence[str]) -> Sequence[Job | Array]:
        """Return the results of the first identical submission, in the order of their ids."""
        jobs_stored: dict[str, Job | Array] = {job.id: job for job in self.store.jobs_by_id(ids)}
        jobs_stored |= self.store.workloads_by_id(Array, [id_ for id_ in ids if id_ not in jobs_stored])
        return [jobs_stored[id_] for id_ in ids]


@overload
def _written(item: JobSpec | WrittenJob) -> WrittenJob: ...
@overload
def _written(item: Item) -> _Read: ...
def _written(item: Item) -> _Read:
    return WrittenJob(item) if isinstance(item, JobSpec) else item


def _error_of(
    item: WrittenJob,
    catalogue: Catalogue,
    awaited: Sequence[Problem],
    nodes: Callable[[], Sequence[Node]],
    closed: Gate,
) -> HoldfastError | None:
    """Return the error of a job that cannot be accepted: how it is written, and what it names."""
    spec = item.spec if item.array is None else evolve(item.spec, notify=item.array.notify)
    error = check(spec, catalogue, nodes, closed, Subject.JOB if item.array is None else Subject.ARRAY)
    if awaited:
        problems_found = error.problems if isinstance(error, InvalidManifest) else ()
        error = InvalidManifest(f"{_noun(item)} {item.spec.name!r} is not valid", problems=[*problems_found, *awaited])
    if error is not None:
        error = type(error)(error.message, problems=[_placed(fault, item) for fault in error.problems], hint=error.hint)
    if item.error is None:
        return error
    paths = {problem.path for problem in item.error.problems}
    unknown = error.problems if isinstance(error, InvalidManifest) else ()
    problems = [*item.error.problems, *(problem for problem in unknown if problem.path not in paths)]
    return type(item.error)(item.error.message, problems=problems, hint=item.error.hint)


def _noun(item: WrittenJob) -> str:
    return "job" if item.array is None else Array.noun


def _placed(problem: Problem, item: WrittenJob) -> Problem:
    """Give a problem its path in the manifest as written."""
    if item.spec.kube is not None:
        return in_kubernetes(problem, JOB_POD)
    return evolve(problem, path=problem.path.removeprefix("spec.")) if item.flat else problem


def _fingerprint(accepted: Mapping[int, WrittenJob], jobs: Mapping[int, Job]) -> str:
    """Return a digest of the accepted items and their places; ``jobs`` has texts of specifications."""
    digest = hashlib.sha256()
    for index, item in accepted.items():
        job = jobs.get(id(item.spec)) if item.array is None else None
        text = job.spec if job is not None else dump_spec(item.array or item.spec)
        digest.update(f"{index}\0{item.spec.name}\0{text}\0".encode())
    return digest.hexdigest()


def _sessions(jobs: Mapping[int, Job], accepted: Mapping[int, WrittenJob]) -> Iterator[Session]:
    """Yield the first sessions of the jobs that are sessions of Backend.AI's users."""
    for place, job in jobs.items():
        item = accepted[place]
        if item.spec.session is not None:
            yield first_session(job, item.spec.session, name=item.session_name, tag=item.session_tag)


def _warnings(item: _Read) -> tuple[Problem, ...]:
    return item.warnings if isinstance(item, WrittenJob) else ()


def _name(item: _Read) -> str | None:
    return item.spec.name if isinstance(item, WrittenJob) and item.error is None else None
