"""Wire models that all kinds of workloads share."""

from pydantic import ConfigDict, Field

from holdfast.wire.base import Response, Timestamp
from holdfast.wire.problems import UnreadableView


class WorkloadView(Response):
    """A workload; fields that only its kind has are kept as received."""

    model_config = ConfigDict(extra="allow")

    id: str
    name: str
    state: str
    """One of the states of its kind."""
    reason: str = ""
    queue: str = ""
    submitted_by: str = ""
    """Its owner."""
    group: str = ""
    created_at: Timestamp


class WorkloadPage(Response):
    """A page of a list, by name."""

    items: list[WorkloadView]
    next_cursor: str | None = None
    unreadable: list[UnreadableView] = Field(default_factory=list)
    """Damaged workloads that this page leaves out; they can be deleted."""


class WorkloadWhy(Response):
    """Why a workload is in its state."""

    id: str
    name: str
    state: str
    headline: str
    summary: list[str] = Field(default_factory=list)
    """Sentences for people."""
