"""Renders events, audit entries and the history of attempts as wire models; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.domain.audit import Subject
from holdfast.domain.events.operators import (
    OperatorActed,
)
from holdfast.domain.terms.entries import ENTRIES
from holdfast.domain.terms.kinds import KINDS
from holdfast.wire.base import timestamp
from holdfast.wire.events import AuditView, EventView
from holdfast.wire.jobs import HistoryEntry, HistoryStep

if TYPE_CHECKING:
    from holdfast.domain.audit import StoredAuditEntry
    from holdfast.domain.events.registry import StoredEvent
    from holdfast.domain.lifecycle import HistoryRow

_COLLECTIONS: dict[str, str] = {
    **{kind.subject: kind.plural for kind in KINDS.values()},
    **{subject: info.plural for subject, info in ENTRIES.items()},
    Subject.DEVICE: "devices",
}


def event_view(stored: StoredEvent) -> EventView:
    """Render an event."""
    kind = stored.type
    return EventView(
        id=str(stored.seq),
        type=f"dev.holdfast.{kind.name}.v{kind.version}",
        time=timestamp(stored.at),
        subject=_subject(stored),
        jobsequence=stored.job_seq,
        group=stored.group,
        data={name: _value(name, getattr(stored.event, name)) for name in kind.fields},
    )


def _subject(stored: StoredEvent) -> str:
    if stored.job_id is not None:
        return f"jobs/{stored.job_id}"
    event, about = stored.event, stored.type.about
    if isinstance(event, OperatorActed):
        about = _COLLECTIONS.get(event.kind, "")
    return f"{about}/{getattr(event, stored.type.name_field)}" if about else "settings"


def _value(name: str, value: Any) -> Any:  # noqa: ANN401 - any field of any event
    """Write times as times; the rest is plain already."""
    return timestamp(value) if name.endswith("_at") and value is not None else value


def audit_view(stored: StoredAuditEntry) -> AuditView:
    """Render an audit entry."""
    entry, caller = stored.entry, stored.entry.caller
    return AuditView(
        id=str(stored.seq),
        time=timestamp(caller.at),
        actor=caller.actor,
        action=entry.act.value,
        kind=entry.subject,
        name=entry.name,
        outcome=entry.outcome,
        detail=entry.detail,
        origin=caller.origin,
        request_id=caller.request_id,
    )


def history_entry(row: HistoryRow) -> HistoryEntry:
    """Render one step of an attempt's history."""
    return HistoryEntry(
        attempt=row.attempt,
        seq=row.seq,
        phase=row.phase,
        from_status=str(row.from_status),
        to_status=str(row.to_status),
        outcome=str(row.outcome),
        created_at=timestamp(row.created_at),
        updated_at=timestamp(row.updated_at),
        error_code=row.error_code,
        message=row.message,
        times=row.attempts,
        steps=[
            HistoryStep(name=step.name, outcome=str(step.outcome), error_code=step.error_code, message=step.message)
            for step in row.steps
        ],
    )
