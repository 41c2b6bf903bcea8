"""Opens Armada's door: its calls by gRPC, and by its gateway over HTTP with JSON, on the port of REST."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.api.armada import events, jobs, logs, nodes, policies, queues, submissions  # noqa: F401 - each registers its calls
from holdfast.api.armada.calls import CALLS, LARGEST_MESSAGE
from holdfast.api.armada.gateway import Gateway
from holdfast.api.armada.introspection import health, reflected
from holdfast.api.armada.routes import PREFIX
from holdfast.api.connect.grpc_serving import GrpcServer, GrpcSettings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holdfast.api.connect.serving import Setup
    from holdfast.domain.audit import Caller

__all__ = ["LARGEST_MESSAGE", "PREFIX", "ArmadaDoor", "GrpcSettings"]


class ArmadaDoor:
    """The door while it is open."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self.gateway = Gateway(setup)
        self._grpc: GrpcServer | None = None

    def open(self, caller: Callable[[str | None, str], Awaitable[Caller]], settings: GrpcSettings) -> str:
        """Listen for gRPC, too, and return the address.

        Args:
            caller: Returns the caller, given the authorization and the address that the call came from.
            settings: Where to listen, and how much callers may take.

        Raises:
            Unavailable: The port is taken.
        """
        server = GrpcServer(CALLS, self._setup, caller, settings, [health(self._setup, settings), reflected()])
        address = server.open()
        self._grpc = server
        return address

    def close(self) -> None:
        """Answer no more."""
        if self._grpc is not None:
            self._grpc.close()
        self._setup.threads.shutdown(wait=False, cancel_futures=True)
