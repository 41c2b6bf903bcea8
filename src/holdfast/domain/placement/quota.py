"""What a queue lets run at once, in all and of one user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.job import Ceiling, Resources

if TYPE_CHECKING:
    from holdfast.domain.job import Queue, UserLimits
    from holdfast.domain.placement.fit import Shape, Usage

_NO_CEILING = Ceiling()


def whole(shape: Shape) -> Resources:
    """Sum of the requests of all ranks."""
    request, gang = shape.request, shape.gang
    named = tuple([(name, amount * gang) for name, amount in request.named]) if request.named else ()
    return Resources(request.cpu_m * gang, request.memory * gang, request.gpu * gang, request.share_m * gang, named)


def limit_reached(limits: Queue | UserLimits, usage: Usage, shape: Shape) -> str:
    """Name the limit that one job more would be beyond, if any.

    Args:
        limits: Of a queue, or of each user in it.
        usage: What all jobs there use, or all of that user.
        shape: What the job asks for.
    """
    most_jobs, ceiling = limits.max_running_jobs, limits.max_running
    if most_jobs is not None and usage.jobs >= most_jobs:
        return f"limit of {most_jobs} running jobs"
    if ceiling == _NO_CEILING:
        return ""
    after = usage.resources + whole(shape)
    for dimension, used in (("cpu_m", after.cpu_m), ("memory", after.memory), ("gpu", after.gpus)):
        most = getattr(ceiling, dimension)
        if most is not None and used > most:
            return f"{dimension.removesuffix('_m')} limit"
    full = (name for name, most in ceiling.named if after.amount_of(name) > most)
    return next((f"{name} limit" for name in full), "")
