"""Sends a notification by the medium of its notifier."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, assert_never

from holdfast.domain.notifications.words import payload, text
from holdfast.domain.notifier import Medium, Secret
from holdfast.domain.record import Struct
from holdfast.errors import Problem
from holdfast.notify import command, external, mail, webhook
from holdfast.notify.external import for_slack
from holdfast.notify.guard import Guard, Undelivered
from holdfast.ports.notifications import SendResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.domain.notifications.notification import Notification
    from holdfast.domain.notifier import Notifier

_log = logging.getLogger(__name__)


class Permissions(Struct, frozen=True):
    """What the operator of this machine lets notifiers do."""

    guard: Guard = Guard()
    programs: frozenset[str] = frozenset()
    """Paths of programs that may be run."""
    path: str = ""
    """The ``PATH`` of these programs."""


class MediaSender:
    """Sends by every medium."""

    def __init__(self, permissions: Permissions, read_secret: Callable[[Secret], str | None]) -> None:
        self._permissions = permissions
        self._read_secret = read_secret

    def check(self, notifier: Notifier) -> Sequence[Problem]:
        """Return the problems that keep a notifier from being used here."""
        if notifier.medium is Medium.COMMAND and notifier.command[0] not in self._permissions.programs:
            hint = "the operator of the server names programs that may be run in HOLDFAST_NOTIFY_COMMANDS"
            message = f"{notifier.command[0]!r} is not allowed here"
            return [Problem("spec.command[0]", message, tuple(sorted(self._permissions.programs)), hint=hint)]
        if notifier.medium is Medium.APPRISE and not external.is_installed():
            return [Problem("spec.type", "needs the library Apprise", hint=external.INSTALL)]
        return []

    def send(self, notifier: Notifier, notification: Notification, now: float) -> SendResult:
        """Try once; never raises."""
        try:
            self._send(notifier, notification, now)
        except Undelivered as error:
            return SendResult(str(error), error.final)
        except Exception as error:  # noqa: BLE001 - a defect in one medium must not affect the others
            _log.exception("notifier %s failed", notifier.name)
            return SendResult(f"{type(error).__name__}: {error}")
        return SendResult()

    def _send(self, notifier: Notifier, notification: Notification, now: float) -> None:
        for problem in self.check(notifier):
            msg = f"{problem.message}; {problem.hint}"
            raise Undelivered(msg, final=True)
        limit_s, guard = notifier.timeout_s, self._permissions.guard
        match notifier.medium:
            case Medium.WEBHOOK:
                body = webhook.encoded(payload(notification.report))
                webhook.post(
                    guard, self._url(notifier), self._headers(notifier, notification, body, now), body, limit_s
                )
            case Medium.SLACK:
                body = webhook.encoded({"text": for_slack(text(notification.report))})
                webhook.post(guard, self._url(notifier), {}, body, limit_s)
            case Medium.EMAIL:
                if notifier.mail is not None:
                    password = self._secret(notifier.mail.password) if notifier.mail.password else None
                    mail.send(guard, notifier.mail, password, notification, limit_s)
            case Medium.COMMAND:
                command.run(notifier.command, notification, self._permissions.path, limit_s)
            case Medium.APPRISE:
                external.send(self._url(notifier), notification, limit_s)
            case _:
                assert_never(notifier.medium)

    def _headers(self, notifier: Notifier, notification: Notification, body: bytes, now: float) -> dict[str, str]:
        headers = {"webhook-id": notification.id, "webhook-timestamp": str(int(now))}
        if notifier.signing is not None:
            key = webhook.signing_key(self._secret(notifier.signing))
            headers["webhook-signature"] = webhook.signed(key, notification.id, int(now), body)
        return headers

    def _url(self, notifier: Notifier) -> str:
        return notifier.url if notifier.secret_url is None else self._secret(notifier.secret_url)

    def _secret(self, secret: Secret) -> str:
        value = self._read_secret(secret)
        if not value:
            message = f"{secret} of the server holds no secret"
            raise Undelivered(message)
        return value
