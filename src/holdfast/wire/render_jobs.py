"""Renders jobs as wire models; pure."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from holdfast.compiled.codec import load_spec
from holdfast.domain.failure import Cause, EndedBy, failure_in_words
from holdfast.domain.lifecycle import RUN_TERMINAL, AttemptStatus, Ending, RunStatus
from holdfast.domain.units import format_amount, format_cpu, format_memory
from holdfast.ports.overview import MOST_RANKS
from holdfast.wire.base import EncodedJson, optional_timestamp, timestamp
from holdfast.wire.decisions import FailedPod, Why
from holdfast.wire.jobs import (
    AttemptView,
    ContainerView,
    DependencyView,
    JobAccepted,
    JobApplied,
    JobOutcome,
    JobSummary,
    JobView,
    OwnerView,
    ResourcesView,
    RunView,
)
from holdfast.wire.problems import problem_entry
from holdfast.wire.render_decisions import decision_view

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from holdfast.domain.failure import ContainerResult, Failure, RunOutcome
    from holdfast.domain.job import Attempt, ChildOf, Job, Resources, Run
    from holdfast.domain.policy.model import Decision
    from holdfast.domain.workloads.base import Workload
    from holdfast.domain.workloads.dependencies import Dependency
    from holdfast.domain.workloads.explanation import Explanation
    from holdfast.errors import Problem
    from holdfast.ports.overview import Latest
    from holdfast.wire.decisions import DecisionView
    from holdfast.wire.jobs import PodsView

_AFTER = '"after":'
"""Part of the text of every specification that waits for something, which few do."""
_ANYTHING = TypeAdapter[Any](Any)
_MOST_AMOUNTS = 1_024
_METADATA = frozenset({"name", "labels", "annotations"})
_OUTCOME = ("node", "exit_code", "signal", "cause", "category", "subcategory", "error_line")
"""The fields of a job that describe its last attempt."""
_ENDING_STATE = {
    Ending.SUCCEEDED: "Succeeded",
    Ending.FAILED: "Failed",
    Ending.CANCELLED: "Cancelled",
    Ending.NEVER_STARTED: "Cancelled",
}


def resources_view(amount: Resources) -> ResourcesView:
    """Render an amount of capacity."""
    return ResourcesView(
        cpu=format_cpu(amount.cpu_m),
        memory=format_memory(amount.memory),
        gpu=amount.gpus if amount.share_m else amount.gpu,
        named={name: format_amount(named_amount) for name, named_amount in amount.named},
    )


def job_summary(job: Job) -> JobSummary:
    """Render a job as in lists."""
    return JobSummary(**_header(job))


def job_accepted(job: Job, warnings: Sequence[Problem]) -> JobAccepted:
    """Render a job that was submitted."""
    return JobAccepted(**_header(job), warnings=[problem_entry(warning) for warning in warnings])


def job_outcome(job: Job, latest: Latest) -> JobOutcome:
    """Render a job with its last attempt."""
    failure = None if latest.attempt is None else latest.attempt.failure
    first = next(iter(latest.runs), None)
    container = telling_container(failure) or _first_container(first.outcome if first else None)
    return JobOutcome(
        **_header(job),
        labels=dict(latest.labels),
        node=(failure.node if failure else first.node if first else None) or None,
        exit_code=container.exit_code if container else None,
        signal=container.signal if container else None,
        cause=str(failure.cause) if failure else None,
        category=(failure.category or None) if failure else None,
        subcategory=(failure.subcategory or None) if failure else None,
        error_line=failure.error_line if failure else "",
        progress=_progress(job.gang, [run_view(run) for run in latest.runs]),
    )


def _progress(gang: int, runs: Sequence[RunView]) -> str:
    """Render the progress of runs of the first ranks, with their ranks if there are several."""
    reports = [(run.rank, run.progress) for run in runs[:MOST_RANKS] if run.progress]
    return reports[0][1] if gang == 1 and reports else "; ".join(f"{rank}: {text}" for rank, text in reports)


def job_applied(job: Job, result: str, warnings: Sequence[Problem]) -> JobApplied:
    """Render a job that was applied, and the result."""
    return JobApplied(**_header(job), result=result, warnings=[problem_entry(warning) for warning in warnings])


def job_view(
    job: Job,
    *,
    manifest: Mapping[str, Any],
    attempts: list[AttemptView],
    pods: PodsView | None = None,
    owner: Workload | None = None,
) -> JobView:
    """Render a job with all its details; ``manifest`` is its specification in the short form."""
    last = attempts[-1] if attempts and attempts[-1].number == job.attempt else None
    return JobView(
        **_header(job),
        **({} if last is None else {name: getattr(last, name) for name in _OUTCOME}),
        progress="" if last is None else _progress(job.gang, last.runs),
        labels=manifest.get("labels", {}),
        annotations=manifest.get("annotations", {}),
        counters=dict(job.counters),
        spec={field: value for field, value in manifest.items() if field not in _METADATA},
        attempts=attempts,
        pods=pods,
        owner=None if job.child is None else _owner_view(job.child, owner),
    )


def _owner_view(at: ChildOf, owner: Workload | None) -> OwnerView:
    if owner is None:
        return OwnerView(kind="", id=at.set_id)
    return OwnerView(kind=owner.kind, id=owner.id, name=owner.name)


def jobs_written(jobs: Sequence[Job], next_cursor: str | None) -> EncodedJson:
    """Write a page of jobs as ``JobPage`` would, each like ``job_summary``."""
    return EncodedJson(_ANYTHING.dump_json({"items": [*map(_header, jobs)], "next_cursor": next_cursor}, by_alias=True))


def _header(job: Job) -> dict[str, Any]:
    """Return all fields of a summary in the order in which they are written."""
    at = job.child
    of_array = at is not None and not at.group
    return {
        "id": job.id,
        "name": job.name,
        "queue": job.queue,
        "state": job.state.value,
        "reason": job.reason,
        "priority": job.priority,
        "gang": job.gang,
        "attempt": job.attempt,
        "retries": job.retries,
        "resources": _amount(job.request),
        "submitted_at": timestamp(job.submitted_at),
        "started_at": optional_timestamp(job.started_at),
        "ended_at": optional_timestamp(job.ended_at),
        "retry_at": optional_timestamp(job.retry_at),
        "job_set": None if at is None or of_array else at.set_id,
        "replicated_job": None if at is None or of_array else at.group,
        "job_index": None if at is None or of_array else at.index,
        "array": None if at is None or not of_array else at.set_id,
        "array_index": None if at is None or not of_array else at.index,
        "depends_on": () if _AFTER not in job.spec else _awaited(job),
        "submitted_by": job.submitted_by,
        "group": job.group,
        "parent": job.parent or None,
    }


@lru_cache(maxsize=_MOST_AMOUNTS)  # Most jobs request the same.
def _amount(request: Resources) -> Mapping[str, Any]:
    return resources_view(request).model_dump()


def _awaited(job: Job) -> list[DependencyView]:
    over = job.terminal or job.ready_at is not None
    return dependency_views(load_spec(job.spec).after, job.met, over=over)


def dependency_views(after: Sequence[Dependency], met: Collection[int], *, over: bool) -> list[DependencyView]:
    """Render dependencies; ``met`` are the places of satisfied ones, ``over`` says that all are."""
    return [
        DependencyView(
            kind=dependency.target or "",
            id=dependency.id,
            name=dependency.name,
            condition=dependency.condition.value,
            by_index=dependency.by_index,
            on_unmet=dependency.on_unmet.value,
            waits=not over and place not in met,
        )
        for place, dependency in enumerate(after)
    ]


def attempt_views(
    attempts: Sequence[Attempt], runs: Sequence[Run], of_set: Mapping[int, DecisionView] | None = None
) -> list[AttemptView]:
    """Render all attempts of a job, each with the runs of its last dispatch and its job set's decision, if any."""
    by_attempt: dict[int, dict[int, Run]] = defaultdict(dict)
    for run in runs:
        by_attempt[run.attempt][run.rank] = run
    newest = max((attempt.number for attempt in attempts), default=0)
    return [
        attempt_view(
            attempt,
            [run for _, run in sorted(by_attempt[attempt.number].items())],
            (of_set or {}).get(attempt.number),
            replaced=attempt.number < newest,
        )
        for attempt in attempts
    ]


def attempt_view(
    attempt: Attempt, runs: Sequence[Run], of_set: DecisionView | None = None, *, replaced: bool = False
) -> AttemptView:
    """Render one attempt.

    Args:
        attempt: The attempt, with its retry policy's decision.
        runs: Its runs.
        of_set: Its job set's decision.
        replaced: Whether there is a later attempt.
    """
    own = None if attempt.decision is None else decision_view(attempt.decision, retry_at=attempt.retry_at)
    failure, place = attempt.failure, _telling_run(attempt, runs)
    container = telling_container(failure) or _first_container(place.outcome if place else None)
    return AttemptView(
        number=attempt.number,
        state="Replaced" if replaced and attempt.ending is Ending.CANCELLED else attempt_state(attempt),
        phase=str(attempt.status),
        cause=str(failure.cause) if failure else None,
        category=(failure.category or None) if failure else None,
        subcategory=(failure.subcategory or None) if failure else None,
        hint=(failure.hint or None) if failure else None,
        suggestion=(failure.suggestion or None) if failure else None,
        conditions=sorted(failure.conditions) if failure else [],
        message=attempt.message or (failure.message if failure else ""),
        error_line=failure.error_line if failure else "",
        exit_code=container.exit_code if container else None,
        signal=container.signal if container else None,
        node=(place.node or None) if place else None,
        executor=(place.executor or None) if place else None,
        created_at=timestamp(attempt.created_at),
        started_at=optional_timestamp(attempt.started_at),
        ended_at=optional_timestamp(attempt.ended_at),
        retry_at=optional_timestamp(attempt.retry_at),
        resources=resources_view(attempt.request),
        runs=[run_view(run) for run in runs],
        decision=of_set or own,
    )


def _telling_run(attempt: Attempt, runs: Sequence[Run]) -> Run | None:
    rank = attempt.failure.rank if attempt.failure else 0
    return next((run for run in runs if run.rank == rank), runs[0] if runs else None)


def telling_container(failure: Failure | None) -> ContainerResult | None:
    """Return the container whose exit code stands for a failure: the first failed one, or else the first."""
    if failure is None:
        return None
    return failure.first_failed or next(iter(failure.containers), None)


def _first_container(outcome: RunOutcome | None) -> ContainerResult | None:
    if outcome is None:
        return None
    failed = (container for container in outcome.containers if container.failed)
    return next(failed, next(iter(outcome.containers), None))


def attempt_state(attempt: Attempt) -> str:
    """Name an attempt's state; one that failed to start is Failed."""
    if attempt.ending is None:
        return "Pending" if attempt.status is AttemptStatus.PENDING else "Running"
    judged = attempt.failure is not None and attempt.failure.cause is not Cause.USER_CANCELLED
    if attempt.ending is Ending.NEVER_STARTED and judged:
        return "Failed"
    return _ENDING_STATE[attempt.ending]


def run_view(run: Run) -> RunView:
    """Render one run."""
    outcome = run.outcome
    container = _first_container(outcome)
    return RunView(
        uid=run.uid,
        rank=run.rank,
        state=run_state(run),
        phase=str(run.status),
        node=run.node or None,
        executor=run.executor or None,
        devices=list(run.devices),
        exit_code=container.exit_code if container else None,
        signal=container.signal if container else None,
        started_at=optional_timestamp(run.started_at),
        ended_at=optional_timestamp(run.ended_at),
        ports=dict(run.ports),
        decision=None if run.decision is None else decision_view(run.decision, retry_at=_due(run)),
        **({"progress": run.progress} if outcome is None else _outcome_fields(outcome)),
    )


def _outcome_fields(outcome: RunOutcome) -> dict[str, Any]:
    return {
        "ended_by": str(outcome.ended_by),
        "message": outcome.message,
        "conditions": sorted(outcome.conditions),
        "containers": [_container_view(container) for container in outcome.containers],
        "log_tail": list(outcome.log_tail),
        "error_line": outcome.error_line,
        "progress": outcome.progress,
        "peak_memory": outcome.peak_memory,
    }


def _container_view(container: ContainerResult) -> ContainerView:
    return ContainerView(
        name=container.name,
        init=container.init,
        exit_code=container.exit_code,
        signal=container.signal,
        reason=container.reason,
        message=container.message,
    )


def run_state(run: Run) -> str:
    """Name a run's state; one that Holdfast or a user stopped is Cancelled."""
    if run.status not in RUN_TERMINAL:
        return "Pending" if run.status is RunStatus.PENDING else "Running"
    if run.status is RunStatus.CANCELLED:
        return "Cancelled"
    if run.outcome is not None and run.outcome.succeeded:
        return "Succeeded"
    stopped = run.outcome is None or run.outcome.ended_by in {EndedBy.USER, EndedBy.SUSPENSION, EndedBy.CASCADE}
    return "Cancelled" if stopped and run.status is RunStatus.TERMINATED else "Failed"


def _due(run: Run) -> float | None:
    return None if run.decision is None or run.ended_at is None else run.ended_at + run.decision.delay_s


def failed_pod(run: Run, failure: Failure, decision: Decision) -> FailedPod:
    """Render how a pod failed, and the consequence."""
    return FailedPod(
        run=run.uid,
        rank=run.rank,
        ended_at=optional_timestamp(run.ended_at),
        cause=str(failure.cause),
        failure=failure_in_words(failure),
        decision=decision_view(decision, retry_at=_due(run)),
    )


def why_view(explanation: Explanation[Job]) -> Why:
    """Render why a job is in its state."""
    job, attempt = explanation.of, explanation.attempt
    facts = _facts(attempt.failure) if attempt and attempt.failure else {}
    decision = attempt.decision if attempt else None
    return Why(
        job=job.id,
        name=job.name,
        state=str(job.state),
        submitted_by=job.submitted_by,
        attempt=attempt.number if attempt else None,
        headline=explanation.headline,
        summary=list(explanation.summary),
        decision=decision_view(decision, retry_at=attempt.retry_at) if attempt and decision else None,
        pods=[
            failed_pod(run, run.failure, run.decision)
            for run in explanation.failed_pods
            if run.failure and run.decision
        ],
        **facts,
    )


def _facts(failure: Failure) -> dict[str, Any]:
    container = telling_container(failure)
    return {
        "cause": str(failure.cause),
        "category": failure.category or None,
        "subcategory": failure.subcategory or None,
        "hint": failure.hint or None,
        "suggestion": failure.suggestion or None,
        "conditions": sorted(failure.conditions),
        "message": failure.message,
        "error_line": failure.error_line,
        "exit_code": container.exit_code if container else None,
        "signal": container.signal if container else None,
        "node": failure.node,
    }
