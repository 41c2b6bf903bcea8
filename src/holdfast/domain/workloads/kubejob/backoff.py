"""Computes how long a Job waits before it replaces failed pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.delay import delay_s
from holdfast.domain.workloads.kubejob.model import BackoffRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.policy.model import Backoff


def remaining_s(backoff: Backoff, failures: int, *, elapsed_s: float) -> float:
    """Return how long still to wait: ``min(base * 2^(n-1), cap)`` from the last failure on."""
    if failures <= 0:
        return 0.0
    return max(0.0, delay_s(backoff, failures, seed="") - elapsed_s)


def updated(record: BackoffRecord, failed: Sequence[float], succeeded: Sequence[float]) -> BackoffRecord:
    """Return the record after pods ended; a success clears the failures up to it.

    Args:
        record: Before.
        failed: When the newly failed pods ended; each one counts, ignored ones too.
        succeeded: When the newly succeeded pods ended.
    """
    if succeeded:
        last = max(succeeded)
        failed = [at for at in failed if at > last]
        record = BackoffRecord()
    if not failed:
        return record
    return BackoffRecord(record.failures + len(failed), max(failed))


def finish_time(
    containers: Sequence[float | None],
    *,
    not_ready_since: float | None = None,
    deletion: tuple[float, float] | None = None,
    created_at: float = 0.0,
) -> float:
    """Return when a pod ended, by the best evidence there is.

    Args:
        containers: When each of its containers ended, ``None`` for one that has no end.
        not_ready_since: When its condition Ready became False.
        deletion: Its deletion deadline, and the grace period it was given.
        created_at: When it was created, the last resort.
    """
    ends = [end for end in containers if end is not None]
    if ends and len(ends) == len(containers):
        return max(ends)
    if not_ready_since is not None:
        return not_ready_since
    return deletion[0] - deletion[1] if deletion is not None else created_at
