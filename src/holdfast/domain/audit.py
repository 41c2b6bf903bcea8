"""The audit log: who did what, and what is recorded about it.

No entry holds a secret: only names and reasons, never the contents of a manifest. An action without a caller, as in
tests and tools, is not recorded.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from holdfast.domain.access import Principal
from holdfast.domain.events.operators import (
    ENTRY_EVENTS,
    NodeCordoned,
    NodeUncordoned,
    OperatorActed,
    SchedulingPaused,
    SchedulingResumed,
    SettingsUpdated,
)
from holdfast.domain.events.registry import EventRecord
from holdfast.domain.record import Struct, evolve
from holdfast.domain.terms import entries
from holdfast.domain.terms.kinds import ARRAY, JOB, JOB_SET, SubjectName, info_of

if TYPE_CHECKING:
    from holdfast.domain.access.grants import Access
    from holdfast.domain.events.registry import Event
    from holdfast.domain.placement.cordon import Cordon, Pause
    from holdfast.domain.policy.model import RetrySettings
    from holdfast.domain.sessions.model import Session


class Act(StrEnum):
    """What was done or requested."""

    CREATE = "create"
    """Created something."""
    UPDATE = "update"
    """Changed something."""
    DELETE = "delete"
    """Deleted something."""
    APPLY = "apply"
    """Tried to create or change something; recorded only if it was refused."""
    CANCEL = "cancel"
    """Requested that a job be ended."""
    HOLD = "hold"
    """Requested that a job or an array be held."""
    RELEASE = "release"
    """Requested the release of a held job or array."""
    RETRY = "retry"
    """Requested another attempt of a job, or the server began the retry of a session."""
    PREEMPT = "preempt"
    """Requested that a running job give up its place."""
    REPRIORITIZE = "reprioritize"
    """Requested another priority for a job."""
    SUSPEND = "suspend"
    """Requested that a job set be stopped and kept."""
    RESUME = "resume"
    """Requested that a suspended job set be resumed, or ended a pause of the server."""
    PAUSE = "pause"
    """Paused the server, as a restore does."""
    RESTART = "restart"
    """Requested a restart of a job set, or of one of its replicated jobs or jobs."""
    CORDON = "cordon"
    """Cordoned a node, or requested that a device be cordoned."""
    DRAIN = "drain"
    """Drained a node."""
    UNCORDON = "uncordon"
    """Uncordoned a node, or requested that a device be uncordoned."""
    REPLAY = "replay"
    """Requested that a notification be delivered again."""
    TEST = "test"
    """Sent a test notification through a notifier."""
    READ = "read"
    """Tried to read something; recorded only if it was refused, or if it was the audit log and the caller no admin."""


class Subject:
    """The kinds of object that actions are about; every kind of work is one."""

    JOB = JOB.subject
    JOB_SET = JOB_SET.subject
    ARRAY = ARRAY.subject
    POLICY = entries.POLICY.subject
    QUEUE = entries.QUEUE.subject
    CATEGORY = entries.CATEGORY.subject
    NODE = SubjectName("node")
    NOTIFIER = entries.NOTIFIER.subject
    NOTIFICATION = SubjectName("notification")
    SETTINGS = SubjectName("settings")
    SCHEDULING = SubjectName("scheduling")
    DEVICE = SubjectName("device")
    TOKEN = SubjectName("token")
    AUDIT = SubjectName("audit")
    SERVER = SubjectName("server")


SYSTEM = Principal("system")
"""The actor of what the server does by itself."""
ACCEPTED = "accepted"
"""The outcome of an action that was done; any other is the code of a refusal."""


class Caller(Struct, frozen=True):
    """A caller with the origin and time of its request."""

    principal: Principal
    at: float
    origin: str = ""
    """The address it came from, or ``in-process``."""
    request_id: str = ""
    unable: str = ""
    """Why what it submits could not be run, if so."""

    @property
    def actor(self) -> str:
        """The name in logs."""
        return self.principal.name


class AuditEntry(Struct, frozen=True):
    """One action in the log."""

    caller: Caller
    act: Act
    subject: SubjectName
    """One of ``Subject``, or the subject of a kind of work."""
    name: str
    """The object's name; the id of a job or a job set."""
    outcome: str = ACCEPTED
    detail: str = ""
    """The caller's reason, or the message of the refusal."""


class StoredAuditEntry(NamedTuple):
    """An action as recorded."""

    seq: int
    entry: AuditEntry


_HAPPENED = {Act.CREATE: "created", Act.UPDATE: "updated", Act.DELETE: "deleted"}


class AuditedChange(Struct, frozen=True):
    """The audit entry and the events of an action."""

    entry: AuditEntry
    records: tuple[EventRecord, ...]


def on_entry(caller: Caller | None, act: Act, kind: SubjectName, name: str, *revision: int) -> AuditedChange | None:
    """Describe the creation, update or deletion of an entry of the catalogue, with its revision if it has one."""
    return _audited(caller, act, kind, name, event=ENTRY_EVENTS[kind][_HAPPENED[act]](name, *revision))


def on_token(caller: Caller | None, act: Act, name: str, detail: str) -> AuditedChange | None:
    """Describe the creation or revocation of a token."""
    return _audited(caller, act, Subject.TOKEN, name, detail=detail)


def on_cordon(caller: Caller | None, cordon: Cordon) -> AuditedChange | None:
    """Describe the cordon or drain of a node."""
    event = NodeCordoned(cordon.node, cordon.drain, cordon.reason)
    return _audited(caller, Act.DRAIN if cordon.drain else Act.CORDON, Subject.NODE, cordon.node, event=event)


def on_uncordon(caller: Caller | None, node: str) -> AuditedChange | None:
    """Describe that a node was uncordoned."""
    return _audited(caller, Act.UNCORDON, Subject.NODE, node, event=NodeUncordoned(node))


def on_notification(caller: Caller | None, act: Act, name: str) -> AuditedChange | None:
    """Describe a request about a notification."""
    return _audited(caller, act, Subject.NOTIFICATION, name)


def on_settings(
    caller: Caller | None, settings: RetrySettings, default_policy: str | None, access: Access | None = None
) -> AuditedChange | None:
    """Describe a change of settings; ``access`` is the new access to the server, if that changed."""
    event = SettingsUpdated(settings.global_max_retries, default_policy)
    detail = "" if access is None else access.in_words()
    return _audited(caller, Act.UPDATE, Subject.SETTINGS, "settings", event=event, detail=detail)


def on_pause(caller: Caller | None, pause: Pause) -> AuditedChange | None:
    """Describe a pause of the server."""
    event = SchedulingPaused(pause.reason)
    return _audited(caller, Act.PAUSE, Subject.SCHEDULING, "scheduling", event=event, detail=pause.reason)


def on_resume(caller: Caller | None) -> AuditedChange | None:
    """Describe the end of a pause."""
    return _audited(caller, Act.RESUME, Subject.SCHEDULING, "scheduling", event=SchedulingResumed())


def on_submission(caller: Caller | None, kind: str, key: str, count: str) -> AuditedChange | None:
    """Describe a submission as one entry; each job and job set in it has an event of its own.

    Args:
        caller: Who submits.
        kind: The kind of the first workload in it.
        key: The id of that workload.
        count: How many workloads it has, in words.
    """
    entry = _audited(caller, Act.CREATE, info_of(kind).subject, key, detail=count)
    return None if entry is None else AuditedChange(entry.entry, ())


def on_job(caller: Caller | None, act: Act, job_id: str, reason: str) -> AuditedChange | None:
    """Describe a request about a job; it is one of the job's events, before its effects."""
    change = _audited(caller, act, Subject.JOB, job_id, detail=reason)
    return change and evolve(change, records=tuple(record._replace(job_id=job_id) for record in change.records))


def on_session_retry(child: Session, parent: Session, now: float) -> AuditedChange:
    """Describe the automatic retry of a session; its effects are the job's events."""
    detail = (
        f"auto=true cause={parent.retry_cause} attempt={child.retry_count + 1} of={child.max_retries + 1}"
        f" session={child.id} parent={parent.id}"
    )
    return AuditedChange(AuditEntry(Caller(SYSTEM, now), Act.RETRY, Subject.JOB, child.job_id, detail=detail), ())


def on_device(caller: Caller | None, act: Act, name: str, reason: str) -> AuditedChange | None:
    """Describe a request about a device; its effect is a separate event."""
    return _audited(caller, act, Subject.DEVICE, name, detail=reason)


def on_workload(caller: Caller | None, act: Act, kind: str, key: str, reason: str) -> AuditedChange | None:
    """Describe a request about a workload; its effects are the workload's events."""
    return _audited(caller, act, info_of(kind).subject, key, detail=reason)


def _audited(
    caller: Caller | None,
    act: Act,
    subject: SubjectName,
    name: str,
    *,
    event: Event | NodeCordoned | NodeUncordoned | None = None,
    detail: str = "",
) -> AuditedChange | None:
    if caller is None:
        return None
    acted = OperatorActed(caller.actor, act.value, subject, name, caller.origin, caller.request_id, detail)
    events = (acted,) if event is None else (event, acted)
    return AuditedChange(
        AuditEntry(caller, act, subject, name, detail=detail),
        tuple(EventRecord(None, caller.at, happened) for happened in events),
    )
