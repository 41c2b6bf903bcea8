"""Opens Armada's door: its calls by gRPC, and by its gateway over HTTP with JSON, on the port of REST."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from holdfast.api.armada import events, jobs, logs, nodes, policies, queues, submissions  # noqa: F401 - each registers its calls
from holdfast.api.armada.calls import CALLS, LARGEST_MESSAGE
from holdfast.api.armada.gateway import Gateway
from holdfast.api.armada.introspection import health, reflected
from holdfast.api.armada.routes import PREFIX
from holdfast.api.connect.grpc_serving import GrpcServer, GrpcSettings
from holdfast.api.connect.serving import Setup

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import Scope

    from holdfast.api.budget import MemoryBudget
    from holdfast.domain.audit import Caller
    from holdfast.errors import HoldfastError
    from holdfast.service.listeners import Listeners
    from holdfast.service.operations.backend import Backend

__all__ = ["LARGEST_MESSAGE", "PREFIX", "ArmadaDoor", "GrpcSettings"]
_WORKERS = 8


class ArmadaDoor:
    """The door while it is open."""

    def __init__(
        self,
        backend: Backend,
        caller: Callable[[Scope], Awaitable[Caller]],
        refusal: Callable[[], HoldfastError | None],
        written: Callable[[], None],
        budget: MemoryBudget,
        listeners: Listeners,
    ) -> None:
        """Open it.

        Args:
            backend: What answers.
            caller: Returns the caller of a request over HTTP; refuses strangers.
            refusal: Returns why nothing may be written now, if so.
            written: Called after each call that may have written something.
            budget: Bounds the requests that are accepted and not answered yet.
            listeners: How many calls may follow events.
        """
        self._threads = ThreadPoolExecutor(_WORKERS, thread_name_prefix="armada")
        self._setup = Setup(backend, caller, self._threads, budget, refusal, written, listeners=listeners)
        self.gateway = Gateway(self._setup)
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
        self._threads.shutdown(wait=False, cancel_futures=True)
