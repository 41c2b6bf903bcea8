"""Whether a run failed because of the memory it used."""

from __future__ import annotations

from .. import moment, processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..cgroups import Group
    from ..records import SupervisedRun

_SHARE = 10
"""Counting a run's memory may take at most one part in this many of a core."""


def evidence(program: SupervisedRun, group: Group | None, *, failed: bool) -> bool:
    """Read a control group's counters after a run ended; returns whether it was killed for its memory."""
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
    """Return how much memory a run uses if an estimate seems too high.

    It is counted only if the estimate exceeds the limit, and then here rather than in the shim, which has other runs.

    Returns:
        0 if it would have to be counted again too soon.
    """
    limit = program.order["memory"]
    if estimate <= limit:
        return estimate
    began = moment.monotonic()
    if began < program.recount_at:
        return 0
    size = min(estimate, processes.exact_group_memory(program.pid))
    if size > limit:  # The share of a process that ended meanwhile is counted with the others.
        size = min(size, processes.exact_group_memory(program.pid))
    now = moment.monotonic()
    program.recount_at = now + (now - began) * _SHARE
    return size


def too_much(program: SupervisedRun) -> str:
    """Return the message about a run that exceeded its limit."""
    return f"exceeded its memory limit of {round(program.order['memory'] / 2**20, 1):.10g}Mi"
