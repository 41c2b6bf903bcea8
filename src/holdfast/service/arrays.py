"""The progress of arrays, and explanations of it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_array
from holdfast.domain.job import JobState
from holdfast.domain.policy.decide import summarize_decision
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import Array, ArraySpec
from holdfast.domain.workloads.array.progress import Progress
from holdfast.domain.workloads.explanation import Explanation, TaskGroup
from holdfast.errors import NotFound
from holdfast.ports.store import JobFilter
from holdfast.service.admission.dependencies import NOTHING
from holdfast.service.admission.records import new_array
from holdfast.service.quarantined import reason_of
from holdfast.service.steering.arrays import no_such_array
from holdfast.service.summary import paused_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.job import Attempt, Job
    from holdfast.domain.workloads.base import Quarantined
    from holdfast.ports.store import Store
    from holdfast.service.submit import Submitter, WrittenJob

MOST_EXPLAINED = 1000
"""Newest failed tasks that an explanation of an array covers."""


def submitted(submitter: Submitter, written: WrittenJob, *, key: str | None = None, dry_run: bool = False) -> Array:
    """Submit an array, or only check everything; see ``Submitter.submit_array``."""
    if not dry_run:
        return submitter.submit_array(written, key=key)
    for error in submitter.refusals([written]).values():
        raise error
    submitter.require_room([written])
    spec, principal = (
        written.array or ArraySpec(written.spec),
        None if submitter.caller is None else submitter.caller.principal,
    )
    return evolve(new_array(spec, NOTHING, "", "", submitter.clock.now(), principal), origins=written.origins)


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
    """Read the progress of an array; ``quarantined`` saves a query if it was read already."""
    spec, running = load_array(array.spec), 0
    quarantine = None if array.ended else (store.quarantined() if quarantined is None else quarantined).get(array.id)
    if not array.ended:
        counts = store.count_by_state(array.id)
        array, running = evolve(array, state=array.state.counted(counts)), counts.get(JobState.RUNNING, 0)
    state, eta_s = array.state, None
    over = state.succeeded + state.failed + state.cancelled
    if over and not state.status and quarantine is None:
        eta_s = (now - array.created_at) * (spec.total - over) / over
    return Progress(array, spec, running, eta_s, "" if quarantine is None else reason_of(quarantine))


def explained(progress: Progress, store: Store) -> Explanation[Progress]:
    """Group an array's failed tasks by failure and decision, and its cancelled tasks by reason."""
    where = JobFilter(job_set=progress.array.id, states=frozenset({JobState.FAILED, JobState.CANCELLED}))
    ended = store.jobs(where)
    failed = [job for job in ended if job.state is JobState.FAILED]
    looked_at = failed[-MOST_EXPLAINED:]
    latest = store.latest_of([job.id for job in looked_at])
    failures: dict[tuple[str, int | None, str], list[Job]] = defaultdict(list)
    for job in looked_at:
        failures[_how(latest[job.id].attempt if job.id in latest else None, job)].append(job)
    cancelled: dict[str, list[Job]] = defaultdict(list)
    for job in ended:
        if job.state is JobState.CANCELLED:
            cancelled[_why_cancelled(job)].append(job)
    groups = [
        *(
            TaskGroup(JobState.FAILED, why, tuple(jobs), code, message)
            for (why, code, message), jobs in failures.items()
        ),
        *(TaskGroup(JobState.CANCELLED, why, tuple(jobs)) for why, jobs in cancelled.items()),
    ]
    return Explanation(
        progress,
        " ".join((progress.headline, *paused_lines(store, ended=bool(progress.array.ended)))),
        groups=sorted(groups, key=lambda group: -len(group.jobs)),
        omitted=max(0, len(failed) - MOST_EXPLAINED),
    )


def _why_cancelled(task: Job) -> str:
    """Return the reason why a task was cancelled, in the same words for all tasks that wait by index."""
    why = task.reason.partition(": ")[0]
    return why if task.child is None else why.replace(f"-{task.child.index} ", "-I ")


def _how(attempt: Attempt | None, job: Job) -> tuple[str, int | None, str]:
    """Return how a task failed, in the same words for all tasks that failed alike."""
    if attempt is None or attempt.failure is None:
        return ("", None, job.reason)
    failure, decision = attempt.failure, attempt.decision
    code = None if failure.first_failed is None else failure.first_failed.exit_code
    return (failure.category or str(failure.cause), code, "" if decision is None else summarize_decision(decision))
