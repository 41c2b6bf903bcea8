"""What clients ask about the scheduling history of sessions and kernels, and what they are answered."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from pydantic import Field, model_validator

from holdfast.api.backendai.models.conditions import (
    MOST_VALUES,
    ChoiceCondition,
    OrderDirection,
    ScopeItems,
    TextCondition,
    Texts,
    TimeCondition,
    UuidCondition,
)
from holdfast.api.backendai.models.parts import AnswerModel, Paging, RequestModel


class SchedulingResult(StrEnum):
    """The outcome of a step as clients filter by it."""

    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"
    STALE = "STALE"
    NEED_RETRY = "NEED_RETRY"
    EXPIRED = "EXPIRED"
    GIVE_UP = "GIVE_UP"
    SKIPPED = "SKIPPED"


class SessionHistoryFilterRequest(RequestModel):
    """Which steps of sessions to list; all conditions must match."""

    id: UuidCondition | None = None
    session_id: UuidCondition | None = None
    phase: TextCondition | None = None
    from_status: Texts | None = None
    to_status: Texts | None = None
    result: ChoiceCondition[SchedulingResult] | None = None
    error_code: TextCondition | None = None
    message: TextCondition | None = None
    created_at: TimeCondition | None = None
    updated_at: TimeCondition | None = None
    all_of: list["SessionHistoryFilterRequest"] | None = Field(default=None, alias="AND", max_length=MOST_VALUES)
    any_of: list["SessionHistoryFilterRequest"] | None = Field(default=None, alias="OR", max_length=MOST_VALUES)
    none_of: list["SessionHistoryFilterRequest"] | None = Field(default=None, alias="NOT", max_length=MOST_VALUES)


class SessionHistoryOrderField(StrEnum):
    """What steps of sessions are ordered by."""

    CREATED_AT = "created_at"
    UPDATED_AT = "updated_at"


class SessionHistoryOrder(RequestModel):
    """An order of steps of sessions."""

    field: SessionHistoryOrderField
    direction: OrderDirection = OrderDirection.DESC


class SearchSessionHistoryRequest(Paging):
    """A search among the steps of sessions."""

    filter: SessionHistoryFilterRequest | None = None
    order: list[SessionHistoryOrder] | None = Field(default=None, max_length=len(SessionHistoryOrderField))


class KernelHistoryFilterRequest(RequestModel):
    """Which steps of kernels to list; all conditions must match."""

    id: UuidCondition | None = None
    kernel_id: UuidCondition | None = None
    session_id: UuidCondition | None = None
    phase: TextCondition | None = None
    from_status: Texts | None = None
    to_status: Texts | None = None
    result: ChoiceCondition[SchedulingResult] | None = None
    error_code: TextCondition | None = None
    message: TextCondition | None = None
    created_at: TimeCondition | None = None
    updated_at: TimeCondition | None = None
    all_of: list["KernelHistoryFilterRequest"] | None = Field(default=None, alias="AND", max_length=MOST_VALUES)
    any_of: list["KernelHistoryFilterRequest"] | None = Field(default=None, alias="OR", max_length=MOST_VALUES)
    none_of: list["KernelHistoryFilterRequest"] | None = Field(default=None, alias="NOT", max_length=MOST_VALUES)


class KernelHistoryOrderField(StrEnum):
    """What steps of kernels are ordered by."""

    CREATED_AT = "created_at"
    UPDATED_AT = "updated_at"
    PHASE = "phase"
    FROM_STATUS = "from_status"
    TO_STATUS = "to_status"
    RESULT = "result"
    ATTEMPTS = "attempts"


class KernelHistoryOrder(RequestModel):
    """An order of steps of kernels."""

    field: KernelHistoryOrderField
    direction: OrderDirection = OrderDirection.DESC


class SearchKernelHistoryRequest(Paging):
    """A search among the steps of kernels."""

    filter: KernelHistoryFilterRequest | None = None
    order: list[KernelHistoryOrder] | None = Field(default=None, max_length=len(KernelHistoryOrderField))


class KernelHistoryScope(RequestModel):
    """Whose steps to search: those of any of these."""

    kernel: ScopeItems | None = None
    session: ScopeItems | None = None

    @model_validator(mode="after")
    def _required(self) -> "KernelHistoryScope":
        if not (self.kernel or self.session):
            msg = "name at least one kernel or session"
            raise ValueError(msg)
        return self


class ScopedSearchKernelHistoryRequest(SearchKernelHistoryRequest):
    """A search among the steps of the kernels of a scope."""

    scope: KernelHistoryScope


class SubStepView(AnswerModel):
    """A part of a step."""

    step: str
    result: str
    error_code: str | None
    message: str | None
    started_at: datetime
    ended_at: datetime


class HistoryView(AnswerModel):
    """One step of a session or a kernel; equal steps that follow each other are one, with their number."""

    id: UUID
    field_id: UUID
    session_id: UUID
    phase: str
    from_status: str | None
    to_status: str | None
    result: str
    error_code: str | None
    message: str | None
    attempts: int
    created_at: datetime
    updated_at: datetime


class SessionHistoryView(HistoryView):
    """One step of a session."""

    sub_steps: list[SubStepView] = Field(default_factory=list)


class KernelHistoryView(HistoryView):
    """One step of a kernel."""

    kernel_id: UUID


class SchedulingHandlerView(AnswerModel):
    """One of the handlers that move sessions from status to status."""

    name: str
    category: str
    description: str | None


class SchedulingHandlersAnswer(AnswerModel):
    """The handlers that move sessions from status to status."""

    items: list[SchedulingHandlerView]
