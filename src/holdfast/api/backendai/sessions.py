"""Sessions: enqueue, read, search, change and end them, and read their logs."""

from concurrent.futures import Future
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
    TerminateSessionsRequest,
)
from holdfast.api.backendai.routing import ROUTES, BackendAiCall
from holdfast.api.backendai.views import attempt_view, session_view
from holdfast.errors import AlreadyExists
from holdfast.service.operations.sessions import SessionOperations
from holdfast.service.sessions.enqueue import name_taken

PATH = "/v2/sessions"


class LogsQuery(RequestModel):
    """Whose logs to read."""

    kernel_id: UUID | None = None


@ROUTES.add("POST", PATH, "session_create", status=201)
@ROUTES.add("POST", f"{PATH}/enqueue", "session_create", status=201)
def enqueue(call: BackendAiCall, body: EnqueueRequest) -> Future[SessionAnswer]:
    """Create a session; it is stored together with others that arrive at the same time."""
    request = body.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    operations, launches = SessionOperations(call.backend), call.door.launches
    new = operations.read(
        call.caller, request, access_key=call.door.access_key(call.caller), catalogue=launches.snapshot.catalogue()
    )

    def answer(stored: Future[str]) -> SessionAnswer:
        try:
            detail = operations.first(call.caller, stored.result())
        except AlreadyExists as error:
            raise name_taken(body.session_name) from error
        return SessionAnswer(session=session_view(detail), warnings=[*new.warnings])

    answered: Future[SessionAnswer] = call.door.then(launches.launch(call.caller, new.written, new.external), answer)
    return answered


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
