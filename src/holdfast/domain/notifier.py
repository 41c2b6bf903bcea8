"""Notifiers, and who is notified about what; secrets are referred to by name."""

from __future__ import annotations

from enum import StrEnum

from holdfast.domain.record import Struct

DEFAULT_TIMEOUT_S = 10.0
SECRET_PREFIX = "HOLDFAST_SECRET_"  # noqa: S105 - how names of variables begin
"""Begins the names of variables with secrets: a notifier must not read others from the server's environment."""


class Occasion(StrEnum):
    """What users can be notified about."""

    END = "end"
    """It has ended in any way."""
    FAILURE = "failure"
    """It has failed for good."""
    HOLD = "hold"
    """It is held until somebody releases it."""
    STALL = "stall"
    """The first attempt of a job that was ended because it was silent for too long."""
    RECOVERY = "recovery"
    """It succeeded after at least one failed attempt."""
    RETRY = "retry"
    """A session of Backend.AI's users has failed and will be retried."""
    EXHAUSTED = "exhausted"
    """A session of Backend.AI's users has failed and was the last that its retry policy allows."""


DEFAULT_OCCASIONS = (Occasion.END, Occasion.HOLD)
"""It has ended, or does not continue by itself."""


class Notify(Struct, frozen=True):
    """A notifier, and the occasions it is notified about."""

    to: str
    """Name of a notifier."""
    on: tuple[Occasion, ...] = DEFAULT_OCCASIONS


class Medium(StrEnum):
    """How a notifier delivers."""

    WEBHOOK = "webhook"
    """A signed POST as specified by https://www.standardwebhooks.com."""
    SLACK = "slack"
    """A POST of ``{"text": ...}`` to an incoming webhook of Slack, Mattermost, Rocket.Chat or others."""
    EMAIL = "email"
    COMMAND = "command"
    """A program on the server's machine that its operator has allowed."""
    APPRISE = "apprise"
    """Any service that the library Apprise supports, by its URL."""


class MailSecurity(StrEnum):
    """How the connection to a mail server is secured."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


class Secret(Struct, frozen=True):
    """Where a secret is kept; exactly one of the two is set."""

    env: str = ""
    """A variable in the server's environment; its name begins with ``SECRET_PREFIX``."""
    file: str = ""
    """The name of a file in the server's folder of secrets."""

    def __str__(self) -> str:
        return f"variable {self.env}" if self.env else f"file {self.file}"


class Mail(Struct, frozen=True):
    """How e-mail is sent."""

    host: str
    sender: str
    recipients: tuple[str, ...]
    port: int = 587
    security: MailSecurity = MailSecurity.STARTTLS
    user: str = ""
    password: Secret | None = None


class Notifier(Struct, frozen=True):
    """A named destination of notifications."""

    name: str
    medium: Medium
    url: str = ""
    """The URL of a webhook; empty if it is a secret."""
    secret_url: Secret | None = None
    """A URL that is itself a secret, like Slack's and Apprise's."""
    signing: Secret | None = None
    """The key that webhooks are signed with: ``whsec_`` and base64."""
    command: tuple[str, ...] = ()
    mail: Mail | None = None
    timeout_s: float = DEFAULT_TIMEOUT_S
    """For one delivery attempt as a whole."""
