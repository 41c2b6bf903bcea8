"""Lets threads share a client: one request at a time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from holdfast.client import Client
from holdfast.client.connection import Connection
from holdfast.client.forking import after_fork

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.client.transport import HttpResponse


class _Shared(Connection):
    """Sends by another connection, one request at a time; streams have connections of their own."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._renew_lock()
        after_fork(self, _Shared._renew_lock)
        self.address, self.streams, self.pause = connection.address, connection.streams, connection.pause
        self.patience_s = connection.patience_s

    def _renew_lock(self) -> None:
        self._lock = threading.Lock()

    def send(self, method: str, path: str, *, repeatable: bool | None = None, **request: Any) -> HttpResponse:
        with self._lock:
            return self._connection.send(method, path, repeatable=repeatable, **request)

    def lines(self, path: str, *, params: Mapping[str, Any], headers: Mapping[str, str]) -> Iterator[str]:
        return self._connection.lines(path, params=params, headers=headers)

    def close(self) -> None:
        with self._lock:
            self._connection.close()


def shared(client: Client) -> Client:
    """Return a client of the same Holdfast that threads may share."""
    return Client(connection=_Shared(client.connection))
