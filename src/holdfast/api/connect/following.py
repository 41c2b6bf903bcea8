"""What calls that follow events work with, on one event loop."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from holdfast.api.connect.refusals import Code, Rejected
from holdfast.domain.record import Struct
from holdfast.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import ThreadPoolExecutor

    from holdfast.domain.audit import Caller
    from holdfast.service.listeners import Listeners

P = ParamSpec("P")
T = TypeVar("T")
_QUIET_S = 15.0
"""How long a call waits for events before it checks whether the server is stopping."""


class Following(Struct, frozen=True):
    """Threads to read in, and the news of events."""

    threads: ThreadPoolExecutor
    listeners: Listeners

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that blocks, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, lambda: call(*args, **kwargs))

    @contextmanager
    def admitted(self, caller: Caller) -> Iterator[None]:
        """Count one more call of ``caller`` that follows events, until the context ends.

        Raises:
            Rejected: Too many do.
        """
        admitted = self.listeners.admitted(caller.principal)
        try:
            admitted.__enter__()
        except Unavailable as error:
            raise Rejected(Code.RESOURCE_EXHAUSTED, error.message) from error
        try:
            yield
        finally:
            admitted.__exit__(None, None, None)

    def stopping(self) -> bool:
        """Whether the server is about to stop."""
        return self.listeners.stopping()

    async def news(self, after: int) -> None:
        """Wait until there may be an event after this one."""
        await self.listeners.news(after, _QUIET_S)
