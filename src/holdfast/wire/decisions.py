"""Decisions and their explanations, as the outside sees them."""

from pydantic import Field

from holdfast.wire.base import Response, Timestamp


class LimitView(Response):
    """One limit that was checked."""

    name: str
    used: int
    limit: int | None = None
    """Absent: unlimited."""


class ConsideredView(Response):
    """One rule that was considered."""

    policy: str
    rule: str
    matched: bool
    because: str


class DecisionView(Response):
    """What was decided about one failure, and why."""

    action: str
    """Retry, Fail, Ignore or Hold; of a job of a job set what the set did, such as RestartJobSet."""
    code: str
    """Which check decided: ``retry``, ``fail_policy_limit``, ``fail_global_limit``, ..."""
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
    """Nodes the next attempt is kept off, having been tried on each."""
    memory: str | None = None
    """The next attempt's memory request, when it changes."""
    limits: list[LimitView] = Field(default_factory=list)
    considered: list[ConsideredView] = Field(default_factory=list)


class DecisionEntry(DecisionView):
    """A decision in a list of a job's decisions."""

    attempt: int
    run: str | None = None
    """The run whose failure it is about, where runs are pods; absent for a decision about the whole attempt."""


class FailedPod(Response):
    """How a pod failed, and what was decided about it."""

    run: str
    """Its uid."""
    rank: int
    ended_at: Timestamp | None = None
    cause: str
    failure: str
    """In a few words."""
    decision: DecisionView


class DecisionPage(Response):
    """A job's decisions, by attempt."""

    items: list[DecisionEntry]


class Why(Response):
    """Why a job is where it is."""

    job: str
    """Its id."""
    name: str
    state: str
    submitted_by: str = ""
    """Whose it is."""
    attempt: int | None = None
    """The attempt explained; absent while there is none."""
    headline: str
    summary: list[str]
    """Sentences for people, in order."""
    cause: str | None = None
    category: str | None = None
    subcategory: str | None = None
    hint: str | None = None
    suggestion: str | None = None
    """The action its category suggests."""
    conditions: list[str] = Field(default_factory=list)
    message: str = ""
    error_line: str = ""
    """The line of its output that says what went wrong."""
    exit_code: int | None = None
    signal: int | None = None
    node: str | None = None
    pods: list[FailedPod] = Field(default_factory=list)
    """The last pods of this attempt that failed, the latest last."""
    decision: DecisionView | None = None
