"""What is known of the memory that a run used: whether that is why it failed."""

from __future__ import annotations

from .. import moment, processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..cgroups import Group
    from ..records import SupervisedRun

_SHARE = 10
"""What a run uses is counted at most so often that it takes one part in this many of a core."""


def evidence(program: SupervisedRun, group: Group | None, *, failed: bool) -> bool:
    """Read what a control group saw of a run that ended; returns whether it was killed for its memory."""
    if group is None or program.groups != group.paths:
        return program.rss_exceeded
    limited = bool(program.order.get("memory"))
    if limited:
        program.peak_memory = group.peak()
    if limited and failed and group.oom_killed():
        program.note = too_much(program)
        return True
    if failed and group.refused_fork():
        program.note = program.note or f"reached its limit of {program.order['pids_limit']} processes"
    return False


def used(program: SupervisedRun, estimate: int) -> int:
    """Return how much memory a run uses, where it was seen to use no more than an estimate.

    It is counted only if the estimate exceeds the limit, and then here rather than in the shim, which has other runs.

    Returns:
        0 where it would have to be counted again too soon.
    """
    limit = program.order["memory"]
    if estimate <= limit:
        return estimate
    began = moment.monotonic()
    if began < program.recount_at:
        return 0
    size = min(estimate, processes.exact_group_memory(program.pid))
    if size > limit:  # of a process that ended meanwhile those counted after it have the share, too
        size = min(size, processes.exact_group_memory(program.pid))
    now = moment.monotonic()
    program.recount_at = now + (now - began) * _SHARE
    return size


def too_much(program: SupervisedRun) -> str:
    """Say that a run exceeded its limit."""
    return f"exceeded its memory limit of {round(program.order['memory'] / 2**20, 1):.10g}Mi"
