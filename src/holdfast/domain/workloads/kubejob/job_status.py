"""The status of a job made of pods, and of its attempt, in the terms of every job."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from holdfast.domain.failure import Cause, EndedBy, Failure, FailureCondition
from holdfast.domain.job import JobState
from holdfast.domain.lifecycle import (
    ENDING_STATUS,
    AttemptStatus,
    Ending,
    EntityKind,
    Lifecycle,
    Match,
    Outcome,
    PromotionRow,
    RequestRow,
    Step,
)
from holdfast.domain.lifecycle.engine import HandlerOptions, advance
from holdfast.domain.record import evolve
from holdfast.domain.workloads.kubejob.reconcile import DEADLINE

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from holdfast.domain.job import Attempt, Job
    from holdfast.domain.lifecycle import TransitionStatus
    from holdfast.domain.workloads.kubejob.model import JobCondition
    from holdfast.domain.workloads.kubejob.records import KubeJobRecord


class PodsStatus(StrEnum):
    """The status of an attempt's pods, taken together."""

    RUNNING = "some pod runs"
    STOPPING = "its pods are being stopped: the Job has failed, or its set deletes it"


A = AttemptStatus
_RUNNING, _STOPPING = frozenset({PodsStatus.RUNNING}), frozenset({PodsStatus.STOPPING})
PODS: Lifecycle[AttemptStatus, PodsStatus] = Lifecycle(
    EntityKind.ATTEMPT,
    frozenset({Outcome.SUCCESS}),
    handlers=(),
    promotions=(
        PromotionRow("PromotePodsToRunning", frozenset({A.PENDING}), _RUNNING, Match.ANY, A.RUNNING),
        PromotionRow("StopPods", frozenset({A.PENDING, A.RUNNING}), _STOPPING, Match.ANY, A.TERMINATING),
    ),
)
"""How an attempt moves whose runs come and go one by one: by the status of its pods."""
END_PODS = RequestRow("EndPods", dict.fromkeys((A.PENDING, A.RUNNING, A.TERMINATING), A.TERMINATED))
"""The last step, once no pod is left and none will come, to the status of the attempt's ending."""


class _MovingAttempt:
    """An attempt that the table moves."""

    raised: Exception | None = None
    tries = 0

    def __init__(self, attempt: Attempt, children: Collection[PodsStatus]) -> None:
        self.attempt = attempt
        self.status = attempt.status
        self.children = children
        self.steps: list[tuple[Step, Attempt]] = []

    def since(self, _: float) -> float:
        return self.attempt.status_since

    def options(self, _: object) -> HandlerOptions:
        return HandlerOptions()

    def work(self, _: object, __: float) -> None:
        """Do nothing: its pods move it."""

    def take(self, step: Step, to: TransitionStatus[AttemptStatus, PodsStatus]) -> bool:
        attempt = self.attempt.entered(to.status or self.status, step.now)
        if to.status is A.RUNNING:
            attempt = evolve(attempt, started_at=attempt.started_at or step.now)
        self.attempt, self.status = attempt, attempt.status
        self.steps.append((step, attempt))
        return True


def attempt_steps(attempt: Attempt, pods: Collection[PodsStatus], now: float) -> Sequence[tuple[Step, Attempt]]:
    """Return the steps that an attempt takes now, each with the attempt after it."""
    if not pods:
        return ()
    moving = _MovingAttempt(attempt, pods)
    advance(PODS, moving, now)
    return moving.steps


def _final_step(
    attempt: Attempt, ending: Ending, message: str, now: float, *, failure: Failure | None = None
) -> tuple[Step, Attempt]:
    """Return the last step of an attempt, and the attempt as it ended."""
    if ending is Ending.CANCELLED and attempt.started_at is None:
        ending = Ending.NEVER_STARTED
    over = evolve(
        attempt,
        status=ENDING_STATUS[ending],
        status_since=now,
        ended_at=now,
        ending=ending,
        failure=failure,
        message=message,
    )
    return Step(END_PODS.name, Outcome.SUCCESS, now, message=message), over


def last_step(
    record: KubeJobRecord, attempt: Attempt, last: Failure | None, now: float, *, in_set: bool
) -> tuple[Step, Attempt]:
    """Return the last step of an attempt that is complete, has failed or was deleted, once nothing of it runs.

    Args:
        record: The record of its job.
        attempt: The attempt.
        last: The failure of the last program that failed by itself.
        now: The time.
        in_set: Whether its job belongs to a job set.
    """
    how = record.state.finished if record.deleting_since is None else None
    if how is not None and how.type == "Complete":
        return _final_step(attempt, Ending.SUCCEEDED, how.message, now)
    message = record.failed_in_place if how is None else f"{how.reason}: {how.message}"
    if not message:
        return _final_step(attempt, Ending.CANCELLED, "deleted by its job set" if in_set else "cancelled", now)
    return _final_step(attempt, Ending.FAILED, message, now, failure=_why_failed(how, last, message, now))


def _why_failed(how: JobCondition | None, last: Failure | None, message: str, now: float) -> Failure:
    """Return the failure of an attempt: that of the last pod that failed by itself, unless its deadline passed."""
    if how is not None and how.reason == DEADLINE.reason:
        # All pods were stopped; an earlier failure is not what ended the job.
        late = frozenset({FailureCondition.DEADLINE_EXCEEDED})
        return Failure(Cause.EXECUTION_TIMEOUT, late, message=message, failed_at=now, ended_by=EndedBy.DEADLINE)
    return last or Failure(Cause.UNKNOWN, frozenset(), message=message, failed_at=now)


PODS_WAIT = "pods wait: "
"""Begins the reason of a Running job if some of its pods have no place."""
NO_PODS = "its parallelism is 0, so it starts no pods"


class JobStatus(NamedTuple):
    """A job's state, and why."""

    state: JobState
    reason: str = ""
    retry_at: float | None = None
    """When its pods are due, while it is BackOff."""


def status_of(
    record: KubeJobRecord,
    *,
    in_set: bool,
    placed: bool = False,
    waiting: bool = False,
    wake_at: float | None = None,
    parallelism: int | None = None,
) -> JobStatus:
    """Return the status of a job that has not ended for good.

    Args:
        record: Its record.
        in_set: Whether it belongs to a job set.
        placed: Whether any of its pods has a place.
        waiting: Whether any of its pods waits for a place.
        wake_at: When the next of its pods is due, if one is held back.
        parallelism: How many pods it may have at once, unless its set has resized it.
    """
    if placed:
        return JobStatus(JobState.RUNNING)
    if in_set and not record.present:
        return JobStatus(JobState.WAITING, "waits for its job set to start it")
    if in_set and (ended := record.state.finished) is not None:
        how = "succeeded" if ended.type == "Complete" else f"failed: {ended.reason}: {ended.message}"
        return JobStatus(JobState.WAITING, f"{how}; its job set goes on")
    if record.suspended:
        return JobStatus(JobState.WAITING if in_set else JobState.HELD, "suspended")
    if waiting:
        return JobStatus(JobState.QUEUED)
    return _waiting_status(record, wake_at, parallelism if record.parallelism is None else record.parallelism)


def _waiting_status(record: KubeJobRecord, wake_at: float | None, parallelism: int | None) -> JobStatus:
    held = next((pod.held for pod in record.pods if pod.held), "")
    if held:
        return JobStatus(JobState.HELD, held)
    if wake_at is not None:
        return JobStatus(JobState.BACKOFF, "waits before it replaces failed pods", wake_at)
    return JobStatus(JobState.QUEUED, NO_PODS if parallelism == 0 else "")


def ended_job(job: Job, record: KubeJobRecord, otherwise: str, now: float) -> Job:
    """Return a job that ends for good: like its attempt, or cancelled if that never ended."""
    how = record.state.finished if record.present else None
    state, reason = JobState.CANCELLED, otherwise
    if record.failed_in_place:
        state, reason = JobState.FAILED, record.failed_in_place
    elif how is not None:
        state, reason = JobState.SUCCEEDED, ""
        if how.type != "Complete":
            state, reason = JobState.FAILED, f"{how.reason}: {how.message}"
    requested = job.cancel_requested or state is JobState.CANCELLED
    return evolve(
        job, state=state, reason=reason, retry_at=None, ended_at=now, updated_at=now, cancel_requested=requested
    )


def with_status(job: Job, status: JobStatus, now: float) -> Job:
    """Return a job with its current status; while its pods are pending, the reason is that of placement."""
    state, reason, retry_at = status
    stays = state is job.state
    placed = state is JobState.QUEUED and not reason and job.reason != NO_PODS
    if stays and (placed or (reason, retry_at) == (job.reason, job.retry_at)):
        return job
    queued_at = now if state is JobState.QUEUED and not stays else job.queued_at
    return evolve(job, state=state, reason=reason, retry_at=retry_at, queued_at=queued_at, updated_at=now)


def with_wait_reason(job: Job, reason: str, now: float) -> Job:
    """Return a job with the reason why it, or some of its pods, wait for a place; the same job if that is unchanged."""
    if job.state is JobState.RUNNING and not job.cancel_requested:
        reason = PODS_WAIT + reason
    elif job.state is not JobState.QUEUED:
        return job
    return job if job.reason == reason else evolve(job, reason=reason, updated_at=now)


def running_job(job: Job, attempt: int, now: float) -> Job:
    """Return a job as running, once its first pod has a place."""
    running = evolve(job, state=JobState.RUNNING, reason="", attempt=attempt, retry_at=None, updated_at=now)
    return evolve(running, started_at=job.started_at or now)
