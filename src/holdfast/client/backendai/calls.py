"""The calls about sessions at Backend.AI's door.

No call is sent twice: after a lost connection the caller decides.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from pydantic import BaseModel, ValidationError

from holdfast.client.backendai.requests import id_of
from holdfast.client.backendai.views import (
    BackendAiAttempt,
    BackendAiPage,
    BackendAiRefusal,
    BackendAiSession,
    BackendAiStep,
    EndedSessions,
    EnqueuedSession,
    KernelOutput,
)
from holdfast.client.connection import TIMEOUT_S, written
from holdfast.client.errors import foreign
from holdfast.client.forking import after_fork
from holdfast.client.transport import FAILURES, HttpRequest, HttpTransport
from holdfast.domain.record import Struct
from holdfast.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    HoldfastError,
    Internal,
    InvalidRequest,
    InvalidSetting,
    NotFound,
    Problem,
    RateLimited,
    Unauthenticated,
    Unavailable,
)
from holdfast.wire.backendai.signatures import API_VERSION, SignedCall, authorization
from holdfast.wire.problems import ProblemEntry, read_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from holdfast.client.transport import HttpResponse, Transport

M = TypeVar("M", bound=BaseModel)
SESSIONS = "/v2/sessions"
HISTORY = "/v2/scheduling-history"
LARGEST_PAGE = 1000
_JSON = "application/json"
_ERRORS: Mapping[int, type[HoldfastError]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    429: RateLimited,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}
_FIRST_SERVER_ERROR = 500
_EXISTS = "already-exists"


class DoorReach(Struct, frozen=True):
    """Where the door is, and the keypair to sign with."""

    endpoint: str
    access_key: str
    secret_key: str


class BackendAiCalls:
    """The calls about sessions, as the owner of a keypair; threads may share it."""

    def __init__(
        self,
        reach: DoorReach,
        clock: Callable[[], float],
        *,
        transport: Transport | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Set up the calls; nothing is sent yet.

        Args:
            reach: Where the door is.
            clock: Seconds since the epoch, which are a part of what is signed.
            transport: Another way to it; closed with this object.
            timeout_s: For one call.

        Raises:
            InvalidSetting: The endpoint is not the address of a server.
        """
        self._reach, self._clock, self._timeout_s = reach, clock, timeout_s
        self._host, self._path = _place(reach.endpoint)
        self._transport = transport or HttpTransport(reach.endpoint)
        self._renew_lock()
        after_fork(self, BackendAiCalls._renew_lock)

    def _renew_lock(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; may be called twice."""
        self._transport.close()

    def send_request(self, request: Mapping[str, Any]) -> EnqueuedSession:
        """Create a session by a request in Backend.AI's fields, of which ``retry_policy`` is Holdfast's."""
        return self._call(EnqueuedSession, "POST", f"{SESSIONS}/enqueue", body=request)

    def get(self, session_id: str) -> BackendAiSession:
        """Read a session."""
        return self._call(BackendAiSession, "GET", _address(session_id))

    def attempts(self, session_id: str) -> list[BackendAiAttempt]:
        """List the sessions of a chain, oldest first, by any of them."""
        return self._call(BackendAiPage[BackendAiAttempt], "GET", f"{_address(session_id)}/attempts").items

    def search(
        self,
        *,
        statuses: Sequence[str] = (),
        name: str | None = None,
        project: str | None = None,
        limit: int | None = None,
    ) -> Iterator[BackendAiSession]:
        """Search among the sessions that the caller may see, the newest first.

        Args:
            statuses: Any of these.
            name: A part of the name.
            project: The name or the id of a project.
            limit: The most sessions; without it, all.
        """
        conditions: dict[str, Any] = {
            "status": {"in": [status.upper() for status in statuses]} if statuses else None,
            "name": {"contains": name} if name else None,
            "project_id": {"equals": id_of("project", project)} if project else None,
        }
        order = [{"field": "created_at", "direction": "DESC"}, {"field": "id", "direction": "DESC"}]
        body = {"filter": {field: value for field, value in conditions.items() if value}, "order": order}
        return self._pages(BackendAiPage[BackendAiSession], f"{SESSIONS}/search", body, limit)

    def terminate(self, session_ids: Sequence[str], *, forced: bool = False) -> EndedSessions:
        """End sessions, and with each what waits to retry it; those that have ended or do not exist are skipped."""
        body = {"session_ids": list(session_ids), "forced": forced}
        return self._call(EndedSessions, "POST", f"{SESSIONS}/terminate", body=body)

    def logs(self, session_id: str, kernel_id: str | None = None) -> str:
        """Read the output of a kernel, by default of the main one."""
        query = f"?{urlencode({'kernel_id': kernel_id})}" if kernel_id else ""
        return self._call(KernelOutput, "GET", f"{_address(session_id)}/logs{query}").logs

    def history(self, session_id: str, *, kernels: bool = False) -> Iterator[BackendAiStep]:
        """List the steps of a session, or of its kernels, oldest first."""
        body: dict[str, Any] = {"order": [{"field": "created_at", "direction": "ASC"}]}
        if kernels:
            scope = {"scope": {"session": [{"value": session_id}]}}
            return self._pages(BackendAiPage[BackendAiStep], f"{HISTORY}/kernels/scoped/search", body | scope, None)
        return self._pages(
            BackendAiPage[BackendAiStep], f"{HISTORY}/sessions/{quote(session_id, safe='')}/search", body, None
        )

    def _pages(
        self, page: type[BackendAiPage[M]], path: str, body: Mapping[str, Any], limit: int | None
    ) -> Iterator[M]:
        offset = 0
        while limit is None or offset < limit:
            size = LARGEST_PAGE if limit is None else min(limit - offset, LARGEST_PAGE)
            answer = self._call(page, "POST", path, body={**body, "limit": size, "offset": offset})
            yield from answer.items
            offset += size  # A page may lack items that cannot be read.
            if not answer.has_next_page:
                return

    def _call(self, answer: type[M], method: str, target: str, *, body: Mapping[str, Any] | None = None) -> M:
        """Send a call and read its answer.

        Raises:
            HoldfastError: The door refused the call.
            Unavailable: The server could not be reached.
            Internal: The answer is not one of the door's.
        """
        content = None if body is None else written(body)
        request = HttpRequest(method, target, self._signed(method, target), content)
        try:
            with self._lock:
                response = self._transport.send(request, self._timeout_s)
        except FAILURES as error:
            why = str(error) or type(error).__name__
            msg = f"{self._reach.endpoint} cannot be reached: {why}"
            raise Unavailable(msg, hint="start the server with: holdfast up --door backendai") from error
        url = self._reach.endpoint + target
        if not response.is_success:
            raise _error_of(response, url)
        try:
            return answer.model_validate_json(response.content)
        except ValidationError as error:
            raise foreign(response, url) from error

    def _signed(self, method: str, target: str) -> dict[str, str]:
        now = datetime.fromtimestamp(self._clock(), UTC)
        call = SignedCall(method, self._path + target, now.isoformat(), self._host, _JSON, API_VERSION)
        signature = call.signature(self._reach.secret_key, now.strftime("%Y%m%d"))
        return {
            "Authorization": authorization(self._reach.access_key, signature),
            "Date": call.date,
            "Host": self._host,
            "Content-Type": _JSON,
            "X-BackendAI-Version": API_VERSION,
        }


def _address(session_id: str) -> str:
    return f"{SESSIONS}/{quote(session_id, safe='')}"


def _place(endpoint: str) -> tuple[str, str]:
    """Return the host and port of an endpoint, and the path before every target."""
    try:
        parts = urlsplit(endpoint)
        is_sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_sound, parts = False, urlsplit("")
    if not is_sound:
        problem = Problem("BACKEND_ENDPOINT", f"{endpoint!r} is not an address", hint="such as http://127.0.0.1:7070")
        raise InvalidSetting(problems=[problem])
    return parts.netloc.rpartition("@")[2], parts.path.rstrip("/")


def _error_of(response: HttpResponse, url: str) -> HoldfastError:
    """Make the error of a refused call."""
    try:
        refusal = BackendAiRefusal.model_validate_json(response.content)
    except ValidationError:
        return foreign(response, url)
    default = Internal if response.status >= _FIRST_SERVER_ERROR else InvalidRequest
    kind = _ERRORS.get(response.status, default)
    if kind is Conflict and refusal.error_code.endswith(_EXISTS):
        kind = AlreadyExists
    if refusal.data and all(isinstance(entry, ProblemEntry) for entry in refusal.data):
        return kind(problems=[read_problem(entry) for entry in refusal.data])
    return kind(refusal.msg or refusal.title)
