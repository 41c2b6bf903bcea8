"""Opens Iris' door: its calls by Connect, on the port of the REST API; logs have a path of their own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from holdfast.api.connect.serving import Connect, Setup
from holdfast.api.iris import (  # noqa: F401 - each registers its calls
    endpoints,
    jobs,
    launching,
    logs,
    tasks,
    workers,
)
from holdfast.api.iris.calls import CALLS, LOG_SERVER, PREFIX, IrisSettings
from holdfast.service.launches import Launches
from holdfast.service.manifests.iris import SYSTEM, TaskServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

    from holdfast.api.budget import MemoryBudget
    from holdfast.domain.audit import Caller
    from holdfast.errors import HoldfastError
    from holdfast.service.operations.backend import Backend

__all__ = ["IrisDoor", "IrisSettings", "TaskServer"]
_WORKERS = 8


class IrisDoor:
    """The door while it is open."""

    def __init__(
        self,
        backend: Backend,
        caller: Callable[[Scope], Awaitable[Caller]],
        refusal: Callable[[], HoldfastError | None],
        written: Callable[[], None],
        budget: MemoryBudget,
        place: IrisSettings,
    ) -> None:
        """Open it.

        Args:
            backend: Answers the calls.
            caller: Finds the caller of a request, or refuses it.
            refusal: Returns why the server accepts nothing, or ``None``.
            written: Called after each call that may have written something.
            budget: Counts the memory of requests that are accepted and not yet answered.
            place: What tasks are told of the server.
        """
        self._threads = ThreadPoolExecutor(_WORKERS, thread_name_prefix="iris")
        self.place = place
        self.launches = Launches(backend, SYSTEM, again_s=place.again_s)
        connect = Connect(CALLS, Setup(backend, caller, self._threads, budget, refusal, written, self))
        self.mounts: Mapping[str, ASGIApp] = {PREFIX: connect, f"{LOG_SERVER}/": _Below(connect, LOG_SERVER)}
        """The applications, by path prefix."""

    def close(self) -> None:
        """Stop answering."""
        self.launches.close()
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Below:
    """Removes a prefix from the paths of requests."""

    def __init__(self, app: ASGIApp, path: str) -> None:
        self._app = app
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, "path": scope["path"].removeprefix(self._path)}, receive, send)
