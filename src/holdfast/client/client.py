"""The client: every call of the API, typed; refusals are raised as the errors of ``holdfast.errors``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from holdfast.client.arrays import ArrayCalls
from holdfast.client.attachments import AttachmentCalls
from holdfast.client.connection import TIMEOUT_S, ServerConnection
from holdfast.client.entries import OfEntries
from holdfast.client.events import EventCalls
from holdfast.client.figures import FigureCalls
from holdfast.client.jobs import JobCalls
from holdfast.client.jobsets import JobSetCalls
from holdfast.client.operating import OperatingCalls
from holdfast.client.workloads import WorkloadCalls
from holdfast.wire.base import API
from holdfast.wire.catalogue import Health, MeView, VersionView

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.client.connection import Connection
    from holdfast.client.transport import Transport
    from holdfast.domain.terms.kinds import KindInfo


class Client(
    JobCalls,
    ArrayCalls,
    JobSetCalls,
    OfEntries,
    OperatingCalls,
    FigureCalls,
    EventCalls,
    AttachmentCalls,
):
    """A connection to one Holdfast server; not to be shared between threads."""

    def __init__(
        self,
        base_url: str = "",
        token: str | None = None,
        *,
        transport: Transport | None = None,
        timeout_s: float = TIMEOUT_S,
        pause: Callable[[float], None] = time.sleep,
        connection: Connection | None = None,
    ) -> None:
        """Set up a client; nothing is sent yet.

        Args:
            base_url: Such as ``http://127.0.0.1:7070``, or ``unix:///run/holdfast/holdfast.sock``.
            token: The server's token.
            transport: Another way to reach it; closed with the client.
            timeout_s: For one request.
            pause: How to wait before a request is sent again.
            connection: Another way to a Holdfast than a server's address; closed with the client.
        """
        self._connection: Connection = connection or ServerConnection(
            base_url, token, transport=transport, timeout_s=timeout_s, pause=pause
        )

    @property
    def connection(self) -> Connection:
        """The connection that carries its requests."""
        return self._connection

    def of(self, kind: KindInfo) -> WorkloadCalls:
        """Return the calls that work of every kind has, for one kind."""
        return WorkloadCalls(self._connection, kind)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; may be called twice."""
        self._connection.close()

    def me(self) -> MeView:
        """Read the caller's name and rights, as the server knows them."""
        return self._connection.get(f"{API}/me", MeView)

    def version(self) -> VersionView:
        """Read the server's version."""
        return self._connection.get(f"{API}/version", VersionView)

    def health(self) -> Health:
        """Check whether the server works.

        Raises:
            Unavailable: It does not work, or cannot be reached.
        """
        return self._connection.get("/readyz", Health)

    def metrics(self) -> str:
        """Read the server's metrics as Prometheus text."""
        return self._connection.send("GET", "/metrics").text
