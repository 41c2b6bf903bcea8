"""Where work can be, as people see it: the one list of states for each kind, which its ``KindInfo`` enumerates."""

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


JOB_TERMINAL = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})


class ArrayPhase(StrEnum):
    """Where an array is."""

    QUEUED = "Queued"
    """None of its tasks has been made yet."""
    WAITING = "Waiting"
    """Waits for other work before any of its tasks is made."""
    HELD = "Held"
    """Makes and starts no more tasks until a user releases it."""
    RUNNING = "Running"
    """Makes its tasks, which run as there is room for them."""
    STOPPING = "Stopping"
    """Makes no more tasks, and ends once those that were made have ended."""
    SUCCEEDED = "Succeeded"
    """As many of its tasks as it asked for have succeeded; final."""
    FAILED = "Failed"
    """Final."""
    CANCELLED = "Cancelled"
    """A user ended it; final."""
    DELETING = "Deleting"
    """It is removed as soon as its tasks have ended."""


class JobSetPhase(StrEnum):
    """Where a job set is."""

    WAITING = "Waiting"
    """It waits for other work before it starts."""
    PENDING = "Pending"
    """Accepted; the controller has not looked at it yet."""
    RUNNING = "Running"
    """Its jobs are running, or can start."""
    RESTARTING = "Restarting"
    """The whole set was restarted, and not all of its jobs are ready yet."""
    SUSPENDED = "Suspended"
    """Its programs were told to stop, and none starts until it is resumed."""
    COMPLETED = "Completed"
    """Enough of its jobs have succeeded; final."""
    FAILED = "Failed"
    """Final. The condition `Failed` says why."""
    DELETING = "Deleting"
    """It is removed as soon as its programs have stopped."""
    UNMANAGED = "Unmanaged"
    """Its `managedBy` names another controller: nothing of it runs here."""
