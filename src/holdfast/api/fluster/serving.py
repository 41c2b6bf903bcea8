"""Opens Fluster's door: its calls by Connect, on the port of the REST API, and by gRPC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.api.connect.grpc_serving import GrpcServer, GrpcSettings
from holdfast.api.connect.serving import LARGEST_MESSAGE, Connect, Setup
from holdfast.api.fluster import endpoints, jobs, logs, workers  # noqa: F401 - each registers its calls
from holdfast.api.fluster.calls import CALLS, PREFIX
from holdfast.domain.record import Struct, evolve
from holdfast.service.launches import Launches
from holdfast.service.manifests.fluster import SYSTEM

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holdfast.domain.audit import Caller

__all__ = ["LARGEST_MESSAGE", "PREFIX", "FlusterDoor", "FlusterSettings", "GrpcSettings"]


class FlusterSettings(Struct, frozen=True):
    """Where clients find the door, and how long it remembers their launches."""

    address: str
    """As ``HOST:PORT``."""
    again_s: float
    """How long a launch that is sent again gets the answer of the first."""


class FlusterDoor:
    """The door while it is open."""

    def __init__(self, setup: Setup, settings: FlusterSettings) -> None:
        self.launches = Launches(setup.backend, SYSTEM, again_s=settings.again_s, written=setup.written)
        self.address = settings.address
        self.setup = evolve(setup, door=self, together=self.launches.submit)
        self.connect = Connect(CALLS, self.setup)
        self._grpc: GrpcServer | None = None

    def open(self, caller: Callable[[str | None, str], Awaitable[Caller]], listening: GrpcSettings) -> str:
        """Listen for gRPC, too, and return the address.

        Args:
            caller: Finds the caller by the authorization and the address of a call.
            listening: Where to listen, and how much callers may take.

        Raises:
            Unavailable: The port is taken.
        """
        server = GrpcServer(CALLS, self.setup, caller, listening)
        address = server.open()
        self._grpc = server
        return address

    def close(self) -> None:
        """Stop answering."""
        if self._grpc is not None:
            self._grpc.close()
        self.launches.close()
        self.setup.threads.shutdown(wait=False, cancel_futures=True)
