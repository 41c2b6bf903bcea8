"""The transport of requests and responses: HTTP/1.1 over the standard library.

A command that sends one request should not spend most of its time on importing an HTTP library.
"""

from __future__ import annotations

import http.client
import os
import select
import socket
from contextlib import closing
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from holdfast.client.forking import after_fork
from holdfast.client.unix import SCHEME, UnixConnection
from holdfast.domain.record import Struct, field
from holdfast.resolver import addresses
from holdfast.wire.base import REVISION_HEADER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.resolver import Address

_CHUNK = 1 << 16
_SUCCESS = range(200, 300)
_LONGEST_REVISION = 10
LONGEST_SEARCH_S = 8.0
"""Seconds for looking up a host: more than the 5 s after which a resolver asks its second server."""
FAILURES = (OSError, http.client.HTTPException)
"""The exceptions of a missing or incomplete response."""


class HttpRequest(Struct, frozen=True):
    """A request to a server."""

    method: str
    target: str
    """Path and query, encoded."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


class HttpResponse(Struct, frozen=True):
    """A response, or a part of it."""

    status: int
    content: bytes
    revision: int | None = None
    """The server's API revision, if it says so."""

    @property
    def is_success(self) -> bool:
        """Whether the status is a success."""
        return self.status in _SUCCESS

    @property
    def text(self) -> str:
        """The content as text."""
        return self.content.decode(errors="replace")


class Transport(Protocol):
    """A way to a server; not to be shared between threads."""

    def send(self, request: HttpRequest, timeout_s: float) -> HttpResponse:
        """Send a request and return the whole response."""
        ...

    def stream(self, request: HttpRequest, timeout_s: float) -> Iterator[HttpResponse]:
        """Send a request and yield the response in parts as they arrive; an error comes whole."""
        ...

    def close(self) -> None:
        """Close the connection; closing twice is fine."""
        ...


class HttpTransport(Transport):
    """Reaches a server by its address."""

    def __init__(self, base_url: str) -> None:
        self._socket = base_url.removeprefix(SCHEME) if base_url.startswith(SCHEME) else ""
        parts = urlsplit("" if self._socket else base_url)
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname or "", parts.port
        self._path = parts.path.rstrip("/")
        self._connection: http.client.HTTPConnection | None = None
        after_fork(self, HttpTransport._leave)

    def send(self, request: HttpRequest, timeout_s: float) -> HttpResponse:
        """Send a request and return the whole response.

        Raises:
            OSError: The connection was lost, or was silent for too long (``TimeoutError``).
            HTTPException: The response is not HTTP, or was cut off.
        """
        connection = self._connected(timeout_s)
        try:
            response = self._asked(connection, request)
            return HttpResponse(response.status, response.read(), _revision(response))
        except BaseException:
            self.close()
            raise

    def stream(self, request: HttpRequest, timeout_s: float) -> Iterator[HttpResponse]:
        """Send a request and yield the response in parts as they arrive; an error comes whole.

        Raises:
            OSError, HTTPException: As for ``send``; also if the process was forked meanwhile.
        """
        opened_by = os.getpid()
        with closing(self._new(timeout_s)) as connection:
            response = self._asked(connection, request)
            if response.status not in _SUCCESS:
                yield HttpResponse(response.status, response.read(), _revision(response))
            while part := response.read1(_CHUNK):
                yield HttpResponse(response.status, part)
                if os.getpid() != opened_by:
                    msg = "the answer goes to the process that this one was forked from"
                    raise ConnectionResetError(msg)

    def close(self) -> None:
        """Close the connection; closing twice is fine."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _leave(self) -> None:
        """Leave the connection to the parent of a forked process.

        Only the descriptor is closed: another thread may have been reading a response, whose buffer it had locked.
        """
        connection, self._connection = self._connection, None
        if connection is not None and connection.sock is not None and (number := connection.sock.detach()) >= 0:
            os.close(number)

    def _asked(self, connection: http.client.HTTPConnection, request: HttpRequest) -> http.client.HTTPResponse:
        connection.request(request.method, self._path + request.target, request.body, dict(request.headers))
        return connection.getresponse()

    def _connected(self, timeout_s: float) -> http.client.HTTPConnection:
        kept = self._connection
        if kept is not None and kept.sock is not None and not _has_news(kept.sock):
            kept.sock.settimeout(timeout_s)
            return kept
        self.close()
        self._connection = self._new(timeout_s)
        return self._connection

    def _new(self, timeout_s: float) -> http.client.HTTPConnection:
        if self._socket:
            return UnixConnection(self._socket, timeout_s)
        kind = _Secure if self._secure else _Plain
        return kind(self._host, self._port, timeout=timeout_s)


class _Plain(http.client.HTTPConnection):
    """HTTP without waiting for a name server that never answers."""

    def connect(self) -> None:
        """Connect to the first of the host's addresses that answers."""
        limit_s = min(self.timeout or LONGEST_SEARCH_S, LONGEST_SEARCH_S)
        self.sock = _connected(addresses(self.host, self.port, limit_s), self.timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class _Secure(http.client.HTTPSConnection, _Plain):
    """The same over TLS."""


def _connected(addresses: Sequence[Address], timeout_s: float | None) -> socket.socket:
    why: OSError = OSError("it has no address")
    for family, kind, protocol, _, address in addresses:
        connection = socket.socket(family, kind, protocol)
        connection.settimeout(timeout_s)
        try:
            connection.connect(address)
        except OSError as error:
            connection.close()
            why = error
        else:
            return connection
    raise why


def _revision(response: http.client.HTTPResponse) -> int | None:
    header = response.getheader(REVISION_HEADER, "")
    return int(header) if header.isdecimal() and len(header) < _LONGEST_REVISION else None


def _has_news(sock: socket.socket) -> bool:
    """Whether an idle connection has something to read, which can only be its end."""
    waiting = select.poll()
    waiting.register(sock, select.POLLIN)
    return bool(waiting.poll(0))
