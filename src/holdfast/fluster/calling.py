"""Calls the door of a server by Connect, again and again while that is killed or restarted."""

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
"""Pauses: the first, the longest, and by what each is longer than the one before."""
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_AGAIN = frozenset({"unavailable", "internal", "deadline_exceeded", "resource_exhausted"})


class ClusterError(Exception):
    """A call was refused."""

    def __init__(self, code: str, message: str) -> None:
        """Remember Connect's code, such as ``already_exists``, and why."""
        super().__init__(f"{code}: {message}")
        self.code = code


class Calling:
    """Calls one server, or its workers at the addresses that it tells."""

    def __init__(
        self, address: str, *, token: str | None = None, patience_s: float = PATIENCE_S, timeout_ms: int = LIMIT_MS
    ) -> None:
        """Remember where it is; nothing is sent yet.

        Args:
            address: The server's, such as ``http://127.0.0.1:7070``.
            token: What it is shown; by default ``HOLDFAST_TOKEN``, if that is set.
            patience_s: How long it may be away before a call fails.
            timeout_ms: How long one try of a call may take.
        """
        shown = token or os.environ.get("HOLDFAST_TOKEN")
        headers = {"content-type": "application/proto"} | ({"authorization": f"Bearer {shown}"} if shown else {})
        self.address = (address if "://" in address else f"http://{address}").rstrip("/")
        here = (urlsplit(self.address).hostname or "") in _HERE  # where no proxy has to be asked, whatever is set
        trusted = ssl.create_default_context() if self.address.startswith("https:") else True  # with SSL_CERT_FILE
        self._connect = partial(
            httpx.Client, headers=headers, timeout=timeout_ms / 1000, trust_env=not here, verify=trusted
        )
        self._http: httpx.Client | None = self._connect()
        self._patience_s = patience_s
        after_fork(self, Calling._renew)

    def __call__(
        self, method: str, request: Message, answered: type[M], *, where: Callable[[], str] | None = None
    ) -> M:
        """Call a method until it is answered; the door takes the same launch as one.

        Args:
            method: Its path.
            request: What it is sent.
            answered: What it answers.
            where: Says before each try at which address; by default the server's.

        Raises:
            ClusterError: It is refused.
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
                raise  # no server is asked by that, however long one waits
            except httpx.TransportError as away:
                error = away
            if time.monotonic() >= until:
                raise error
            time.sleep(pause_s)
            pause_s = min(pause_s * FACTOR, LONGEST_S)

    def at(self, place: str) -> str:
        """Return the address of a worker, which is told without a scheme: it has the server's."""
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
