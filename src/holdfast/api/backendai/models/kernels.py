"""What clients ask about kernels."""

from enum import StrEnum

from pydantic import Field

from holdfast.api.backendai.models.conditions import MOST_VALUES, ChoiceCondition, OrderDirection, UuidCondition
from holdfast.api.backendai.models.parts import Paging, RequestModel


class KernelStatusWord(StrEnum):
    """A status as clients filter by it; not every one occurs."""

    PENDING = "PENDING"
    RESERVED = "RESERVED"
    SCHEDULED = "SCHEDULED"
    PREPARING = "PREPARING"
    PREPARED = "PREPARED"
    CREATING = "CREATING"
    RUNNING = "RUNNING"
    TERMINATING = "TERMINATING"
    TERMINATED = "TERMINATED"
    CANCELLED = "CANCELLED"


class KernelFilterRequest(RequestModel):
    """Which kernels to list; all conditions must match."""

    id: UuidCondition | None = None
    session_id: UuidCondition | None = None
    status: ChoiceCondition[KernelStatusWord] | None = None
    all_of: list["KernelFilterRequest"] | None = Field(default=None, alias="AND", max_length=MOST_VALUES)
    any_of: list["KernelFilterRequest"] | None = Field(default=None, alias="OR", max_length=MOST_VALUES)
    none_of: list["KernelFilterRequest"] | None = Field(default=None, alias="NOT", max_length=MOST_VALUES)


class KernelOrderField(StrEnum):
    """What kernels are ordered by."""

    CLUSTER_IDX = "cluster_idx"
    CREATED_AT = "created_at"
    TERMINATED_AT = "terminated_at"
    STATUS = "status"
    CLUSTER_MODE = "cluster_mode"
    CLUSTER_HOSTNAME = "cluster_hostname"


class KernelOrder(RequestModel):
    """An order of kernels."""

    field: KernelOrderField
    direction: OrderDirection = OrderDirection.DESC


class SearchKernelsRequest(Paging):
    """A search among kernels."""

    filter: KernelFilterRequest | None = None
    order: list[KernelOrder] | None = Field(default=None, max_length=len(KernelOrderField))
