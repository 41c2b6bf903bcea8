"""Sends requests and reads responses: address, token, retries, errors.

After a lost connection only requests that may safely be repeated are sent again.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import urlencode, urlsplit

from pydantic import BaseModel, ValidationError

from holdfast.client.errors import difference, error_of, foreign
from holdfast.client.silence import PATIENCE_S, Outage, log
from holdfast.client.transport import FAILURES, HttpRequest, HttpTransport
from holdfast.client.unix import SCHEME
from holdfast.errors import HoldfastError, InvalidRequest, InvalidSetting, Problem, Unauthenticated, Unavailable
from holdfast.wire.base import REVISION, REVISION_HEADER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from holdfast.client.transport import HttpResponse, Transport

M = TypeVar("M", bound=BaseModel)

PAUSES_S = (0.1, 0.4, 1.0)
"""Seconds before each further try after a lost connection."""
TIMEOUT_S = 30.0
LARGEST_PAGE = 1000
SILENCE_S = 45.0
"""Seconds after which a stream without even a heartbeat counts as lost."""
_MOST_NAMED = 20
"""The most fields that one error lists; more help nobody."""
_UTF_8 = "only UTF-8 can be sent and stored: give the file or folder another name, or write the text as UTF-8"
_REPEATABLE = frozenset({"GET", "PUT"})


def new_key() -> str:
    """Create an idempotency key."""
    return secrets.token_hex(16)


def once(if_match: str | None, *, otherwise: bool | None = None) -> dict[str, Any]:
    """Return the header for an expected version; such a request is not repeated: its arrival changes the version."""
    if if_match is None:
        return {"repeatable": otherwise}
    return {"repeatable": False, "headers": {"If-Match": f'"{if_match}"'}}


class Connection(Protocol):
    """A connection to Holdfast, over a network or within the process."""

    address: str = ""
    """The server's address; empty if there is none."""
    streams: bool = True
    """Whether a response can be read while it arrives."""
    pause: Callable[[float], None] = staticmethod(time.sleep)
    """Waits before a request is repeated."""
    patience_s: float = PATIENCE_S
    """Seconds that callers who wait for jobs tolerate a silent server."""

    find: Callable[[], tuple[str, str] | None] | None = None
    """Finds the server's present address and token; called when it does not answer, or refuses the token."""

    has_answered: bool = False
    """Whether the server has answered before, or its address was found where it leaves it."""

    remark: Callable[[str], None] = staticmethod(partial(log, level="INFO"))
    """Called once if this program and the server have different API revisions."""

    def be_patient(self, say: Callable[[str], None]) -> None:
        """Repeat safe requests to a server that has answered before for ``patience_s``, and say so."""
        del say  # Within the process nobody is silent.

    def get(self, path: str, answer: type[M], params: Mapping[str, Any] | None = None) -> M:
        """Send a GET request.

        Args:
            path: The address with its parameters filled in.
            answer: The expected model.
            params: The query.
        """
        return self.call(answer, "GET", path, params=params)

    def pages(self, path: str, answer: type[M], where: Mapping[str, Any], limit: int | None = None) -> Iterator[M]:
        """Read a list page by page; without a limit, all of it. See ``get``."""
        left, cursor = limit, None
        while left is None or left > 0:
            size = LARGEST_PAGE if left is None else min(left, LARGEST_PAGE)
            page: Any = self.get(path, answer, {**where, "limit": size, "cursor": cursor})
            yield page
            left, cursor = (None if left is None else left - len(page.items)), page.next_cursor
            if cursor is None:
                return

    def call(self, answer: type[M], method: str, path: str, **request: Any) -> M:  # noqa: ANN401 - as ``send`` takes them
        """Send one request and read its answer.

        Raises:
            HoldfastError: As ``send``.
            Internal: The answer is not one of Holdfast's.
        """
        response = self.send(method, path, **request)
        try:
            read = answer.model_validate_json(response.content)
        except ValidationError as error:
            raise foreign(response, self.address + path) from error
        self._met(response)
        return read

    def _met(self, response: HttpResponse) -> None:
        """Compare this program's API revision with the server's."""
        del response  # Within the process they are the same.

    def send(self, method: str, path: str, *, repeatable: bool | None = None, **request: Any) -> HttpResponse:  # noqa: ANN401 - of each part's own type
        """Send one request.

        Args:
            method: The HTTP method.
            path: The address with its parameters filled in.
            repeatable: Whether it may safely be repeated; by default that depends on the method.
            **request: ``params`` of the query, ``headers``, and the body as ``json``.

        Raises:
            HoldfastError: The request was refused; ``Unavailable`` if the server could not be reached.
        """
        ...

    def lines(self, path: str, *, params: Mapping[str, Any], headers: Mapping[str, str]) -> Iterator[str]:  # noqa: ARG002 - without ``streams`` there are none
        """Read the lines of a response as they arrive."""
        yield from ()

    def close(self) -> None:
        """Close the connection; closing twice is fine."""
        ...


class ServerConnection(Connection):
    """A connection to one server."""

    def __init__(
        self,
        base_url: str,
        token: str | None,
        *,
        transport: Transport | None,
        timeout_s: float,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._place = (base_url, token or "")
        self.pause = pause
        self.address = _checked(base_url)
        self._timeout_s = timeout_s
        self._transport = transport or HttpTransport(base_url)
        self._silence: Outage | None = None
        self._is_met = False

    def close(self) -> None:
        """Close the connection; closing twice is fine."""
        self._transport.close()

    def be_patient(self, say: Callable[[str], None]) -> None:
        """Repeat safe requests to a server that has answered before for ``patience_s``, and say so."""
        self._silence = Outage(self.patience_s, say)

    def send(self, method: str, path: str, *, repeatable: bool | None = None, **request: Any) -> HttpResponse:  # noqa: ANN401 - as `_request` takes them
        """Send one request, and repeat it after a lost connection if that is safe.

        Raises:
            HoldfastError: The server's error, in the class of its code.
            Unavailable: The server could not be reached.
        """
        again = method in _REPEATABLE if repeatable is None else repeatable
        while True:
            try:
                answer = self._sent(self._request(method, path, **request), path, again=again)
            except Unauthenticated:
                if not self._found_elsewhere():
                    raise
            except Unavailable as error:
                if not again:
                    raise
                moved = self._found_elsewhere()
                if self._silence is not None and self.has_answered:
                    self.pause(self._silence.failed(error))
                elif not moved:
                    raise
            except HoldfastError:
                self._answered()
                raise
            else:
                self._answered()
                return answer

    def _answered(self) -> None:
        self.has_answered = True
        if self._silence is not None:
            self._silence.answered()

    def _found_elsewhere(self) -> bool:
        """Look for the server; returns whether it was started again with another address or token."""
        place = self.find() if self.find is not None else None
        if place is None or place == self._place:
            return False
        self._transport.close()
        self._place, self.address, self._transport = place, _checked(place[0]), HttpTransport(place[0])
        return True

    def _sent(self, request: HttpRequest, path: str, *, again: bool) -> HttpResponse:
        for pause in (*PAUSES_S, None) if again else (None,):
            try:
                answer = self._transport.send(request, self._timeout_s)
            except FAILURES as error:
                if pause is None or isinstance(error, TimeoutError):
                    raise self._unreachable(error) from error
                self.pause(pause)
            else:
                if answer.is_success:
                    return answer
                raise error_of(answer, self.address + path)
        raise AssertionError  # The last round returns or raises.

    def _met(self, response: HttpResponse) -> None:
        if not self._is_met and (remark := difference(response.revision or 0)) is not None:
            self.remark(remark)
        self._is_met = True

    def lines(self, path: str, *, params: Mapping[str, Any], headers: Mapping[str, str]) -> Iterator[str]:
        """Read the lines of a response as they arrive, until it ends or the connection is lost.

        Raises:
            HoldfastError: The server answered with an error.
            Unavailable: It could not be reached, or was silent for too long.
        """
        request = self._request("GET", path, params=params, headers=headers)
        try:
            yield from _lines(self._pieces(request))
        except FAILURES as error:
            raise self._unreachable(error) from error

    def _pieces(self, request: HttpRequest) -> Iterator[bytes]:
        for part in self._transport.stream(request, SILENCE_S):
            if not part.is_success:
                raise error_of(part, self.address + request.target)
            yield part.content

    def _request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        json: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> HttpRequest:
        query = urlencode({name: value for name, value in (params or {}).items() if value is not None}, doseq=True)
        target = f"{path}?{query}" if query else path
        token = self._place[1]
        ours = {REVISION_HEADER: str(REVISION), **({"Authorization": f"Bearer {token}"} if token else {})}
        all_headers = _sendable({**ours, **(headers or {})})
        if json is None:
            return HttpRequest(method, target, all_headers)
        return HttpRequest(method, target, {**all_headers, "Content-Type": "application/json"}, written(json))

    def _unreachable(self, error: Exception) -> Unavailable:
        why = str(error) or type(error).__name__
        return Unavailable(f"Holdfast cannot be reached at {self.address}: {why}", hint="start it with: holdfast up")


def _sendable(headers: dict[str, str]) -> dict[str, str]:
    """Refuse a token that no header can carry, without showing it."""
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            problem = Problem(
                name, "only printable ASCII characters can be sent", hint="is there a line feed at its end?"
            )
            message = f"what is given for {name} cannot be sent"
            raise InvalidRequest(message, problems=[problem])
    return headers


def written(value: object) -> bytes:
    """Encode a body as JSON.

    Raises:
        InvalidRequest: Something in it, such as an argument or a path, is not UTF-8.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        problems = [Problem(path, "is not UTF-8 text", hint=_UTF_8) for path in islice(_not_utf_8(value), _MOST_NAMED)]
        raise InvalidRequest(problems=problems) from None


def _not_utf_8(value: object, path: str = "") -> Iterator[str]:
    """Return the problem of a text that is not UTF-8; the text itself may be a secret."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            where = f"{path}.{name}" if path else str(name)
            yield from () if is_utf_8(str(name)) else (where,)
            yield from _not_utf_8(part, where)
    elif isinstance(value, list | tuple):
        for place, part in enumerate(value):
            yield from _not_utf_8(part, f"{path}[{place}]")
    elif isinstance(value, str) and not is_utf_8(value):
        yield path


def is_utf_8(text: str) -> bool:
    """Whether a text can be sent: an argument, a variable or a path may contain any bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Split at line feeds only: a text may contain other characters that Unicode counts as line ends."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.decode().removesuffix("\r")


def _checked(base_url: str) -> str:
    try:
        parts = urlsplit(base_url)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        sound = sound or base_url.startswith(f"{SCHEME}/")
    except ValueError:
        sound = False
    if sound:
        return base_url
    problem = Problem(
        "base_url", f"{base_url!r} is not an address", hint="write for example http://127.0.0.1:7070 or unix:///PATH"
    )
    msg = "the server's address is not valid"
    raise InvalidSetting(msg, problems=[problem])
