"""What clients ask about sessions."""

from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, field_validator, model_validator

from holdfast.api.backendai.models.parts import RequestModel
from holdfast.domain.sessions.model import SessionType

LONGEST_NAME = 64
MOST_VALUES = 1000
"""Values of one list."""
_MOST_KERNELS = 10_000
_LONGEST_SCRIPT = 65_536
_LONGEST_VALUE = 131_072
_LONGEST_WORD = 512
_LARGEST = (1 << 31) - 1
_MOST_PORTS = 64
_HIGHEST_PORT = 65_535

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Tag = Annotated[str, Field(max_length=LONGEST_NAME)]
Uuids = Annotated[list[UUID], Field(max_length=MOST_VALUES)]
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


class TerminateSessionsRequest(RequestModel):
    """Which sessions to end."""

    session_ids: Uuids
    forced: bool = False
