"""What jobs made of pods show of them, by themselves and in a job set: counts, indexes and conditions."""

from pydantic import Field

from holdfast.wire.base import Response, Timestamp


class ConditionView(Response):
    """One condition of a job or a job set; reasons and messages are Kubernetes' own, word for word."""

    type: str
    """``Complete``, ``Failed``, ``FailureTarget``, ``Suspended``, ...; of a set ``Completed``, ``RestartingJobSet``."""
    status: bool
    reason: str
    message: str
    since: Timestamp


class PodsView(Response):
    """The pods of one job in its current attempt."""

    parallelism: int | None = None
    """How many may run at once."""
    completions: int | None = None
    """How many must succeed; absent: a work queue, over when one has succeeded and all have ended."""
    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    """Being stopped."""
    restarts: int = 0
    """How often programs were restarted in pods that have not ended."""
    completed_indexes: str = ""
    """Completion indexes as Kubernetes writes them: ``0-2,5``."""
    failed_indexes: str = ""
    suspended: bool = False
    conditions: list[ConditionView] = Field(default_factory=list)
