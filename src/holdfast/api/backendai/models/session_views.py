"""What clients are answered about sessions and kernels.

Fields below ``retry_policy`` in ``SessionView`` are Holdfast's (BEP "Native Session Retry", "API surface").
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from holdfast.api.backendai.models.parts import AnswerModel


class SlotEntry(AnswerModel):
    """How much of one resource."""

    resource_type: str
    quantity: str
    """A decimal number; of ``mem``, bytes."""


class Slots(AnswerModel):
    """Amounts of resources."""

    entries: list[SlotEntry]


class Allocation(AnswerModel):
    """Resources that are requested, in use now, and were given."""

    requested: Slots
    used: Slots | None
    allocated: Slots | None


class EnvironmentEntry(AnswerModel):
    """A variable of the environment."""

    key: str
    value: str


class Environment(AnswerModel):
    """Variables of the environment."""

    entries: list[EnvironmentEntry]


class SessionMetadata(AnswerModel):
    """What a session is."""

    creation_id: str
    name: str
    session_type: str
    access_key: str | None
    cluster_mode: str
    cluster_size: int
    tier: int
    priority: int
    job_priority: int
    is_preemptible: bool
    tag: str | None


class SessionResource(AnswerModel):
    """What a session takes."""

    allocation: Allocation
    resource_group_name: str | None


class SessionLifecycle(AnswerModel):
    """What has become of a session."""

    status: str
    result: str
    created_at: datetime
    terminated_at: datetime | None
    starts_at: datetime | None
    batch_timeout: int | None
    status_info: str | None


class SessionRuntime(AnswerModel):
    """What a session runs."""

    environ: Environment | None
    bootstrap_script: str | None
    startup_command: str | None
    callback_url: str | None = None


class SessionNetwork(AnswerModel):
    """The network of a session, which is that of its machines."""

    use_host_network: bool = True
    network_type: str | None = "host"
    network_id: str | None = None


class RetryStateView(AnswerModel):
    """What becomes of the failure of a session: attempt N of M, and the next one."""

    state: str
    attempt: int
    of: int
    next_attempt_at: datetime | None
    next_session_id: UUID | None


class SessionView(AnswerModel):
    """A session."""

    id: UUID
    entity_id: UUID
    image_ids: list[UUID]
    domain_name: str
    user_id: UUID
    project_id: UUID
    metadata: SessionMetadata
    resource: SessionResource
    lifecycle: SessionLifecycle
    runtime: SessionRuntime
    network: SessionNetwork = SessionNetwork()
    replica_id: UUID | None = None
    retry_policy: dict[str, Any]
    parent_session_id: UUID | None
    retry_count: int
    max_retries: int
    retry_cause: str | None
    retry_chain: list[UUID]
    """The sessions of its chain, oldest first."""
    retry_state: RetryStateView


class SessionAnswer(AnswerModel):
    """A session that was created or changed."""

    session: SessionView
    warnings: list[str] = Field(default_factory=list)


class TerminatedSessions(AnswerModel):
    """What was done about each of the sessions to end."""

    cancelled: list[UUID]
    """Those that had not started."""
    terminating: list[UUID]
    force_terminated: list[UUID]
    skipped: list[UUID]
    """Those that had ended, or do not exist."""


class SessionLogs(AnswerModel):
    """The output of a kernel."""

    logs: str


class SessionAttempt(AnswerModel):
    """One session of a chain, in short."""

    id: UUID
    attempt: int
    retry_count: int
    status: str
    result: str
    retry_cause: str | None
    created_at: datetime
    terminated_at: datetime | None
    exit_code: int | None
    """Of its main kernel."""


class KernelSession(AnswerModel):
    """The session of a kernel."""

    session_id: UUID
    creation_id: str
    name: str
    session_type: str


class KernelUser(AnswerModel):
    """The owner of a kernel."""

    user_id: UUID
    access_key: str | None
    domain_name: str
    group_id: UUID


class KernelNetwork(AnswerModel):
    """The ports of a kernel."""

    service_ports: None = None
    preopen_ports: list[int] | None


class KernelCluster(AnswerModel):
    """The place of a kernel among those of its session."""

    cluster_role: str
    cluster_idx: int
    local_rank: int
    cluster_hostname: str


class KernelResource(AnswerModel):
    """What a kernel takes, and where."""

    agent_id: str | None
    resource_group_name: str | None
    container_id: str | None = None
    allocation: Allocation
    shares: Slots = Slots(entries=[])
    resource_opts: None = None


class KernelLifecycle(AnswerModel):
    """What has become of a kernel."""

    status: str
    result: str
    created_at: datetime
    terminated_at: datetime | None
    starts_at: datetime | None
    status_info: str | None
    exit_code: int | None


class KernelView(AnswerModel):
    """A kernel."""

    id: UUID
    field_id: UUID
    image_id: UUID | None
    startup_command: str | None
    session_info: KernelSession
    user_info: KernelUser
    network: KernelNetwork
    cluster: KernelCluster
    resource: KernelResource
    lifecycle: KernelLifecycle
