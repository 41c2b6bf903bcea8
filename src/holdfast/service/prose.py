"""Says in sentences why a job is where it is; pure, and the same wherever it is read.

Decides wording and order only; every fact comes from the records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.failure import in_words
from holdfast.domain.job import JobState
from holdfast.domain.policy.model import Action
from holdfast.domain.units import format_duration, format_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.domain.failure import Failure
    from holdfast.domain.job import Attempt, Job
    from holdfast.domain.policy.model import Decision, LimitUse

_STATE_WORDS = {
    JobState.QUEUED: "waits for a place",
    JobState.RUNNING: "is running",
    JobState.BACKOFF: "waits for its retry to be due",
    JobState.HELD: "is held for a person",
    JobState.SUCCEEDED: "succeeded",
    JobState.FAILED: "failed",
    JobState.CANCELLED: "was cancelled",
}


def job_line(job: Job) -> str:
    """Say where a job is."""
    words = _STATE_WORDS[job.state]
    if job.attempt and job.state in {JobState.RUNNING, JobState.SUCCEEDED}:
        words += f" on attempt {job.attempt}" if job.state is JobState.SUCCEEDED else f", attempt {job.attempt}"
    elif job.attempt and job.state is JobState.FAILED:
        words += f" after {job.attempt} attempt{'s' if job.attempt > 1 else ''}"
    return f"Job {job.name} {words}" + (f": {job.reason}" if job.reason else "")


def attempt_lines(attempt: Attempt) -> list[str]:
    """Say how an attempt ended and what was decided about it."""
    lines: list[str] = []
    if attempt.failure is not None:
        lines.extend(_failure_lines(attempt, attempt.failure))
    if attempt.decision is not None:
        lines.extend(_decision_lines(attempt.decision))
    return lines


def _failure_lines(attempt: Attempt, failure: Failure) -> Iterator[str]:
    where = f" on node {failure.node}" if failure.node else ""
    after = f" after {format_duration(failure.ran_s)}" if failure.ran_s is not None else ""
    start = "" if failure.started else " before its program started"
    yield f"Attempt {attempt.number} failed{where}{after}{start}: {in_words(failure)}."
    kind = f"The cause is {failure.cause}"
    if failure.category:
        kind += f", the category {failure.category}" + (f"/{failure.subcategory}" if failure.subcategory else "")
    if failure.conditions:
        kind += f"; conditions: {', '.join(sorted(failure.conditions))}"
    yield f"{kind}."
    if failure.hint:
        yield f"Advice: {failure.hint}"


def _decision_lines(decision: Decision) -> Iterator[str]:
    yield f"{_who(decision)} decided {decision.action}: {decision.reason}."
    matched = next((one for one in decision.considered if one.matched), None)
    if matched is not None:
        yield f"The rule matched because {matched.because}."
    for use in decision.limits:
        yield _limit_line(use)
    if decision.runs_again:
        how = f" ({decision.delay_because})" if decision.delay_because else ""
        yield f"The delay before the next attempt is {format_duration(decision.delay_s)}{how}."
    if decision.memory is not None:
        yield f"The next attempt asks for {format_memory(decision.memory)} of memory."
    if decision.avoid_node:
        yield f"The next attempt avoids node {decision.avoid_node}."


def _who(decision: Decision) -> str:
    if decision.policy is None:
        return "A check before all rules" if decision.action is Action.FAIL else "Holdfast"
    revision = f" (revision {decision.policy_revision})" if decision.policy_revision is not None else ""
    if decision.rule == "default":
        return f"The default action of policy {decision.policy}{revision}"
    return f"Rule {decision.rule} of policy {decision.policy}{revision}"


def _limit_line(use: LimitUse) -> str:
    of = "without a limit" if use.limit is None else f"of {use.limit}"
    return f"Limit {use.name}: {use.used} {of} used before this failure."
