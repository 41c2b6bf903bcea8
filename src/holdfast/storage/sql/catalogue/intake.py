"""Enforces the limits of queues on submissions, in the transaction that accepts them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, func, insert, select

from holdfast.compiled.codec import load_array, load_entry
from holdfast.compiled.workloads import needs_of
from holdfast.domain.audit import Subject
from holdfast.domain.job import JOB_WAITING, JobState, Queue
from holdfast.domain.placement.intake import WINDOW_S, Incoming, Load, exceeded_limits
from holdfast.domain.terms.workload_kinds import ARRAY
from holdfast.domain.workloads.array.model import Array
from holdfast.domain.workloads.base import Owner
from holdfast.errors import Problem, QueueFull, RateLimited, UnreadableSpec
from holdfast.storage.sql import declared, tables
from holdfast.storage.sql.query import owners

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import Connection

    from holdfast.domain.workloads.base import Workload
    from holdfast.ports.store import Submission

_WAITING = sorted({*JOB_WAITING, JobState.WAITING})


def take_in(connection: Connection, submission: Submission, now: float) -> None:
    """Make sure that the queues have room for a submission, and count it.

    Raises:
        QueueFull, RateLimited: A queue has no room; nothing is counted.
    """
    if not submission.limited:
        return
    incoming, user, intake = incoming_of(submission), submitter_of(submission), declared.intake
    for queue in look(connection, submission, now, held=True):
        if queue.submissions_per_minute is not None or queue.per_user.submissions_per_minute is not None:
            connection.execute(delete(intake).where(intake.c.queue == queue.name, intake.c.at <= now - WINDOW_S))
            count = incoming[queue.name].submissions
            connection.execute(insert(intake).values(queue=queue.name, submitted_by=user, at=now, count=count))


def look(connection: Connection, submission: Submission, now: float, *, held: bool = False) -> Sequence[Queue]:
    """Make sure that the queues have room for a submission; returns those with limits.

    Args:
        connection: An open transaction.
        submission: What is submitted.
        now: Seconds since the epoch.
        held: Whether to keep others from submitting to them until the transaction ends.

    Raises:
        QueueFull, RateLimited: A queue has no room.
    """
    table = declared.entries.c
    names = sorted(incoming_of(submission).keys() & {*submission.limited})
    query = select(table.body).where(table.kind == Subject.QUEUE, table.name.in_(names)).order_by(table.name)
    # One submission to a queue at a time; work that only names the queue does not wait.
    rows = connection.execute(query.with_for_update(key_share=True) if held else query)
    queues = [load_entry(Queue, body) for body in rows.scalars()]
    user = submitter_of(submission)
    loads = {(queue.name, submitter): load for queue in queues for submitter, load in _loads(connection, queue, user)}
    require_room(queues, loads, submission, now)
    return queues


def _loads(connection: Connection, queue: Queue, user: str) -> Iterator[tuple[str | None, Load]]:
    """Count what a queue has accepted, in all and from one user, as far as its limits need it."""
    for submitter, limits in ((None, queue), (user, queue.per_user)):
        waiting = 0 if limits.max_queued is None else _waiting(connection, queue.name, submitter, limits.max_queued)
        intakes: list[tuple[float, int]] = []
        if limits.submissions_per_minute is not None:
            intake = declared.intake.c
            theirs = () if submitter is None else (intake.submitted_by == submitter,)
            rows = connection.execute(select(intake.at, intake.count).where(intake.queue == queue.name, *theirs))
            # A damaged row counts nothing; the next submission removes it.
            intakes = [(at, count) for at, count in rows if isinstance(at, float) and isinstance(count, int)]
        yield submitter, Load(waiting, intakes)


def _waiting(connection: Connection, queue: str, user: str | None, most: int) -> int:
    """Count the waiting jobs of a queue and the tasks its arrays have yet to create, up to the limit."""
    jobs, workloads = tables.jobs.c, tables.workloads.c
    theirs = () if user is None else (jobs.submitted_by == user,)
    there_now = (tables.JOB_WAITS, jobs.state.in_(_WAITING), jobs.queue == queue, *theirs)
    some = select(jobs.seq).where(*there_now).limit(most + 1)
    queued = connection.execute(select(func.count()).select_from(some.subquery())).scalar_one()
    conditions = () if user is None else (workloads.submitted_by == user,)
    arrays = owners(connection, workloads.kind == ARRAY, workloads.queue == queue, *conditions)
    return queued + sum(not_made(array) for array in arrays if needs_of(array).queue == queue)


def submitter_of(submission: Submission) -> str:
    """Return the submitter's name."""
    if submission.jobs:
        return submission.jobs[0].submitted_by
    owners = [owner for owner in (submission.owner, *submission.also) if isinstance(owner, Owner)]
    return owners[0].submitted_by if owners else ""


def incoming_of(submission: Submission) -> Mapping[str, Incoming]:
    """Count what a submission adds to each queue."""
    by_queue: dict[str, Incoming] = {}

    def add(queue: str, jobs: int, submissions: int) -> None:
        incoming = by_queue.get(queue, Incoming())
        by_queue[queue] = Incoming(incoming.jobs + jobs, incoming.submissions + submissions)

    for job in submission.jobs:
        add(job.queue, 1, submission.owner is None)
    for queue in [*by_queue] if submission.owner is not None else ():
        add(queue, 0, 1)
    for workload in submission.also:
        add(needs_of(workload).queue, not_made(workload), 1)
    return by_queue


def not_made(workload: Workload) -> int:
    """Count the tasks that an array has yet to create."""
    if not isinstance(workload, Array) or workload.ended or workload.state.stopping:
        return 0
    try:
        return max(0, load_array(workload.spec).total - workload.state.made)
    except UnreadableSpec:
        return 0


def require_room(
    queues: Iterable[Queue], loads: Mapping[tuple[str, str | None], Load], submission: Submission, now: float
) -> None:
    """Check that queues have room for all of a submission.

    Args:
        queues: Its queues that have limits.
        loads: What they have accepted, by queue for all users, and by queue and user.
        submission: What is submitted.
        now: Seconds since the epoch.

    Raises:
        QueueFull: Too many jobs wait, of all users or of this one.
        RateLimited: Too many submissions came within a minute; waiting makes room.
    """
    incoming, user = incoming_of(submission), submitter_of(submission)
    excesses = [
        (queue, overrun)
        for queue in sorted(queues, key=lambda queue: queue.name)
        for submitter in (None, user)
        for overrun in exceeded_limits(
            queue, submitter, loads[queue.name, submitter], incoming.get(queue.name, Incoming()), now
        )
    ]
    if not excesses:
        return
    problems = [Problem(f"queue {queue.name}: {overrun.field}", overrun.message) for queue, overrun in excesses]
    message = "; ".join(overrun.message for _, overrun in excesses)
    waits = [overrun.again_in_s for _, overrun in excesses]
    if any(overrun.field.endswith("maxQueued") for _, overrun in excesses):
        raise QueueFull(message, problems=problems, hint="wait until some have begun, or cancel some")
    if None in waits:
        most = min(overrun.most for _, overrun in excesses)
        raise RateLimited(message, problems=problems, hint=f"submit in parts, of {most} at most")
    error = RateLimited(message, problems=problems, hint="submit it again after that time")
    error.retry_after_s = max(wait for wait in waits if wait is not None)
    raise error
