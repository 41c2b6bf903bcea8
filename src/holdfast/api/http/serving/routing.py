"""Serves the endpoints of ``endpoints`` over HTTP: reads a request, calls the endpoint, writes its answer.

The framework checks parameters and describes them in the OpenAPI document by their types and limits. Query parameters
that an endpoint does not have are refused, because a mistyped filter would otherwise list everything. Values with a NUL
are refused, too: no name has one, and not every database accepts one in a query.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, get_args, get_origin

from fastapi import APIRouter, Body, Depends, FastAPI, Header, Path, Query, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException

from holdfast.api.http.endpoints import events
from holdfast.api.http.endpoints.endpoint import Endpoint, Parameter, Reply, groups
from holdfast.api.http.serving.gates import PEER, PRINCIPAL
from holdfast.api.http.serving.memory import require_memory
from holdfast.api.http.serving.streams import EventStream
from holdfast.domain.access import Via
from holdfast.domain.audit import Caller
from holdfast.domain.suggestion import closest
from holdfast.errors import InvalidRequest, Problem
from holdfast.service.manifests.text import Format, Text
from holdfast.service.operations.backend import Backend
from holdfast.service.operations.events import EventLog
from holdfast.wire.base import EncodedJson
from holdfast.wire.events import EVENT_STREAM
from holdfast.wire.problems import PROBLEM_MEDIA_TYPE

_PART_OF_STREAM = 500
_MEANING = {
    401: "No token, or a wrong one.",
    403: "A limit, a policy or a missing right forbids it.",
    404: "Not found.",
    405: "The method is not allowed.",
    409: "The current state does not allow it.",
    413: "The body is too large.",
    415: "The body's media type is not supported.",
    422: "The request is not valid; `errors` lists every problem.",
    500: "A defect of Holdfast.",
    503: "Not available right now; try again.",
}
_ALWAYS = (401, 403, 405, 422, 500, 503)
_PROBLEM = {PROBLEM_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}
_ONE, _MANY = ("application/json", "application/yaml"), ("application/json", "application/yaml", "application/x-ndjson")
_FORMATS = {
    "application/json": Format.JSON,
    "application/yaml": Format.YAML,
    "application/x-yaml": Format.YAML,
    "text/yaml": Format.YAML,
    "text/x-yaml": Format.YAML,
    "application/x-ndjson": Format.LINES,
    "application/jsonl": Format.LINES,
}


def install(app: FastAPI) -> None:
    """Serve every endpoint."""
    for router in routers():
        app.include_router(router)


@cache
def routers() -> Sequence[APIRouter]:
    """Make the routers of all groups, once in a process: it takes a tenth of a second."""
    made_routers = []
    for group in groups():
        router = APIRouter(tags=[group.tag])
        for endpoint in group:
            _add(router, endpoint)
        made_routers.append(router)
    return made_routers


def _add(router: APIRouter, endpoint: Endpoint) -> None:
    settings: dict[str, Any] = {} if endpoint.answer is not None else {"response_class": Response}
    router.add_api_route(
        endpoint.path,
        _read_or_follow_events if endpoint.path == events.PATH else _server_of(endpoint),
        methods=[endpoint.method],
        name=endpoint.name or endpoint.call.__name__,
        summary=endpoint.summary,
        description=inspect.cleandoc(endpoint.call.__doc__ or ""),
        status_code=endpoint.status,
        response_model=endpoint.answer,
        responses=_responses(endpoint),
        openapi_extra=_body(endpoint),
        **settings,
    )


def _server_of(endpoint: Endpoint) -> Callable[..., Response]:
    """Make the function that the framework calls, which has the endpoint's parameters in its signature."""
    # Read in the thread that serves the request: as a dependency, each would take a thread of its own.
    from_request = [
        (parameter.name, _FROM_REQUEST[parameter.source])
        for parameter in endpoint.parameters
        if parameter.source in _FROM_REQUEST
    ]

    def serve(request: Request, **values: Any) -> Response:  # noqa: ANN401 - of each parameter's own type
        return _respond(endpoint, endpoint.call(**values, **{name: read(request) for name, read in from_request}))

    serve.__signature__ = _signature(endpoint)  # type: ignore[attr-defined]  # the framework reads it
    return serve


def _signature(endpoint: Endpoint) -> inspect.Signature:
    declared = inspect.signature(endpoint.call).parameters
    parameters = [
        declared[parameter.name].replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=_annotation(parameter))
        for parameter in endpoint.parameters
        if parameter.source not in _FROM_REQUEST
    ]
    return inspect.Signature([_REQUEST, *parameters])


def _annotation(parameter: Parameter) -> Any:  # noqa: ANN401 - a type
    """Return a parameter's type, annotated with its source for the framework."""
    if parameter.source == "text":
        return Annotated[parameter.type, Depends(_read_text)]
    alias = {"alias": parameter.key.lower()} if parameter.source == "header" else {}
    return Annotated[parameter.type, _PARTS[parameter.source](**parameter.limits, **alias)]


def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend


def _caller(request: Request) -> Caller:
    address = request.client.host if request.client else Via.SOCKET if hasattr(request.state, PEER) else ""
    principal = getattr(request.state, PRINCIPAL, request.app.state.entrance.owner)
    return _backend(request).caller(principal, origin=address, request_id=request.state.request_id)


async def _read_text(request: Request) -> Text:
    media_type = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if media_type not in _FORMATS:
        detail = f"a body of type {media_type!r} is not accepted here; send one of: {', '.join(sorted(_FORMATS))}"
        raise HTTPException(415, detail)
    return Text.of(await request.body(), _FORMATS[media_type])


_REQUEST = inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY, annotation=Request)
_FROM_REQUEST: Mapping[str, Callable[[Request], Any]] = {"backend": _backend, "caller": _caller}
_PARTS: Mapping[str, Callable[..., Any]] = {"body": Body, "path": Path, "query": Query, "header": Header}


def _respond(endpoint: Endpoint, answer: Any) -> Response:  # noqa: ANN401 - whatever it answers
    """Encode an answer without the framework's second validation: lists may be long."""
    if isinstance(answer, EncodedJson):
        return Response(answer, media_type="application/json")
    if isinstance(answer, bytes):
        return Response(answer, media_type=CONTENT_TYPE_LATEST)
    if answer is None:
        return Response(status_code=endpoint.status)
    reply = answer if isinstance(answer, Reply) else Reply(answer)
    require_memory()
    headers = {"Location": reply.location, "ETag": f'"{reply.version}"' if reply.version else None}
    return Response(
        reply.view.model_dump_json(by_alias=True),
        status_code=reply.status or endpoint.status,
        media_type="application/json",
        headers={name: value for name, value in headers.items() if value is not None},
    )


def _responses(endpoint: Endpoint) -> dict[int | str, dict[str, Any]]:
    """Document an endpoint's answers beside its usual one; every endpoint has some refusals."""
    responses: dict[int | str, dict[str, Any]] = {
        status: {"description": _MEANING[status], "content": _PROBLEM}
        for status in sorted({*_ALWAYS, *endpoint.refusals})
    }
    if endpoint.created is not None:
        model, description = endpoint.created
        responses[201] = {"model": model, "description": description}
    if endpoint.path == events.PATH:
        description = "A part of the log; with `Accept: text/event-stream` a stream that does not end."
        responses[200] = {"description": description, "content": {EVENT_STREAM: {"schema": {"type": "string"}}}}
    if endpoint.answer is None and endpoint.status == 200:  # noqa: PLR2004 - OK
        responses[200] = {"content": {"text/plain": {"schema": {"type": "string"}}}}
    return responses


def _body(endpoint: Endpoint) -> dict[str, Any] | None:
    """Document a body that is read as text of one of several types."""
    takes = endpoint.takes
    if takes is None:
        return None
    content = {media_type: {"schema": dict(takes.schema)} for media_type in (_MANY if takes.many else _ONE)}
    return {"requestBody": {"required": True, "description": takes.description, "content": content}}


def _read_or_follow_events(
    request: Request,
    accept: Annotated[str, Header(include_in_schema=False)] = "",
    **values: Any,  # noqa: ANN401 - each its own type
) -> Response:
    """Read a page of events, or follow them."""
    if EVENT_STREAM not in accept:
        return _page_of_events(request=request, **values)
    caller, backend = _caller(request), _backend(request)
    log, listeners = EventLog(backend.store, backend.access), request.app.state.listeners
    where = log.filter(
        caller,
        job=values["job"],
        types=values["type"] or (),
        queue=values["queue"],
        job_set=values["job_set"],
        group=values["group"],
    )
    begin = events.stream_start(values["after"], values["last_event_id"])
    principal = caller.principal
    return EventStream(
        listeners, principal, lambda after: log.part(caller, where, after=after, limit=_PART_OF_STREAM), begin
    )


_EVENTS = next(endpoint for endpoint in events.ENDPOINTS[0] if endpoint.path == events.PATH)
_page_of_events = _server_of(_EVENTS)
_read_or_follow_events.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # the framework reads it
    [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in (
            *_signature(_EVENTS).parameters.values(),
            inspect.signature(_read_or_follow_events).parameters["accept"],
        )
    ]
)


async def known_query_only(request: Request) -> None:
    """Check the names of all query parameters, that only lists repeat, and that no value has a NUL.

    Raises:
        InvalidRequest: With every problem, and the parameters that exist.
    """
    # A coroutine, so that it needs no thread.
    route = request.scope.get("route")
    if not request.query_params or not isinstance(route, APIRoute):
        return
    fields = dict(_query_fields(route.dependant))
    names = [name for name, _ in request.query_params.multi_items()]
    problems = [_unknown(name, fields) for name in dict.fromkeys(names) if name not in fields]
    problems += [
        Problem(f"query.{name}", f"is given {names.count(name)} times", hint="send it once")
        for name in dict.fromkeys(names)
        if name in fields and names.count(name) > 1 and not _is_list(fields[name])
    ]
    problems += [
        Problem(f"query.{name}", "contains a NUL character")
        for name, value in request.query_params.multi_items()
        if "\0" in value and name in fields
    ]
    if problems:
        raise InvalidRequest(problems=problems)


def _query_fields(dependant: Dependant) -> Iterable[tuple[str, object]]:
    """Return the type of each query parameter by its name."""
    yield from ((field.alias, field.field_info.annotation) for field in dependant.query_params)
    for inner in dependant.dependencies:
        yield from _query_fields(inner)


def _unknown(name: str, fields: Iterable[str]) -> Problem:
    allowed = tuple(sorted(fields))
    message = "is not a query parameter of this address" if allowed else "this address takes no query parameters"
    return Problem(f"query.{name}", message, allowed=allowed, hint=closest(name, allowed))


def _is_list(annotation: object) -> bool:
    return any(get_origin(part) is list for part in (annotation, *get_args(annotation)))
