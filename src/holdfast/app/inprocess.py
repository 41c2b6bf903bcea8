"""Calls the endpoints inside this process, without a server: the same calls, checks and answers."""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote

from pydantic import Field, TypeAdapter, ValidationError

from holdfast.api.http.endpoints.endpoint import Reply, endpoints_near
from holdfast.client.client import Client
from holdfast.client.connection import Connection, written
from holdfast.client.transport import HttpResponse
from holdfast.errors import HoldfastError, Internal, NotFound
from holdfast.service.manifests.text import Format, Text
from holdfast.wire.problems import invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.api.http.endpoints.endpoint import Endpoint, Parameter
    from holdfast.domain.access import Principal
    from holdfast.service.operations.backend import Backend

_ID_BYTES = 8
_ABSENT = object()
_log = logging.getLogger(__name__)


def in_process(
    backend: Backend,
    principal: Principal,
    *,
    before: Callable[[], None] = lambda: None,
    before_writing: Callable[[], None] = lambda: None,
) -> Client:
    """Make a client of this process.

    Args:
        backend: The backend of the endpoints.
        principal: The caller.
        before: Called before each request; raises an error if the request would be pointless.
        before_writing: Called before each request that may change something; raises an error if nothing may be changed.
    """
    return Client(connection=_InProcess(backend, principal, before, before_writing))


class _InProcess(Connection):
    """Finds the endpoint of an address and calls it."""

    streams = False
    """An answer comes whole, so nothing that never ends can be read."""

    def __init__(
        self, backend: Backend, principal: Principal, before: Callable[[], None], before_writing: Callable[[], None]
    ) -> None:
        self._backend, self._principal = backend, principal
        self._before, self._before_writing = before, before_writing

    def send(self, method: str, path: str, *, repeatable: bool | None = None, **request: Any) -> HttpResponse:  # noqa: ANN401 - as its parent's
        """Call one endpoint and return its answer as it is written."""
        del repeatable  # no request gets lost
        self._before()
        if method != "GET":
            self._before_writing()
        endpoint, places = _find_endpoint(method, path)
        parts = {
            "path": places,
            "query": request.get("params") or {},
            "header": request.get("headers") or {},
            "body": request.get("json"),
        }
        try:
            answer = endpoint.call(**self._arguments(endpoint, parts))
        except HoldfastError:
            raise
        except Exception as error:
            _log.exception("%s %s failed", method, path)
            raise Internal from error
        if answer is None or isinstance(answer, bytes):
            return HttpResponse(endpoint.status, answer or b"")
        view = answer.view if isinstance(answer, Reply) else answer
        return HttpResponse(endpoint.status, view.model_dump_json(by_alias=True).encode())

    def close(self) -> None:
        """Close nothing: the store belongs to whoever opened it."""

    def _arguments(self, endpoint: Endpoint, parts: Mapping[str, Any]) -> dict[str, Any]:
        wrong: list[Any] = []
        values = {parameter.name: self._value(parameter, parts, wrong) for parameter in endpoint.parameters}
        if wrong:
            raise invalid(wrong)
        return {name: value for name, value in values.items() if value is not _ABSENT}

    def _value(self, parameter: Parameter, parts: Mapping[str, Any], wrong: list[Any]) -> object:
        """Return the value of a parameter; what is wrong with it is added to ``wrong``."""
        source, key = parameter.source, parameter.key
        if source == "backend":
            return self._backend
        if source == "caller":
            request_id = secrets.token_hex(_ID_BYTES)
            return self._backend.caller(self._principal, origin="in-process", request_id=request_id)
        if source == "text":
            return Text.of(written(parts["body"]), Format.JSON)
        value, place = (parts[source], (source,)) if source == "body" else (parts[source].get(key), (source, key))
        if value is None:
            return _ABSENT
        try:
            bounded: Any = Annotated[parameter.type, Field(**parameter.limits)]
            return TypeAdapter[object](bounded).validate_python(value)
        except ValidationError as error:
            wrong += [{**problem, "loc": (*place, *problem["loc"])} for problem in error.errors()]
            return _ABSENT


def _find_endpoint(method: str, path: str) -> tuple[Endpoint, dict[str, str]]:
    """Find the endpoint of an address, and the values in its path."""
    for endpoint in endpoints_near(path):
        places = _path_values(endpoint.path.split("/"), path.split("/")) if endpoint.method == method else None
        if places is not None:
            return endpoint, places
    msg = f"{method} {path} does not exist"
    raise NotFound(msg)


def _path_values(template: list[str], words: list[str]) -> dict[str, str] | None:
    if len(template) != len(words):
        return None
    places = {}
    for part, word in zip(template, words, strict=True):
        if part.startswith("{") and word:
            places[part[1:-1]] = unquote(word)
        elif part != word:
            return None
    return places
