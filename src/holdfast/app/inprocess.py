"""Calls the endpoints inside this process, without a server: the same calls, checks and answers."""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints
from urllib.parse import unquote

from pydantic import Field, TypeAdapter, ValidationError

from holdfast.api.http.endpoints.endpoint import Param, Reply, near
from holdfast.client.client import Client
from holdfast.client.connection import Connection, written
from holdfast.client.transport import HttpResponse
from holdfast.domain.audit import Caller
from holdfast.errors import HoldfastError, Internal, NotFound
from holdfast.service.manifests.text import Format, Text
from holdfast.service.operations.backend import Backend
from holdfast.wire.problems import invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.api.http.endpoints.endpoint import Endpoint
    from holdfast.domain.access import Principal

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
        backend: What endpoints work with.
        principal: Who calls.
        before: Called before each request; raises what makes asking pointless.
        before_writing: Called before each request that may change something; raises why nothing may be.
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
        del repeatable  # nothing gets lost on the way
        self._before()
        if method != "GET":
            self._before_writing()
        endpoint, places = _found(method, path)
        sent = {
            "path": places,
            "query": request.get("params") or {},
            "header": request.get("headers") or {},
            "body": request.get("json"),
        }
        try:
            found = endpoint.call(**self._arguments(endpoint, sent))
        except HoldfastError:
            raise
        except Exception as error:
            _log.exception("%s %s failed", method, path)
            raise Internal from error
        if found is None or isinstance(found, bytes):
            return HttpResponse(endpoint.status, found or b"")
        view = found.view if isinstance(found, Reply) else found
        return HttpResponse(endpoint.status, view.model_dump_json(by_alias=True).encode())

    def close(self) -> None:
        """Let go of nothing: the store is closed by whoever opened it."""

    def _arguments(self, endpoint: Endpoint, sent: Mapping[str, Any]) -> dict[str, Any]:
        hints = get_type_hints(endpoint.call, include_extras=True)
        hints.pop("return")
        wrong: list[Any] = []
        values = {name: self._value(name, hint, sent, wrong) for name, hint in hints.items()}
        if wrong:
            raise invalid(wrong)
        return {name: value for name, value in values.items() if value is not _ABSENT}

    def _value(self, name: str, hint: Any, sent: Mapping[str, Any], wrong: list[Any]) -> object:  # noqa: ANN401 - a type
        """Return the value of a parameter; what is wrong with it is added to ``wrong``."""
        if hint is Backend:
            return self._backend
        if hint is Caller:
            request_id = secrets.token_hex(_ID_BYTES)
            return self._backend.caller(self._principal, origin="in-process", request_id=request_id)
        if hint is Text:
            return Text.of(written(sent["body"]), Format.JSON)
        asked = next((one for one in get_args(hint) if isinstance(one, Param)), None)
        place, key = _place(name, hint, asked, sent["path"])
        value = sent[place] if key is None else sent[place].get(key)
        if value is None:
            return _ABSENT
        try:
            return TypeAdapter(Annotated[hint, Field(**asked.limits)] if asked else hint).validate_python(value)
        except ValidationError as error:
            wrong += [{**one, "loc": (place, *([key] if key else []), *one["loc"])} for one in error.errors()]
            return _ABSENT


def _place(name: str, hint: Any, asked: Param | None, places: Mapping[str, str]) -> tuple[str, str | None]:  # noqa: ANN401 - a type
    """Say in which part of a request a parameter is, and under which name."""
    if asked is not None and asked.header:
        return "header", asked.header
    if any(hasattr(one, "model_validate") for one in (hint, *get_args(hint))):
        return "body", None
    return ("path" if name in places else "query"), name


def _found(method: str, path: str) -> tuple[Endpoint, dict[str, str]]:
    """Find the endpoint of an address, and what stands in its places."""
    for endpoint in near(path):
        places = _places(endpoint.path.split("/"), path.split("/")) if endpoint.method == method else None
        if places is not None:
            return endpoint, places
    msg = f"{method} {path} does not exist"
    raise NotFound(msg)


def _places(template: list[str], words: list[str]) -> dict[str, str] | None:
    if len(template) != len(words):
        return None
    places = {}
    for known, word in zip(template, words, strict=True):
        if known.startswith("{") and word:
            places[known[1:-1]] = unquote(word)
        elif known != word:
            return None
    return places
