"""What tables say of notifiers and notifications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.cli.render.words import when

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.cli.render.words import Table
    from holdfast.wire.notifications import NotificationView, NotifierView


def notifier_table(notifiers: Sequence[NotifierView]) -> Table:
    """Tabulate notifiers."""
    rows = [(one.name, str(one.spec.get("type")), _where(one.spec)) for one in notifiers]
    return ("NAME", "TYPE", "WHERE"), rows


def _where(spec: Mapping[str, Any]) -> str:
    url = spec.get("url")
    if isinstance(url, dict):
        return "secret, in " + " ".join(f"{place} {name}" for place, name in url.items())
    words = spec.get("command") or spec.get("to") or ()
    return str(url) if url else (" " if spec.get("command") else ", ").join(words)


def notification_table(notifications: Sequence[NotificationView], *, wide: bool = False) -> Table:
    """Tabulate notifications; a wide table has the times, too."""
    columns = ("ID", "TO", "STATE", "TRIES", *(("CREATED", "NEXT TRY") if wide else ()), "WHAT", "ERROR")
    rows = [
        (
            one.id,
            one.to,
            one.state,
            str(one.tries),
            *((when(one.created_at), when(one.next_at)) if wide else ()),
            one.summary,
            one.error,
        )
        for one in notifications
    ]
    return columns, rows
