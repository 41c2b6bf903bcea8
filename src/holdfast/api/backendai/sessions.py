"""Sessions: enqueue, read, search, change and end them, and read their logs."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple
from uuid import UUID

from holdfast.api.backendai.models.parts import ListAnswer, RequestModel
from holdfast.api.backendai.models.session_views import (
    SessionAnswer,
    SessionAttempt,
    SessionLogs,
    SessionView,
    TerminatedSessions,
)
from holdfast.api.backendai.models.sessions import (
    EnqueueRequest,
    ScopedSearchSessionsRequest,
    SearchSessionsRequest,
    SessionScope,
    SessionUsage,
    TerminateSessionsRequest,
    UpdateSessionRequest,
)
from holdfast.api.backendai.routing import ROUTES, BackendAiCall
from holdfast.api.backendai.searching import NOTHING, column, condition_of, constant, listed, named, page_of, result_of
from holdfast.api.backendai.views import attempt_view, session_view
from holdfast.errors import AlreadyExists
from holdfast.ports.sessions import AllOf, AnyOf, Compare, Comparison, Condition, ListPage, SessionField
from holdfast.service.operations.sessions import SessionDetail, SessionOperations
from holdfast.service.sessions.directory import DOMAIN_KIND, IMAGE, PROJECT, RESOURCE_GROUP, USER, Directory
from holdfast.service.sessions.enqueue import name_taken

PATH = "/v2/sessions"
_HOST = "host"
_ORDERS: Mapping[str, SessionField | None] = {
    "created_at": SessionField.CREATED_AT,
    "terminated_at": SessionField.TERMINATED_AT,
    "status": SessionField.STATUS,
    "id": SessionField.ID,
    "name": SessionField.NAME,
    "creation_id": SessionField.CREATION_ID,
    "session_type": SessionField.TYPE,
    "priority": SessionField.PRIORITY,
    "tier": SessionField.PRIORITY,
    "job_priority": SessionField.JOB_PRIORITY,
    "is_preemptible": SessionField.IS_PREEMPTIBLE,
    "cluster_size": SessionField.CLUSTER_SIZE,
    "resource_group_name": SessionField.RESOURCE_GROUP,
    "domain_name": SessionField.DOMAIN,
    "project_id": SessionField.PROJECT,
    "user_id": SessionField.USER,
    "access_key": SessionField.ACCESS_KEY,
    "tag": SessionField.TAG,
    "batch_timeout": SessionField.BATCH_TIMEOUT,
    "starts_at": SessionField.STARTS_AT,
    "result": SessionField.RESULT,
    "use_host_network": None,
    "network_type": None,
    "network_id": None,
    "replica_id": None,
}


class LogsQuery(RequestModel):
    """Whose logs to read."""

    kernel_id: UUID | None = None


class CreatedSession(NamedTuple):
    """A session that was created, and what its request should not have had."""

    detail: SessionDetail
    warnings: list[str]


@ROUTES.add("POST", PATH, "session_create", status=201)
@ROUTES.add("POST", f"{PATH}/enqueue", "session_create", status=201)
def enqueue(call: BackendAiCall, body: EnqueueRequest) -> Future[SessionAnswer]:
    """Create a session; it is stored together with others that arrive at the same time."""
    stored, created = launch(call, body)

    def answer(stored: Future[str]) -> SessionAnswer:
        session = created(stored)
        return SessionAnswer(session=session_view(session.detail), warnings=session.warnings)

    answered: Future[SessionAnswer] = call.door.then(stored, answer)
    return answered


def launch(call: BackendAiCall, body: EnqueueRequest) -> tuple[Future[str], Callable[[Future[str]], CreatedSession]]:
    """Begin to create a session; return the future id of its job, and what reads the session once that is known."""
    request = body.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    operations, launches = SessionOperations(call.backend), call.door.launches
    new = operations.read(
        call.caller, request, access_key=call.door.access_key(call.caller), catalogue=launches.snapshot.catalogue()
    )

    def created(stored: Future[str]) -> CreatedSession:
        try:
            return CreatedSession(operations.first(call.caller, stored.result()), [*new.warnings])
        except AlreadyExists as error:
            raise name_taken(body.session_name) from error

    return launches.launch(call.caller, new.written, new.external), created


@ROUTES.add("GET", f"{PATH}/{{session_id}}", "session_read")
def read(call: BackendAiCall, session_id: UUID) -> SessionView:
    """Read a session."""
    return session_view(SessionOperations(call.backend).get(call.caller, str(session_id)))


@ROUTES.add("GET", f"{PATH}/{{session_id}}/attempts", "session_read")
def attempts(call: BackendAiCall, session_id: UUID) -> ListAnswer[SessionAttempt]:
    """List the sessions of a chain, oldest first, by any of them."""
    operations = SessionOperations(call.backend)
    chain = operations.get(call.caller, str(session_id)).chain
    kernels = operations.kernels_of(call.caller, chain)
    items = [attempt_view(session, kernels.get(session.id, ())) for session in chain]
    return ListAnswer(items=items, total_count=len(items), has_next_page=False, has_previous_page=False)


@ROUTES.add("PATCH", f"{PATH}/{{session_id}}", "session_update")
def update(call: BackendAiCall, session_id: UUID, body: UpdateSessionRequest) -> SessionAnswer:
    """Change the name or the tag of a session."""
    operations = SessionOperations(call.backend)
    return SessionAnswer(
        session=session_view(operations.update(call.caller, str(session_id), name=body.name, tag=body.tag))
    )


@ROUTES.add("POST", f"{PATH}/terminate", "session_terminate")
def terminate(call: BackendAiCall, body: TerminateSessionsRequest) -> TerminatedSessions:
    """End sessions; those that have ended or do not exist are skipped."""
    ended = SessionOperations(call.backend).terminate(call.caller, [*map(str, body.session_ids)])
    terminating = [*map(UUID, ended.terminating)]
    return TerminatedSessions(
        cancelled=[*map(UUID, ended.cancelled)],
        terminating=[] if body.forced else terminating,
        force_terminated=terminating if body.forced else [],
        skipped=[*map(UUID, ended.skipped)],
    )


@ROUTES.add("GET", f"{PATH}/{{session_id}}/logs", "session_read")
def logs(call: BackendAiCall, session_id: UUID, query: LogsQuery) -> SessionLogs:
    """Read the output of a kernel, by default of the main one."""
    kernel = None if query.kernel_id is None else str(query.kernel_id)
    return SessionLogs(logs=SessionOperations(call.backend).logs(call.caller, str(session_id), kernel))


@ROUTES.add("POST", f"{PATH}/search", "session_search")
def search(call: BackendAiCall, body: SearchSessionsRequest) -> ListAnswer[SessionView]:
    """Search among all sessions that the caller may see."""
    return _search(call, body)


@ROUTES.add("POST", f"{PATH}/my/search", "session_search")
def search_own(call: BackendAiCall, body: SearchSessionsRequest) -> ListAnswer[SessionView]:
    """Search among the caller's own sessions."""
    return _search(call, body, Compare(SessionField.USER, Comparison.EQUALS, call.caller.principal.name))


@ROUTES.add("POST", f"{PATH}/projects/{{project_id}}/search", "session_search")
def search_project(call: BackendAiCall, project_id: UUID, body: SearchSessionsRequest) -> ListAnswer[SessionView]:
    """Search among the sessions of a project."""
    return _search(call, body, of_project(call, project_id))


@ROUTES.add("POST", f"{PATH}/agents/{{agent_id}}/search", "session_search")
def search_agent(call: BackendAiCall, agent_id: str, body: SearchSessionsRequest) -> ListAnswer[SessionView]:
    """Search among the sessions that have a kernel on a node."""
    return _search(call, body, Compare(SessionField.NODE, Comparison.EQUALS, agent_id))


@ROUTES.add("POST", f"{PATH}/scoped/search", "session_search")
def search_scope(call: BackendAiCall, body: ScopedSearchSessionsRequest) -> ListAnswer[SessionView]:
    """Search among the sessions of a scope."""
    directory = SessionOperations(call.backend).directory(call.caller)
    return _search(call, body, _scope_condition(body.scope, directory))


def of_project(call: BackendAiCall, project_id: UUID) -> Condition:
    """Return the condition that sessions belong to a project.

    Raises:
        NotFound: There is no such project.
    """
    project = SessionOperations(call.backend).directory(call.caller).project(str(project_id))
    return Compare(SessionField.PROJECT, Comparison.EQUALS, project.name)


def _search(
    call: BackendAiCall, body: SearchSessionsRequest, within: "Condition | None" = None
) -> ListAnswer[SessionView]:
    return listed(find(call, body, within), session_view)


def find(
    call: BackendAiCall, body: SearchSessionsRequest, within: "Condition | None" = None
) -> ListPage[SessionDetail]:
    """Search for sessions, of those that meet a condition."""
    operations = SessionOperations(call.backend)
    directory = operations.directory(call.caller)
    parts = [condition_of(body.filter, _readers(directory)), _usage_condition(body.usage, directory)]
    if within is not None:
        parts.append(within)
    where, page = AllOf(tuple(parts)), page_of(body, body.order, _ORDERS)
    return result_of(body, page, lambda part: operations.search(call.caller, where, part))


def _readers(directory: Directory) -> Mapping[str, Callable[[str, Any], Condition]]:
    """Return what each field of a filter means."""
    return {
        "id": column(SessionField.ID),
        "status": column(SessionField.STATUS),
        "name": column(SessionField.NAME),
        "domain_name": column(SessionField.DOMAIN),
        "project_id": named(SessionField.PROJECT, PROJECT, lambda: directory.projects),
        "user_uuid": named(SessionField.USER, USER, lambda: directory.users),
        "created_at": column(SessionField.CREATED_AT),
        "creation_id": column(SessionField.CREATION_ID),
        "session_type": column(SessionField.TYPE),
        "tier": column(SessionField.PRIORITY),
        "priority": column(SessionField.PRIORITY),
        "job_priority": column(SessionField.JOB_PRIORITY),
        "is_preemptible": column(SessionField.IS_PREEMPTIBLE),
        "cluster_size": column(SessionField.CLUSTER_SIZE),
        "resource_group_name": column(SessionField.RESOURCE_GROUP),
        "access_key": column(SessionField.ACCESS_KEY),
        "tag": column(SessionField.TAG),
        "use_host_network": constant(True),  # noqa: FBT003 - the value of a field
        "batch_timeout": column(SessionField.BATCH_TIMEOUT),
        "starts_at": column(SessionField.STARTS_AT),
        "terminated_at": column(SessionField.TERMINATED_AT),
        "result": column(SessionField.RESULT),
        "network_type": constant(_HOST),
        "network_id": constant(None),
        "replica_id": constant(None),
    }


def _usage_condition(usage: SessionUsage | None, directory: Directory) -> Condition:
    """Return the condition that sessions use all of these, and are used by all of these."""
    parts: list[Condition] = []
    if usage is not None and usage.used_by is not None and usage.used_by.deployment:
        parts.append(NOTHING)
    uses = None if usage is None else usage.uses
    if uses is not None:
        image = named(SessionField.IMAGE, IMAGE, lambda: directory.images)
        group = named(SessionField.RESOURCE_GROUP, RESOURCE_GROUP, lambda: directory.groups)
        parts += [image("equals", id_) for id_ in uses.image or ()]
        parts += [group("equals", id_) for id_ in uses.resource_group or ()]
        parts += [Compare(SessionField.NODE, Comparison.EQUALS, agent) for agent in uses.agent or ()]
    return AllOf(tuple(parts))


def _scope_condition(scope: SessionScope, directory: Directory) -> Condition:
    """Return the condition that sessions belong to any of these."""
    domain = named(SessionField.DOMAIN, DOMAIN_KIND, lambda: directory.domains)
    project = named(SessionField.PROJECT, PROJECT, lambda: directory.projects)
    user = named(SessionField.USER, USER, lambda: directory.users)
    pairs = ((domain, scope.domain), (project, scope.project), (user, scope.user))
    return AnyOf(tuple(reader("in", [item.value for item in items]) for reader, items in pairs if items))
