"""Limits on what a queue accepts: how many jobs may wait, and how many submissions it gets in a minute.

Both in total and per user. A retry is not a submission, and is never refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.domain.job import Queue

WINDOW_S = 60.0


class Load(Struct, frozen=True):
    """What a queue has accepted, in total or from one user."""

    waiting: int = 0
    """Jobs that have not begun or wait for their retry, and tasks that an array has yet to create."""
    accepted: Sequence[tuple[float, int]] = ()
    """Times, and how many submissions were accepted then."""


class Incoming(Struct, frozen=True):
    """What a submission adds to a queue."""

    jobs: int = 0
    """An array counts as many as it has tasks."""
    submissions: int = 0
    """A job, an array and a job set count as one each."""


class Excess(Struct, frozen=True):
    """A limit that a submission exceeds."""

    field: str
    """The queue's field that sets the limit."""
    message: str
    again_in_s: float | None = None
    """When the submission would be accepted, if waiting helps."""
    most: int = 0


def recent_submissions(counts: Iterable[tuple[float, int]], now: float) -> list[tuple[float, int]]:
    """Return the submissions accepted within the last minute.

    Times further in the future than that are ignored: they come from a clock that was set back since, and would keep
    users out for as long as it was ahead.
    """
    return sorted((at, count) for at, count in counts if now - WINDOW_S < at <= now + WINDOW_S)


def exceeded_limits(queue: Queue, user: str | None, load: Load, incoming: Incoming, now: float) -> list[Excess]:
    """List the limits of a queue that a submission exceeds.

    Args:
        queue: The queue.
        user: Whose limits are checked; ``None`` for those of all users together.
        load: What the queue has accepted already, from that user or in total.
        incoming: The submission.
        now: The time.
    """
    limits, excesses = queue if user is None else queue.per_user, list[Excess]()
    of_user = "" if user is None else f" of {user or 'nobody'}"
    prefix = "" if user is None else "perUser."
    most = limits.max_queued
    if most is not None and load.waiting + incoming.jobs > most:
        message = f"queue {queue.name} lets at most {most} jobs{of_user} wait: {load.waiting} wait"
        message += f", and this adds {incoming.jobs}"
        excesses.append(Excess(f"{prefix}maxQueued", message, most=most))
    rate, recently = limits.submissions_per_minute, recent_submissions(load.accepted, now)
    count = sum(number for _, number in recently)
    if rate is not None and count + incoming.submissions > rate:
        message = (
            f"queue {queue.name} accepts {rate} submissions{of_user} a minute: {count} were accepted in the last minute"
        )
        message += f", and this adds {incoming.submissions}"
        again = _room_in(recently, rate - incoming.submissions, now)
        excesses.append(Excess(f"{prefix}submissionsPerMinute", message, again, most=rate))
    return excesses


def _room_in(counts: Sequence[tuple[float, int]], room: int, now: float) -> float | None:
    """Return how long until at most ``room`` submissions are left in the last minute, if ever."""
    left = sum(count for _, count in counts)
    for at, count in counts:
        left -= count
        if left <= room:
            return max(0.0, at + WINDOW_S - now)
    return None
