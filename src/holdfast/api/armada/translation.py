"""Translates our events into Armada's, in upstream's order, for those who watch a job set.

One failure becomes one ``failed``, which says whether the job is retried. Whatever else we know travels in fields of
our own, because stock clients break on an event that they do not know.
Source: Armada's document, "JobRequeued event"; upstream's conversion of its log to its public events.
"""

from __future__ import annotations

from functools import lru_cache, partial
from sys import intern
from typing import TYPE_CHECKING, Any, assert_never

from holdfast.api.armada._generated import event
from holdfast.domain.audit import Act
from holdfast.domain.events.jobs import (
    AttemptEnded,
    AttemptStatusChanged,
    FailureDecided,
    JobCancelled,
    JobFailed,
    JobQueued,
    JobReprioritized,
    JobRetryScheduled,
    JobStarted,
    JobSubmitted,
    JobSucceeded,
)
from holdfast.domain.events.operators import OperatorActed
from holdfast.domain.failure import LOST, FailureCondition
from holdfast.domain.lifecycle import AttemptStatus
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.record import Struct, evolve, field
from holdfast.domain.workloads import spec
from holdfast.service.manifests.armada import POD_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.domain.events.registry import StoredEvent

    Message = event.EventMessage

NAMESPACE = "default"
pod_name = partial(spec.pod_name, POD_NAMES)
"""Returns the name of the pod of a job's attempt."""
_FREE = frozenset({DecisionCode.INTERRUPTED.value, DecisionCode.SHORTAGE.value})
"""Decisions that upstream reports as a returned lease."""
_CAUSES = (
    ("OOMKilled", event.OOM),
    ("Evicted", event.Evicted),
    ("DeadlineExceeded", event.DeadlineExceeded),
    ("Unschedulable", event.Rejected),
)
REQUESTED = {
    Act.CANCEL.value: "cancelling",
    Act.PREEMPT.value: "preempting",
    Act.REPRIORITIZE.value: "reprioritizing",
}
PREEMPTED = "Preempted - preemption requested via API"
"""The reason if nobody gave one."""
CONTAINER = "main"
"""The name of a failed container if the event has none."""
_NANOSECONDS = 1_000_000_000
_SHARED = 4096
"""Records shared between jobs and watches: mostly places, and how attempts failed."""


class JobRecord(Struct, frozen=True):
    """What earlier events said of a job; equal records are shared, see ``Translator.keep``."""

    executor: str = ""
    node: str = ""
    run: str = ""
    """The part of the run's id after the job's id."""
    namespace: str = NAMESPACE
    ended: AttemptEnded | None = None
    decided: FailureDecided | None = None
    requestor: str = ""
    """Who last cancelled or preempted it."""
    reason: str = ""
    reprioritized_by: str = ""

    def after(self, act: OperatorActed) -> JobRecord:
        """Return the record with the caller who cancelled, preempted or reprioritized the job, and the reason."""
        if act.action == Act.REPRIORITIZE:
            return evolve(self, reprioritized_by=act.actor)
        return evolve(self, requestor=act.actor, reason=act.detail)

    def preempted(self, attempt: int) -> bool:
        """Whether an attempt was preempted."""
        ended = self.ended
        return ended is not None and ended.attempt == attempt and FailureCondition.PREEMPTED in ended.conditions


@lru_cache(maxsize=_SHARED)
def _first_equal(record: JobRecord) -> JobRecord:
    """Return the first of equal records."""
    return record


class Translator(Struct, gc=True):
    """Translates the events of one job set in order."""

    queue: str
    job_set: str
    recall: Callable[[str], JobRecord]
    """Looks up what earlier events said of a job, if they are not translated here."""
    describe: Callable[[str, event.EventMessage], None]
    """Describes a job, in the event that says so."""
    by_job: dict[str, JobRecord] = field(default_factory=dict)

    def keep(self, job_id: str, record: JobRecord) -> JobRecord:
        """Remember a record of a job; equal records, and the ids of jobs, are shared between watches."""
        self.by_job[intern(job_id)] = shared = _first_equal(record)
        return shared

    def messages(self, stored: StoredEvent) -> Iterator[Message]:
        """Return the messages for an event; often there are none."""
        if stored.job_id is None:
            return
        if isinstance(stored.event, JobSubmitted) and stored.job_id not in self.by_job:  # no event came before
            self.keep(stored.job_id, JobRecord())
        record = self._record_of(stored.job_id)
        if isinstance(stored.event, JobSucceeded | JobFailed | JobCancelled):
            message = self._ended(stored, stored.event, record)
            del self.by_job[stored.job_id]
            yield message
        else:
            yield from self._under_way(stored, record)

    def _under_way(self, stored: StoredEvent, record: JobRecord) -> Iterator[Message]:
        happened = stored.event
        if isinstance(happened, JobSubmitted):
            yield self._submitted(stored, record)
            yield self._message(stored, "queued")
        elif isinstance(happened, JobStarted):
            yield from self._started(stored, happened, record)
        elif isinstance(happened, AttemptEnded):
            self._update(stored, record, ended=happened)
            if _is_lost(happened):  # upstream reports this first, then its consequence
                yield self._message(stored, "lease_expired")
        elif isinstance(happened, FailureDecided):
            # Without the jitter, in which equal failures differ.
            self._update(stored, record, decided=evolve(happened, delay_s=0.0, retry_at=None))
        elif isinstance(happened, JobRetryScheduled):
            yield self._retried(stored, happened, record)
        else:
            yield from self._progress(stored, record)

    def _progress(self, stored: StoredEvent, record: JobRecord) -> Iterator[Message]:
        happened = stored.event
        if isinstance(happened, AttemptStatusChanged) and happened.status == AttemptStatus.RUNNING:
            yield self._placed(stored, "running", happened.attempt, record)
        elif isinstance(happened, JobQueued) and happened.reason and record.run:  # otherwise a retry is due
            yield self._returned(stored, happened.reason, record, ran=False)
        elif isinstance(happened, OperatorActed) and happened.action in REQUESTED:
            yield from self._requested(stored, happened, record)
        elif isinstance(happened, JobReprioritized):
            priority = float(-happened.priority)
            yield self._message(stored, "reprioritized", new_priority=priority, requestor=record.reprioritized_by)

    def _requested(self, stored: StoredEvent, happened: OperatorActed, record: JobRecord) -> Iterator[Message]:
        self.keep(stored.job_id or "", record.after(happened))
        if happened.action == Act.REPRIORITIZE:
            priority = -float(happened.detail.rpartition(" ")[2])
            yield self._message(stored, "reprioritizing", new_priority=priority, requestor=happened.actor)
        else:
            fields = {"reason": happened.detail} if happened.action == Act.PREEMPT else {}
            yield self._message(stored, REQUESTED[happened.action], requestor=happened.actor, **fields)

    def _ended(
        self, stored: StoredEvent, happened: JobSucceeded | JobFailed | JobCancelled, record: JobRecord
    ) -> Message:
        match happened:
            case JobSucceeded():
                return self._placed(stored, "succeeded", happened.attempt, record)
            case JobFailed() if record.preempted(happened.attempt):
                return self._preempted(stored, happened, record)
            case JobFailed():
                return self._failed(stored, happened, record)
            case JobCancelled():
                return self._message(stored, "cancelled", requestor=record.requestor, reason=happened.reason)
            case _:
                assert_never(happened)

    def _record_of(self, job_id: str) -> JobRecord:
        record = self.by_job.get(job_id)
        return self.keep(job_id, self.recall(job_id)) if record is None else record

    def _update(self, stored: StoredEvent, record: JobRecord, **changes: Any) -> JobRecord:  # noqa: ANN401 - of its fields
        return self.keep(stored.job_id or "", evolve(record, **changes))

    def _message(self, stored: StoredEvent, kind: str, **fields: str | bool | float) -> Message:
        message = event.EventMessage()
        part = getattr(message, kind)
        part.job_id, part.job_set_id, part.queue = stored.job_id, self.job_set, self.queue
        part.created.FromNanoseconds(int(stored.at * _NANOSECONDS))
        for name, value in fields.items():
            setattr(part, name, value)
        return message

    def _submitted(self, stored: StoredEvent, record: JobRecord) -> Message:
        message = self._message(stored, "submitted")
        self.describe(stored.job_id or "", message)
        self._update(stored, record, namespace=message.submitted.job.namespace or NAMESPACE)
        return message

    def _started(self, stored: StoredEvent, happened: JobStarted, record: JobRecord) -> Iterator[Message]:
        executor, node, _ = happened.places[0] if happened.places else ("", "", 0)
        run = f"-{happened.attempt}-0-{happened.dispatch}"
        record = self._update(stored, record, executor=executor, node=node, run=run, ended=None, decided=None)
        yield self._message(stored, "leased", cluster_id=record.executor)
        job_id = stored.job_id or ""
        yield self._message(
            stored,
            "pending",
            cluster_id=record.executor,
            kubernetes_id=job_id + record.run,
            pod_name=pod_name(job_id, happened.attempt),
            pod_namespace=record.namespace,
        )

    def _placed(self, stored: StoredEvent, kind: str, attempt: int, record: JobRecord) -> Message:
        return self._message(
            stored,
            kind,
            cluster_id=record.executor,
            node_name=record.node,
            pod_name=pod_name(stored.job_id or "", attempt),
            pod_namespace=record.namespace,
        )

    def _returned(self, stored: StoredEvent, reason: str, record: JobRecord, *, ran: bool) -> Message:
        return self._message(stored, "lease_returned", cluster_id=record.executor, reason=reason, run_attempted=ran)

    def _retried(self, stored: StoredEvent, happened: JobRetryScheduled, record: JobRecord) -> Message:
        decided = record.decided
        if decided is not None and decided.code in _FREE:
            return self._returned(stored, happened.reason, record, ran=True)
        message = self._of_failure(stored, happened.attempt, record)
        failed = message.failed
        failed.retryable = True
        requeued = failed.requeued
        requeued.attempt, requeued.reason = happened.attempt, happened.reason
        requeued.policy, requeued.rule = happened.policy or "", happened.rule or ""
        if happened.retry_at is not None:
            requeued.not_before.FromNanoseconds(int(happened.retry_at * _NANOSECONDS))
        for name, used, limit in decided.limits if decided is not None else ():
            if name == happened.counter:
                requeued.used = used + 1
                if limit is not None:
                    requeued.limit = limit
        return message

    def _preempted(self, stored: StoredEvent, happened: JobFailed, record: JobRecord) -> Message:
        reason = record.reason or PREEMPTED
        if record.decided is not None and (happened.policy is not None or happened.code == DecisionCode.GLOBAL_LIMIT):
            reason = final_reason(record.decided.reason, reason)
        return self._message(
            stored,
            "preempted",
            cluster_id=record.executor,
            run_id=f"{stored.job_id}{record.run}" if record.run else "",
            reason=reason,
            requestor=record.requestor,
        )

    def _failed(self, stored: StoredEvent, happened: JobFailed, record: JobRecord) -> Message:
        message = self._of_failure(stored, happened.attempt, record)
        failed = message.failed
        failed.failure_category, failed.failure_subcategory = happened.category, happened.subcategory
        if happened.policy is not None or happened.code == DecisionCode.GLOBAL_LIMIT:
            decided = happened.reason if record.decided is None else record.decided.reason
            failed.reason = final_reason(decided, failed.reason, lost=_is_lost(record.ended))
        elif not failed.reason:
            failed.reason = happened.reason
        return message

    def _of_failure(self, stored: StoredEvent, attempt: int, record: JobRecord) -> Message:
        ended = record.ended
        if ended is not None and ended.attempt == attempt and FailureCondition.UNSCHEDULABLE in ended.conditions:
            record = self._update(stored, record, executor="", node="")  # there never was a pod
            message = self._message(stored, "failed")
        else:
            message = self._placed(stored, "failed", attempt, record)
        if ended is None or ended.attempt != attempt:
            return message
        failed = message.failed
        container = ended.container or CONTAINER
        failed.reason = run_error(ended.message, ended.exit_code, container)
        failed.failure_category, failed.failure_subcategory = ended.category, ended.subcategory
        failed.node_name, failed.cluster_id = ended.node or record.node, ended.executor or record.executor
        failed.cause = cause = next((cause for name, cause in _CAUSES if name in ended.conditions), event.Error)
        if ended.exit_code is not None:
            failed.container_statuses.add(
                name=container, exitCode=ended.exit_code, message=ended.message, reason=ended.cause, cause=cause
            )
        return message


def run_error(message: str, exit_code: int | None, container: str) -> str:
    """Return how a run ended, in upstream's words."""
    code = "" if exit_code is None else f"{container} exited with code {exit_code}"
    return "\n".join(filter(None, (code, message)))


def final_reason(decided: str, failure: str, *, lost: bool = False) -> str:
    """Return why a policy ended a job, and how its last run ended, in upstream's words."""
    message = f"Lease expired and not retried by policy: {decided}" if lost else f"Retry policy: {decided}"
    return message + (f"\n\nFinal run error:\n{failure}" if failure else "")


def _is_lost(ended: AttemptEnded | None) -> bool:
    return ended is not None and not LOST.isdisjoint(ended.conditions)
