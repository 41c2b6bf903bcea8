"""The queries and mutations: arguments are read as REST reads a request, and answered by the same functions."""

import re
from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias
from uuid import UUID

import strawberry
from graphql import GraphQLError
from strawberry import UNSET, Info
from strawberry.schema.config import StrawberryConfig

from holdfast.api.backendai.graphql.limits import Limits
from holdfast.api.backendai.graphql.nodes import SessionNode
from holdfast.api.backendai.graphql.types import input_type, object_type, read_input
from holdfast.api.backendai.models.session_views import TerminatedSessions
from holdfast.api.backendai.models.sessions import (
    EnqueueRequest,
    SearchSessionsRequest,
    SessionFilterRequest,
    SessionOrder,
    TerminateSessionsRequest,
)
from holdfast.api.backendai.problems import refusal_of
from holdfast.api.backendai.routing import BackendAiCall
from holdfast.api.backendai.searching import cursor_of
from holdfast.api.backendai.sessions import find, launch, of_project, terminate
from holdfast.domain.record import evolve
from holdfast.errors import HoldfastError, InvalidRequest
from holdfast.service.operations.sessions import SessionOperations

if TYPE_CHECKING:
    from holdfast.ports.sessions import Condition

CallInfo: TypeAlias = Info[BackendAiCall, None]
_Filter = Annotated[Any, strawberry.argument(graphql_type=input_type(SessionFilterRequest) | None)]
_OrderBy = Annotated[Any, strawberry.argument(graphql_type=list[input_type(SessionOrder)] | None)]  # type: ignore[misc] # made at run time
_Enqueue = Annotated[Any, strawberry.argument(graphql_type=input_type(EnqueueRequest))]
_Terminate = Annotated[Any, strawberry.argument(graphql_type=input_type(TerminateSessionsRequest))]


_UNDERSCORE = re.compile("_([a-z])")


def _capital(match: re.Match[str]) -> str:
    return match[1].upper()


@contextmanager
def _refusing(scope: str) -> Iterator[None]:
    """Word errors as REST does, with the domain and operation of a call, and with the names of GraphQL."""
    try:
        yield
    except InvalidRequest as error:
        problems = [evolve(problem, path=_UNDERSCORE.sub(_capital, problem.path)) for problem in error.problems]
        raise refusal_of(type(error)(error.message, problems=problems, hint=error.hint), scope) from error
    except HoldfastError as error:
        raise refusal_of(error, scope) from error


@strawberry.type(name="SessionV2Edge", description="A session in a list.")
class SessionEdge:
    """A session in a list."""

    node: SessionNode
    cursor: str


@strawberry.type(description="Where a page is in its list.")
class PageInfo:
    """Where a page is in its list."""

    has_next_page: bool
    has_previous_page: bool
    start_cursor: str | None
    end_cursor: str | None


@strawberry.type(name="SessionV2Connection", description="A page of a list of sessions.")
class SessionConnection:
    """A page of a list of sessions."""

    count: int = strawberry.field(description="How many sessions there are on all pages.")
    edges: list[SessionEdge]
    page_info: PageInfo


@strawberry.input(name="ProjectSessionV2Scope", description="The project whose sessions to list.")
class ProjectScope:
    """The project whose sessions to list."""

    project_id: UUID


@strawberry.type(description="A session that was created.")
class EnqueueSessionPayload:
    """A session that was created."""

    session: SessionNode
    warnings: list[str]


def _list(call: BackendAiCall, within: "Condition | None", **request: Any) -> SessionConnection:  # noqa: ANN401 - of any type
    page = find(call, read_input(SearchSessionsRequest, order=request.pop("order_by"), **request), within)
    edges = [SessionEdge(node=SessionNode(detail=item), cursor=cursor_of(item.session.id)) for item in page.items]
    return SessionConnection(
        count=page.total,
        edges=edges,
        page_info=PageInfo(
            has_next_page=page.has_next,
            has_previous_page=page.has_previous,
            start_cursor=edges[0].cursor if edges else None,
            end_cursor=edges[-1].cursor if edges else None,
        ),
    )


@strawberry.type(name="Query")
class QueryRoot:
    """What can be read."""

    @strawberry.field(name="sessionV2", description="A session.")
    def session(self, info: CallInfo, id: UUID) -> SessionNode:  # noqa: A002 - its name in GraphQL
        """Read a session."""
        with _refusing("session_read"):
            return SessionNode(detail=SessionOperations(info.context.backend).get(info.context.caller, str(id)))

    @strawberry.field(name="adminSessionsV2", description="All sessions that the caller may see.")
    def sessions(  # noqa: PLR0913, PLR0917 - the arguments of lists
        self,
        info: CallInfo,
        filter: _Filter = UNSET,  # noqa: A002 - its name in GraphQL
        order_by: _OrderBy = UNSET,
        first: int | None = UNSET,
        after: str | None = UNSET,
        last: int | None = UNSET,
        before: str | None = UNSET,
        limit: int | None = UNSET,
        offset: int | None = UNSET,
    ) -> SessionConnection:
        """List sessions."""
        request = {name: value for name, value in locals().items() if name not in {"self", "info"}}
        with _refusing("session_search"):
            return _list(info.context, None, **request)

    @strawberry.field(name="projectSessionsV2", description="The sessions of a project.")
    def project_sessions(  # noqa: PLR0913, PLR0917 - as above
        self,
        info: CallInfo,
        scope: ProjectScope,
        filter: _Filter = UNSET,  # noqa: A002 - as above
        order_by: _OrderBy = UNSET,
        first: int | None = UNSET,
        after: str | None = UNSET,
        last: int | None = UNSET,
        before: str | None = UNSET,
        limit: int | None = UNSET,
        offset: int | None = UNSET,
    ) -> SessionConnection:
        """List the sessions of a project."""
        request = {name: value for name, value in locals().items() if name not in {"self", "info", "scope"}}
        with _refusing("session_search"):
            return _list(info.context, of_project(info.context, scope.project_id), **request)


@strawberry.type(name="Mutation")
class MutationRoot:
    """What can be changed; sessions are retried by their policies alone."""

    @strawberry.mutation(description="Create a session.")
    def enqueue_session(self, info: CallInfo, input: _Enqueue) -> EnqueueSessionPayload:  # noqa: A002 - its name in GraphQL
        """Create a session."""
        call = info.context
        with _refusing("session_create"):
            call.door.check_writable()
            stored, created = launch(call, read_input(EnqueueRequest, **vars(input)))
            wait([stored])
            session = created(stored)
        return EnqueueSessionPayload(session=SessionNode(detail=session.detail), warnings=session.warnings)

    @strawberry.mutation(
        name="terminateSessionsV2",
        graphql_type=object_type(TerminatedSessions),
        description="End sessions, and with each what is pending of its chain.",
    )
    def terminate_sessions(self, info: CallInfo, input: _Terminate) -> TerminatedSessions:  # noqa: A002 - as above
        """End sessions."""
        with _refusing("session_terminate"):
            info.context.door.check_writable()
            ended = terminate(info.context, read_input(TerminateSessionsRequest, **vars(input)))
            info.context.door.written()
        return ended


class _Schema(strawberry.Schema):
    def process_errors(self, errors: list[GraphQLError], execution_context: object = None) -> None:
        """Log nothing: an error is in the answer, and one that nobody foresaw is logged there."""


def _read(source: object, name: str) -> object:
    return source[name] if isinstance(source, dict) else getattr(source, name)


SCHEMA = _Schema(QueryRoot, MutationRoot, extensions=[Limits], config=StrawberryConfig(default_resolver=_read))
