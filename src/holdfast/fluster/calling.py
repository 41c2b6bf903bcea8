"""Calls a server's door by Connect, and retries while the server is killed or restarted."""

from __future__ import annotations

import os
import ssl
import time
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import httpx

from holdfast.client.forking import after_fork

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.message import Message

M = TypeVar("M", bound="Message")
CONTROLLER = "/fluster.cluster.ControllerService/"
WORKER = "/fluster.cluster.WorkerService/"
PATIENCE_S = 600.0
"""How long a server may be away."""
LIMIT_MS = 60_000
FIRST_S, LONGEST_S, FACTOR = 0.1, 2.0, 1.5
"""Pauses between tries: the first, the longest, and the factor by which they grow."""
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_AGAIN = frozenset({"unavailable", "internal", "deadline_exceeded", "resource_exhausted"})


class ClusterError(Exception):
    """A call was refused."""

    def __init__(self, code: str, message: str) -> None:
        """``code`` is Connect's, such as ``already_exists``."""
        super().__init__(f"{code}: {message}")
        self.code = code


class Calling:
    """Calls one server, or its workers at the addresses that the server gives."""

    def __init__(
        self, address: str, *, token: str | None = None, patience_s: float = PATIENCE_S, timeout_ms: int = LIMIT_MS
    ) -> None:
        """Prepare to call a server; nothing is sent yet.

        Args:
            address: The server's, such as ``http://127.0.0.1:7070``.
            token: The token to send; by default ``HOLDFAST_TOKEN``, if that is set.
            patience_s: How long it may be away before a call fails.
            timeout_ms: How long one try of a call may take.
        """
        shown = token or os.environ.get("HOLDFAST_TOKEN")
        headers = {"content-type": "application/proto"} | ({"authorization": f"Bearer {shown}"} if shown else {})
        self.address = (address if "://" in address else f"http://{address}").rstrip("/")
        # On this machine no proxy is used, whatever the environment says.
        here = (urlsplit(self.address).hostname or "") in _HERE
        # The default context reads SSL_CERT_FILE.
        trusted = ssl.create_default_context() if self.address.startswith("https:") else True
        self._connect = partial(
            httpx.Client, headers=headers, timeout=timeout_ms / 1000, trust_env=not here, verify=trusted
        )
        self._http: httpx.Client | None = self._connect()
        self._patience_s = patience_s
        after_fork(self, Calling._renew)

    def __call__(
        self, method: str, request: Message, answered: type[M], *, where: Callable[[], str] | None = None
    ) -> M:
        """Call a method until it is answered; the door treats a repeated launch as one.

        Args:
            method: The path of the method.
            request: The request.
            answered: The type of the answer.
            where: Returns the address for each try; by default the server's.

        Raises:
            ClusterError: The call is refused.
            httpx.TransportError: The server has been away for too long.
        """
        until, pause_s, body = time.monotonic() + self._patience_s, FIRST_S, request.SerializeToString()
        while True:
            try:
                answer = self._connected().post(f"{where() if where else self.address}{method}", content=body)
                if answer.status_code == httpx.codes.OK:
                    return answered.FromString(answer.content)
                error: Exception = _refusal(answer)
                if isinstance(error, ClusterError) and error.code not in _AGAIN:
                    raise error
            except (httpx.UnsupportedProtocol, httpx.LocalProtocolError):
                raise  # the request is not valid, so waiting is of no use
            except httpx.TransportError as away:
                error = away
            if time.monotonic() >= until:
                raise error
            time.sleep(pause_s)
            pause_s = min(pause_s * FACTOR, LONGEST_S)

    def at(self, place: str) -> str:
        """Return the address of a worker, which is given without a scheme and has the server's."""
        return place if "://" in place else f"{self.address.partition('://')[0]}://{place}"

    def _connected(self) -> httpx.Client:
        if self._http is None:
            self._http = self._connect()
        return self._http

    def _renew(self) -> None:
        self._http = None

    def close(self) -> None:
        """Close its connections."""
        if self._http is not None:
            self._http.close()


def _refusal(answer: httpx.Response) -> ClusterError:
    try:
        refusal = answer.json()
        return ClusterError(str(refusal["code"]), str(refusal.get("message", "")))
    except (ValueError, KeyError, TypeError):
        code = "unavailable" if answer.is_server_error else "unknown"
        return ClusterError(code, f"HTTP status {answer.status_code}")
