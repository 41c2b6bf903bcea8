"""The events of sessions' retries; each is also one of the events of the session's job."""

from __future__ import annotations

from holdfast.domain.events.registry import Event, event


@event("session.retry_scheduled")
class SessionRetryScheduled(Event, frozen=True):
    """A session has failed and another one will follow it; none if its policy sets ``emit_retry_events: false``."""

    session_id: str
    """The session that failed."""
    child_id: str
    """The session that will follow it; it exists once the retry is due."""
    child_creation_id: str
    cause: str
    """Why it failed, as policies name it."""
    attempt: int
    """Number of the session that will follow; the first of a chain is 1."""
    of: int
    """How many sessions the chain may have: 1 + ``max_retries``."""
    delay_s: float
    retry_at: float
    """When the retry is due."""


@event("session.retry_exhausted")
class SessionRetryExhausted(Event, frozen=True):
    """A session has failed and was the last that its policy allows; none if that sets ``emit_retry_events: false``."""

    session_id: str
    cause: str
    """Why it failed, as policies name it."""
    attempt: int
    """Number of the session that failed."""
    of: int
    """How many sessions the chain may have: 1 + ``max_retries``."""
