"""What Backend.AI's door answers; fields that are not named here are kept as they were sent."""

from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from holdfast.wire.problems import ProblemEntry

Item = TypeVar("Item")


class BackendAiAnswer(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)


class BackendAiMetadata(BackendAiAnswer):
    """What a session is."""

    creation_id: str
    name: str
    session_type: str
    cluster_size: int
    tag: str | None = None


class BackendAiLifecycle(BackendAiAnswer):
    """What has become of a session."""

    status: str
    result: str
    created_at: datetime
    terminated_at: datetime | None = None
    starts_at: datetime | None = None
    batch_timeout: int | None = None
    """Seconds."""
    status_info: str | None = None


class BackendAiRetry(BackendAiAnswer):
    """What becomes of the failure of a session: attempt N of M, and the next one."""

    state: str
    """``none``, ``pending``, ``retried``, ``exhausted``, ``not_eligible``, ``cancelled`` or ``disabled``."""
    attempt: int
    of: int
    next_attempt_at: datetime | None = None
    next_session_id: UUID | None = None


class BackendAiSession(BackendAiAnswer):
    """A session."""

    id: UUID
    domain_name: str
    project_id: UUID
    user_id: UUID
    metadata: BackendAiMetadata
    lifecycle: BackendAiLifecycle
    retry_policy: dict[str, Any]
    parent_session_id: UUID | None
    retry_count: int
    max_retries: int
    retry_cause: str | None
    retry_chain: list[UUID]
    """The sessions of its chain, oldest first."""
    retry_state: BackendAiRetry


class EnqueuedSession(BackendAiAnswer):
    """A session that was created."""

    session: BackendAiSession
    warnings: list[str] = Field(default_factory=list)


class BackendAiAttempt(BackendAiAnswer):
    """One session of a chain, in short."""

    id: UUID
    attempt: int
    status: str
    result: str
    retry_cause: str | None
    created_at: datetime
    terminated_at: datetime | None
    exit_code: int | None
    """Of its main kernel."""


class EndedSessions(BackendAiAnswer):
    """What was done about each of the sessions to end."""

    cancelled: list[UUID]
    """Those that had not started."""
    terminating: list[UUID]
    force_terminated: list[UUID]
    skipped: list[UUID]
    """Those that had ended, or do not exist."""


class KernelOutput(BackendAiAnswer):
    """The output of a kernel."""

    logs: str


class BackendAiStep(BackendAiAnswer):
    """One step of a session or a kernel."""

    session_id: UUID
    kernel_id: UUID | None = None
    """``None`` for a step of a session."""
    phase: str
    from_status: str | None
    to_status: str | None
    result: str
    error_code: str | None
    message: str | None
    attempts: int
    created_at: datetime
    updated_at: datetime


class BackendAiPage(BackendAiAnswer, Generic[Item]):
    """A part of a list."""

    items: list[Item]
    total_count: int
    has_next_page: bool


class BackendAiRefusal(BaseModel):
    """Why a call was refused."""

    title: str
    error_code: str
    """``domain_operation_detail``."""
    msg: str = ""
    data: list[ProblemEntry] | Any = None
