"""Opens Backend.AI's door: its calls as an ASGI application, on the port of the REST API.

A call is answered in a thread of the door. Its caller is known before any of the body is read.
"""

from __future__ import annotations

import json
import logging
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

from starlette.datastructures import Headers

from holdfast.api.backendai import (  # noqa: F401 - each registers its calls
    histories,
    kernels,
    keypairs,
    problems,
    projects,
    resources,
    sessions,
    system,
    users,
)
from holdfast.api.backendai.graphql import endpoint  # noqa: F401 - as above
from holdfast.api.backendai.problems import RefusedCall, refusal_of
from holdfast.api.backendai.routing import ROUTES, BackendAiCall, BackendAiRoutes
from holdfast.api.backendai.system import hello
from holdfast.api.budget import AbandonedError, TooLargeError, read_body
from holdfast.api.connect.landing import Landing
from holdfast.api.entries import weight_of_json
from holdfast.domain.record import Struct
from holdfast.errors import HoldfastError, Internal
from holdfast.service.launches import Launches
from holdfast.service.sessions.enqueue import SYSTEM
from holdfast.wire.base import as_written

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from concurrent.futures import ThreadPoolExecutor

    from starlette.types import ASGIApp, Receive, Scope, Send

    from holdfast.api.backendai.routing import Answer, BackendAiRoute
    from holdfast.api.budget import MemoryBudget, MemoryShare
    from holdfast.domain.audit import Caller
    from holdfast.service.operations.backend import Backend

T = TypeVar("T")
R = TypeVar("R")
PREFIXES = ("/v2/", "/admin/gql", "/manager/")
LARGEST_BODY = 4 * 1024 * 1024
"""Bytes."""
_JSON = "application/json"
_log = logging.getLogger(__name__)


class DoorSetup(Struct, frozen=True):
    """What the door answers its calls with."""

    backend: Backend
    caller: Callable[[Scope], Awaitable[Caller]]
    """Returns the caller of a request; refuses strangers."""
    threads: ThreadPoolExecutor
    """Where calls are answered."""
    budget: MemoryBudget
    """Bounds the requests that are accepted and not answered yet."""
    refusal: Callable[[], HoldfastError | None] = lambda: None
    """Returns why nothing may be written now, if so."""
    written: Callable[[], None] = lambda: None
    """Called after each call that may have written something."""
    access_key: Callable[[str], str] = lambda _: ""
    """Returns the access key of a user."""
    secret_of: Callable[[str, str], str] = lambda _key, _owner: ""
    """Returns the secret of an access key of an owner."""


class BackendAiDoor:
    """The door while it is open."""

    def __init__(self, setup: DoorSetup, routes: BackendAiRoutes = ROUTES) -> None:
        self._setup = setup
        self._routes = routes
        self._landing = Landing()
        self.launches = Launches(setup.backend, SYSTEM, again_s=0.0, written=setup.written)
        self.secret_of = setup.secret_of
        self.mounts: Mapping[str, ASGIApp] = dict.fromkeys(PREFIXES, self.answer)
        """The applications, by path prefix."""
        self.pages: Mapping[str, ASGIApp] = {"/": hello}
        """The applications, by path, that browsers do not see."""

    def close(self) -> None:
        """Stop answering."""
        self.launches.close()
        self._setup.threads.shutdown(wait=False, cancel_futures=True)

    def access_key(self, caller: Caller) -> str:
        """Return the access key of a caller."""
        return self._setup.access_key(caller.principal.name)

    def check_writable(self) -> None:
        """Refuse what would write something if nothing may be written now."""
        why = self._setup.refusal()
        if why is not None:
            raise why

    def written(self) -> None:
        """Tell that something may have been written."""
        self._setup.written()

    def then(self, awaited: Future[T], answer: Callable[[Future[T]], R]) -> Future[R]:
        """Answer in a thread of the door once something else is done."""
        answered: Future[R] = Future()

        def work() -> None:
            if not answered.set_running_or_notify_cancel():
                return  # nobody waits any more
            try:
                answered.set_result(answer(awaited))
            except BaseException as error:  # noqa: BLE001 - whoever waits must hear of it
                answered.set_exception(error)

        awaited.add_done_callback(lambda _: self._setup.threads.submit(work))
        return answered

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; a refusal is answered in JSON, too."""
        route: BackendAiRoute | None = None
        try:
            route, parts = self._route_of(scope)
            status, body = await self._answered(route, parts, scope, receive)
        except RefusedCall as refusal:
            await _refuse(send, refusal)
        except HoldfastError as error:
            await _refuse(send, _logged(refusal_of(error, *(() if route is None else (route.scope,)))))
        except TooLargeError as error:
            await _refuse(send, problems.too_large(error.size, error.largest))
        except AbandonedError:
            await _refuse(send, problems.abandoned())
        except Exception:  # noqa: BLE001 - what nobody foresaw ends this call alone
            _log.exception("%s %r failed", scope["method"], scope["path"])
            await _refuse(send, refusal_of(Internal()))
        else:
            await _send(send, status, body, {"content-type": _JSON} if body else {})

    def _route_of(self, scope: Scope) -> tuple[BackendAiRoute, Mapping[str, str]]:
        method, raw = scope["method"], scope.get("raw_path") or scope["path"].encode()
        path = raw.partition(b"?")[0].decode("ascii", "replace")
        routes = self._routes.matching(path)
        if not routes:
            raise problems.unknown_path(method, path)
        if method not in routes:
            raise problems.wrong_method(method, path, sorted(routes))
        route, parts = routes[method]
        scope["route"] = route  # for the metrics, which count by its path
        return route, parts

    async def _answered(
        self, route: BackendAiRoute, parts: Mapping[str, str], scope: Scope, receive: Receive
    ) -> tuple[int, bytes]:
        call = BackendAiCall(self._setup.backend, await self._setup.caller(scope), self)
        headers = Headers(scope=scope)
        with self._setup.budget.share() as share:
            if route.body is not None:
                kind = headers.get("content-type", _JSON).partition(";")[0].strip().lower()
                if kind != _JSON:
                    raise problems.wrong_type(kind)
                await read_body(receive, share, LARGEST_BODY, headers.get("content-length", ""))
            query = scope["query_string"]
            answer = await self._landing.wait(
                self._setup.threads.submit(self._worked, route, call, parts, query, share)
            )
            if isinstance(answer, Future):
                answer = _encoded(await self._landing.wait(answer))
        if not route.reads:
            self.written()
        return route.status if answer else 204, answer

    def _worked(
        self, route: BackendAiRoute, call: BackendAiCall, parts: Mapping[str, str], query: bytes, share: MemoryShare
    ) -> bytes | Future[Answer]:
        """Read the arguments of a call and answer it, in a thread."""
        if not route.reads:
            self.check_writable()
        with share:
            with share.turn(is_packed=False):
                share.take(2 * len(share.body) + weight_of_json(share.body))
                arguments = route.arguments(parts, query, share.body)
            answer = route.handler(call, **arguments)
            return answer if isinstance(answer, Future) else _encoded(answer)


def _encoded(answer: Answer) -> bytes:
    return b"" if answer is None else as_written(answer)


def _logged(refusal: RefusedCall) -> RefusedCall:
    if refusal.status == 500:  # noqa: PLR2004 - an internal error
        _log.error("a call failed: %s", refusal.message)
    return refusal


async def _refuse(send: Send, refusal: RefusedCall) -> None:
    headers = {"content-type": problems.MEDIA_TYPE, **refusal.headers}
    await _send(send, refusal.status, json.dumps(refusal.as_json()).encode(), headers)


async def _send(send: Send, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    raw = [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
    raw.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
