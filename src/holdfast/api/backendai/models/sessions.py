"""What clients ask about sessions."""

from datetime import datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, field_validator, model_validator

from holdfast.api.backendai.models.conditions import (
    MOST_VALUES,
    ChoiceCondition,
    IntegerCondition,
    OrderDirection,
    ScopeItems,
    TextCondition,
    TimeCondition,
    UuidCondition,
    Uuids,
)
from holdfast.api.backendai.models.parts import Paging, RequestModel
from holdfast.domain.sessions.model import SessionType

LONGEST_NAME = 64
_MOST_KERNELS = 10_000
_LONGEST_SCRIPT = 65_536
_LONGEST_VALUE = 131_072
_LONGEST_WORD = 512
_LARGEST = (1 << 31) - 1
_MOST_PORTS = 64
_HIGHEST_PORT = 65_535

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Tag = Annotated[str, Field(max_length=LONGEST_NAME)]
Tier = Annotated[int, Field(ge=0, le=100)]
_Word = Annotated[str, Field(max_length=_LONGEST_WORD)]


class ResourceEntry(RequestModel):
    """How much of one resource each kernel has."""

    resource_type: _Word
    quantity: _Word
    """A decimal number; of ``mem``, bytes."""

    @field_validator("quantity")
    @classmethod
    def _decimal(cls, value: str) -> str:
        try:
            amount = Decimal(value)
        except InvalidOperation:
            amount = Decimal("nan")
        if not amount.is_finite() or amount < 0:
            msg = f"{value!r} is not a decimal number of at least 0"
            raise ValueError(msg)
        return value


class BinarySize(RequestModel):
    """An amount of memory."""

    expr: _Word


class ResourceOptions(RequestModel):
    """Further options of resources."""

    shmem: BinarySize | None = None


class MountItem(RequestModel):
    """A virtual folder to mount."""

    vfolder_id: UUID
    mount_path: _Word | None = None
    permission: Literal["rw", "ro"] | None = None
    subpath: Annotated[str, Field(min_length=1, max_length=_LONGEST_WORD)] | None = None


class BatchOptions(RequestModel):
    """What a batch session runs, and when."""

    startup_command: str = Field(min_length=1, max_length=_LONGEST_SCRIPT)
    starts_at: datetime | None = None
    batch_timeout: int | None = Field(default=None, ge=0, le=_LARGEST, description="Seconds.")

    @field_validator("starts_at", mode="before")
    @classmethod
    def _iso(cls, value: object) -> object:
        if value is not None and not isinstance(value, str):
            msg = "must be a time in ISO 8601"
            raise ValueError(msg)
        return value


class EnqueueRequest(RequestModel):
    """A session to create; ``retry_policy`` is Holdfast's."""

    session_name: Name
    session_type: Literal[SessionType.INTERACTIVE, SessionType.BATCH]
    image_id: UUID
    project_id: UUID
    resource_entries: list[ResourceEntry] = Field(max_length=MOST_VALUES)
    resource_group: _Word | None = None
    resource_group_id: UUID | None = None
    resource_opts: ResourceOptions | None = None
    cluster_mode: Literal["single-node", "multi-node"] = "single-node"
    cluster_size: int = Field(default=1, ge=1, le=_MOST_KERNELS)
    mounts: list[MountItem] | None = Field(default=None, max_length=MOST_VALUES)
    environ: dict[_Word, Annotated[str, Field(max_length=_LONGEST_VALUE)]] | None = None
    preopen_ports: list[Annotated[int, Field(ge=1, le=_HIGHEST_PORT)]] | None = Field(
        default=None, max_length=_MOST_PORTS
    )
    bootstrap_script: str | None = Field(default=None, max_length=_LONGEST_SCRIPT)
    tier: Tier | None = None
    priority: Tier | None = None
    """The old name of ``tier``."""
    job_priority: int = Field(default=0, ge=-_LARGEST - 1, le=_LARGEST)
    is_preemptible: bool = True
    dependencies: Uuids | None = None
    agent_list: list[_Word] | None = Field(default=None, max_length=MOST_VALUES)
    agent_selection_policy: Literal["strict", "preferred"] | None = None
    attach_network: UUID | None = None
    tag: Tag | None = None
    callback_url: _Word | None = None
    batch: BatchOptions | None = None
    owner_id: UUID | None = None
    retry_policy: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _of_its_type(self) -> "EnqueueRequest":
        if self.session_type is SessionType.BATCH and self.batch is None:
            msg = "batch is required for a batch session: it has the startup_command"
            raise ValueError(msg)
        if self.session_type is SessionType.INTERACTIVE and self.batch is not None:
            msg = "batch is not allowed for an interactive session"
            raise ValueError(msg)
        return self


class UpdateSessionRequest(RequestModel):
    """New values of a session; what is left out stays."""

    name: Name | None = None
    tag: Tag | None = None


class TerminateSessionsRequest(RequestModel):
    """Which sessions to end."""

    session_ids: Uuids
    forced: bool = False


class SessionStatusWord(StrEnum):
    """A status as clients filter by it; not every one occurs."""

    PENDING = "PENDING"
    SCHEDULED = "SCHEDULED"
    PREPARING = "PREPARING"
    PULLING = "PULLING"
    PREPARED = "PREPARED"
    CREATING = "CREATING"
    RUNNING = "RUNNING"
    RESTARTING = "RESTARTING"
    RUNNING_DEGRADED = "RUNNING_DEGRADED"
    DEPRIORITIZING = "DEPRIORITIZING"
    RESERVED = "RESERVED"
    PREEMPTED = "PREEMPTED"
    RESCHEDULING = "RESCHEDULING"
    TERMINATING = "TERMINATING"
    TERMINATED = "TERMINATED"
    ERROR = "ERROR"
    CANCELLED = "CANCELLED"


class SessionTypeWord(StrEnum):
    """A type as clients filter by it."""

    INTERACTIVE = "interactive"
    BATCH = "batch"
    INFERENCE = "inference"
    SYSTEM = "system"


class SessionResultWord(StrEnum):
    """A result as clients filter by it."""

    UNDEFINED = "undefined"
    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLED = "cancelled"


class NetworkType(StrEnum):
    """A type of network as clients filter by it."""

    VOLATILE = "volatile"
    PERSISTENT = "persistent"
    HOST = "host"


class SessionFilterRequest(RequestModel):
    """Which sessions to list; all conditions must match."""

    id: UuidCondition | None = None
    status: ChoiceCondition[SessionStatusWord] | None = None
    name: TextCondition | None = None
    domain_name: TextCondition | None = None
    project_id: UuidCondition | None = None
    user_uuid: UuidCondition | None = None
    created_at: TimeCondition | None = None
    creation_id: TextCondition | None = None
    session_type: ChoiceCondition[SessionTypeWord] | None = None
    tier: IntegerCondition | None = None
    priority: IntegerCondition | None = None
    """The old name of ``tier``."""
    job_priority: IntegerCondition | None = None
    is_preemptible: bool | None = None
    cluster_size: IntegerCondition | None = None
    resource_group_name: TextCondition | None = None
    access_key: TextCondition | None = None
    tag: TextCondition | None = None
    use_host_network: bool | None = None
    batch_timeout: IntegerCondition | None = None
    starts_at: TimeCondition | None = None
    terminated_at: TimeCondition | None = None
    result: ChoiceCondition[SessionResultWord] | None = None
    network_type: ChoiceCondition[NetworkType] | None = None
    network_id: TextCondition | None = None
    replica_id: UuidCondition | None = None
    all_of: list["SessionFilterRequest"] | None = Field(default=None, alias="AND", max_length=MOST_VALUES)
    any_of: list["SessionFilterRequest"] | None = Field(default=None, alias="OR", max_length=MOST_VALUES)
    none_of: list["SessionFilterRequest"] | None = Field(default=None, alias="NOT", max_length=MOST_VALUES)


class SessionOrderField(StrEnum):
    """What sessions are ordered by."""

    CREATED_AT = "created_at"
    TERMINATED_AT = "terminated_at"
    STATUS = "status"
    ID = "id"
    NAME = "name"
    CREATION_ID = "creation_id"
    SESSION_TYPE = "session_type"
    PRIORITY = "priority"
    TIER = "tier"
    JOB_PRIORITY = "job_priority"
    IS_PREEMPTIBLE = "is_preemptible"
    CLUSTER_SIZE = "cluster_size"
    RESOURCE_GROUP_NAME = "resource_group_name"
    DOMAIN_NAME = "domain_name"
    PROJECT_ID = "project_id"
    USER_ID = "user_id"
    ACCESS_KEY = "access_key"
    TAG = "tag"
    USE_HOST_NETWORK = "use_host_network"
    BATCH_TIMEOUT = "batch_timeout"
    STARTS_AT = "starts_at"
    RESULT = "result"
    NETWORK_TYPE = "network_type"
    NETWORK_ID = "network_id"
    REPLICA_ID = "replica_id"


class SessionOrder(RequestModel):
    """An order of sessions."""

    field: SessionOrderField
    direction: OrderDirection


class SessionUsers(RequestModel):
    """Who uses the sessions to list."""

    deployment: Uuids | None = None


class SessionUses(RequestModel):
    """What the sessions to list use."""

    image: Uuids | None = None
    agent: list[_Word] | None = Field(default=None, max_length=MOST_VALUES)
    resource_group: Uuids | None = None


class SessionUsage(RequestModel):
    """What sessions have to do with other things; every id must match."""

    used_by: SessionUsers | None = None
    uses: SessionUses | None = None


class SearchSessionsRequest(Paging):
    """A search among sessions."""

    usage: SessionUsage | None = None
    filter: SessionFilterRequest | None = None
    order: list[SessionOrder] | None = Field(default=None, max_length=len(SessionOrderField))


class SessionScope(RequestModel):
    """Where to search for sessions: in any of these."""

    domain: ScopeItems | None = None
    project: ScopeItems | None = None
    user: ScopeItems | None = None

    @model_validator(mode="after")
    def _required(self) -> "SessionScope":
        if not (self.domain or self.project or self.user):
            msg = "name at least one domain, project or user"
            raise ValueError(msg)
        return self


class ScopedSearchSessionsRequest(SearchSessionsRequest):
    """A search among the sessions of a scope."""

    scope: SessionScope
