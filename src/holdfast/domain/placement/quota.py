"""What a queue lets run at once, in all and of one user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.job import Ceiling, Resources

if TYPE_CHECKING:
    from holdfast.domain.job import Queue
    from holdfast.domain.placement.fit import Shape, Usage

_NO_CEILING = Ceiling()


def whole(shape: Shape) -> Resources:
    """Sum of the requests of all ranks."""
    request, gang = shape.request, shape.gang
    named = tuple([(name, amount * gang) for name, amount in request.named]) if request.named else ()
    return Resources(request.cpu_m * gang, request.memory * gang, request.gpu * gang, request.share_m * gang, named)


def at_limit(queue: Queue, usage: Usage, shape: Shape) -> str:
    """Say which limit of a queue keeps it from running one job more, if any.

    Args:
        queue: The queue.
        usage: What all of its jobs use.
        shape: What the job asks for.
    """
    limit = _reached(queue.max_running_jobs, queue.max_running, usage, shape)
    return f"queue {queue.name} is at its {limit}" if limit else ""


def user_at_limit(queue: Queue, user: str, usage: Usage, shape: Shape) -> str:
    """Say which limit that each user has in a queue keeps it from running one job more of this one, if any.

    Args:
        queue: The queue.
        user: Whose the job is.
        usage: What all jobs of that user use in the queue.
        shape: What the job asks for.
    """
    limits = queue.per_user
    limit = _reached(limits.max_running_jobs, limits.max_running, usage, shape)
    return f"{user or 'nobody'} is at the {limit} of each user in queue {queue.name}" if limit else ""


def _reached(most_jobs: int | None, ceiling: Ceiling, usage: Usage, shape: Shape) -> str:
    """Name the limit that one job more would be beyond, if any."""
    if most_jobs is not None and usage.jobs >= most_jobs:
        return f"limit of {most_jobs} running jobs"
    if ceiling == _NO_CEILING:
        return ""
    after = usage.resources + whole(shape)
    for dimension, used in (("cpu_m", after.cpu_m), ("memory", after.memory), ("gpu", after.gpus)):
        most = getattr(ceiling, dimension)
        if most is not None and used > most:
            return f"{dimension.removesuffix('_m')} limit"
    full = (each for each, most in ceiling.named if after.amount_of(each) > most)
    return next((f"{each} limit" for each in full), "")
