"""What tables say of events and of the audit log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from holdfast.cli.render.words import when

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.render.words import Table
    from holdfast.wire.events import AuditView, EventView

COLUMNS = ("ID", "TIME", "SUBJECT", "EVENT", "WHAT")
_WIDTHS = (6, 20, 31, 22)
_PREFIX = "dev.holdfast."


def short_type(event: EventView) -> str:
    """Name an event's type as filters do: ``job.failed``."""
    return event.type.removeprefix(_PREFIX).rpartition(".v")[0]


def event_row(event: EventView) -> tuple[str, ...]:
    """Show an event as cells."""
    return (event.id, when(event.time), event.subject, short_type(event), _what(event))


def event_table(events: Sequence[EventView]) -> Table:
    """Tabulate events."""
    return COLUMNS, [event_row(event) for event in events]


def event_line(cells: Sequence[str]) -> str:
    """Write one row by itself, for a table whose rest is not known yet."""
    *narrow, what = cells
    padded = [cell.ljust(width) for cell, width in zip(narrow, _WIDTHS, strict=True)]
    return "  ".join([*padded, what.replace("\n", " ")]).rstrip()


def _what(event: EventView) -> str:
    """Write the fields that say something: ``attempt=2 reason="exit code 3"``."""
    return " ".join(f"{name}={_text(value)}" for name, value in event.data.items() if _says_something(name, value))


def _says_something(name: str, value: object) -> bool:
    return value is not True and bool(value or (name == "exit_code" and value is not None))


def _text(value: object) -> str:
    if isinstance(value, str) and value and " " not in value:
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def audit_table(entries: Sequence[AuditView]) -> Table:
    """Tabulate what operators did."""
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
