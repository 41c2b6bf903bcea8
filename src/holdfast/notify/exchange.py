"""One request to a web server and its answer: only where the guard lets it go, and until a deadline."""

from __future__ import annotations

import http.client
import ssl
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from holdfast import __version__
from holdfast.domain.record import Struct
from holdfast.notify.guard import Deadline, Undelivered, cut_off

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.notify.guard import Guard

_HTTPS_PORT, _HTTP_PORT = 443, 80


class _GuardedHttp(http.client.HTTPConnection):
    """A connection that goes only where the guard lets it, until a deadline."""

    def __init__(self, guard: Guard, url: str, deadline: Deadline) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise _no_url() from error
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise _no_url()
        self._is_tls = parts.scheme == "https"
        super().__init__(parts.hostname, port or (_HTTPS_PORT if self._is_tls else _HTTP_PORT))
        self._guard, self._deadline = guard, deadline
        self.default_port = _HTTPS_PORT if self._is_tls else _HTTP_PORT  # else Host names the port
        self.target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    def connect(self) -> None:
        """Connect, with TLS where the URL says so; certificates are checked."""
        self.sock = self._guard.connect(self.host, self.port, self._deadline)
        if self._is_tls:
            with cut_off(self.sock, self._deadline):
                self.sock = ssl.create_default_context().wrap_socket(self.sock, server_hostname=self.host)


def _no_url() -> Undelivered:
    return Undelivered("its URL is not that of a web server", final=True)


class WebRequest(Struct, frozen=True):
    """A request to a web server."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None


def exchange(
    guard: Guard, request: WebRequest, timeout_s: float, *, most: int, reads: Callable[[int], bool]
) -> tuple[int, bytes]:
    """Send a request once, and return the status and body of the answer; redirects are not followed.

    Args:
        guard: Says which addresses are allowed.
        request: The request.
        timeout_s: How long all of it may take.
        most: The most bytes of the body to read.
        reads: Whether to read the body of an answer with this status.

    Raises:
        Undelivered: There is no answer.
    """
    deadline = Deadline(timeout_s)
    connection = _GuardedHttp(guard, request.url, deadline)
    try:
        connection.connect()
        with cut_off(connection.sock, deadline):
            headers = {"User-Agent": f"holdfast/{__version__}", **request.headers}
            connection.request(request.method, connection.target, request.body, headers)
            answer = connection.getresponse()
            body = answer.read(most) if reads(answer.status) else b""
    except ssl.SSLCertVerificationError as error:
        message = f"the certificate of {connection.host} is not valid: {error.verify_message}"
        raise Undelivered(message) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        if deadline.passed:
            raise deadline.over() from error
        message = f"{connection.host} closed the connection: {str(error) or type(error).__name__}"
        raise Undelivered(message) from error
    finally:
        connection.close()
    if deadline.passed:  # what was cut off looks like an answer that has ended
        raise deadline.over()
    return answer.status, body
