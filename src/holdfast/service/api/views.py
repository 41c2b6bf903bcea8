"""Builds the public models of results that need more than the record itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from holdfast.compiled.codec import load_spec, set_spec_of
from holdfast.dialects.jobset.loading import queue_of
from holdfast.dialects.native.category import write_category
from holdfast.dialects.native.job_text import write_job
from holdfast.dialects.native.policy import policy_warnings
from holdfast.dialects.native.policy_text import write_policy
from holdfast.dialects.native.queue import write_queue
from holdfast.dialects.native.settings import write_settings
from holdfast.errors import UnreadableSpec
from holdfast.wire import render_jobsets
from holdfast.wire.base import timestamp
from holdfast.wire.catalogue import CategoryView, PolicyView, QueueView, SettingsView
from holdfast.wire.decisions import DecisionEntry
from holdfast.wire.jobsets import JobSetDecisionTrace, JobSetWhy
from holdfast.wire.render_decisions import set_decision_of
from holdfast.wire.render_jobs import attempt_views, job_view
from holdfast.wire.render_pods import condition_view, pods_view
from holdfast.wire.render_problems import problem_entry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.domain.category import FailureCategory
    from holdfast.domain.job import Queue
    from holdfast.domain.policy.model import RetryPolicy, RetrySettings
    from holdfast.domain.workloads.jobset.state import JobSet
    from holdfast.service.jobsets.explain import SetExplanation
    from holdfast.service.jobsets.sets import Applied, Child
    from holdfast.service.query import JobDetail
    from holdfast.wire.decisions import DecisionView
    from holdfast.wire.jobs import AttemptView, JobView
    from holdfast.wire.jobsets import ChildView, JobSetApplied, JobSetSummary, JobSetView


def full_job(detail: JobDetail) -> JobView:
    """Show a job with everything known of it."""
    manifest = _manifest(detail.job.spec)
    pods = None if detail.pods is None else pods_view(detail.pods.asked, detail.pods.known)
    return job_view(
        detail.job, manifest=manifest, attempts=detail.attempts, runs=detail.runs, of_set=_of_set(detail), pods=pods
    )


def attempts_of(detail: JobDetail) -> list[AttemptView]:
    """Show a job's attempts, by number."""
    return attempt_views(detail.attempts, detail.runs, _of_set(detail))


def _of_set(detail: JobDetail) -> dict[int, DecisionView]:
    return {number: set_decision_of(decision, detail.job) for number, decision in detail.set_decisions.items()}


def _manifest(spec: str) -> dict[str, Any]:
    """Return a job's specification in the short form; an unreadable one is shown as it is stored."""
    try:
        return write_job(load_spec(spec))
    except UnreadableSpec:
        return {"unreadable": spec}


def decisions_of(detail: JobDetail) -> list[DecisionEntry]:
    """Show what was decided about a job's failures, by attempt."""
    return [
        DecisionEntry(attempt=attempt.number, **dict(attempt.decision))
        for attempt in attempts_of(detail)
        if attempt.decision is not None
    ]


def category_view(category: FailureCategory) -> CategoryView:
    """Show a failure category."""
    return CategoryView(name=category.name, spec=write_category(category))


def policy_view(policy: RetryPolicy) -> PolicyView:
    """Show a retry policy, and its warnings."""
    return PolicyView(
        name=policy.name,
        revision=policy.revision,
        spec=write_policy(policy),
        warnings=[problem_entry(warning) for warning in policy_warnings(policy, "spec")],
    )


def queue_view(queue: Queue) -> QueueView:
    """Show a queue."""
    return QueueView(name=queue.name, spec=write_queue(queue))


def settings_view(settings: RetrySettings, default_policy: str | None) -> SettingsView:
    """Show the operator's settings."""
    return SettingsView.model_validate(write_settings(settings, default_policy))


def set_summary(job_set: JobSet) -> JobSetSummary:
    """Show a job set as lists do."""
    spec = set_spec_of(job_set)
    return render_jobsets.set_summary(job_set, spec, queue=queue_of(spec))


def applied_set(found: Applied) -> JobSetApplied:
    """Show a job set that was sent, and what became of it."""
    return render_jobsets.set_applied(
        found.job_set, found.spec, queue=queue_of(found.spec), result=found.result, warnings=found.warnings
    )


def full_set(job_set: JobSet, children: Iterable[Child]) -> JobSetView:
    """Show a job set with everything known of it, and some of its jobs."""
    spec = set_spec_of(job_set)
    return render_jobsets.set_view(
        job_set,
        spec,
        queue=queue_of(spec),
        manifest=json.loads(job_set.manifest),
        children=children_of(job_set, children),
    )


def children_of(job_set: JobSet, children: Iterable[Child]) -> list[ChildView]:
    """Show jobs of a set."""
    spec = set_spec_of(job_set)
    return [render_jobsets.child_view(child.job, child.at, job_set, spec, child.pods) for child in children]


def set_why(found: SetExplanation) -> JobSetWhy:
    """Show why a job set is where it is."""
    traces = [
        JobSetDecisionTrace(
            at=timestamp(one.at), decision=render_jobsets.set_decision_view(one.decision), summary=list(one.summary)
        )
        for one in found.traces
    ]
    return JobSetWhy(
        id=found.job_set.id,
        name=found.job_set.name,
        state=render_jobsets.set_state(found.job_set, found.spec),
        headline=found.headline,
        conditions=[condition_view(one) for one in found.job_set.state.conditions],
        summary=list(found.summary),
        traces=traces,
        omitted=found.omitted,
    )
