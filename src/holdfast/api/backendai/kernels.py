"""Kernels: search them."""

from collections.abc import Mapping
from uuid import UUID

from holdfast.api.backendai.models.kernels import SearchKernelsRequest
from holdfast.api.backendai.models.parts import ListAnswer
from holdfast.api.backendai.models.session_views import KernelView
from holdfast.api.backendai.routing import ROUTES, BackendAiCall
from holdfast.api.backendai.searching import column, condition_of, kernel_status, listed, page_of, result_of
from holdfast.api.backendai.sessions import PATH
from holdfast.api.backendai.views import kernel_view
from holdfast.ports.sessions import AllOf, Compare, Comparison, Condition, KernelField
from holdfast.service.operations.sessions import SessionOperations

_ORDERS: Mapping[str, KernelField | None] = {
    "cluster_idx": KernelField.RANK,
    "created_at": KernelField.CREATED_AT,
    "terminated_at": KernelField.TERMINATED_AT,
    "status": KernelField.STATUS,
    "cluster_hostname": KernelField.RANK,
    "cluster_mode": None,
}
_READERS = {
    "id": column(KernelField.ID),
    "session_id": column(KernelField.SESSION_ID),
    "status": kernel_status(KernelField.STATUS),
}


@ROUTES.add("POST", f"{PATH}/kernels/search", "kernel_search")
def search(call: BackendAiCall, body: SearchKernelsRequest) -> ListAnswer[KernelView]:
    """Search among the kernels of all sessions that the caller may see."""
    return _search(call, body)


@ROUTES.add("POST", f"{PATH}/kernels/agents/{{agent_id}}/search", "kernel_search")
def search_agent(call: BackendAiCall, agent_id: str, body: SearchKernelsRequest) -> ListAnswer[KernelView]:
    """Search among the kernels on a node."""
    return _search(call, body, Compare(KernelField.NODE, Comparison.EQUALS, agent_id))


@ROUTES.add("POST", f"{PATH}/{{session_id}}/kernels/search", "kernel_search")
def search_session(call: BackendAiCall, session_id: UUID, body: SearchKernelsRequest) -> ListAnswer[KernelView]:
    """Search among the kernels of a session."""
    session = SessionOperations(call.backend).get(call.caller, str(session_id)).session
    return _search(call, body, Compare(KernelField.SESSION_ID, Comparison.EQUALS, session.id))


def _search(
    call: BackendAiCall, body: SearchKernelsRequest, within: "Condition | None" = None
) -> ListAnswer[KernelView]:
    operations = SessionOperations(call.backend)
    where = AllOf((condition_of(body.filter, _READERS), *([] if within is None else [within])))
    page = page_of(body, body.order, _ORDERS)
    return listed(result_of(body, page, lambda part: operations.search_kernels(call.caller, where, part)), kernel_view)
