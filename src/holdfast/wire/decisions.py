"""Wire models of decisions and their explanations."""

from pydantic import Field

from holdfast.wire.base import Response, Timestamp


class LimitView(Response):
    """One limit that was checked."""

    name: str
    used: int
    limit: int | None = None
    """Absent if unlimited."""


class ConsideredView(Response):
    """One rule that was considered."""

    policy: str
    rule: str
    matched: bool
    because: str


class DecisionView(Response):
    """The decision on one failure, with its reasons."""

    action: str
    """Retry, Fail, Ignore or Hold; for a job of a job set the set's action, such as RestartJobSet."""
    code: str
    """The check that decided: ``retry``, ``fail_policy_limit``, ``fail_global_limit``, ..."""
    policy: str | None = None
    rule: str | None = None
    policy_revision: int | None = None
    reason: str
    delay_s: float = 0.0
    delay_because: str = ""
    """How the delay was computed."""
    retry_at: Timestamp | None = None
    avoid_node: str | None = None
    avoid_devices: list[str] = Field(default_factory=list)
    """GPUs the next attempt avoids, each as ``<id>@<node>``."""
    avoid_nodes: list[str] = Field(default_factory=list)
    """Nodes that the next attempt avoids, having been tried on each."""
    memory: str | None = None
    """The next attempt's memory request, if it changes."""
    limits: list[LimitView] = Field(default_factory=list)
    considered: list[ConsideredView] = Field(default_factory=list)


class DecisionEntry(DecisionView):
    """A decision in the list of a job's decisions."""

    attempt: int
    run: str | None = None
    """The run whose failure it is about, if runs are pods; absent for a decision on the whole attempt."""


class FailedPod(Response):
    """How a pod failed, and the decision on it."""

    run: str
    """The pod's uid."""
    rank: int
    ended_at: Timestamp | None = None
    cause: str
    failure: str
    """A short description of the failure."""
    decision: DecisionView


class DecisionPage(Response):
    """A job's decisions, by attempt."""

    items: list[DecisionEntry]


class Why(Response):
    """Why a job is in its state."""

    job: str
    """The job's id."""
    name: str
    state: str
    submitted_by: str = ""
    """The job's owner."""
    attempt: int | None = None
    """The attempt explained; absent if there is none."""
    headline: str
    summary: list[str]
    """Sentences for people, in order."""
    cause: str | None = None
    category: str | None = None
    subcategory: str | None = None
    hint: str | None = None
    suggestion: str | None = None
    """The action that its category suggests."""
    conditions: list[str] = Field(default_factory=list)
    message: str = ""
    error_line: str = ""
    """The line of its output that tells what went wrong."""
    exit_code: int | None = None
    signal: int | None = None
    node: str | None = None
    pods: list[FailedPod] = Field(default_factory=list)
    """The last failed pods of this attempt, the latest last."""
    decision: DecisionView | None = None
