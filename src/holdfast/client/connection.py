"""Sends requests and reads answers: address, token, retries, errors.

After a lost connection only requests that mean the same when done twice are sent again.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, ValidationError

from holdfast.client.errors import error_of, foreign
from holdfast.errors import InvalidSetting, Problem, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

M = TypeVar("M", bound=BaseModel)

PAUSES_S = (0.1, 0.4, 1.0)
"""Before each further try after a lost connection."""
TIMEOUT_S = 30.0
SILENCE_S = 45.0
"""After how long a stream that sends not even a heartbeat counts as lost."""
_REPEATABLE = frozenset({"GET", "PUT"})


def new_key() -> str:
    """Make an idempotency key."""
    return secrets.token_hex(16)


def once(if_match: str | None, *, otherwise: bool | None = None) -> dict[str, Any]:
    """Say which version is meant; such a request is not sent twice, as its own first arrival changes the version."""
    if if_match is None:
        return {"repeatable": otherwise}
    return {"repeatable": False, "headers": {"If-Match": f'"{if_match}"'}}


class Connection:
    """One server, and how to speak to it."""

    def __init__(
        self,
        base_url: str,
        token: str | None,
        *,
        transport: httpx.BaseTransport | None,
        timeout_s: float,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Remember the address; nothing is sent yet."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.pause = pause
        self.streams: bool = getattr(transport, "streams", True)
        """Whether an answer can be read while it comes."""
        self._base_url = base_url
        self._timeout_s = timeout_s
        # Proxies and the like come from the environment, which only `app` reads.
        self._http = httpx.Client(
            base_url=_checked(base_url), headers=headers, transport=transport, timeout=timeout_s, trust_env=False
        )

    def close(self) -> None:
        """Let go of the connection; double close is fine."""
        self._http.close()

    def get(self, path: str, answer: type[M], params: Mapping[str, Any] | None = None) -> M:
        """Read something."""
        return self.call(answer, "GET", path, params=_present(params))

    def call(
        self,
        answer: type[M],
        method: str,
        path: str,
        *,
        repeatable: bool | None = None,
        **request: Any,  # noqa: ANN401 - httpx's own arguments
    ) -> M:
        """Send one request and read its answer.

        Raises:
            HoldfastError: As ``send``.
            Internal: The answer is not one of Holdfast's.
        """
        response = self.send(method, path, repeatable=repeatable, **request)
        try:
            return answer.model_validate_json(response.content)
        except ValidationError as error:
            raise foreign(response) from error

    def send(self, method: str, path: str, *, repeatable: bool | None = None, **request: Any) -> httpx.Response:  # noqa: ANN401 - httpx's own arguments
        """Send one request, again after a lost connection when that is safe.

        Raises:
            HoldfastError: What the server answered, as the class of that code.
            Unavailable: It could not be reached.
        """
        again = method in _REPEATABLE if repeatable is None else repeatable
        for pause in (*PAUSES_S, None) if again else (None,):
            try:
                response = self._http.request(method, path, **request)
            except httpx.TransportError as error:
                if pause is None or isinstance(error, httpx.TimeoutException):
                    raise self._unreachable(error) from error
                self.pause(pause)
            else:
                if response.is_success:
                    return response
                raise error_of(response)
        raise AssertionError  # the last round returns or raises

    def lines(self, path: str, *, params: Mapping[str, Any], headers: Mapping[str, str]) -> Iterator[str]:
        """Read the lines of an answer as they come, until it ends or the connection is lost.

        Raises:
            HoldfastError: What the server answered instead.
            Unavailable: It could not be reached, or was silent for too long.
        """
        timeout = httpx.Timeout(self._timeout_s, read=SILENCE_S)
        given: dict[str, Any] = {"params": _present(params), "headers": dict(headers), "timeout": timeout}
        try:
            with self._http.stream("GET", path, **given) as response:
                if not response.is_success:
                    response.read()
                    raise error_of(response)
                yield from _lines(response.iter_bytes())
        except httpx.TransportError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: httpx.TransportError) -> Unavailable:
        why = str(error) or type(error).__name__
        return Unavailable(f"Holdfast cannot be reached at {self._base_url}: {why}", hint="start it with: holdfast up")


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Cut at line feeds only: text may hold other characters that Unicode counts as ends of lines."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.decode().removesuffix("\r")


def _present(params: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (params or {}).items() if value is not None}


def _checked(base_url: str) -> str:
    try:
        parts = urlsplit(base_url)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if sound:
        return base_url
    problem = Problem("base_url", f"{base_url!r} is not an address", hint="write for example http://127.0.0.1:7070")
    msg = "the server's address is not valid"
    raise InvalidSetting(msg, problems=[problem])
