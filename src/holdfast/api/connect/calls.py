"""What a door answers: the methods of its services, and the function that answers each."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from holdfast.domain.record import Struct, evolve

if TYPE_CHECKING:
    from concurrent.futures import Future

    from google.protobuf.message import Message

    from holdfast.api.connect.following import Following
    from holdfast.api.protobuf import Protocol
    from holdfast.domain.audit import Caller
    from holdfast.service.operations.backend import Backend


class Rpc(Struct, frozen=True):
    """A remote call as its method sees it: the caller, and what to answer with."""

    backend: Backend
    caller: Caller
    door: Any = None
    """What the methods of one door share beside the backend."""
    reached: str = ""
    """The address at which the caller reached the server, as ``HOST:PORT``; empty if it is not known."""
    scheme: str = "http"
    """The scheme of that address."""


Answer: TypeAlias = "Message | Iterable[Message] | Future[Any] | None"
"""One message, all messages of a finite stream, or a future message; ``None`` is an empty one."""
Call: TypeAlias = Callable[[Rpc, Any], Answer]
Stream: TypeAlias = "Callable[[Rpc, Any, Following], AsyncGenerator[Sequence[Any], None]]"
"""Follows events: yields the messages that are ready at the same time, as long as the client reads."""
C = TypeVar("C", bound=Call)
S = TypeVar("S", bound=Stream)
_READING = ("Get", "List", "Lookup", "Fetch", "Health", "Watch", "Logs")
"""How the names of methods begin that change nothing."""


class Method(Struct, frozen=True):
    """One method of a service; not implemented if it has neither a call nor a stream."""

    service: str
    name: str
    request: type[Message]
    response: type[Message]
    is_stream: bool = False
    """Whether the protocol declares several messages as the answer."""
    call: Call | None = None
    stream: Stream | None = None
    why_not: str = ""
    """Why it is not implemented, if there is a reason."""
    together: bool = False
    """Whether small calls that arrive at about the same time are answered together."""

    @property
    def path(self) -> str:
        """The path of the method, the same in Connect and in gRPC."""
        return f"/{self.service}/{self.name}"

    @property
    def reads(self) -> bool:
        """Whether it changes nothing."""
        return self.name.startswith(_READING)


class Methods:
    """The methods of a door's services, by their paths."""

    def __init__(self, protocol: Protocol, *services: str) -> None:
        """Begin with the declared methods, none of them implemented."""
        self.methods: dict[str, Method] = {}
        self.services = services
        for service in services:
            for declared in protocol.service(service).methods:
                request, answered = (
                    protocol.message(descriptor.full_name) for descriptor in (declared.input_type, declared.output_type)
                )
                method = Method(service, declared.name, request, answered, declared.server_streaming)
                self.methods[method.path] = method

    def answers(self, method: str, *services: str, together: bool = False) -> Callable[[C], C]:
        """Register the decorated function for a method of these services."""

        def register(call: C) -> C:
            self._change(method, services, call=call, together=together)
            return call

        return register

    def streams(self, method: str, *services: str) -> Callable[[S], S]:
        """Register the decorated function for a method of these services that follows events."""

        def register(stream: S) -> S:
            self._change(method, services, stream=stream)
            return stream

        return register

    def leave_out(self, method: str, service: str, why: str) -> None:
        """Say why a method is not implemented."""
        self._change(method, [service], why_not=why)

    def _change(self, method: str, services: Iterable[str], **changes: Any) -> None:  # noqa: ANN401 - of its fields
        for service in services:
            path = f"/{service}/{method}"
            self.methods[path] = evolve(self.methods[path], **changes)
