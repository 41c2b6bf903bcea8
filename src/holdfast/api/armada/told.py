"""Turns our events into Armada's: what a job set's watchers are told, in upstream's order.

One failure is one ``failed``; it says whether the job is retried. What we know beyond that travels in fields of its
own, because stock clients break on an event that they do not know.
Source: Armada's document, "JobRequeued event"; upstream's conversion of its log to its public events.
"""

from __future__ import annotations

from functools import lru_cache
from sys import intern
from typing import TYPE_CHECKING, Any, assert_never

from holdfast.api.armada._generated import event
from holdfast.api.armada.pods import NAMESPACE, pod_name
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.domain.events.registry import StoredEvent

    Message = event.EventMessage

_FREE = frozenset({DecisionCode.INTERRUPTED.value, DecisionCode.SHORTAGE.value})
"""Decisions after which upstream says that the lease was returned."""
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
"""The reason where nobody gave one."""
CONTAINER = "main"
"""What a failed container is called where an older event does not say."""
_NANOSECONDS = 1_000_000_000
_SHARED = 4096
"""What many jobs, and what follows them, remember as one: places above all, and how attempts failed."""


class Remembered(Struct, frozen=True):
    """What the events before have told of a job; equal ones are shared, see ``Translator.keep``."""

    executor: str = ""
    node: str = ""
    run: str = ""
    """What follows the job's id in that of its run."""
    namespace: str = NAMESPACE
    ended: AttemptEnded | None = None
    decided: FailureDecided | None = None
    requestor: str = ""
    """Who asked last for its end or its place."""
    reason: str = ""
    reprioritized_by: str = ""

    def after(self, act: OperatorActed) -> Remembered:
        """Return it with who asked for the job's end, its place or another priority, and why."""
        if act.action == Act.REPRIORITIZE:
            return evolve(self, reprioritized_by=act.actor)
        return evolve(self, requestor=act.actor, reason=act.detail)

    def preempted(self, attempt: int) -> bool:
        """Whether the place of an attempt was taken."""
        ended = self.ended
        return ended is not None and ended.attempt == attempt and FailureCondition.PREEMPTED in ended.conditions


@lru_cache(maxsize=_SHARED)
def _shared(remembered: Remembered) -> Remembered:
    """Return the first of all that are equal."""
    return remembered


class Translator(Struct, gc=True):
    """Translates the events of one job set in order."""

    queue: str
    job_set: str
    recall: Callable[[str], Remembered]
    """Looks up what a job's earlier events told, for one whose events begin in their midst."""
    describe: Callable[[str, event.EventMessage], None]
    """Fills in what a job is, where an event says so."""
    known: dict[str, Remembered] = field(default_factory=dict)

    def keep(self, job_id: str, remembered: Remembered) -> Remembered:
        """Remember something of a job; many jobs have the same, and what follows the same jobs shares their ids."""
        self.known[intern(job_id)] = shared = _shared(remembered)
        return shared

    def messages(self, stored: StoredEvent) -> Iterator[Message]:
        """Return what an event is to Armada's users; often nothing."""
        if stored.job_id is None:
            return
        if isinstance(stored.event, JobSubmitted) and stored.job_id not in self.known:  # nothing was told before
            self.keep(stored.job_id, Remembered())
        of = self._of(stored.job_id)
        if isinstance(stored.event, JobSucceeded | JobFailed | JobCancelled):
            message = self._ended(stored, stored.event, of)
            del self.known[stored.job_id]
            yield message
        else:
            yield from self._under_way(stored, of)

    def _under_way(self, stored: StoredEvent, of: Remembered) -> Iterator[Message]:
        happened = stored.event
        if isinstance(happened, JobSubmitted):
            yield self._submitted(stored, of)
            yield self._made(stored, "queued")
        elif isinstance(happened, JobStarted):
            yield from self._started(stored, happened, of)
        elif isinstance(happened, AttemptEnded):
            self._note(stored, of, ended=happened)
            if _is_lost(happened):  # upstream says so first, then what it leads to
                yield self._made(stored, "lease_expired")
        elif isinstance(happened, FailureDecided):
            # Without the jitter, in which equal failures differ.
            self._note(stored, of, decided=evolve(happened, delay_s=0.0, retry_at=None))
        elif isinstance(happened, JobRetryScheduled):
            yield self._retried(stored, happened, of)
        else:
            yield from self._noted(stored, of)

    def _noted(self, stored: StoredEvent, of: Remembered) -> Iterator[Message]:
        happened = stored.event
        if isinstance(happened, AttemptStatusChanged) and happened.status == AttemptStatus.RUNNING:
            yield self._placed(stored, "running", happened.attempt, of)
        elif isinstance(happened, JobQueued) and happened.reason and of.run:  # else its retry is due
            yield self._returned(stored, happened.reason, of, ran=False)
        elif isinstance(happened, OperatorActed) and happened.action in REQUESTED:
            yield from self._asked(stored, happened, of)
        elif isinstance(happened, JobReprioritized):
            priority = float(-happened.priority)
            yield self._made(stored, "reprioritized", new_priority=priority, requestor=of.reprioritized_by)

    def _asked(self, stored: StoredEvent, happened: OperatorActed, of: Remembered) -> Iterator[Message]:
        self.keep(stored.job_id or "", of.after(happened))
        if happened.action == Act.REPRIORITIZE:
            priority = -float(happened.detail.rpartition(" ")[2])
            yield self._made(stored, "reprioritizing", new_priority=priority, requestor=happened.actor)
        else:
            fields = {"reason": happened.detail} if happened.action == Act.PREEMPT else {}
            yield self._made(stored, REQUESTED[happened.action], requestor=happened.actor, **fields)

    def _ended(self, stored: StoredEvent, happened: JobSucceeded | JobFailed | JobCancelled, of: Remembered) -> Message:
        match happened:
            case JobSucceeded():
                return self._placed(stored, "succeeded", happened.attempt, of)
            case JobFailed() if of.preempted(happened.attempt):
                return self._preempted(stored, happened, of)
            case JobFailed():
                return self._failed(stored, happened, of)
            case JobCancelled():
                return self._made(stored, "cancelled", requestor=of.requestor, reason=happened.reason)
            case _:
                assert_never(happened)

    def _of(self, job_id: str) -> Remembered:
        remembered = self.known.get(job_id)
        return self.keep(job_id, self.recall(job_id)) if remembered is None else remembered

    def _note(self, stored: StoredEvent, of: Remembered, **changes: Any) -> Remembered:  # noqa: ANN401 - of its fields
        return self.keep(stored.job_id or "", evolve(of, **changes))

    def _made(self, stored: StoredEvent, kind: str, **fields: str | bool | float) -> Message:
        message = event.EventMessage()
        part = getattr(message, kind)
        part.job_id, part.job_set_id, part.queue = stored.job_id, self.job_set, self.queue
        part.created.FromNanoseconds(int(stored.at * _NANOSECONDS))
        for name, value in fields.items():
            setattr(part, name, value)
        return message

    def _submitted(self, stored: StoredEvent, of: Remembered) -> Message:
        message = self._made(stored, "submitted")
        self.describe(stored.job_id or "", message)
        self._note(stored, of, namespace=message.submitted.job.namespace or NAMESPACE)
        return message

    def _started(self, stored: StoredEvent, happened: JobStarted, of: Remembered) -> Iterator[Message]:
        executor, node, _ = happened.places[0] if happened.places else ("", "", 0)
        run = f"-{happened.attempt}-0-{happened.dispatch}"
        of = self._note(stored, of, executor=executor, node=node, run=run, ended=None, decided=None)
        yield self._made(stored, "leased", cluster_id=of.executor)
        job_id = stored.job_id or ""
        yield self._made(
            stored,
            "pending",
            cluster_id=of.executor,
            kubernetes_id=job_id + of.run,
            pod_name=pod_name(job_id, happened.attempt),
            pod_namespace=of.namespace,
        )

    def _placed(self, stored: StoredEvent, kind: str, attempt: int, of: Remembered) -> Message:
        return self._made(
            stored,
            kind,
            cluster_id=of.executor,
            node_name=of.node,
            pod_name=pod_name(stored.job_id or "", attempt),
            pod_namespace=of.namespace,
        )

    def _returned(self, stored: StoredEvent, reason: str, of: Remembered, *, ran: bool) -> Message:
        return self._made(stored, "lease_returned", cluster_id=of.executor, reason=reason, run_attempted=ran)

    def _retried(self, stored: StoredEvent, happened: JobRetryScheduled, of: Remembered) -> Message:
        decided = of.decided
        if decided is not None and decided.code in _FREE:
            return self._returned(stored, happened.reason, of, ran=True)
        message = self._of_failure(stored, happened.attempt, of)
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

    def _preempted(self, stored: StoredEvent, happened: JobFailed, of: Remembered) -> Message:
        reason = of.reason or PREEMPTED
        if of.decided is not None and (happened.policy is not None or happened.code == DecisionCode.GLOBAL_LIMIT):
            reason = final_reason(of.decided.reason, reason)
        return self._made(
            stored,
            "preempted",
            cluster_id=of.executor,
            run_id=f"{stored.job_id}{of.run}" if of.run else "",
            reason=reason,
            requestor=of.requestor,
        )

    def _failed(self, stored: StoredEvent, happened: JobFailed, of: Remembered) -> Message:
        message = self._of_failure(stored, happened.attempt, of)
        failed = message.failed
        failed.failure_category, failed.failure_subcategory = happened.category, happened.subcategory
        if happened.policy is not None or happened.code == DecisionCode.GLOBAL_LIMIT:
            decided = happened.reason if of.decided is None else of.decided.reason
            failed.reason = final_reason(decided, failed.reason, lost=_is_lost(of.ended))
        elif not failed.reason:
            failed.reason = happened.reason
        return message

    def _of_failure(self, stored: StoredEvent, attempt: int, of: Remembered) -> Message:
        ended = of.ended
        if ended is not None and ended.attempt == attempt and FailureCondition.UNSCHEDULABLE in ended.conditions:
            of = self._note(stored, of, executor="", node="")  # there never was a pod
            message = self._made(stored, "failed")
        else:
            message = self._placed(stored, "failed", attempt, of)
        if ended is None or ended.attempt != attempt:
            return message
        failed = message.failed
        container = ended.container or CONTAINER
        failed.reason = run_error(ended.message, ended.exit_code, container)
        failed.failure_category, failed.failure_subcategory = ended.category, ended.subcategory
        failed.node_name, failed.cluster_id = ended.node or of.node, ended.executor or of.executor
        failed.cause = cause = next((cause for name, cause in _CAUSES if name in ended.conditions), event.Error)
        if ended.exit_code is not None:
            failed.container_statuses.add(
                name=container, exitCode=ended.exit_code, message=ended.message, reason=ended.cause, cause=cause
            )
        return message


def run_error(message: str, exit_code: int | None, container: str) -> str:
    """Say how a run ended, as upstream does."""
    code = "" if exit_code is None else f"{container} exited with code {exit_code}"
    return "\n".join(filter(None, (code, message)))


def final_reason(decided: str, failure: str, *, lost: bool = False) -> str:
    """Say why a policy ended a job, and how its last run, which may be lost, ended, as upstream does."""
    message = f"Lease expired and not retried by policy: {decided}" if lost else f"Retry policy: {decided}"
    return message + (f"\n\nFinal run error:\n{failure}" if failure else "")


def _is_lost(ended: AttemptEnded | None) -> bool:
    return ended is not None and not LOST.isdisjoint(ended.conditions)
