"""The sentences of ``why`` about a job's state, its pods and its job set; those about decisions are elsewhere."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_spec
from holdfast.domain.failure import Cause, EndedBy, failure_in_full
from holdfast.domain.job import JobState
from holdfast.domain.lifecycle import Ending
from holdfast.domain.policy.decide import summarize_decision
from holdfast.domain.policy.explain import failure_lines
from holdfast.domain.policy.model import Action, SetAction
from holdfast.domain.terms.kinds import JOB_SET
from holdfast.domain.terms.workload_kinds import GANG
from holdfast.domain.units import format_duration
from holdfast.domain.workloads.base import Workload
from holdfast.domain.workloads.dependencies import waits_for
from holdfast.domain.workloads.jobset.explain import attempt_of, explain_decision
from holdfast.domain.workloads.jobset.state import JobSet, SetDecision
from holdfast.domain.workloads.kubejob.indexes import format_indexes
from holdfast.domain.workloads.kubejob.reconcile import CONTROLLER
from holdfast.errors import Internal
from holdfast.ports.store import JobFilter
from holdfast.service.quarantined import known_pods, kube_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.domain.access.grants import Seen
    from holdfast.domain.failure import Failure
    from holdfast.domain.job import Attempt, ChildOf, Job, Run
    from holdfast.domain.policy.model import Decision
    from holdfast.domain.workloads.dependencies import Dependency
    from holdfast.domain.workloads.kubejob.model import KubeJobState
    from holdfast.ports.catalogue import CatalogueStore
    from holdfast.ports.store import Store

_PART = 1000
_MOST_PODS = 100
_TOLD_PODS = 3
_TOLD_AWAITED = 10
_STATE_WORDS = {
    JobState.QUEUED: "is queued",
    JobState.RUNNING: "is running",
    JobState.BACKOFF: "is waiting for its retry",
    JobState.HELD: "is held until it is released",
    JobState.WAITING: "is waiting for its {owner}",
    JobState.SUCCEEDED: "succeeded",
    JobState.FAILED: "failed",
    JobState.CANCELLED: "was cancelled",
}


def job_line(job: Job, last: Attempt | None = None, *, owner: str = JOB_SET.noun) -> str:
    """Describe a job's state and its reason; without the reason if the sentences about its attempt give it.

    Args:
        job: The job.
        last: The attempt that is described afterwards.
        owner: The noun for the work that it is part of.
    """
    if job.state is JobState.WAITING and job.of_set is None:
        return f"Job {job.name} {job.reason}"
    words = _STATE_WORDS[job.state].format(owner=owner)
    if job.attempt and job.state in {JobState.RUNNING, JobState.SUCCEEDED}:
        words += f" on attempt {job.attempt}" if job.state is JobState.SUCCEEDED else f", attempt {job.attempt}"
    elif job.attempt and job.state is JobState.FAILED:
        words += f" after {job.attempt} attempt{'s' if job.attempt > 1 else ''}"
    reason = "" if last is not None and _is_why(last, job) else job.reason
    return f"Job {job.name} {words}" + (f": {reason}" if reason else "")


def waiting_line(store: Store, job: Job) -> str:
    """Describe what a job, or those of its pods without a place, wait for."""
    pods = known_pods(store, job) if job.state is JobState.RUNNING else None
    if pods is None:
        return f"{job_line(job)}."
    return f"Job {job.name} runs {pods.state.ready} of its {pods.state.active} pods; the other {job.reason}."


def awaited_lines(store: Store, job: Job, seen: Seen | None = None) -> tuple[str, ...]:
    """Describe the state of each dependency that a job still waits for; of jobs in ``seen`` only, if that is set."""
    if job.ready_at is not None or job.terminal or job.of_set is not None or '"after":' not in job.spec:
        return ()
    left = [dependency for place, dependency in enumerate(load_spec(job.spec).after) if place not in job.met]
    ids = frozenset(dependency.id for dependency in left[:_TOLD_AWAITED])
    by_id = {awaited.id: awaited for awaited in store.jobs(JobFilter(ids=ids, seen=seen))}
    lines = [_awaited(dependency, by_id.get(dependency.id)) for dependency in left[:_TOLD_AWAITED]]
    more = len(left) - len(lines)
    return (*lines, f"It waits for {more} more.") if more else tuple(lines)


def _awaited(dependency: Dependency, job: Job | None) -> str:
    condition = waits_for([dependency]).removeprefix("waits for ")
    if job is not None:
        return f"It waits for {condition}. {job_line(job)}. More: holdfast why {job.id}"
    if dependency.array:
        return f"It waits for {condition}, which has not been created yet."
    return f"It waits for {condition}. More: holdfast why {dependency.target} {dependency.name}"


def _is_why(attempt: Attempt, job: Job) -> bool:
    if attempt.number != job.attempt or attempt.failure is None:
        return False
    if attempt.decision is None:
        return attempt.failure.cause is Cause.USER_CANCELLED and job.state is JobState.CANCELLED
    return job.state in {JobState.FAILED, JobState.BACKOFF} or (
        job.state is JobState.HELD and attempt.decision.action is Action.HOLD
    )


def cancelled_line(attempt: Attempt, failure: Failure) -> str:
    """Describe how an attempt ended that no policy judged."""
    why = f": {failure.message}" if failure.message else ""
    when = "" if failure.started else " before its program started"
    if failure.ended_by is EndedBy.SUSPENSION:
        return f"Attempt {attempt.number} was stopped{when} because a user held the job{why}. That used no retry."
    return f"Attempt {attempt.number} was ended{when} by a user{why}. A cancelled job is retried only by hand."


def failed_pods(store: Store, job: Job, attempt: int) -> Sequence[Run]:
    """List the last pods of an attempt that failed and were judged, newest last."""
    judged = [run for run in store.runs(job.id) if run.attempt == attempt and run.decision is not None]
    return sorted(judged, key=lambda run: run.ended_at or 0.0)[-_MOST_PODS:]


def failed_pod_lines(pods: Sequence[Run]) -> Iterator[str]:
    """Describe how the last pods failed, and the decision about each."""
    if len(pods) > _TOLD_PODS:
        earlier = len(pods) - _TOLD_PODS
        yield f"{earlier} earlier pod{'' if earlier == 1 else 's'} failed; --all shows more."
    for run in pods[-_TOLD_PODS:]:
        if run.failure is not None and run.decision is not None:
            where = f" on node {run.node}" if run.node else ""
            reasons = "".join(
                f"It does not start again in its pod: {rule.because}. " for rule in run.decision.considered
            )
            failed = f"The pod of rank {run.rank} failed{where}: {failure_in_full(run.failure)}."
            yield f"{failed} {reasons}{pod_outcome(run.decision)}"


def pod_outcome(decision: Decision) -> str:
    """Describe the decision about a pod."""
    preemptor = f" by rule {decision.rule} of {decision.policy}" if decision.rule_index is not None else ""
    if not decision.grants_retry:
        what = "held until its job is released" if decision.action is Action.HOLD else "not retried"
        return f"It is {what}{preemptor}: {summarize_decision(decision)}."
    wait = f" after {format_duration(decision.delay_s)}" if decision.delay_s else ""
    counts = [f"retry {use.used + 1} of {use.limit} ({use.name})" for use in decision.limits if use.limit is not None]
    parts = ["uncounted"] if decision.action is Action.IGNORE else counts
    if decision.policy is None and not parts:
        parts = [decision.reason]
    return f"It is retried{preemptor}{wait}{': ' if parts else ''}{', '.join(parts)}."


def pod_lines(
    store: Store, job: Job, attempt: Attempt | None = None, *, failed: Sequence[Run] = (), now: bool = True
) -> tuple[str, ...]:
    """Describe a job's pods and its set; returns nothing for a job without either.

    Args:
        store: The store.
        job: The job.
        attempt: The attempt to describe, if any.
        failed: Pods of that attempt that failed.
        now: Whether to describe the current pods, too.
    """
    if job.kind == GANG:
        return ()
    kube = kube_of(job)
    if kube is not None and kube.spec.managed_by not in {None, CONTROLLER}:
        return (f"It is managed by {kube.spec.managed_by}, so Holdfast does not run it.",)
    failure = None if attempt is None else attempt.failure
    how = () if attempt is None or failure is None else tuple(failure_lines(failure, attempt.number))
    record = known_pods(store, job)
    pods = tuple(_pods(record.state, job.reason)) if record is not None and now else ()
    return (
        *how,
        *failed_pod_lines(failed),
        *pods,
        *(() if job.of_set is None else _of_set(store, job, job.of_set, attempt)),
    )


def _pods(state: KubeJobState, headline: str) -> Iterator[str]:
    ready = f"active ({state.ready} ready)" if state.ready < state.active else "active"
    counts = ((ready, state.active), ("succeeded", state.succeeded), ("failed", state.failed))
    parts = [f"{count} {word}" for word, count in counts if count]
    if parts:
        yield f"Pods: {', '.join(parts)}."
    if state.failed_indexes:
        yield f"Failed indexes: {format_indexes(state.failed_indexes)}."
    for condition in (state.finished,) if state.finished else state.conditions:
        if condition.status and condition.message not in headline:
            why = ": ".join(part for part in (condition.reason, condition.message) if part)
            yield f"It is {condition.type}: {why}." if why else f"It is {condition.type}."


def _of_set(store: Store, job: Job, at: ChildOf, attempt: Attempt | None) -> tuple[str, ...]:
    try:
        owner = store.workloads_by_id(Workload, [at.set_id]).get(at.set_id)
    except Internal as error:
        return (f"Its job set cannot be shown: {error.message}.",)
    if owner is None:
        return ("Its job set was deleted.",)
    name = owner.name
    if not isinstance(owner, JobSet):
        return (f"It is part of {owner.noun} {name}. For all of it: holdfast why {owner.kind} {name}",)
    about = f"It is job {at.index} of replicated job {at.group}. For the whole set: holdfast why jobset {name}"
    decided = None if attempt is None else set_decisions(store, job, store.attempts(job.id)).get(attempt.number)
    if decided is not None and attempt is not None and decided.job != job.name:
        return (
            f"Attempt {attempt.number} was replaced because job {decided.job} failed.",
            *explain_decision(decided)[1:],
            about,
        )
    return (*(explain_decision(decided)[1:] if decided else ()), about)


def set_decisions(store: Store, job: Job, attempts: Sequence[Attempt]) -> dict[int, SetDecision]:
    """Return a set's decisions about the failures or the replacement of a job's attempts, by attempt number."""
    if job.of_set is None:
        return {}
    decisions_found: dict[int, SetDecision] = {}
    replaced = {
        attempt.number: (attempt.created_at, later.created_at)
        for attempt, later in pairwise(attempts)
        if attempt.ending is Ending.CANCELLED
    }
    after = 0
    while part := store.set_log(job.of_set.set_id, after=after, limit=_PART):
        for entry in part:
            if not isinstance(entry.what, SetDecision):
                continue
            if entry.what.job == job.name:
                decisions_found[attempt_of(entry.what)] = entry.what
            elif _restarts(entry.what, job):
                times = replaced.items()
                decisions_found.update(
                    {number: entry.what for number, (since, until) in times if since < entry.at <= until}
                )
        after = part[-1].seq
    return decisions_found


def _restarts(decision: SetDecision, job: Job) -> bool:
    """Whether a set's decision about another job also restarted this job."""
    if decision.action in {SetAction.RESTART_GROUP, SetAction.RESTART_GROUP_UNCOUNTED}:
        return decision.granted and decision.job.rpartition("-")[0] == job.name.rpartition("-")[0]
    return decision.granted and decision.action in {SetAction.RESTART_JOB_SET, SetAction.RESTART_JOB_SET_UNCOUNTED}


def paused_lines(store: CatalogueStore, *, ended: bool, headline: str = "") -> Sequence[str]:
    """Describe the pause that keeps a workload from starting, if there is one.

    Args:
        store: The store.
        ended: Whether the workload has ended, and so waits for nothing.
        headline: The sentence about it so far, which may mention the pause already.
    """
    pause = None if ended else store.paused()
    if pause is None or pause.in_words() in headline:
        return ()
    return (f"In this database {pause.in_words()}.",)
