"""Submits jobs: checks them against the catalogue, gives them ids, stores them once.

In a bulk each job is accepted or refused with its own problems.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.compiled.codec import dump_spec
from holdfast.domain.job import Job
from holdfast.domain.units import format_cpu, format_memory
from holdfast.errors import HoldfastError, InvalidManifest, InvalidRequest, Problem, Refused
from holdfast.ports.store import Submission
from holdfast.service.kube_paths import JOB_POD, in_kubernetes
from holdfast.service.naming import unknown_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from holdfast.domain.job import Ceiling, Queue, Resources
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.ports.catalogue import Catalogue
    from holdfast.ports.clock import Clock, Ids
    from holdfast.ports.store import Store

MOST_JOBS = 10_000
"""In one submission."""
LONGEST_KEY = 255
LARGEST_TOTAL_MEMORY = 1 << 60
LARGEST_TOTAL_CPU_M = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Written:
    """A job as someone wrote it."""

    spec: JobSpec
    """What it asks for; when it could not be read, at least the queue and the policies it names."""
    error: HoldfastError | None = None
    """Why it could not be read."""
    flat: bool = False
    """In the short form, whose fields are not under ``spec``."""
    warnings: tuple[Problem, ...] = ()
    """What is dubious in it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one item of a submission; exactly one of ``job`` and ``error`` is set."""

    index: int
    name: str | None = None
    job: Job | None = None
    error: HoldfastError | None = None
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Submitter:
    """Submits jobs."""

    store: Store
    clock: Clock
    ids: Ids

    def submit(self, item: JobSpec | Written, *, key: str | None = None, newest: str | None = None) -> Job:
        """Submit one job.

        Args:
            item: What it asks for.
            key: Sending the same again with this key stores nothing and answers as the first time.
            newest: Id of what must be the newest job of its name, empty for none; ``None`` is not checked.

        Raises:
            InvalidManifest: It is not valid, or names something that does not exist; with all problems.
            Refused: A limit of its queue could never hold it.
            Conflict: The idempotency key was used for something else, or there is a newer job of its name.
        """
        written = _written(item)
        error = _error_of(written, self.store.catalogue())
        if error is not None:
            raise error
        return self._store([(0, written.spec)], key, newest)[0]

    def submit_many(
        self, items: Sequence[JobSpec | Written | HoldfastError], *, atomic: bool = True, key: str | None = None
    ) -> list[Outcome]:
        """Submit many jobs in one transaction.

        Args:
            items: Specifications, jobs as they were written, or the error that reading one gave.
            atomic: Store all or nothing; else what is valid, and say of each what became of it.
            key: Sending the same again with this key stores nothing and answers as the first time.

        Raises:
            InvalidManifest: Something is wrong and ``atomic`` was asked for; with the problems of every item.
            Conflict: The idempotency key was used for something else.
        """
        written = [item if isinstance(item, HoldfastError) else _written(item) for item in items]
        errors = self.refusals(written)
        if errors and atomic:
            raise _all_of(errors, len(items))
        accepted = [(i, item.spec) for i, item in enumerate(written) if i not in errors and isinstance(item, Written)]
        jobs = dict(zip((index for index, _ in accepted), self._store(accepted, key), strict=True))
        return [
            Outcome(index, _name(item), jobs.get(index), errors.get(index), _warnings(item))
            for index, item in enumerate(written)
        ]

    def check_many(self, items: Sequence[JobSpec | Written | HoldfastError]) -> list[str | None]:
        """Check what a submission of these would be refused for; store nothing, and return their names.

        Raises:
            InvalidManifest: Something is wrong; with the problems of every item.
        """
        written = [item if isinstance(item, HoldfastError) else _written(item) for item in items]
        errors = self.refusals(written)
        if errors:
            raise _all_of(errors, len(items))
        return [_name(item) for item in written]

    def refusals(self, items: Sequence[Written | HoldfastError]) -> dict[int, HoldfastError]:
        """Say of each item that cannot be accepted why, by its place.

        Raises:
            InvalidRequest: There are none, or too many.
        """
        _check_count(len(items))
        catalogue = self.store.catalogue()
        return {
            index: error
            for index, item in enumerate(items)
            if (error := item if isinstance(item, HoldfastError) else _error_of(item, catalogue)) is not None
        }

    def _store(
        self, accepted: Sequence[tuple[int, JobSpec]], key: str | None, newest: str | None = None
    ) -> Sequence[Job]:
        if not accepted:
            return []
        check_key(key)
        now = self.clock.now()
        jobs = [new_job(spec, self.ids.new(), now) for _, spec in accepted]
        ids = self.store.submit(
            Submission(
                jobs=jobs,
                labels={job.id: spec.labels for job, (_, spec) in zip(jobs, accepted, strict=True) if spec.labels},
                idempotency_key=key,
                fingerprint=_fingerprint(accepted, jobs) if key else "",
                newest=newest,
            )
        )
        if ids and ids[0] != jobs[0].id:
            return self._first_time(ids)
        return jobs

    def _first_time(self, ids: Sequence[str]) -> Sequence[Job]:
        """Return the jobs that the same submission made before, in the order they were sent."""
        found = {job.id: job for job in self.store.jobs_by_id(ids)}
        return [found[job_id] for job_id in ids]


def new_job(spec: JobSpec, job_id: str, now: float) -> Job:
    """Make the record of a job that was just submitted."""
    return Job(
        id=job_id,
        name=spec.name,
        queue=spec.queue,
        priority=spec.priority,
        submitted_at=now,
        spec=dump_spec(spec),
        request=spec.resources,
        gang=spec.gang,
        queued_at=now,
        updated_at=now,
    )


def check(spec: JobSpec, catalogue: Catalogue) -> HoldfastError | None:
    """Say what keeps a valid specification from being accepted here, if anything."""
    problems = unknown_names((spec.queue,), catalogue.queues, "queue", lambda _: "spec.queue")
    problems += unknown_names(
        spec.retry_policies, catalogue.policies, "retry policy", lambda i: f"spec.retryPolicies[{i}]"
    )
    problems += _too_much(spec)
    if problems:
        return InvalidManifest(f"job {spec.name!r} is not valid", problems=problems)
    beyond = _beyond_queue(spec, catalogue.queues[spec.queue])
    return Refused(f"queue {spec.queue!r} could never run job {spec.name!r}", problems=beyond) if beyond else None


def _written(item: JobSpec | Written) -> Written:
    return item if isinstance(item, Written) else Written(item)


def _error_of(item: Written, catalogue: Catalogue) -> HoldfastError | None:
    """Say all that keeps a job from being accepted: how it is written, and what it names."""
    found = check(item.spec, catalogue)
    if found is not None:
        found = type(found)(found.message, problems=[_placed(one, item) for one in found.problems], hint=found.hint)
    if item.error is None:
        return found
    told = {problem.path for problem in item.error.problems}
    unknown = found.problems if isinstance(found, InvalidManifest) else ()
    problems = [*item.error.problems, *(problem for problem in unknown if problem.path not in told)]
    return type(item.error)(item.error.message, problems=problems, hint=item.error.hint)


def _placed(problem: Problem, item: Written) -> Problem:
    """Say where in what was written a problem is."""
    if item.spec.kube is not None:
        return in_kubernetes(problem, JOB_POD)
    return replace(problem, path=problem.path.removeprefix("spec.")) if item.flat else problem


def _too_much(spec: JobSpec) -> list[Problem]:
    """Check that the whole gang's request is an amount that could exist."""
    problems = []
    if spec.gang * spec.resources.memory > LARGEST_TOTAL_MEMORY:
        message = f"{spec.gang} ranks of {format_memory(spec.resources.memory)} are more than 1Ei in all"
        problems.append(Problem("spec.resources.memory", message, hint="the amount is for each rank"))
    if spec.gang * spec.resources.cpu_m > LARGEST_TOTAL_CPU_M:
        message = f"{spec.gang} ranks of {format_cpu(spec.resources.cpu_m)} cpu are more than 1000000 in all"
        problems.append(Problem("spec.resources.cpu", message, hint="the amount is for each rank"))
    return problems


def _beyond_queue(spec: JobSpec, queue: Queue) -> list[Problem]:
    """Check that the queue's own limit does not keep the job out for ever."""
    hint = "ask for less, or for another queue"
    return [
        Problem(
            f"spec.resources.{name}",
            f"{spec.gang} x {shown(asked)} is more than the {shown(limit)} that queue {queue.name!r} may use at once",
            hint=hint,
        )
        for name, asked, limit, shown in _dimensions(spec.resources, queue.max_running)
        if limit is not None and asked * spec.gang > limit
    ]


def _dimensions(request: Resources, limit: Ceiling) -> Iterable[tuple[str, int, int | None, Callable[[int], str]]]:
    yield "cpu", request.cpu_m, limit.cpu_m, format_cpu
    yield "memory", request.memory, limit.memory, format_memory
    yield "gpu", request.gpu, limit.gpu, str


def _check_count(count: int) -> None:
    if count == 0:
        msg = "nothing to submit"
        raise InvalidRequest(msg, problems=[Problem("items", "is empty", hint="send at least one manifest")])
    if count > MOST_JOBS:
        problem = Problem("items", f"holds {count} jobs", allowed=(f"1 to {MOST_JOBS}",), hint="submit in parts")
        msg = "there is too much to submit at once"
        raise InvalidRequest(msg, problems=[problem])


def check_key(key: str | None) -> None:
    """Check that an idempotency key can be kept.

    Raises:
        InvalidRequest: It cannot.
    """
    if key is not None and not (key.isprintable() and 0 < len(key) <= LONGEST_KEY):
        problem = Problem("Idempotency-Key", "must be printable text", allowed=(f"1 to {LONGEST_KEY} characters",))
        msg = "the idempotency key is not valid"
        raise InvalidRequest(msg, problems=[problem])


def _all_of(errors: Mapping[int, HoldfastError], count: int) -> HoldfastError:
    """Make one error of many, with paths that tell the items apart."""
    if count == 1:
        return errors[0]
    problems = problems_of(errors)
    msg = f"{len(errors)} of {count} manifests are not valid; nothing was submitted"
    return InvalidManifest(msg, problems=problems)


def problems_of(errors: Mapping[int, HoldfastError]) -> list[Problem]:
    """List the problems of many items, with paths that tell them apart."""
    return [_within(index, problem) for index, error in errors.items() for problem in _problems_of(error)]


def _problems_of(error: HoldfastError) -> Sequence[Problem]:
    return error.problems or (Problem("", error.message, hint=error.hint),)


def _within(index: int, problem: Problem) -> Problem:
    path = f"items[{index}].{problem.path}" if problem.path else f"items[{index}]"
    return Problem(path, problem.message, allowed=problem.allowed, hint=problem.hint, line=problem.line)


def _fingerprint(accepted: Sequence[tuple[int, JobSpec]], jobs: Sequence[Job]) -> str:
    """Tell submissions apart: by what was accepted, and at which places."""
    digest = hashlib.sha256()
    for (index, _), job in zip(accepted, jobs, strict=True):
        digest.update(f"{index}\0{job.name}\0{job.spec}\0".encode())
    return digest.hexdigest()


def _warnings(item: Written | HoldfastError) -> tuple[Problem, ...]:
    return item.warnings if isinstance(item, Written) else ()


def _name(item: Written | HoldfastError) -> str | None:
    return item.spec.name if isinstance(item, Written) and item.error is None else None
