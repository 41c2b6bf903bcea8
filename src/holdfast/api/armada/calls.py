"""What a call of the door is: a service and a method, and the function that answers it.

The functions are in ``queues``, ``submissions``, ``policies``, ``jobs``, ``events``, ``logs`` and ``nodes``, one each;
what the services declare beside them is not implemented, and says so. ``serving`` answers
gRPC with them, ``gateway`` HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeAlias, TypeVar

from holdfast.api.connect.calls import Rpc

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from google.protobuf.message import Message

    from holdfast.domain.audit import Caller

SERVICES = (
    "api.Submit",
    "api.QueueService",
    "api.RetryPolicyService",
    "api.Event",
    "api.Jobs",
    "api.Node",
    "binoculars.Binoculars",
)


P = ParamSpec("P")
T = TypeVar("T")


class Following(Protocol):
    """What a call works with that follows what happens."""

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call something that takes its time, in a thread."""
        ...

    def admitted(self, caller: Caller) -> AbstractContextManager[None]:
        """Count as one of somebody's that follows for as long as the context lasts; too many are refused."""
        ...

    def stopping(self) -> bool:
        """Whether the server is about to stop."""
        ...

    async def news(self, after: int) -> None:
        """Wait until there may be an event after this one."""
        ...


Answer: TypeAlias = "Message | Iterable[Message] | None"
"""One message, or all of a stream; ``None`` is an empty one."""
Call: TypeAlias = Callable[[Rpc, Any], Answer]
Stream: TypeAlias = Callable[[Rpc, Any, Following], AsyncGenerator[Sequence[Any], None]]
CALLS: dict[tuple[str, str], Call] = {}
"""By service and method."""


C = TypeVar("C", bound=Call)
F = TypeVar("F", bound=Stream)


def answers(method: str, *services: str) -> Callable[[C], C]:
    """Register the decorated function for a method of each of these services."""

    def register(call: C) -> C:
        for service in services:
            CALLS[service, method] = call
        return call

    return register


STREAMS: dict[tuple[str, str], Stream] = {}
"""Those that go on for as long as somebody reads; what there is at once comes as one part."""


def streams(method: str, *services: str) -> Callable[[F], F]:
    """Register the decorated function for a method of each of these services, which goes on as long as it is read."""

    def register(stream: F) -> F:
        for service in services:
            STREAMS[service, method] = stream
        return stream

    return register
