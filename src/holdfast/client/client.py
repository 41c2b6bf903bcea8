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
from holdfast.client.notifications import NotificationCalls
from holdfast.client.operating import OperatingCalls
from holdfast.client.tokens import TokenCalls
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
    NotificationCalls,
    EventCalls,
    AttachmentCalls,
    TokenCalls,
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
        """Remember where the server is; nothing is sent yet.

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
        """What it sends its requests by."""
        return self._connection

    def of(self, kind: KindInfo) -> WorkloadCalls:
        """Return what can be done with work of a kind, as far as all kinds are alike."""
        return WorkloadCalls(self._connection, kind)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection; double close is fine."""
        self._connection.close()

    def me(self) -> MeView:
        """Read who asks, as the server knows them."""
        return self._connection.get(f"{API}/me", MeView)

    def version(self) -> VersionView:
        """Read the server's version."""
        return self._connection.get(f"{API}/version", VersionView)

    def health(self) -> Health:
        """Tell whether the server can work.

        Raises:
            Unavailable: It cannot, or cannot be reached.
        """
        return self._connection.get("/readyz", Health)

    def metrics(self) -> str:
        """Read the server's metrics as Prometheus text."""
        return self._connection.send("GET", "/metrics").text
