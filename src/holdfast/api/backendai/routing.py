"""The calls of the door: what each is found by, what it takes, and the function that answers it.

A module registers a function for a method and a path::

    @ROUTES.add("PATCH", "/v2/sessions/{session_id}", "session_update")
    def update(call: BackendAiCall, session_id: UUID, body: UpdateSession) -> UpdatedSession: ...

Its arguments are the call, the parts of the path by name, and, if it has them, the pydantic models of the body
(``body``) and of the query (``query``). It runs in a thread of the door, and may return a future answer.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar, get_type_hints
from urllib.parse import parse_qsl, unquote

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from holdfast.domain.audit import Caller
from holdfast.domain.record import Struct
from holdfast.errors import InvalidRequest, Problem
from holdfast.service.operations.backend import Backend
from holdfast.wire.problems import invalid

BODY, QUERY = "body", "query"
_MOST_PARAMETERS = 64
_LONGEST_QUERY = 8_192
_READING = frozenset({"read", "search"})
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
"""The escape of a NUL in JSON, which not every database accepts in a text."""
_HAS_NUL = "a text has a NUL character; leave it out"
_STRICT = ConfigDict(extra="forbid")


def refuse_nul(text: bytes | bytearray) -> None:
    """Refuse JSON that has a NUL in a text.

    Raises:
        InvalidRequest: It has.
    """
    if _NUL.search(text):
        raise InvalidRequest(problems=[Problem("", _HAS_NUL)])


class BackendAiCall(Struct, frozen=True):
    """A call as the function that answers it sees it: the caller, and what to answer with."""

    backend: Backend
    caller: Caller
    door: Any = None
    """What the functions of the door share beside the backend."""


Answer = BaseModel | None
Handler = Callable[..., Answer | Future[Any]]
H = TypeVar("H", bound=Handler)


class BackendAiRoute(Struct, frozen=True):
    """One call."""

    method: str
    path: str
    """A template such as ``/v2/sessions/{session_id}``."""
    scope: str
    """The domain and operation in the codes of its errors, such as ``session_read``."""
    status: int
    handler: Handler
    body: type[BaseModel] | None
    query: type[BaseModel]
    parts: type[BaseModel]
    """The parts of the path that are parameters."""

    @property
    def reads(self) -> bool:
        """Whether it changes nothing."""
        return self.scope.partition("_")[2] in _READING

    def arguments(self, parts: Mapping[str, str], query: bytes, body: bytes | bytearray) -> dict[str, Any]:
        """Read the arguments of a call from its request.

        Raises:
            InvalidRequest: They are not valid; the query is too long, or a text has a NUL.
        """
        refuse_nul(body)
        if any("\0" in part for part in parts.values()):
            raise InvalidRequest(problems=[Problem("", _HAS_NUL)])
        problems: list[Mapping[str, Any]] = []
        path = _checked(problems, "path", self.parts.model_validate, parts)
        queried = _checked(problems, QUERY, self.query.model_validate, _read_query(query))
        text = bytes(body) or b"{}"
        content = None if self.body is None else _checked(problems, BODY, self.body.model_validate_json, text)
        if problems:
            raise invalid(problems)
        models = {QUERY: queried if self.query.model_fields else None, BODY: content}
        return {**dict(path or ()), **{name: model for name, model in models.items() if model is not None}}


def _checked(
    problems: list[Mapping[str, Any]], place: str, check: Callable[[Any], BaseModel], value: object
) -> BaseModel | None:
    """Check a part of a request; what is wrong with it is added to the problems."""
    try:
        return check(value)
    except ValidationError as error:
        problems += [{**problem, "loc": (place, *problem["loc"])} for problem in error.errors(include_url=False)]
        return None


class BackendAiRoutes:
    """The calls, by path and method."""

    def __init__(self) -> None:
        self._by_path: dict[str, dict[str, BackendAiRoute]] = {}
        self._templates: list[tuple[Sequence[str], Mapping[str, BackendAiRoute]]] = []

    def __iter__(self) -> Iterator[BackendAiRoute]:
        return (route for routes in self._by_path.values() for route in routes.values())

    def add(self, method: str, path: str, scope: str, *, status: int = 200) -> Callable[[H], H]:
        """Register the function that answers a call.

        Args:
            method: The HTTP method.
            path: The path; a part in braces is an argument of the function.
            scope: The domain and operation in the codes of errors, such as ``session_read``.
            status: The HTTP status of answers.
        """

        def register(handler: H) -> H:
            hints, name = get_type_hints(handler), getattr(handler, "__name__", path)
            names = [part[1:-1] for part in path.split("/") if part[:1] == "{"]
            fields: dict[str, Any] = {part: (hints[part], ...) for part in names}
            parts = create_model(f"{name}_path", __config__=_STRICT, **fields)
            query = hints.get(QUERY) or create_model(f"{name}_query", __config__=_STRICT)
            if path not in self._by_path:
                self._by_path[path] = {}
                if fields:
                    self._templates.append((path.split("/"), self._by_path[path]))
            self._by_path[path][method] = BackendAiRoute(
                method, path, scope, status, handler, hints.get(BODY), query, parts
            )
            return handler

        return register

    def matching(self, path: str) -> Mapping[str, tuple[BackendAiRoute, Mapping[str, str]]]:
        """Return the routes of a raw path by method, each with the parts of the path; an exact path comes first."""
        routes: dict[str, tuple[BackendAiRoute, Mapping[str, str]]] = {}
        if "{" not in path:
            routes = {method: (route, {}) for method, route in self._by_path.get(path, {}).items()}
        pieces = path.split("/")
        for template, by_method in self._templates:
            parts = _parts(template, pieces)
            if parts is not None:
                for method, route in by_method.items():
                    routes.setdefault(method, (route, parts))
        return routes


ROUTES = BackendAiRoutes()
"""The calls of the door."""


def _parts(template: Sequence[str], pieces: Sequence[str]) -> Mapping[str, str] | None:
    """Return the parts of a path that a template names; ``None`` if the path does not match."""
    if len(template) != len(pieces):
        return None
    parts = {}
    for expected, piece in zip(template, pieces, strict=True):
        if expected[:1] == "{" and piece:
            parts[expected[1:-1]] = unquote(piece)
        elif expected != piece:
            return None
    return parts


def _read_query(query: bytes) -> Mapping[str, str | list[str]]:
    """Return the parameters of a query; one that is repeated is a list.

    Raises:
        InvalidRequest: It is too long, or has a NUL.
    """
    if len(query) > _LONGEST_QUERY:
        msg = f"the query is longer than {_LONGEST_QUERY} bytes"
        raise InvalidRequest(problems=[Problem(QUERY, msg)])
    parameters: dict[str, str | list[str]] = {}
    try:
        pairs = parse_qsl(query.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
    except ValueError as error:
        msg = f"the query has more than {_MOST_PARAMETERS} parameters"
        raise InvalidRequest(problems=[Problem(QUERY, msg)]) from error
    for name, value in pairs:
        if "\0" in f"{name}{value}":
            raise InvalidRequest(problems=[Problem(QUERY, _HAS_NUL)])
        before = parameters.get(name)
        parameters[name] = value if before is None else [*([before] if isinstance(before, str) else before), value]
    return parameters
