"""What tables say of notifiers and notifications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.cli.render.words import when

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.cli.render.words import Table
    from holdfast.wire.entries import NotifierView
    from holdfast.wire.notifications import NotificationView


def notifier_table(notifiers: Sequence[NotifierView]) -> Table:
    """Tabulate notifiers."""
    rows = [(notifier.name, str(notifier.spec.get("type")), _where(notifier.spec)) for notifier in notifiers]
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
            notification.id,
            notification.to,
            notification.state,
            str(notification.tries),
            *((when(notification.created_at), when(notification.next_at)) if wide else ()),
            notification.summary,
            notification.error,
        )
        for notification in notifications
    ]
    return columns, rows
