"""What people see of a job."""

from __future__ import annotations

from enum import StrEnum


class JobState(StrEnum):
    """What a user sees of a job."""

    QUEUED = "Queued"
    """Waits to be placed."""
    RUNNING = "Running"
    """An attempt holds its places, from being scheduled until all its runs have stopped."""
    BACKOFF = "BackOff"
    """Waits for its retry to be due; holds no resources."""
    HELD = "Held"
    """Waits until a user releases it."""
    WAITING = "Waiting"
    """Waits for other work first, or for its job set, which decides when it runs: not yet started, suspended, or over
    before its set."""
    SUCCEEDED = "Succeeded"
    """Every run of its last attempt ended with code 0. Final, unless a user retries it."""
    FAILED = "Failed"
    """Its last attempt failed and is not retried. Final, unless a user retries it."""
    CANCELLED = "Cancelled"
    """A user ended it, or what it waited for can no longer happen. Final, unless a user retries it."""
