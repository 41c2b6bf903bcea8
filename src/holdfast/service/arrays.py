"""How far arrays are, and why."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeVar

from holdfast.compiled.codec import load_array
from holdfast.domain.job import JobState
from holdfast.domain.policy.decide import in_short
from holdfast.domain.record import Struct, evolve
from holdfast.domain.workloads.array.model import Array, ArraySpec
from holdfast.errors import NotFound
from holdfast.ports.store import JobFilter
from holdfast.service.admission.dependencies import NOTHING
from holdfast.service.admission.records import new_array
from holdfast.service.quarantined import reason_of
from holdfast.service.steering.arrays import no_such_array

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holdfast.domain.job import Attempt, Job
    from holdfast.domain.workloads.base import Quarantined
    from holdfast.ports.store import Store
    from holdfast.service.submit import Submitter, Written

G = TypeVar("G", "FailureGroup", "CancelGroup")
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


def submitted(submitter: Submitter, written: Written, *, key: str | None = None, dry_run: bool = False) -> Array:
    """Submit an array, or only check everything; see ``Submitter.submit_array``."""
    if not dry_run:
        return submitter.submit_array(written, key=key)
    for error in submitter.refusals([written]).values():
        raise error
    submitter.require_room([written])
    spec, who = written.array or ArraySpec(written.spec), None if submitter.by is None else submitter.by.principal
    return evolve(new_array(spec, NOTHING, "", "", submitter.clock.now(), who), origins=written.origins)


def array_named(store: Store, reference: str) -> Array:
    """Find an array by name or id.

    Raises:
        NotFound: There is none.
    """
    try:
        return store.workload(Array, reference)
    except NotFound:
        raise no_such_array(reference) from None


def progress_of(
    array: Array, store: Store, now: float, quarantined: Mapping[str, Quarantined] | None = None
) -> Progress:
    """Look how far an array is; ``quarantined`` is what is, where somebody has looked already."""
    spec, running = load_array(array.spec), 0
    found = None if array.ended else (store.quarantined() if quarantined is None else quarantined).get(array.id)
    if not array.ended:
        counts = store.count_by_state(array.id)
        array, running = evolve(array, state=array.state.counted(counts)), counts.get(JobState.RUNNING, 0)
    state, eta_s = array.state, None
    over = state.succeeded + state.failed + state.cancelled
    if over and not state.status and found is None:
        eta_s = (now - array.created_at) * (spec.total - over) / over
    return Progress(array, spec, running, eta_s, "" if found is None else reason_of(found))


def explained(progress: Progress, store: Store) -> Explained:
    """Group an array's failed tasks by how they failed and what was decided, and cancelled ones by why."""
    where = JobFilter(job_set=progress.array.id, states=frozenset({JobState.FAILED, JobState.CANCELLED}))
    ended = store.jobs(where)
    failed = [job for job in ended if job.state is JobState.FAILED]
    looked_at = failed[-MOST_EXPLAINED:]
    latest = store.latest_of([job.id for job in looked_at])
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
