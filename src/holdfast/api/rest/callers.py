"""Who calls, from where, and with which request: what the audit log records."""

import secrets
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from holdfast.api.rest.context import Use
from holdfast.domain.audit import Caller

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

REQUEST_ID = "x-request-id"
LONGEST_REQUEST_ID = 128
IN_PROCESS = "in-process"
_BYTES = 8


class RequestIdGate:
    """Gives every request an id, the caller's own where it sent one, and returns it with the answer."""

    def __init__(self, app: "ASGIApp") -> None:
        """Stand before ``app``."""
        self._app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _given(scope) or secrets.token_hex(_BYTES)
        scope.setdefault("state", {})["request_id"] = request_id

        async def named(message: "Message") -> None:
            if message["type"] == "http.response.start":
                header = (REQUEST_ID.encode(), request_id.encode())
                message = {**message, "headers": [*message.get("headers", ()), header]}
            await send(message)

        await self._app(scope, receive, named)


def _given(scope: "Scope") -> str:
    """Return the id a caller sent, unless it is unfit for a log."""
    for name, value in scope["headers"]:
        if name.lower() == REQUEST_ID.encode():
            text = value.decode("latin-1")
            return text if text.isascii() and text.isprintable() and len(text) <= LONGEST_REQUEST_ID else ""
    return ""


def _caller(request: Request, use: Use) -> Caller:
    actor: str | None = request.app.state.actor
    address = request.client.host if request.client else ""
    return Caller(
        actor=actor or "token:local",
        at=use.control.clock.now(),
        origin=address if actor is None else IN_PROCESS,
        request_id=request.state.request_id,
    )


By = Annotated[Caller, Depends(_caller)]
"""A parameter of this type is given who asks."""
