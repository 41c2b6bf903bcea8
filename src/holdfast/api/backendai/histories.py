"""The scheduling history of sessions and kernels, and the handlers that write it."""

from collections.abc import Mapping
from uuid import UUID

from holdfast.api.backendai.models.histories import (
    KernelHistoryScope,
    KernelHistoryView,
    SchedulingHandlersAnswer,
    SchedulingHandlerView,
    ScopedSearchKernelHistoryRequest,
    SearchKernelHistoryRequest,
    SearchSessionHistoryRequest,
    SessionHistoryView,
)
from holdfast.api.backendai.models.parts import ListAnswer
from holdfast.api.backendai.routing import ROUTES, BackendAiCall
from holdfast.api.backendai.searching import column, condition_of, kernel_status, listed, page_of, result_of
from holdfast.api.backendai.views import kernel_step_view, session_step_view
from holdfast.domain.lifecycle import SESSIONS, EntityKind
from holdfast.ports.sessions import AllOf, AnyOf, Compare, Comparison, Condition, StepField
from holdfast.service.operations.sessions import SessionOperations

PATH = "/v2/scheduling-history"
_ORDERS: Mapping[str, StepField | None] = {
    "created_at": StepField.CREATED_AT,
    "updated_at": StepField.UPDATED_AT,
    "phase": StepField.PHASE,
    "from_status": StepField.FROM_STATUS,
    "to_status": StepField.TO_STATUS,
    "result": StepField.RESULT,
    "attempts": StepField.ATTEMPTS,
}
_READERS = {
    "id": column(StepField.ID),
    "session_id": column(StepField.SESSION_ID),
    "kernel_id": column(StepField.KERNEL_ID),
    "phase": column(StepField.PHASE),
    "from_status": column(StepField.FROM_STATUS),
    "to_status": column(StepField.TO_STATUS),
    "result": column(StepField.RESULT),
    "error_code": column(StepField.ERROR_CODE),
    "message": column(StepField.MESSAGE),
    "created_at": column(StepField.CREATED_AT),
    "updated_at": column(StepField.UPDATED_AT),
}
_KERNEL_READERS = {
    **_READERS,
    "from_status": kernel_status(StepField.FROM_STATUS),
    "to_status": kernel_status(StepField.TO_STATUS),
}


@ROUTES.add("POST", f"{PATH}/sessions/search", "session-history_search")
def search_sessions(call: BackendAiCall, body: SearchSessionHistoryRequest) -> ListAnswer[SessionHistoryView]:
    """Search the history of all sessions that the caller may see."""
    return _search_sessions(call, body)


@ROUTES.add("POST", f"{PATH}/sessions/{{session_id}}/search", "session-history_search")
def search_session(
    call: BackendAiCall, session_id: UUID, body: SearchSessionHistoryRequest
) -> ListAnswer[SessionHistoryView]:
    """Search the history of a session."""
    session = SessionOperations(call.backend).get(call.caller, str(session_id)).session
    return _search_sessions(call, body, Compare(StepField.SESSION_ID, Comparison.EQUALS, session.id))


@ROUTES.add("POST", f"{PATH}/kernels/admin/search", "kernel-history_search")
def search_kernels(call: BackendAiCall, body: SearchKernelHistoryRequest) -> ListAnswer[KernelHistoryView]:
    """Search the history of the kernels of all sessions that the caller may see."""
    return _search_kernels(call, body)


@ROUTES.add("POST", f"{PATH}/kernels/scoped/search", "kernel-history_search")
def search_kernels_of_scope(
    call: BackendAiCall, body: ScopedSearchKernelHistoryRequest
) -> ListAnswer[KernelHistoryView]:
    """Search the history of some kernels."""
    return _search_kernels(call, body, _scope_condition(body.scope))


@ROUTES.add("GET", "/v2/scheduling-handlers", "scheduling-handler_read")
def handlers(_: BackendAiCall) -> SchedulingHandlersAnswer:
    """List what moves sessions from status to status."""
    names = [handler.name for handler in SESSIONS.handlers]
    promotions = [promotion.name for promotion in SESSIONS.promotions]
    return SchedulingHandlersAnswer(
        items=[SchedulingHandlerView(name=name, category="lifecycle", description=None) for name in names + promotions]
    )


def _search_sessions(
    call: BackendAiCall, body: SearchSessionHistoryRequest, within: "Condition | None" = None
) -> ListAnswer[SessionHistoryView]:
    operations = SessionOperations(call.backend)
    where = AllOf((condition_of(body.filter, _READERS), *([] if within is None else [within])))
    page, kind = page_of(body, body.order, _ORDERS), EntityKind.SESSION
    steps = result_of(body, page, lambda part: operations.search_steps(call.caller, kind, where, part))
    return listed(steps, session_step_view)


def _search_kernels(
    call: BackendAiCall, body: SearchKernelHistoryRequest, within: "Condition | None" = None
) -> ListAnswer[KernelHistoryView]:
    operations = SessionOperations(call.backend)
    where = AllOf((condition_of(body.filter, _KERNEL_READERS), *([] if within is None else [within])))
    page, kind = page_of(body, body.order, _ORDERS), EntityKind.KERNEL
    steps = result_of(body, page, lambda part: operations.search_steps(call.caller, kind, where, part))
    return listed(steps, kernel_step_view)


def _scope_condition(scope: KernelHistoryScope) -> Condition:
    pairs = ((StepField.KERNEL_ID, scope.kernel), (StepField.SESSION_ID, scope.session))
    return AnyOf(
        tuple(
            Compare(field, Comparison.IN, tuple(str(item.value) for item in items)) for field, items in pairs if items
        )
    )
