"""E-mail over SMTP."""

from __future__ import annotations

import smtplib
import ssl
from contextlib import ExitStack
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import TYPE_CHECKING

from holdfast.domain.notifications.words import subject, text
from holdfast.domain.notifier import MailSecurity
from holdfast.notify.guard import Deadline, Undelivered, cut_off

if TYPE_CHECKING:
    import socket

    from holdfast.domain.notifications.notification import Notification
    from holdfast.domain.notifier import Mail
    from holdfast.notify.guard import Guard

_LONGEST_SUBJECT = 200
_READY = 220


class _GuardedSmtp(smtplib.SMTP):
    """A connection that goes only where the guard lets it."""

    def __init__(self, guard: Guard, mail: Mail, deadline: Deadline) -> None:
        self._guard, self._mail, self._deadline = guard, mail, deadline
        self._watch = ExitStack()
        super().__init__(timeout=deadline.left_s())
        self._host = mail.host  # whose certificate STARTTLS expects; only a host given to the parent would be kept

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        del timeout
        connection = self._guard.connect(host, port, self._deadline)
        self._watch.enter_context(cut_off(connection, self._deadline))
        if self._mail.security is not MailSecurity.TLS:
            return connection
        return ssl.create_default_context().wrap_socket(connection, server_hostname=host)

    def close(self) -> None:
        """Close the connection."""
        super().close()
        self._watch.close()


def message_of(notification: Notification, mail: Mail) -> EmailMessage:
    """Write the e-mail; its id is the notification's, so that repetitions can be recognized."""
    report = notification.report
    message = EmailMessage()
    message["Subject"] = "".join(c for c in subject(report) if c.isprintable())[:_LONGEST_SUBJECT]
    message["From"] = mail.sender
    message["To"] = ", ".join(mail.recipients)
    message["Date"] = format_datetime(datetime.fromtimestamp(report.at, UTC))
    message["Message-ID"] = f"<{notification.id}@{mail.sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(text(report).replace("\0", "?").encode("utf-8", "replace").decode())
    return message


def send(guard: Guard, mail: Mail, password: str | None, notification: Notification, timeout_s: float) -> None:
    """Send an e-mail.

    Raises:
        Undelivered: The server refused a recipient, or cannot be reached.
    """
    deadline = Deadline(timeout_s)
    try:
        with _GuardedSmtp(guard, mail, deadline) as server:
            code, _ = server.connect(mail.host, mail.port)
            if code != _READY:
                raise smtplib.SMTPConnectError(code, "it is not ready")
            if mail.security is MailSecurity.STARTTLS:
                server.starttls(context=ssl.create_default_context())
            if password is not None:
                server.login(mail.user, password)
            refused = server.send_message(message_of(notification, mail), mail.sender, list(mail.recipients))
    except smtplib.SMTPRecipientsRefused as error:
        msg = f"{mail.host} accepts no mail for {', '.join(error.recipients)}"
        raise Undelivered(msg) from error
    except smtplib.SMTPResponseException as error:
        answer = (
            error.smtp_error.decode("utf-8", "replace") if isinstance(error.smtp_error, bytes) else error.smtp_error
        )
        msg = f"{mail.host} answered {error.smtp_code}: {answer}"
        raise Undelivered(msg) from error
    except ssl.SSLCertVerificationError as error:
        msg = f"the certificate of {mail.host} is not valid: {error.verify_message}"
        raise Undelivered(msg) from error
    except (OSError, smtplib.SMTPException, ValueError) as error:
        if deadline.passed:
            raise deadline.over() from error
        msg = f"the mail server {mail.host} closed the connection: {error}"
        raise Undelivered(msg) from error
    if refused:
        msg = f"{mail.host} accepts no mail for {', '.join(refused)}; the others got it"
        raise Undelivered(msg)
