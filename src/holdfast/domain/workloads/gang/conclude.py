"""Concludes an attempt at a gang that has ended, by how its runs ended: success, retry, hold or failure.

Also holds, releases and retries gang jobs, and describes the shape of their next attempt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Never, TypeAlias

from holdfast.domain.classify import classify, initiating_failure
from holdfast.domain.failure import Cause, Failure, failure_in_words
from holdfast.domain.job import Attempt, Job, JobState
from holdfast.domain.lifecycle import ENDING_STATUS, AttemptStatus, Ending, Interruption, Step
from holdfast.domain.placement.fit import Shape
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.decide import retry_at as due_at
from holdfast.domain.policy.decide import summarize_decision
from holdfast.domain.policy.model import Action, Decision
from holdfast.domain.record import evolve
from holdfast.domain.units import format_duration, format_instant
from holdfast.domain.workloads.base import Result
from holdfast.domain.workloads.dependencies import kept_waiting, met_again, met_before
from holdfast.domain.workloads.gang import endings
from holdfast.domain.workloads.gang.endings import (
    cancelled,
    cancelled_while_pending,
    ended_by_total_deadline,
    never_started,
)
from holdfast.domain.workloads.gang.policies import jitter_seed
from holdfast.domain.workloads.judge import Judgement, Try, judge, tried_by, turned_down

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.domain.failure import RunOutcome
    from holdfast.domain.job import Run
    from holdfast.domain.workloads.dependencies import AwaitedState
    from holdfast.domain.workloads.spec import JobSpec


Judging: TypeAlias = "Callable[[Job, JobSpec, Sequence[Run], float], Judgement]"
"""Returns what the failure of a job's runs is judged by; it is expensive, and called once, only after a failure."""


class EndedAttempt(NamedTuple):
    """An attempt that has ended, with its failure and the complete decision about it, if it failed."""

    attempt: Attempt
    step: Step
    """The step for its history."""


Concluded: TypeAlias = "Result[Job, Never, Never, EndedAttempt]"
"""The job as it continues, and its attempt."""


class Over(NamedTuple):
    """An attempt whose runs have all stopped, or that found no place in time."""

    attempt: Attempt
    """The attempt before this step."""
    step: Step
    """The step that ends it."""
    runs: Sequence[Run]
    """Sorted by rank; empty if it found no place."""
    judging: Judging

    def ended_at(self, now: float) -> float:
        """Return when the last of its programs ended, which may be before ``now`` if nobody noticed."""
        return max((run.ended_at for run in self.runs if run.ended_at is not None), default=now)


def conclude(spec: JobSpec, job: Job, over: Over, now: float) -> Concluded:
    """Conclude an attempt whose runs have all stopped, or that found no place in time."""
    attempt, ended, succeeded, why = over.attempt, [], 0, None
    if attempt.status is AttemptStatus.PENDING:
        attempt = evolve(attempt, message=over.step.message)
        job = evolve(job, attempt=attempt.number)
    for run in over.runs:
        why = why or run.interrupted
        if run.outcome is not None:
            ended.append((run.rank, run.outcome))
            succeeded += run.outcome.succeeded
    if over.runs and (succeeded == len(over.runs) or (spec.session is not None and _main_succeeded(over.runs))):
        status, ended_at = ENDING_STATUS[Ending.SUCCEEDED], over.ended_at(now)
        last = evolve(attempt, status=status, status_since=now, ended_at=ended_at, ending=Ending.SUCCEEDED)
        done = evolve(job, state=JobState.SUCCEEDED, reason="", ended_at=ended_at, updated_at=now)
        return Result(state=done, decisions=(EndedAttempt(last, over.step),))
    if job.cancel_requested:
        last = cancelled(attempt, job.reason, now, started=any(run.may_have_run for run in over.runs))
        done = cancelled_while_pending(job, job.reason, now)
        return Result(state=done, decisions=(EndedAttempt(last, over.step),))
    over, judged = over._replace(attempt=attempt), over.judging(job, spec, over.runs, now)
    if why is not None and (why is Interruption.HOLD or not endings.failed_by_itself(ended)):
        return _interrupted(spec, job, over, judged, why, ended)
    return fail(spec, job, over, judged, judged_failure(over, judged, ended, now), now)


def _main_succeeded(runs: Sequence[Run]) -> bool:
    """Whether a session's main kernel has done its work before any other failed."""
    main = next((run.outcome for run in runs if run.rank == 0), None)
    if main is None or not main.succeeded:
        return False
    ended = [(run.rank, run.outcome) for run in runs if run.outcome is not None]
    return not endings.failed_by_itself([pair for pair in ended if pair[1].ended_at < main.ended_at])


def _interrupted(
    spec: JobSpec,
    job: Job,
    over: Over,
    judged: Judgement,
    why: Interruption,
    ended: Sequence[tuple[int, RunOutcome]],
) -> Concluded:
    """Hold a gang that was interrupted, or requeue it; one that failed meanwhile is only held."""
    last, reason, now = over.attempt, job.reason, over.step.now
    if endings.failed_by_itself(ended):
        failed = evolve(last, ending=Ending.FAILED, failure=judged_failure(over, judged, ended, now))
        last = evolve(failed, decision=Decision(Action.HOLD, DecisionCode.INTERRUPTED, reason))
    elif why in endings.FAILURES and not (spec.session is not None and why is Interruption.PREEMPT):
        failure = endings.taken(last, ended, why, reason, judged.ruleset.categories)
        return fail(spec, job, over, judged, failure, now)
    else:
        last = endings.interrupted(last, ended, why, reason, now)
        if why is Interruption.DRAIN and last.failure is not None and spec.session is None:
            policies = judged.ruleset.policies.about_drain(last.failure)
            if policies is not None:
                judged = judged._replace(ruleset=evolve(judged.ruleset, policies=policies))
                return fail(spec, job, over, judged, last.failure, now)
    started = last.failure is not None and last.failure.started
    status = ENDING_STATUS[last.ending if started and last.ending else Ending.NEVER_STARTED]
    last = evolve(last, status=status, status_since=now, ended_at=over.ended_at(now))
    job = evolve(job, tried=tried_by(job, over.runs, last.failure))
    job = held(job, reason, now) if why is Interruption.HOLD else evolve(queued(job, now), reason=reason)
    return Result(state=job, decisions=(EndedAttempt(last, over.step),))


def fail(spec: JobSpec, job: Job, over: Over, judged: Judgement, failure: Failure, now: float) -> Concluded:
    """Judge a failure and move the job on: retry, hold or give up."""
    attempt, total_s = over.attempt, spec.total_deadline_s
    seed = jitter_seed(spec, job.id, job.retries)
    decision, history = judge(failure, job, Try(seed, attempt.number, shape_of(job, spec), over.runs), judged)
    if total_s is not None and ended_by_total_deadline(spec, failure, counted_from(job), now):
        failure = evolve(failure, message=f"total deadline of {format_duration(total_s)} is over")
        decision = Decision(Action.FAIL, DecisionCode.TOTAL_DEADLINE, failure.message)
    due = None
    if decision.grants_retry:
        due = due_at(failure.failed_at, decision.delay_s, confirmed_stopped_at=now, grace_s=spec.grace_s)
    # A retry any later would be warned of its end as soon as it began.
    lead_s = 0.0 if spec.warning is None else spec.warning.before_s
    if total_s is not None and due is not None and lead_s + max(now, due) >= counted_from(job) + total_s:
        reason = f"total deadline of {format_duration(total_s)} leaves no time for a retry"
        decision, due = turned_down(decision, DecisionCode.TOTAL_DEADLINE, reason), None
    ended_at = over.ended_at(now)
    ended = evolve(
        attempt,
        status=ENDING_STATUS[Ending.FAILED if failure.started else Ending.NEVER_STARTED],
        status_since=now,
        ended_at=ended_at,
        ending=Ending.FAILED,
        failure=failure,
        decision=decision,
        retry_at=due,
    )
    if due is not None or decision.action is Action.HOLD:
        job = evolve(job, **history._asdict())
    job = _after(job, decision, failure, ended_at=ended_at, now=now, due=due)
    return Result(state=job, decisions=(EndedAttempt(ended, over.step),))


def _after(job: Job, decision: Decision, failure: Failure, *, ended_at: float, now: float, due: float | None) -> Job:
    """Return the job after a decision about its failure; ``due`` is when it is retried, if it is."""
    what = f"{failure_in_words(failure)}; {summarize_decision(decision)}"
    if decision.action is Action.HOLD:
        return held(job, decision.reason, now)
    if due is None:
        what = f"{what}; hint: {failure.hint}" if failure.hint else what
        return evolve(job, state=JobState.FAILED, reason=what, retry_at=None, ended_at=ended_at, updated_at=now)
    waits = due > now
    return evolve(
        job,
        state=JobState.BACKOFF if waits else JobState.QUEUED,
        reason=what,
        retry_at=due if waits else None,
        queued_at=now,
        updated_at=now,
        retries=job.retries + (decision.counter is not None),
        request=job.request if decision.memory is None else evolve(job.request, memory=decision.memory),
    )


def judged_failure(over: Over, judged: Judgement, ended: Sequence[tuple[int, RunOutcome]], now: float) -> Failure:
    """Classify the failure to judge: the earliest one, never one that Holdfast caused.

    Args:
        over: The attempt.
        judged: What it is judged by.
        ended: Rank and outcome of each run that reported its end.
        now: The time.
    """
    index, attempt = initiating_failure(ended), over.attempt
    if index is None:
        if attempt.started_at is None:
            return never_started(attempt, over.runs, over.step, judged.ruleset.categories)
        return Failure(
            Cause.UNKNOWN, frozenset(), message=attempt.message or "no run reported how it ended", failed_at=now
        )
    rank, outcome = ended[index]
    failure = classify(outcome, rank=rank, categories=judged.ruleset.categories)
    for run in over.runs:
        if run.outcome is outcome and run.devices:
            return evolve(failure, devices=run.devices)
    return failure


def next_due(job: Job, spec: JobSpec) -> float | None:
    """Return when time alone changes something: a retry is due, or a timeout or deadline passes."""
    if awaits_start(spec, job):
        return spec.starts_at
    if job.retry_at is None and spec.total_deadline_s is None and spec.scheduling_timeout_s is None:
        return None
    due = []
    if job.state is JobState.BACKOFF and job.retry_at is not None:
        due.append(job.retry_at)
    if job.state is JobState.QUEUED and spec.scheduling_timeout_s is not None:
        due.append(job.queued_at + spec.scheduling_timeout_s)
    if spec.total_deadline_s is not None and not (spec.after and job.ready_at is None):
        due.append(counted_from(job) + spec.total_deadline_s)
    return min(due, default=None)


def counted_from(job: Job) -> float:
    """Return when a job's total deadline begins: at its submission, or when its dependencies were met."""
    return job.submitted_at if job.ready_at is None else job.ready_at


def held(job: Job, reason: str, now: float) -> Job:
    """Hold a waiting job."""
    return evolve(job, state=JobState.HELD, reason=reason or "held", retry_at=None, updated_at=now)


def released(spec: JobSpec, job: Job, now: float) -> Job:
    """Release a held job: it waits for its remaining dependencies or its start time, or is pending."""
    if spec.after and job.ready_at is None:
        return kept_waiting(job, spec.after, now)
    return until_start(spec, queued(job, now), now)


def awaits_start(spec: JobSpec, job: Job) -> bool:
    """Whether a job waits for its start time, and for nothing else."""
    if job.state is not JobState.WAITING or spec.starts_at is None or job.of_set is not None:
        return False
    return not spec.after or job.ready_at is not None


def until_start(spec: JobSpec, job: Job, now: float) -> Job:
    """Let a pending job wait if its start time has not come."""
    if job.state is not JobState.QUEUED or spec.starts_at is None or spec.starts_at <= now:
        return job
    return evolve(job, state=JobState.WAITING, reason=f"waits until {format_instant(spec.starts_at)}", updated_at=now)


def retried_when_ready(
    spec: JobSpec, job: Job, standings: Sequence[AwaitedState] | None, reason: str, now: float
) -> Job:
    """Retry a job once its dependencies are met.

    Args:
        spec: The job's specification.
        job: A job that has ended or waits.
        standings: For a job that has ended, the state of each dependency: all are checked again.
        reason: Why.
        now: The time.
    """
    after = spec.after
    if standings is not None:
        happened = met_again(after, met_before(job, after), standings)
        ready = len(happened) == len(after)
        ready_at = (now if job.ready_at is None else job.ready_at) if ready else None
        job = evolve(job, met=() if ready else happened, ready_at=ready_at)
    waits = after and job.ready_at is None
    job = retried(job, reason, now)
    return kept_waiting(job, after, now) if waits else job


def retried(job: Job, reason: str, now: float) -> Job:
    """Retry a job that has ended or waits, without counting it against any limit.

    A job that has ended starts again as if it had never run on any node; one that waits only stops waiting.
    """
    if job.terminal:
        job = evolve(job, avoid_nodes=(), tried=(), started_at=None, ended_at=None, cancel_requested=False)
    return evolve(queued(job, now), reason=reason or "retried by hand")


def queued(job: Job, now: float) -> Job:
    """Make a job pending again, because it was released or its retry is due."""
    return evolve(job, state=JobState.QUEUED, reason="", retry_at=None, queued_at=now, updated_at=now)


def shape_of(job: Job, spec: JobSpec) -> Shape:
    """Return the shape of the job's next attempt."""
    return Shape(
        job.request,
        job.gang,
        tuple(sorted(spec.node_selector.items())),
        job.avoid_node,
        gpus=spec.gpus,
        avoid_devices=job.avoid_devices,
        avoid_nodes=frozenset(job.avoid_nodes),
    )
