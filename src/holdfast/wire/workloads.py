"""What is answered about work of any kind, as far as all kinds are alike."""

from pydantic import ConfigDict, Field

from holdfast.wire.base import Response, Timestamp
from holdfast.wire.problems import UnreadableView


class WorkloadView(Response):
    """Work of a kind; what only its kind has is kept as it came."""

    model_config = ConfigDict(extra="allow")

    id: str
    name: str
    state: str
    """One of those of its kind."""
    reason: str = ""
    queue: str = ""
    submitted_by: str = ""
    """Whose it is."""
    group: str = ""
    created_at: Timestamp


class WorkloadPage(Response):
    """A page of a list, by name."""

    items: list[WorkloadView]
    next_cursor: str | None = None
    unreadable: list[UnreadableView] = Field(default_factory=list)
    """What is left out of this page, because it is damaged; it can be deleted."""


class WorkloadWhy(Response):
    """Why it is where it is."""

    id: str
    name: str
    state: str
    headline: str
    summary: list[str] = Field(default_factory=list)
    """Sentences for people."""
