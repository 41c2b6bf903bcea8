"""Explains a job set in sentences: its status, and each decision about a failed job: what failed, why, what follows.

Rules that did not match are in ``SetDecision.considered``, not in the sentences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.policy.explain import failure_lines
from holdfast.domain.policy.model import SetAction
from holdfast.domain.units import format_duration
from holdfast.domain.workloads.jobset.failure import Budget
from holdfast.domain.workloads.jobset.model import CONTROLLER, RestartStrategy, StartupOrder
from holdfast.domain.workloads.jobset.state import FAILED_JOBS, Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.domain.failure import Failure
    from holdfast.domain.workloads.jobset.model import JobSetSpec, ReplicatedJob
    from holdfast.domain.workloads.jobset.state import JobSet, JobSetState, SetDecision


_FOLLOWS = {
    SetAction.FAIL_JOB_SET: "the set fails at once, whatever maxRestarts says",
    SetAction.FAIL_JOB: "the job stays failed, and the others continue",
    SetAction.RESTART_JOB_SET: "all jobs of the set are restarted, finished ones too",
    SetAction.RESTART_JOB_SET_UNCOUNTED: "all jobs of the set are restarted, finished ones too; this is not counted",
    SetAction.RESTART_GROUP: "all jobs of its replicatedJob are restarted",
    SetAction.RESTART_GROUP_UNCOUNTED: "all jobs of its replicatedJob are restarted; this is not counted",
    SetAction.RESTART_JOB: "only this job is restarted",
    SetAction.RESTART_JOB_UNCOUNTED: "only this job is restarted; this is not counted",
}


def explain_decision(decision: SetDecision, failure: Failure | None = None) -> list[str]:
    """Explain a decision to a person.

    Args:
        decision: What was decided.
        failure: How the program of the job ended, where that is known.

    Returns:
        Sentences, in order.
    """
    return [_failed(decision, failure), *_rule(decision), *_follows(decision)]


def summarize_decision(decision: SetDecision) -> str:
    """Say in a few words what decided."""
    if decision.action is None:
        return "its job set has no failure policy"
    if not decision.granted:
        return f"{decision.action} is refused: {_spent(decision)}"
    return f"rule {decision.rule}" if decision.rule is not None else "no rule matched, the default action applied"


def attempt_of(decision: SetDecision) -> int:
    """Return which attempt at its job a decision is about, from 1."""
    return 1 + sum(decision.attempt)


def _failed(decision: SetDecision, failure: Failure | None) -> str:
    number = attempt_of(decision)
    return f"Attempt {number} failed." if failure is None else next(failure_lines(failure, number))


def _rule(decision: SetDecision) -> Iterator[str]:
    if decision.action is None:
        yield "The set has no failure policy, so its first failed job fails it."
    elif decision.rule is None:
        yield "No rule matched, so the default action applied."
    else:
        because = next((f": {rule.because}" for rule in decision.considered if rule.matched), "")
        yield f"Rule {decision.rule} matched{because}."


def _follows(decision: SetDecision) -> Iterator[str]:
    if not decision.granted:
        yield f"{decision.action} is refused and the set fails: {_spent(decision)}."
    elif decision.action is not None:
        yield f"{decision.action}: {_FOLLOWS[decision.action]}."
        if decision.limits:
            counts = (f"restart {use.used + 1} of {use.limit} ({use.name})" for use in decision.limits)
            yield f"This is {', '.join(counts)}."
        if decision.delay_s:
            yield f"It starts {format_duration(decision.delay_s)} later."


def _spent(decision: SetDecision) -> str:
    if not decision.limits:
        return decision.message
    last = decision.limits[-1]
    return f"{last.used} of {last.limit} restarts are used ({last.name})"


_MOST_NAMED = 5
"""How many jobs a sentence names."""


def set_headline(job_set: JobSet, spec: JobSetSpec) -> str:
    """Describe a set's status in one sentence."""
    state, name = job_set.state, f"Job set {job_set.name}"
    if job_set.deleting:
        return f"{name} is being deleted; it is removed as soon as its programs have stopped."
    if state.terminal:
        ended = state.condition(state.terminal.value)
        verb = "is complete" if state.terminal is Terminal.COMPLETED else "failed"
        return f"{name} {verb}: {ended.message}." if ended else f"{name} {verb}."
    if spec.managed_by not in {None, CONTROLLER}:
        return f"{name} is managed by {spec.managed_by}, so Holdfast does not run it."
    if state.holds("Suspended") or (spec.suspend and state.started_at is None):
        return f"{name} is suspended{': ' + state.unmet if state.unmet else ''}."
    return f"{name} {_progress(state, spec)}."


def _progress(state: JobSetState, spec: JobSetSpec) -> str:
    restarting = state.condition("RestartingJobSet")
    if restarting is not None and restarting.status:
        return f"is restarting: {restarting.message}"
    if state.started_at is not None:
        return "is running"
    return spec.waits_for(state.met) or "has not started yet"


def set_status_lines(job_set: JobSet, spec: JobSetSpec, now: float) -> Iterator[str]:
    """Describe a set in sentences: its jobs, what they wait for, and what is left of its budget."""
    state = job_set.state
    for group in state.groups:
        total = spec.by_name[group.name].replicas
        amounts = (("ready", group.ready), ("succeeded", group.succeeded), ("failed", group.failed))
        counts = [f"{count} of {total} {word}" for word, count in amounts if count]
        if counts:
            yield f"Jobs of {group.name}: {', '.join(counts)}."
    if not state.terminal and not spec.suspend:
        yield from _waiting(job_set, spec, now)
    if spec.suspend and not state.terminal and (waits := spec.waits_for(state.met)):
        yield f"Once it is resumed, it still {waits}."
    if state.left_failed:
        yield from _left_failed(state)
    yield from _budget(spec, state, now)


def _budget(spec: JobSetSpec, state: JobSetState, now: float) -> Iterator[str]:
    """Say how much of ``maxRestarts`` is used; for a set that has ended, how much was used then."""
    policy = spec.failure
    if policy is None:
        return
    at = now if state.ended_at is None else min(now, state.ended_at)
    used, most = Budget(spec, policy, state, at, allowed=True).used, policy.max_restarts
    if policy.strategy is RestartStrategy.IN_PLACE:
        count = state.in_place_current or 0
        times = "1 time" if count == 1 else f"{count} times"
        yield f"Its programs were restarted in place {times} (maxRestarts {most})."
    if state.counted or (most and policy.strategy is not RestartStrategy.IN_PLACE):
        yield f"{used} of {most} counted restarts (maxRestarts) are used."


def _left_failed(state: JobSetState) -> Iterator[str]:
    """Name the jobs left failed and what that means for their set, unless the set's own failure names them."""
    names = sorted(state.left_failed)
    ended = state.condition(state.terminal.value) if state.terminal else None
    if ended is not None and ended.reason == FAILED_JOBS[0]:
        return
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    yield f"Left failed: {', '.join(names[:_MOST_NAMED])}{more}."
    if not state.terminal:
        yield "Once the others have ended, the set fails unless its success policy is met by then."
    elif state.terminal is Terminal.COMPLETED:
        yield f"Its success policy was met without {'it' if len(names) == 1 else 'them'}."


def _waiting(job_set: JobSet, spec: JobSetSpec, now: float) -> Iterator[str]:
    for key, until in job_set.state.not_before.items():
        kind, _, name = key.partition("/")
        what = f"job {name}" if kind == "job" else f"replicated job {name}" if kind == "group" else "the set"
        if until > now:
            because = _pace_reason(job_set.state, spec, key)
            yield f"Back-off: {what} starts again in {format_duration(until - now)}{because}."
    by_name = {group.name: group for group in job_set.state.groups}
    done = {
        name: group_status.ready + group_status.succeeded >= spec.by_name[name].replicas
        for name, group_status in by_name.items()
    }
    complete = {name: group_status.succeeded >= spec.by_name[name].replicas for name, group_status in by_name.items()}
    for place, group in enumerate(spec.replicated_jobs):
        idle = by_name.get(group.name)
        if idle is not None and not (idle.active or idle.succeeded or idle.failed or idle.ready):
            yield from _dependencies(spec, group, place, done, complete)


def _pace_reason(state: JobSetState, spec: JobSetSpec, key: str) -> str:
    """Say whether a back-off comes from quick restarts, and when that ends."""
    streak, pace = state.streaks.get(key), spec.failure.pace if spec.failure else None
    if streak is None or pace is None or state.not_before[key] != streak.due:
        return ""
    lasts = format_duration(pace.reset_after_s)
    return f": it was restarted {streak.times} times in quick succession; the count restarts once it has lasted {lasts}"


def _dependencies(
    spec: JobSetSpec, group: ReplicatedJob, place: int, done: dict[str, bool], complete: dict[str, bool]
) -> Iterator[str]:
    for dependency in group.depends_on:
        met = (complete if dependency.status == "Complete" else done).get(dependency.name, False)
        if not met:
            yield f"Replicated job {group.name} waits for {dependency.name} to be {dependency.status}."
    if spec.startup is StartupOrder.IN_ORDER and place and not done.get(spec.replicated_jobs[place - 1].name, False):
        yield f"Replicated job {group.name} starts when {spec.replicated_jobs[place - 1].name} is ready."
