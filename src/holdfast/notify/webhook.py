"""Webhooks, signed as https://www.standardwebhooks.com says, and those that take a text as Slack's do."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import http.client
import json
import ssl
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from holdfast import __version__
from holdfast.notify.guard import Deadline, cut_off
from holdfast.notify.trouble import Undelivered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.notify.guard import Guard

_SUCCESS, _REDIRECTION = range(200, 300), range(300, 400)
_GONE = 410
_HTTPS_PORT, _HTTP_PORT = 443, 80
_MOST_READ = 65_536
_MOST_SHOWN = 200
SHORTEST_KEY, LONGEST_KEY = 24, 64
"""Bytes of a signing secret, as Standard Webhooks says."""


def signing_key(secret: str) -> bytes:
    """Return the key in a signing secret.

    Raises:
        Undelivered: It is not one as Standard Webhooks says.
    """
    try:
        key = base64.b64decode(secret.strip().removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not SHORTEST_KEY <= len(key) <= LONGEST_KEY:
        message = f"the signing secret is not whsec_ and {SHORTEST_KEY} to {LONGEST_KEY} bytes in base64"
        raise Undelivered(message, final=True)
    return key


def signed(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a message."""
    content = b".".join((message_id.encode(), str(timestamp).encode(), body))
    return "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()


def encoded(value: Mapping[str, Any]) -> bytes:
    """Write what is sent."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


class _Guarded(http.client.HTTPConnection):
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


def post(guard: Guard, url: str, headers: Mapping[str, str], body: bytes, timeout_s: float) -> None:
    """Send a message once; redirects are not followed, because where they lead nobody has checked.

    Raises:
        Undelivered: It was not taken.
    """
    deadline = Deadline(timeout_s)
    connection = _Guarded(guard, url, deadline)
    sent = {"Content-Type": "application/json", "User-Agent": f"holdfast/{__version__}", **headers}
    try:
        connection.connect()
        with cut_off(connection.sock, deadline):
            connection.request("POST", connection.target, body, sent)
            answer = connection.getresponse()
            said = b"" if answer.status in _SUCCESS else answer.read(_MOST_READ)
    except ssl.SSLCertVerificationError as error:
        message = f"the certificate of {connection.host} is not valid: {error.verify_message}"
        raise Undelivered(message) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        if deadline.passed:
            raise deadline.over() from error
        message = f"{connection.host} broke off: {str(error) or type(error).__name__}"
        raise Undelivered(message) from error
    finally:
        connection.close()
    if deadline.passed:  # what was cut off looks like an answer that has ended
        raise deadline.over()
    _judge(answer.status, said)


def _judge(status: int, said: bytes) -> None:
    if status in _SUCCESS:
        return
    if status in _REDIRECTION:
        message = f"it answered {status}; redirects are not followed: give its URL as it is now"
        raise Undelivered(message, final=True)
    told = " ".join(said.decode("utf-8", "replace").split())[:_MOST_SHOWN]
    printable = "".join(letter for letter in told if letter.isprintable())
    msg = f"it answered {status}{f': {printable}' if printable else ''}"
    raise Undelivered(msg, final=status == _GONE)
