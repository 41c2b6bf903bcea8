"""When the jobs that a job launched as its children end.

By default they end with their parent, because nothing would look after them any more.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from holdfast.domain.job import JobState

if TYPE_CHECKING:
    from holdfast.domain.job import Job

_WELL_OR_ASKED = frozenset({JobState.SUCCEEDED, JobState.CANCELLED})


class ChildrenEnd(StrEnum):
    """When the children of a job are ended."""

    WITH_JOB = "WithJob"
    """When it has ended in any way, but not when it is retried."""
    WITH_ATTEMPT = "WithAttempt"
    """The same, and when an attempt has ended: the next attempt launches its own."""
    UNLESS_FAILED = "UnlessFailed"
    """When it succeeded or was cancelled."""


def why_children_end(rule: ChildrenEnd, parent: Job) -> str:
    """Say why the children end of a job whose attempt has ended; empty if they do not."""
    if parent.terminal:
        keeps = rule is ChildrenEnd.UNLESS_FAILED and parent.state not in _WELL_OR_ASKED
        return "" if keeps else has_ended(parent)
    if rule is ChildrenEnd.WITH_ATTEMPT:
        return f"its parent, job {parent.name}, is retried"
    return ""


def has_ended(parent: Job | None) -> str:
    """Say that a job's parent has ended; ``None`` is one that was deleted."""
    return "its parent has ended" if parent is None else f"its parent, job {parent.name}, has ended: {parent.state}"
