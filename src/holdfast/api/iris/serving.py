"""Opens Iris' door: its calls by Connect, on the port of the REST API; logs have a path of their own."""

from __future__ import annotations

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
from holdfast.domain.record import evolve
from holdfast.service.launches import Launches
from holdfast.service.manifests.iris import SYSTEM, TaskServer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send


__all__ = ["IrisDoor", "IrisSettings", "TaskServer"]


class IrisDoor:
    """The door while it is open."""

    def __init__(self, setup: Setup, place: IrisSettings) -> None:
        self.place = place
        self.launches = Launches(setup.backend, SYSTEM, again_s=place.again_s)
        self._setup = evolve(setup, door=self)
        connect = Connect(CALLS, self._setup)
        self.mounts: Mapping[str, ASGIApp] = {PREFIX: connect, f"{LOG_SERVER}/": _Below(connect, LOG_SERVER)}
        """The applications, by path prefix."""

    def close(self) -> None:
        """Stop answering."""
        self.launches.close()
        self._setup.threads.shutdown(wait=False, cancel_futures=True)


class _Below:
    """Removes a prefix from the paths of requests."""

    def __init__(self, app: ASGIApp, path: str) -> None:
        self._app = app
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, "path": scope["path"].removeprefix(self._path)}, receive, send)
