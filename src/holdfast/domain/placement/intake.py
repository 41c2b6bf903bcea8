"""What a queue takes in: how many jobs may wait in it, and how much is submitted to it in a minute.

Both in all and of one user. A retry is no submission, and is never refused for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.domain.job import Queue

WINDOW_S = 60.0


class Load(Struct, frozen=True):
    """What a queue has taken in, of all or of one user."""

    waiting: int = 0
    """Jobs that have not begun, or wait for their retry; those that an array has yet to make, too."""
    accepted: Sequence[tuple[float, int]] = ()
    """When how many submissions were accepted."""


class Incoming(Struct, frozen=True):
    """What a submission brings to a queue."""

    jobs: int = 0
    """An array is as many as it has tasks."""
    submissions: int = 0
    """A job, an array and a job set are one each."""


class Excess(Struct, frozen=True):
    """A limit that a submission is beyond."""

    field: str
    """Of the queue."""
    message: str
    again_in_s: float | None = None
    """When time alone makes room for all of it, if it ever does."""
    most: int = 0


def recent(counts: Iterable[tuple[float, int]], now: float) -> list[tuple[float, int]]:
    """Return what of it was accepted within the last minute.

    What a clock said that was set back since is not waited for: nobody is kept out for an hour because a clock was
    an hour ahead.
    """
    return sorted((at, count) for at, count in counts if now - WINDOW_S < at <= now + WINDOW_S)


def excess(queue: Queue, user: str | None, load: Load, incoming: Incoming, now: float) -> list[Excess]:
    """Say which limits of a queue a submission is beyond.

    Args:
        queue: The queue.
        user: Whose limits: those of one user, or with ``None`` those of all together.
        load: What it has taken in already, of that user or in all.
        incoming: What is submitted.
        now: The time.
    """
    limits, excesses = queue if user is None else queue.per_user, list[Excess]()
    of_user = "" if user is None else f" of {user or 'nobody'}"
    prefix = "" if user is None else "perUser."
    most = limits.max_queued
    if most is not None and load.waiting + incoming.jobs > most:
        message = (
            f"queue {queue.name} lets {most} jobs{of_user} wait: {load.waiting} do, and this is {incoming.jobs} more"
        )
        excesses.append(Excess(f"{prefix}maxQueued", message, most=most))
    rate, recently = limits.submissions_per_minute, recent(load.accepted, now)
    count = sum(prefix for _, prefix in recently)
    if rate is not None and count + incoming.submissions > rate:
        message = (
            f"queue {queue.name} takes {rate} submissions{of_user} a minute: {count} were accepted in the last one"
        )
        message += f", and this is {incoming.submissions} more"
        again = _room_in(recently, rate - incoming.submissions, now)
        excesses.append(Excess(f"{prefix}submissionsPerMinute", message, again, most=rate))
    return excesses


def _room_in(counts: Sequence[tuple[float, int]], room: int, now: float) -> float | None:
    """Say when at most ``room`` submissions are left of the last minute, if ever."""
    left = sum(count for _, count in counts)
    for at, count in counts:
        left -= count
        if left <= room:
            return max(0.0, at + WINDOW_S - now)
    return None
