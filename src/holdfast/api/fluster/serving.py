"""Opens Fluster's door: its calls by Connect, on the port of REST, and by gRPC."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from holdfast.api.connect.grpc_serving import GrpcServer, GrpcSettings
from holdfast.api.connect.serving import Connect, Setup
from holdfast.api.fluster import endpoints, jobs, logs, workers  # noqa: F401 - each registers its calls
from holdfast.api.fluster.calls import CALLS, PREFIX
from holdfast.domain.record import Struct
from holdfast.service.launches import Launches
from holdfast.service.manifests.fluster import SYSTEM

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import Scope

    from holdfast.api.budget import MemoryBudget
    from holdfast.domain.audit import Caller
    from holdfast.errors import HoldfastError
    from holdfast.service.operations.backend import Backend

__all__ = ["PREFIX", "FlusterDoor", "GrpcSettings", "Own"]
_WORKERS = 8


class Own(Struct, frozen=True):
    """What is the door's own."""

    address: str
    """Where clients find it, as ``HOST:PORT``."""
    again_s: float
    """How long a launch that is sent again is answered as the first time."""


class FlusterDoor:
    """The door while it is open."""

    def __init__(
        self,
        backend: Backend,
        caller: Callable[[Scope], Awaitable[Caller]],
        refusal: Callable[[], HoldfastError | None],
        written: Callable[[], None],
        budget: MemoryBudget,
        own: Own,
    ) -> None:
        """Open it.

        Args:
            backend: What answers.
            caller: Says who sent a request; refuses strangers.
            refusal: Says why nothing may be taken in, if so.
            written: Told after each call that may have written something.
            budget: Of what is accepted, and not answered yet.
            own: What is the door's own.
        """
        self.launches = Launches(backend, SYSTEM, again_s=own.again_s, written=written)
        self.address = own.address
        self.threads = ThreadPoolExecutor(_WORKERS, thread_name_prefix="fluster")
        self.setup = Setup(backend, caller, self.threads, budget, refusal, written, self, self.launches.submit)
        self.connect = Connect(CALLS, self.setup)
        self._grpc: GrpcServer | None = None

    def open(self, caller: Callable[[str | None, str], Awaitable[Caller]], listening: GrpcSettings) -> str:
        """Listen for gRPC, too, and return the address.

        Args:
            caller: Says who calls, from the authorization that was sent and the address it came from.
            listening: Where, and how much callers may take.

        Raises:
            Unavailable: The port is taken.
        """
        server = GrpcServer(CALLS, self.setup, caller, listening)
        address = server.open()
        self._grpc = server
        return address

    def close(self) -> None:
        """Answer no more."""
        if self._grpc is not None:
            self._grpc.close()
        self.launches.close()
        self.threads.shutdown(wait=False, cancel_futures=True)
