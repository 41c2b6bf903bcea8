"""Plain HTTP requests to the API inside this process, for tests of what is in the answers besides their content."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
from anyio.from_thread import start_blocking_portal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from anyio.from_thread import BlockingPortal
    from starlette.types import ASGIApp


class _Transport(httpx.BaseTransport):
    def __init__(self, app: ASGIApp, portal: BlockingPortal) -> None:
        self._asgi = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        self._portal = portal

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        return self._portal.call(self._answer, request)

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        response = await self._asgi.handle_async_request(request)
        return httpx.Response(response.status_code, headers=response.headers, content=await response.aread())


@contextmanager
def asking(app: ASGIApp, headers: Mapping[str, str] | None = None) -> Iterator[httpx.Client]:
    """Open a client for as long as the context lasts."""
    with (
        start_blocking_portal() as portal,
        httpx.Client(base_url="http://holdfast", transport=_Transport(app, portal), headers=headers) as client,
    ):
        yield client
