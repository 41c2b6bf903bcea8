"""What is known of the memory that a run used: whether that is why it failed."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..cgroups import Group
    from ..records import SupervisedRun


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


def too_much(program: SupervisedRun) -> str:
    """Say that a run exceeded its limit."""
    return f"exceeded its memory limit of {round(program.order['memory'] / 2**20, 1):.10g}Mi"
