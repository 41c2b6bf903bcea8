"""Submits, reads and explains arrays."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from holdfast.compiled.codec import load_array
from holdfast.domain.audit import Act, Subject
from holdfast.domain.job import JobState
from holdfast.domain.policy.decide import in_short
from holdfast.domain.record import Struct, evolve
from holdfast.domain.workloads.array.model import Array, ArraySpec, task_name
from holdfast.errors import Internal, NotFound
from holdfast.ports.store import JobFilter
from holdfast.ports.workloads import EVERY
from holdfast.service.admission.dependencies import NOTHING
from holdfast.service.admission.records import new_array
from holdfast.service.quarantined import itself, readable, reason_of
from holdfast.service.refusals import audited
from holdfast.service.steering.arrays import no_such_array
from holdfast.service.submit import Submitter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Attempt, Job, Node
    from holdfast.domain.workloads.base import Quarantined
    from holdfast.ports.clock import Clock, Ids
    from holdfast.ports.secrets import Secrets
    from holdfast.ports.store import Store
    from holdfast.ports.workloads import Unreadable, WorkloadFilter
    from holdfast.service.admission.finding import Finder
    from holdfast.service.submit import Written

G = TypeVar("G", "FailureGroup", "CancelGroup")
LARGEST_PAGE = 1000
MOST_EXPLAINED = 1000
"""Failed tasks that are looked at to explain an array, the newest ones."""


class Progress(Struct, frozen=True):
    """How far an array is."""

    array: Array
    spec: ArraySpec
    running: int
    """Tasks that run now."""
    eta_s: float | None = None
    """When the last would end if the others took as long as those that are over; ``None``: nobody knows, or it has."""
    left_alone: str = ""
    """Why nobody looks after it, if it is quarantined."""

    @property
    def waiting(self) -> int:
        """Count the tasks that have neither ended nor run now."""
        state = self.array.state
        over = state.succeeded + state.failed + state.cancelled
        return 0 if state.status else self.spec.total - over - self.running

    @property
    def state(self) -> str:
        """Say in a word where it is."""
        return self.array.phase(self.spec)


class FailureGroup(Struct, frozen=True):
    """Failed tasks that failed alike and of which the same was decided."""

    cause: str
    exit_code: int | None
    decision: str
    """What was decided about the last failure, and by which rule."""
    tasks: tuple[Job, ...]


class CancelGroup(Struct, frozen=True):
    """Tasks that were cancelled for the same reason."""

    reason: str
    """With ``I`` for the task's own index."""
    tasks: tuple[Job, ...]


class Explained(Struct, frozen=True):
    """Why an array is where it is."""

    progress: Progress
    groups: Sequence[FailureGroup]
    """Largest first."""
    omitted: int
    """Failed tasks that were not looked at."""
    cancelled: Sequence[CancelGroup] = ()
    """Largest first."""


class ArrayPage(Struct, frozen=True):
    """Part of the list of arrays."""

    arrays: Sequence[Progress]
    next_after: str | None
    """Where the list continues; ``None`` on the last page."""
    unreadable: Sequence[Unreadable] = ()
    """What is left out of this part."""


class Arrays(Struct, frozen=True):
    """The arrays."""

    store: Store
    clock: Clock
    ids: Ids
    nodes: Callable[[], Sequence[Node]] | None = None
    """Lists the nodes that jobs can count on; by default those that were reported."""
    secrets: Secrets | None = None
    """Where the values of secret variables are; ``None``: nowhere."""
    finder: Finder | None = None
    """Finds what who submits may know of; by default everything."""

    def create(
        self, written: Written, *, by: Caller | None = None, key: str | None = None, dry_run: bool = False
    ) -> Array:
        """Submit an array; its tasks are made as places come free.

        Args:
            written: What it is, as it was written.
            by: Who asks.
            key: Sending the same again with this key stores nothing and answers as the first time.
            dry_run: Check everything and store nothing.

        Raises:
            InvalidManifest: It names something that does not exist.
            Refused: A limit of its queue could never hold one of its tasks.
            AlreadyExists: There is one of that name.
        """
        with audited(self.store, None if dry_run else by, Act.CREATE, Subject.ARRAY, written.spec.name):
            return self.made(written, by=by, key=key, dry_run=dry_run)

    def made(
        self, written: Written, *, by: Caller | None = None, key: str | None = None, dry_run: bool = False
    ) -> Array:
        """Submit an array as ``create`` does, for a caller who tells the audit log of a refusal."""
        submitter = Submitter(
            self.store, self.clock, self.ids, nodes=self.nodes, secrets=self.secrets, by=by, finder=self.finder
        )
        if not dry_run:
            return submitter.submit_array(written, key=key)
        for error in submitter.refusals([written]).values():
            raise error
        submitter.require_room([written])
        spec, who = written.array or ArraySpec(written.spec), None if by is None else by.principal
        return evolve(new_array(spec, NOTHING, "", "", self.clock.now(), who), origins=written.origins)

    def get(self, reference: str) -> Progress:
        """Find an array by name or id.

        Raises:
            NotFound: There is none.
        """
        return self.progress(self._find(reference))

    def page(self, where: WorkloadFilter = EVERY, *, after: str = "", limit: int = LARGEST_PAGE) -> ArrayPage:
        """List arrays by name."""
        told: list[Unreadable] = []
        found = self.store.workloads(Array, where, after=after, limit=limit + 1, told=told.append)
        shown, last = found[:limit], None if len(found) <= limit else found[limit - 1].name
        arrays = readable(shown, partial(self.progress, known=self.store.quarantined()), itself, told.append)
        return ArrayPage(arrays, last, [one for one in told if last is None or one.name <= last])

    def going_on(self, tasks: Iterable[Job]) -> Sequence[Progress]:
        """Return the arrays that some jobs are tasks of and that have not ended, each once."""
        ids = dict.fromkeys(task.child.set_id for task in tasks if task.child is not None)
        try:
            found = self.store.workloads_by_id(Array, list(ids))
        except Internal:  # one of them is damaged, which is told where it is asked for
            return []
        shown = (found[one] for one in ids if one in found and not found[one].ended)
        return readable(shown, partial(self.progress, known=self.store.quarantined()), itself)

    def task(self, reference: str, index: int) -> Job:
        """Find a task of an array by its index.

        Raises:
            NotFound: There is no such array, it has no such task, or the task has not been made yet.
        """
        array = self._find(reference)
        try:
            return self.store.job(f"{array.id}-{task_name(array.name, index)}")
        except NotFound:
            if index in set(load_array(array.spec).every_index()):
                msg = f"task {index} of array {array.name!r} has not been made yet"
                raise NotFound(msg, hint="tasks are made as places come free") from None
            msg = f"array {array.name!r} has no task {index}"
            raise NotFound(msg) from None

    def explain(self, reference: str) -> Explained:
        """Group an array's failed tasks by how they failed and what was decided, and cancelled ones by why.

        Raises:
            NotFound: There is no such array.
        """
        progress = self.get(reference)
        where = JobFilter(job_set=progress.array.id, states=frozenset({JobState.FAILED, JobState.CANCELLED}))
        ended = self.store.jobs(where)
        failed = [job for job in ended if job.state is JobState.FAILED]
        looked_at = failed[-MOST_EXPLAINED:]
        latest = self.store.latest_of([job.id for job in looked_at])
        groups: dict[tuple[str, int | None, str], list[Job]] = defaultdict(list)
        for job in looked_at:
            groups[_how(latest[job.id].attempt if job.id in latest else None, job)].append(job)
        cancelled: dict[str, list[Job]] = defaultdict(list)
        for job in ended:
            if job.state is JobState.CANCELLED:
                cancelled[_why_cancelled(job)].append(job)
        return Explained(
            progress,
            _largest_first(FailureGroup(*how, tuple(jobs)) for how, jobs in groups.items()),
            max(0, len(failed) - MOST_EXPLAINED),
            _largest_first(CancelGroup(why, tuple(jobs)) for why, jobs in cancelled.items()),
        )

    def _find(self, reference: str) -> Array:
        try:
            return self.store.workload(Array, reference)
        except NotFound:
            raise no_such_array(reference) from None

    def progress(self, array: Array, known: Mapping[str, Quarantined] | None = None) -> Progress:
        """Look how far an array is; ``known`` is what is quarantined, where somebody has looked already."""
        spec, running = load_array(array.spec), 0
        found = None if array.ended else (self.store.quarantined() if known is None else known).get(array.id)
        if not array.ended:
            counts = self.store.count_by_state(array.id)
            array, running = evolve(array, state=array.state.counted(counts)), counts.get(JobState.RUNNING, 0)
        state, eta_s = array.state, None
        over = state.succeeded + state.failed + state.cancelled
        if over and not state.status and found is None:
            eta_s = (self.clock.now() - array.created_at) * (spec.total - over) / over
        return Progress(array, spec, running, eta_s, "" if found is None else reason_of(found))


def _largest_first(groups: Iterable[G]) -> list[G]:
    return sorted(groups, key=lambda group: -len(group.tasks))


def _why_cancelled(task: Job) -> str:
    """Say why a task was cancelled, in words that tasks which wait for those of their own index share."""
    why = task.reason.partition(": ")[0]
    return why if task.child is None else why.replace(f"-{task.child.index} ", "-I ")


def _how(attempt: Attempt | None, job: Job) -> tuple[str, int | None, str]:
    """Say how a task failed, in words that tasks which failed alike share."""
    if attempt is None or attempt.failure is None:
        return ("", None, job.reason)
    failure, decision = attempt.failure, attempt.decision
    code = None if failure.first_failed is None else failure.first_failed.exit_code
    return (failure.category or str(failure.cause), code, "" if decision is None else in_short(decision))
