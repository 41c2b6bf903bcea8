"""Submits jobs and arrays: checks them against the catalogue, gives them ids, stores them once.

In a bulk each job is accepted or refused with its own problems.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING, TypeAlias, cast, overload

from holdfast.compiled.codec import dump_spec
from holdfast.domain.audit import Subject
from holdfast.domain.record import Struct, evolve
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
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Job, Node
    from holdfast.ports.blobs import Blobs
    from holdfast.ports.catalogue import Catalogue
    from holdfast.ports.clock import Clock, Ids
    from holdfast.ports.names import ExternalName
    from holdfast.ports.secrets import Secrets
    from holdfast.ports.store import Store
    from holdfast.service.admission.finding import Finder
    from holdfast.service.admission.limits import Gate


class WrittenJob(Struct, frozen=True):
    """A job or an array as someone wrote it."""

    spec: JobSpec
    """What it asks for; when it could not be read, at least its name, the queue and the policies it names."""
    error: HoldfastError | None = None
    """Why it could not be read."""
    flat: bool = False
    """In the short form, whose fields are not under ``spec``."""
    warnings: tuple[Problem, ...] = ()
    """What is dubious in it."""
    array: ArraySpec | None = None
    """Of an array, what it is; ``spec`` is that of its tasks."""
    manifest: str = ""
    """Of an array, what that was compiled from."""
    origins: tuple[Origin, ...] = ()
    """Of an array, those whose tasks it runs again."""
    taken_over: tuple[str, ...] = ()
    """Of an array, the ids of those tasks, as far as they are still there."""
    claim: str | None = None
    """Of a job, a key of its own: sent again in any submission, the job it came with first is meant."""
    external: ExternalName | None = None
    """Of a job, what another system calls it; where that is taken, the job that has it is meant."""
    parent: str = ""
    """Of a job, the id of the one that it is a child of, and with which it ends."""
    caller: Caller | None = None
    """Who asked for it, where that was not one request with the others."""
    named: Callable[[str], JobSpec] | None = None
    """Of a job whose specification has its id in it: makes that specification of the id."""

    def of(self, job_id: str) -> JobSpec:
        """Return the specification of the job that has an id."""
        return self.spec if self.named is None else self.named(job_id)


_Ids: TypeAlias = "Mapping[int, str]"
_Read: TypeAlias = "WrittenJob | HoldfastError"
Item: TypeAlias = "JobSpec | WrittenJob | HoldfastError"
"""A specification, a job or an array as it was written, or the error that reading one gave."""


class ItemOutcome(Struct, frozen=True):
    """What became of one item of a submission; exactly one of ``created`` and ``error`` is set."""

    index: int
    name: str | None = None
    created: Job | Array | None = None
    error: HoldfastError | None = None
    warnings: tuple[Problem, ...] = ()
    is_new: bool = True
    """Whether it was made by this; else what is meant had been there, by its claim or by what another calls it."""


class Submitter(Struct, frozen=True):
    """Submits jobs and arrays."""

    store: Store
    clock: Clock
    ids: Ids
    sets: Sequence[SubmissionItem] = ()
    """Job sets to take for existing."""
    nodes: Callable[[], Sequence[Node]] | None = None
    """Lists the nodes that jobs can count on; by default those that were reported."""
    secrets: Secrets | None = None
    """Where the values of secret variables are; ``None``: nowhere."""
    blobs: Blobs | None = None
    """Where what was sent along with jobs is; ``None``: nowhere."""
    caller: Caller | None = None
    """Who submits, and whose it is from then on; ``None`` where nobody is known."""
    finder: Finder | None = None
    """Finds what that one may know of; by default everything."""
    catalogue: Catalogue | None = None
    """What operators have written; by default it is read anew."""

    def submit(self, item: JobSpec | WrittenJob, *, key: str | None = None, newest: str | None = None) -> Job:
        """Submit one job.

        Args:
            item: What it asks for.
            key: Sending the same again with this key stores nothing and answers as the first time.
            newest: Id of what must be the newest job of its name, empty for none; ``None`` is not checked.

        Raises:
            InvalidManifest: It is not valid, or names something that does not exist; with all problems.
            Refused: A limit of its queue could never hold it, or does not take it in now.
            Conflict: The idempotency key was used for something else, or there is a newer job of its name.
        """
        written = below_its_job(_written(item), self.caller)
        resolver = self._resolver([written])
        for error in self._refused([written], resolver).values():
            raise error
        return cast("Job", self._store({0: written}, {0: self.ids.new()}, resolver, key, newest)[0])

    def submit_array(self, written: WrittenJob, *, key: str | None = None) -> Array:
        """Submit one array.

        Raises:
            InvalidManifest: It is not valid, or names something that does not exist; with all problems.
            Refused: A limit of its queue could never hold one of its tasks, or does not take them in now.
            AlreadyExists: There is one of that name.
            Conflict: The idempotency key was used for something else.
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
        """Submit many jobs and arrays in one transaction; they may wait for each other, by their names.

        Args:
            items: What to submit.
            atomic: Store all or nothing; else what is valid, and say of each what became of it.
            key: Sending the same again with this key stores nothing and answers as the first time.

        Raises:
            InvalidManifest: Something is wrong and ``atomic`` was asked for; with the problems of every item.
            QueueFull, RateLimited: A queue does not take all of it in.
            Conflict: The idempotency key was used for something else.
        """
        written = [below_its_job(_written(item), self.caller) for item in items]
        resolver = self._resolver(written)
        errors = self._refused(written, resolver)
        # Sent again, what is there already may be what the first call made; the store knows.
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
        """Store what is not refused, nor waits for what is."""
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
        """Check what a submission of these would be refused for; store nothing, and return their names.

        Raises:
            InvalidManifest: Something is wrong; with the problems of every item.
            QueueFull, RateLimited: A queue would not take all of it in now.
        """
        errors = self.refusals(items)
        if errors:
            raise all_of(errors, len(items))
        self.require_room([job for item in items if isinstance(job := _written(item), WrittenJob)])
        return [_name(_written(item)) for item in items]

    def require_room(self, items: Sequence[WrittenJob]) -> None:
        """Make sure that queues would take all of this in now; nothing is counted.

        Raises:
            QueueFull, RateLimited: A queue does not.
        """
        limited = self.store.catalogue().limiting
        if not limited or not items:
            return
        now, principal = self.clock.now(), None if self.caller is None else self.caller.principal
        jobs = [new_job(item.spec, "", now, principal) for item in items if item.array is None]
        arrays = [new_array(item.array, NOTHING, "", "", now, principal) for item in items if item.array is not None]
        self.store.require_room(Submission(jobs, also=arrays, limited=limited), now)

    def refusals(self, items: Sequence[Item]) -> dict[int, HoldfastError]:
        """Say of each item that cannot be accepted why, by its place.

        Raises:
            InvalidRequest: There are none, or too many.
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
        """Add what is not there to what is wrong with what an item waits for."""
        return (
            [*awaited, *absent(spec, self.secrets, self.blobs, self.caller)] if spec.secrets or spec.inputs else awaited
        )

    def _taken(self, name: str, submitted: set[str]) -> HoldfastError | None:
        """Check that an array's name is free, also among those that are submitted with it."""
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
        """Store what was accepted, under these ids; returns it by its place."""
        if not accepted:
            return {}
        check_key(key)
        now = self.clock.now()
        jobs, arrays = dict[int, "Job"](), dict[int, Array]()
        stored_specs: dict[int, Job] = {}
        """By the identity of its specification, which those of equal items share."""
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
            rerun=next(filter(None, (rerun_of(thing, accepted[at].taken_over) for at, thing in arrays.items())), None),
        )
        stored = self.store.submit(submission)
        if submission.claims or submission.names:
            jobs = {place: evolve(job, id=new_id) for (place, job), new_id in zip(jobs.items(), stored, strict=False)}
        elif stored[0] != ids[next(iter((*jobs, *arrays)))]:
            return dict(zip((*jobs, *arrays), self._first_time(stored), strict=True))
        return {**jobs, **arrays}

    def _first_time(self, ids: Sequence[str]) -> Sequence[Job | Array]:
        """Return what the same submission made before, in the order of its ids."""
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
    """Say all that keeps a job from being accepted: how it is written, and what it names."""
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
    """Say where in what was written a problem is."""
    if item.spec.kube is not None:
        return in_kubernetes(problem, JOB_POD)
    return evolve(problem, path=problem.path.removeprefix("spec.")) if item.flat else problem


def _fingerprint(accepted: Mapping[int, WrittenJob], jobs: Mapping[int, Job]) -> str:
    """Tell submissions apart: by what was accepted, and at which places; ``jobs`` has texts of specifications."""
    digest = hashlib.sha256()
    for index, item in accepted.items():
        job = jobs.get(id(item.spec)) if item.array is None else None
        text = job.spec if job is not None else dump_spec(item.array or item.spec)
        digest.update(f"{index}\0{item.spec.name}\0{text}\0".encode())
    return digest.hexdigest()


def _warnings(item: _Read) -> tuple[Problem, ...]:
    return item.warnings if isinstance(item, WrittenJob) else ()


def _name(item: _Read) -> str | None:
    return item.spec.name if isinstance(item, WrittenJob) and item.error is None else None
