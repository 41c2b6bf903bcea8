"""Hands requests for the paths of doors to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send


class DoorGate:
    """Stands before whatever asks for a token in our way: doors have their own ways to show one, and to refuse."""

    def __init__(self, app: ASGIApp, *, doors: Mapping[str, ASGIApp]) -> None:
        """Stand before ``app``; ``doors`` are by how their paths begin, and may be opened and closed later."""
        self._app = app
        self._doors = doors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        path = scope["path"] if scope["type"] == "http" else ""
        door = next((door for prefix, door in self._doors.items() if path.startswith(prefix)), self._app)
        await door(scope, receive, send)
