"""Concludes an attempt: from the facts of its runs to the job's next state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.domain.classify import LOST, classify, initiating
from holdfast.domain.delay import delay_s
from holdfast.domain.delay import retry_at as due_at
from holdfast.domain.evolve import evolve
from holdfast.domain.failure import Cause, EndedBy, Failure, FailureCondition, in_words
from holdfast.domain.job import Attempt, Job, JobState
from holdfast.domain.lifecycle import ENDING_STATUS, Ending
from holdfast.domain.placement import Place, Shape, ever_fits, why_not
from holdfast.domain.policy.decide import decide
from holdfast.domain.policy.explain import in_short
from holdfast.domain.policy.model import Action, Decision, DecisionCode, RetryHistory, RetrySettings
from holdfast.domain.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.category_match import CompiledCategories
    from holdfast.domain.job import Run
    from holdfast.domain.policy.blame import Suspicion
    from holdfast.domain.policy.compiled import PolicySet
    from holdfast.domain.workloads.spec import JobSpec


_CLOCKS_DIFFER_S = 1.0
"""Whatever runs a program measures its deadline by another clock, which may be slightly fast."""


@dataclass(frozen=True, slots=True)
class Ruleset:
    """Everything in force when a failure is judged."""

    policies: PolicySet
    categories: CompiledCategories
    settings: RetrySettings
    places: Sequence[Place] = ()
    """All nodes, to see whether a grown job could ever fit."""


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """What one decision depends on."""

    ruleset: Ruleset
    spec: JobSpec
    now: float
    draw: float = 0.0
    """In [0, 1), for random jitter."""
    suspicion: Suspicion | None = None
    """The evidence against the job, if it was lost with its place."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A job and its attempt after the attempt is over."""

    job: Job
    attempt: Attempt


def shape_of(job: Job, selector: Mapping[str, str]) -> Shape:
    """Return the shape of the job's next attempt."""
    return Shape(job.request, job.gang, tuple(sorted(selector.items())), job.avoid_node)


def conclude(job: Job, attempt: Attempt, runs: Sequence[Run], at: DecisionContext) -> Conclusion:
    """Conclude an attempt whose runs have all stopped, or that found no place in time."""
    if runs and all(run.outcome is not None and run.outcome.succeeded for run in runs):
        return _succeeded(job, attempt, at.now)
    if job.cancel_requested:
        started = any(run.started_at is not None for run in runs)
        return cancelled(job, attempt, at.now, started=started)
    return fail(job, attempt, judged_failure(attempt, runs, at.ruleset, at.now), at)


def fail(job: Job, attempt: Attempt, failure: Failure, at: DecisionContext) -> Conclusion:
    """Judge a failure and move the job on: retry, hold or give up."""
    history = RetryHistory(
        job_id=job.id,
        attempt=attempt.number,
        counters=tuple(job.counters.items()),
        total=job.retries,
        memory=attempt.request.memory,
    )
    over = _over_total_deadline(job, failure, at)
    if over:
        failure = evolve(failure, message=over)
        decision = Decision(Action.FAIL, DecisionCode.TOTAL_DEADLINE, over)
    else:
        decision = decide(at.ruleset.policies, failure, history, at.ruleset.settings, draw=at.draw)
        decision = _suspected(decision, job, failure, at.suspicion)
    due = due_at(failure.failed_at, decision.delay_s, confirmed_stopped_at=at.now, grace_s=at.spec.grace_s)
    decision = _within_total_deadline(decision, job, at, due)
    grown = evolve(shape_of(job, at.spec.node_selector), request=evolve(job.request, memory=decision.memory or 0))
    decision = that_still_fits(decision, grown, at.ruleset.places)
    ended = evolve(
        attempt,
        status=ENDING_STATUS[Ending.FAILED if failure.started else Ending.NEVER_STARTED],
        status_since=at.now,
        ended_at=at.now,
        ending=Ending.FAILED,
        failure=failure,
        decision=decision,
        retry_at=due if decision.runs_again else None,
    )
    return Conclusion(_after(job, decision, failure, now=at.now, due=due), ended)


def judged_failure(attempt: Attempt, runs: Sequence[Run], ruleset: Ruleset, now: float) -> Failure:
    """Classify the failure to judge: the earliest one, never one we caused ourselves."""
    ended = [(run.rank, run.outcome) for run in runs if run.outcome is not None]
    index = initiating(ended)
    if index is None:
        if attempt.started_at is None:
            return _never_started(attempt, runs, now)
        return Failure(
            Cause.UNKNOWN, frozenset(), message=attempt.message or "no run reported how it ended", failed_at=now
        )
    rank, outcome = ended[index]
    return classify(outcome, rank=rank, categories=ruleset.categories)


def _never_started(attempt: Attempt, runs: Sequence[Run], now: float) -> Failure:
    """Make the failure of an attempt that found no place in time, or whose runs did not all start in time."""
    failure = Failure(
        Cause.SCHEDULER_TIMEOUT,
        frozenset({FailureCondition.UNSCHEDULABLE}),
        started=False,
        failed_at=now,
        message=attempt.message,
    )
    if not runs:
        return failure
    late = min(runs, key=lambda run: (run.started_at is not None, run.rank))
    return evolve(
        failure,
        conditions=frozenset({FailureCondition.LAUNCH_FAILED}),
        rank=late.rank,
        node=late.node or None,
        executor=late.executor or None,
        message=f"rank {late.rank} did not start in time" + (f" on node {late.node}" if late.node else ""),
    )


def cancelled(job: Job, attempt: Attempt, now: float, *, started: bool) -> Conclusion:
    """End an attempt and its job on a user's request."""
    ending = Ending.CANCELLED if started else Ending.NEVER_STARTED
    failure = Failure(
        Cause.USER_CANCELLED, frozenset(), started=started, failed_at=now, message=job.reason, ended_by=EndedBy.USER
    )
    ended = evolve(
        attempt,
        status=ENDING_STATUS[ending],
        status_since=now,
        ended_at=now,
        ending=ending,
        failure=failure,
    )
    return Conclusion(cancelled_while_pending(job, now), ended)


def cancelled_while_pending(job: Job, now: float) -> Job:
    """End a job without an attempt in flight on a user's request."""
    return evolve(
        job,
        state=JobState.CANCELLED,
        reason=job.reason or "cancelled",
        cancel_requested=True,
        retry_at=None,
        ended_at=now,
        updated_at=now,
    )


def held(job: Job, reason: str, now: float) -> Job:
    """Hold a waiting job."""
    return evolve(job, state=JobState.HELD, reason=reason or "held", retry_at=None, updated_at=now)


def queued(job: Job, now: float) -> Job:
    """Make a job pending again: its hold was lifted, or its retry is due."""
    return evolve(job, state=JobState.QUEUED, reason="", retry_at=None, queued_at=now, updated_at=now)


def _succeeded(job: Job, attempt: Attempt, now: float) -> Conclusion:
    ended = evolve(
        attempt, status=ENDING_STATUS[Ending.SUCCEEDED], status_since=now, ended_at=now, ending=Ending.SUCCEEDED
    )
    return Conclusion(evolve(job, state=JobState.SUCCEEDED, reason="", ended_at=now, updated_at=now), ended)


def _over_total_deadline(job: Job, failure: Failure, at: DecisionContext) -> str:
    """Say that a run was ended by the job's total deadline, not its attempt's; empty if not so."""
    total_s, deadline_s = at.spec.total_deadline_s, at.spec.deadline_s
    if total_s is None or failure.ended_by is not EndedBy.DEADLINE:
        return ""
    if deadline_s is not None and at.now < job.submitted_at + total_s - _CLOCKS_DIFFER_S:
        return ""
    return f"total deadline of {format_duration(total_s)} is over"


def _within_total_deadline(decision: Decision, job: Job, at: DecisionContext, due: float) -> Decision:
    """Refuse a retry that could only start after the job's total deadline."""
    total_s = at.spec.total_deadline_s
    if total_s is None or not decision.runs_again or max(at.now, due) < job.submitted_at + total_s:
        return decision
    reason = f"total deadline of {format_duration(total_s)} leaves no time for a retry"
    return _refused(decision, DecisionCode.TOTAL_DEADLINE, reason)


def _suspected(decision: Decision, job: Job, failure: Failure, suspicion: Suspicion | None) -> Decision:
    """Keep a job that takes its place down away from others: for a while if that may be chance, else for good."""
    if suspicion is None or not decision.runs_again or not failure.conditions & LOST:
        return decision
    if not suspicion.is_to_blame:
        away_s = max(decision.delay_s, delay_s(suspicion.absence, len(suspicion.others), seed=job.id))
        reason = f"{decision.reason}; it {suspicion.in_words()}, and is kept away to see whether it happens again"
        return evolve(decision, delay_s=away_s, reason=reason)
    reason = f"{suspicion.in_words()}, {suspicion.evidence()}; release it if it is not to blame"
    held = _refused(decision, DecisionCode.SUSPECTED, reason)
    return evolve(held, action=Action.HOLD)


def that_still_fits(decision: Decision, grown: Shape, places: Sequence[Place]) -> Decision:
    """Refuse a retry whose grown request fits no existing node (semantics 4)."""
    if decision.memory is None or not decision.runs_again or not places:
        return decision
    grown = evolve(grown, avoid=None)
    if ever_fits(grown, places):
        return decision
    free = {place.key: place.capacity for place in places}
    reason = f"retry granted, but with more memory it {why_not(grown, places, free)}"
    return _refused(decision, DecisionCode.UNSCHEDULABLE, reason)


def _refused(decision: Decision, code: DecisionCode, reason: str) -> Decision:
    return evolve(
        decision, action=Action.FAIL, code=code, reason=reason, counter=None, delay_s=0.0, avoid_node=None, memory=None
    )


def _after(job: Job, decision: Decision, failure: Failure, *, now: float, due: float) -> Job:
    what = f"{in_words(failure)}; {in_short(decision)}"
    if decision.action is Action.HOLD:
        return held(job, decision.reason, now)
    if not decision.runs_again:
        return evolve(job, state=JobState.FAILED, reason=what, retry_at=None, ended_at=now, updated_at=now)
    waits = due > now
    return evolve(
        job,
        state=JobState.BACKOFF if waits else JobState.QUEUED,
        reason=what,
        retry_at=due if waits else None,
        queued_at=now,
        updated_at=now,
        counters=_counted(job.counters, decision.counter),
        retries=job.retries + (decision.counter is not None),
        request=job.request if decision.memory is None else evolve(job.request, memory=decision.memory),
        avoid_node=decision.avoid_node,
    )


def _counted(counters: Mapping[str, int], name: str | None) -> Mapping[str, int]:
    return counters if name is None else {**counters, name: counters.get(name, 0) + 1}
