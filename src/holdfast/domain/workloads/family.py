"""Jobs that other jobs launched: children, which end with their parent.

Nobody would look after them any more, and a parent that ended for good does not come back to do so.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from holdfast.domain.job import JobState

if TYPE_CHECKING:
    from holdfast.domain.job import Job

_WELL_OR_ASKED = frozenset({JobState.SUCCEEDED, JobState.CANCELLED})


class ChildrenEnd(StrEnum):
    """When the children of a job end that have not by themselves."""

    WITH_JOB = "WithJob"
    """When it has ended, however that was; not when it is tried again."""
    WITH_ATTEMPT = "WithAttempt"
    """As above, and when an attempt at it is over: the next one launches its own."""
    UNLESS_FAILED = "UnlessFailed"
    """When it has succeeded or was cancelled."""


def why_children_end(rule: ChildrenEnd, parent: Job) -> str:
    """Say why the children of a job are to end of which an attempt is over; empty: they are not."""
    if parent.terminal:
        keeps = rule is ChildrenEnd.UNLESS_FAILED and parent.state not in _WELL_OR_ASKED
        return "" if keeps else has_ended(parent)
    if rule is ChildrenEnd.WITH_ATTEMPT:
        return f"its parent, job {parent.name}, is to be tried again"
    return ""


def has_ended(parent: Job | None) -> str:
    """Say that there is nobody any more whose child a job would be; ``None``: the parent was deleted since."""
    return "its parent has ended" if parent is None else f"its parent, job {parent.name}, has ended: {parent.state}"
