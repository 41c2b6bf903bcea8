"""Any other medium that the library Apprise supports, by its URL.

The text of programs is kept from being read as markup: it mentions nobody, and gives no link another name.
"""

from __future__ import annotations

import logging
import re
from importlib.util import find_spec
from typing import TYPE_CHECKING

from holdfast.domain.notifications.words import subject, text
from holdfast.notify.guard import Undelivered

if TYPE_CHECKING:
    from holdfast.domain.notifications.notification import Notification

INSTALL = "pip install 'holdfast-scheduler[notify]'"
_APART = "\u200b"
"""A space of no width: people see no difference."""
_MENTION = re.compile(r"(?<!\w)@(?=\w)")
_LINK = re.compile(r"\](?=\()")


def is_installed() -> bool:
    """Whether the library is installed."""
    return find_spec("apprise") is not None


def send(url: str, notification: Notification, timeout_s: float) -> None:
    """Send to an Apprise URL.

    Raises:
        Undelivered: The library is missing, does not know the URL, or was refused.
    """
    if not is_installed():
        message = f"the library Apprise is not installed; {INSTALL}"
        raise Undelivered(message, final=True)
    import apprise  # noqa: PLC0415 - optional, and slow to import

    asset = apprise.AppriseAsset(app_id="Holdfast", app_desc="Holdfast", async_mode=False)
    half_s = timeout_s / 2
    targets = apprise.Apprise(asset=asset)
    if not targets.add(f"{url}{'&' if '?' in url else '?'}cto={half_s:g}&rto={half_s:g}"):
        message = "Apprise does not know this URL"
        raise Undelivered(message, final=True)
    report = notification.report
    with apprise.LogCapture(level=logging.WARNING) as log:  # type: ignore[no-untyped-call] # it has no types
        done = targets.notify(
            title=for_any(subject(report)), body=for_any(text(report)), body_format=apprise.NotifyFormat.TEXT
        )
        output = " ".join(log.getvalue().split())
    if not done:
        raise Undelivered(_without(url, output) or "Apprise could not deliver it")


def _without(url: str, text: str) -> str:
    """Leave a secret URL out of what the library said; it writes only part of one, but that may be enough."""
    parts = [part for part in url.replace("?", "/").split("/") if len(part) > 5]  # noqa: PLR2004 - words, not tokens
    for part in parts:
        text = text.replace(part, "...")
    return text[:300]


def for_slack(text: str) -> str:
    """Escape a text as Slack requires; Mattermost and Rocket.Chat also read ``@all`` and ``[name](address)``."""
    return _without_calls(text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def for_any(text: str) -> str:
    """Return a text in which no medium finds a mention, a link with another name or a tag; it cannot know escapes."""
    return _without_calls(text.replace("<", f"<{_APART}"))


def _without_calls(text: str) -> str:
    return _LINK.sub(f"]{_APART}", _MENTION.sub(f"@{_APART}", text))
