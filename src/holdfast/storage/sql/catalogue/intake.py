"""Holds the queues that limit what they take in, and counts what they have, in the transaction that takes more in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, func, insert, select

from holdfast.compiled.codec import load_entry
from holdfast.compiled.workloads import needs_of
from holdfast.domain.job import JOB_WAITING, JobState, Queue
from holdfast.domain.placement.intake import WINDOW_S, Load
from holdfast.domain.terms.workload_kinds import ARRAY
from holdfast.storage.intake import incoming_of, not_made, require_room, submitter_of
from holdfast.storage.sql import declared, tables
from holdfast.storage.sql.query import owners

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection

    from holdfast.ports.store import Submission

_WAITING = sorted({*JOB_WAITING, JobState.WAITING})


def take_in(connection: Connection, submission: Submission, now: float) -> None:
    """Make sure that the queues of a submission have room for it, and note that they took it in.

    Raises:
        QueueFull, RateLimited: One has no room; nothing is noted.
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
    """Make sure that the queues of a submission have room for it; returns those that limit what they take in.

    Args:
        connection: A transaction.
        submission: The submission.
        now: The time.
        held: Whether nobody else takes anything into them until the transaction ends.

    Raises:
        QueueFull, RateLimited: One has no room.
    """
    table = declared.queues.c
    names = sorted(incoming_of(submission).keys() & {*submission.limited})
    query = select(table.body).where(table.name.in_(names)).order_by(table.name)
    # The same queue is taken by one submission at a time; whoever only names it does not wait.
    rows = connection.execute(query.with_for_update(key_share=True) if held else query)
    queues = [load_entry(Queue, body) for body in rows.scalars()]
    user = submitter_of(submission)
    loads = {(queue.name, submitter): load for queue in queues for submitter, load in _loads(connection, queue, user)}
    require_room(queues, loads, submission, now)
    return queues


def _loads(connection: Connection, queue: Queue, user: str) -> Iterator[tuple[str | None, Load]]:
    """Count what a queue has taken in, in all and of one user, as far as it limits that."""
    for submitter, limits in ((None, queue), (user, queue.per_user)):
        waiting = 0 if limits.max_queued is None else _waiting(connection, queue.name, submitter, limits.max_queued)
        intakes: list[tuple[float, int]] = []
        if limits.submissions_per_minute is not None:
            intake = declared.intake.c
            theirs = () if submitter is None else (intake.submitted_by == submitter,)
            rows = connection.execute(select(intake.at, intake.count).where(intake.queue == queue.name, *theirs))
            # One that is damaged counts for nothing, and goes with the next.
            intakes = [(at, count) for at, count in rows if isinstance(at, float) and isinstance(count, int)]
        yield submitter, Load(waiting, intakes)


def _waiting(connection: Connection, queue: str, user: str | None, most: int) -> int:
    """Count the jobs that wait in a queue, and those that arrays have yet to make; no further than it matters."""
    jobs, workloads = tables.jobs.c, tables.workloads.c
    theirs = () if user is None else (jobs.submitted_by == user,)
    there_now = (tables.JOB_WAITS, jobs.state.in_(_WAITING), jobs.queue == queue, *theirs)
    some = select(jobs.seq).where(*there_now).limit(most + 1)
    queued = connection.execute(select(func.count()).select_from(some.subquery())).scalar_one()
    conditions = () if user is None else (workloads.submitted_by == user,)
    arrays = owners(connection, workloads.kind == ARRAY, workloads.queue == queue, *conditions)
    return queued + sum(not_made(array) for array in arrays if needs_of(array).queue == queue)
