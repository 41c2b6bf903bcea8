"""Tables of events and of the audit log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from holdfast.cli.render.words import age, when
from holdfast.domain.terms.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.cli.render.words import Table
    from holdfast.wire.events import AuditView, EventView

COLUMNS = ("ID", "TIME", "SUBJECT", "EVENT", "WHAT")
SHORT = ("ID", "AGE", "SUBJECT", "EVENT", "WHAT")
_SINGULAR = {
    **{kind.plural: kind.spellings[0] for kind in KINDS.values()},
    "retry-policies": "retrypolicy",
    "queues": "queue",
    "failure-categories": "category",
    "executors": "executor",
    "nodes": "node",
}
_PREFIX = "dev.holdfast."


def short_type(event: EventView) -> str:
    """Name an event's type as filters do: ``job.failed``."""
    return event.type.removeprefix(_PREFIX).rpartition(".v")[0]


def event_row(event: EventView, time: str, subject: str) -> tuple[str, ...]:
    """Return the cells of an event, with its time and subject as given."""
    return (event.id, time, subject, short_type(event), _what(event))


def event_table(events: Sequence[EventView], names: Mapping[str, str], *, now_s: float) -> Table:
    """Tabulate events with their ages, counted to ``now_s``, and names instead of ids.

    Args:
        events: The events, one a row.
        names: Names of jobs, by id.
        now_s: Seconds since the epoch, UTC.
    """
    return SHORT, [event_row(event, age(event.time, now_s), about(event, names)) for event in events]


def wide_event_table(events: Sequence[EventView]) -> Table:
    """Tabulate events with their times and ids."""
    return COLUMNS, [event_row(event, when(event.time), event.subject) for event in events]


def job_of(event: EventView) -> str | None:
    """Return the id of the job that an event is about, if it is about one."""
    kind, _, job_id = event.subject.partition("/")
    return job_id if kind == "jobs" else None


def about(event: EventView, names: Mapping[str, str]) -> str:
    """Name the subject of an event as other commands do: ``job/train``."""
    kind, slash, name = event.subject.partition("/")
    return f"{_SINGULAR.get(kind, kind)}{slash}{names.get(name, name) if kind == 'jobs' else name}"


def _what(event: EventView) -> str:
    """Write the fields that are set: ``attempt=2 reason="exit code 3"``."""
    return " ".join(f"{name}={_text(value)}" for name, value in event.data.items() if _says_something(name, value))


def _says_something(name: str, value: object) -> bool:
    return value is not True and bool(value or (name == "exit_code" and value is not None))


def _text(value: object) -> str:
    if isinstance(value, str) and value and " " not in value:
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def audit_table(entries: Sequence[AuditView], *, now_s: float) -> Table:
    """Tabulate the audit log; ages are counted to ``now_s``."""
    rows = [
        (age(entry.time, now_s), entry.actor, entry.action, entry.kind, entry.name, entry.outcome, entry.detail)
        for entry in entries
    ]
    return ("AGE", "ACTOR", "ACTION", "KIND", "NAME", "OUTCOME", "DETAIL"), rows


def wide_audit_table(entries: Sequence[AuditView]) -> Table:
    """Tabulate the audit log in full."""
    columns = ("ID", "TIME", "ACTOR", "ACTION", "KIND", "NAME", "OUTCOME", "DETAIL", "FROM")
    rows = [
        (
            entry.id,
            when(entry.time),
            entry.actor,
            entry.action,
            entry.kind,
            entry.name,
            entry.outcome,
            entry.detail,
            entry.origin,
        )
        for entry in entries
    ]
    return columns, rows
