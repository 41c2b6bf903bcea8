"""What every store checks alike of what queues take in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_array
from holdfast.compiled.workloads import needs_of
from holdfast.domain.placement.intake import Incoming, excess
from holdfast.domain.workloads.array.model import Array
from holdfast.domain.workloads.base import Owner
from holdfast.errors import Problem, QueueFull, RateLimited, UnreadableSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from holdfast.domain.job import Queue
    from holdfast.domain.placement.intake import Load
    from holdfast.domain.workloads.base import Workload
    from holdfast.ports.store import Submission


def submitter_of(submission: Submission) -> str:
    """Return whose a submission is."""
    if submission.jobs:
        return submission.jobs[0].submitted_by
    owners = [owner for owner in (submission.owner, *submission.also) if isinstance(owner, Owner)]
    return owners[0].submitted_by if owners else ""


def incoming_of(submission: Submission) -> Mapping[str, Incoming]:
    """Say what a submission brings to each queue."""
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
    """Count the tasks that an array has yet to make."""
    if not isinstance(workload, Array) or workload.ended or workload.state.stopping:
        return 0
    try:
        return max(0, load_array(workload.spec).total - workload.state.made)
    except UnreadableSpec:
        return 0


def require_room(
    queues: Iterable[Queue], loads: Mapping[tuple[str, str | None], Load], submission: Submission, now: float
) -> None:
    """Check that queues take a submission in, all of it.

    Args:
        queues: Those of its queues that limit what they take in.
        loads: What they have taken in, by queue in all, and by queue and user.
        submission: The submission.
        now: The time.

    Raises:
        QueueFull: Too many jobs wait, of all or of this user.
        RateLimited: There is too much at once, and time alone makes room.
    """
    incoming, user = incoming_of(submission), submitter_of(submission)
    excesses = [
        (queue, excess_found)
        for queue in sorted(queues, key=lambda queue: queue.name)
        for submitter in (None, user)
        for excess_found in excess(
            queue, submitter, loads[queue.name, submitter], incoming.get(queue.name, Incoming()), now
        )
    ]
    if not excesses:
        return
    problems = [
        Problem(f"queue {queue.name}: {excess_found.field}", excess_found.message) for queue, excess_found in excesses
    ]
    message = "; ".join(excess_found.message for _, excess_found in excesses)
    waits = [excess_found.again_in_s for _, excess_found in excesses]
    if any(excess_found.field.endswith("maxQueued") for _, excess_found in excesses):
        raise QueueFull(message, problems=problems, hint="wait until some have begun, or cancel some")
    if None in waits:
        most = min(excess_found.most for _, excess_found in excesses)
        raise RateLimited(message, problems=problems, hint=f"submit in parts, of {most} at most")
    error = RateLimited(message, problems=problems, hint="submit it again after that time")
    error.retry_after_s = max(wait for wait in waits if wait is not None)
    raise error
