"""The states of each kind of work, as people see them; ``KindInfo`` lists them."""

from __future__ import annotations

from enum import StrEnum


class JobState(StrEnum):
    """The state of a job."""

    QUEUED = "Queued"
    """Waits to be placed."""
    RUNNING = "Running"
    """An attempt has its places, from scheduling until all its runs have stopped."""
    BACKOFF = "BackOff"
    """Waits until its retry is due; uses no resources."""
    HELD = "Held"
    """Waits until a user releases it."""
    WAITING = "Waiting"
    """Waits for other work, or for its job set: not started yet, suspended, or ended before its set."""
    SUCCEEDED = "Succeeded"
    """Every run of its last attempt exited with 0. Final, unless a user retries it."""
    FAILED = "Failed"
    """Its last attempt failed and is not retried. Final, unless a user retries it."""
    CANCELLED = "Cancelled"
    """A user cancelled it, or its dependencies can no longer be met. Final, unless a user retries it."""


JOB_TERMINAL = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})


class ArrayPhase(StrEnum):
    """The phase of an array."""

    QUEUED = "Queued"
    """None of its tasks has been created yet."""
    WAITING = "Waiting"
    """Waits for other work before it creates tasks."""
    HELD = "Held"
    """Creates and starts no more tasks until a user releases it."""
    RUNNING = "Running"
    """Creates its tasks, which run as there is room."""
    STOPPING = "Stopping"
    """Creates no more tasks, and ends once the existing ones have ended."""
    SUCCEEDED = "Succeeded"
    """Enough of its tasks have succeeded; final."""
    FAILED = "Failed"
    """Final."""
    CANCELLED = "Cancelled"
    """A user cancelled it; final."""
    DELETING = "Deleting"
    """It is deleted as soon as its tasks have ended."""


class JobSetPhase(StrEnum):
    """The phase of a job set."""

    WAITING = "Waiting"
    """It waits for other work before it starts."""
    PENDING = "Pending"
    """Accepted, but not processed yet."""
    RUNNING = "Running"
    """Its jobs are running, or can start."""
    RESTARTING = "Restarting"
    """The whole set was restarted, and not all of its jobs are ready yet."""
    SUSPENDED = "Suspended"
    """Its programs are stopped, and none starts until it is resumed."""
    COMPLETED = "Completed"
    """Enough of its jobs have succeeded; final."""
    FAILED = "Failed"
    """Final. The condition `Failed` says why."""
    DELETING = "Deleting"
    """It is deleted as soon as its programs have stopped."""
    UNMANAGED = "Unmanaged"
    """Its `managedBy` names another controller: Holdfast does not run it."""
