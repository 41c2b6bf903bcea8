"""Who wants to be notified of what, where and how; secrets in it are named, never written."""

from __future__ import annotations

from enum import StrEnum

from holdfast.domain.record import Struct

DEFAULT_TIMEOUT_S = 10.0
SECRET_PREFIX = "HOLDFAST_SECRET_"  # noqa: S105 - how names of variables begin
"""Of the variables that may hold secrets: a notifier must not read any other of the server's environment."""


class Occasion(StrEnum):
    """What users can be notified about."""

    END = "end"
    """It has ended, however."""
    FAILURE = "failure"
    """It has failed for good."""
    HOLD = "hold"
    """It waits until somebody releases it."""
    STALL = "stall"
    """An attempt was ended because it was silent for too long; told for a job's first."""
    RECOVERY = "recovery"
    """It succeeded after at least one failed attempt."""


DEFAULT_OCCASIONS = (Occasion.END, Occasion.HOLD)
"""It does not go on by itself any more."""


class Notify(Struct, frozen=True):
    """Who is notified, and about what."""

    to: str
    """Name of a notifier."""
    on: tuple[Occasion, ...] = DEFAULT_OCCASIONS


class Medium(StrEnum):
    """How a notifier delivers."""

    WEBHOOK = "webhook"
    """POST as https://www.standardwebhooks.com says, signed."""
    SLACK = "slack"
    """POST of ``{"text": ...}`` to an incoming webhook: Slack, Mattermost, Rocket.Chat and others."""
    EMAIL = "email"
    COMMAND = "command"
    """A program of the server's machine that its operator allowed."""
    APPRISE = "apprise"
    """Whatever the library Apprise knows, by its URL."""


class MailSecurity(StrEnum):
    """How a mail server is contacted."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


class Secret(Struct, frozen=True):
    """Where a secret is; one of the two is set."""

    env: str = ""
    """A variable of the server's, whose name begins with ``SECRET_PREFIX``."""
    file: str = ""
    """A file's name in the server's folder of secrets."""

    def __str__(self) -> str:
        """Name it, for people."""
        return f"variable {self.env}" if self.env else f"file {self.file}"


class Mail(Struct, frozen=True):
    """How an e-mail is sent."""

    host: str
    sender: str
    recipients: tuple[str, ...]
    port: int = 587
    security: MailSecurity = MailSecurity.STARTTLS
    user: str = ""
    password: Secret | None = None


class Notifier(Struct, frozen=True):
    """One place to which notifications are sent, by its name."""

    name: str
    medium: Medium
    url: str = ""
    """Of a webhook; empty where it is a secret."""
    secret_url: Secret | None = None
    """A URL that is a secret as a whole, as Slack's and Apprise's are."""
    signing: Secret | None = None
    """What a webhook is signed with: ``whsec_`` and base64."""
    command: tuple[str, ...] = ()
    mail: Mail | None = None
    timeout_s: float = DEFAULT_TIMEOUT_S
    """For one try as a whole."""
