"""What a door answers: the methods of its services, and the function that answers each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from holdfast.domain.record import Struct, evolve

if TYPE_CHECKING:
    from concurrent.futures import Future

    from google.protobuf.message import Message

    from holdfast.api.protobuf import Protocol
    from holdfast.domain.audit import Caller
    from holdfast.service.operations.backend import Backend


class Rpc(Struct, frozen=True):
    """A remote call as its method finds it: who makes it, and what it works with."""

    backend: Backend
    caller: Caller
    door: Any = None
    """What else the door has, of its own kind."""
    reached: str = ""
    """Where its caller reached the server, as ``HOST:PORT``; empty where that is not known."""
    scheme: str = "http"
    """By which protocol."""


Answer: TypeAlias = "Message | Future[Any] | None"
"""A message, now or in a future; ``None`` is an empty one."""
Call: TypeAlias = Callable[[Rpc, Any], Answer]
C = TypeVar("C", bound=Call)
_READING = ("Get", "List", "Lookup", "Fetch", "Health")
"""How the names of methods begin that change nothing."""


class Method(Struct, frozen=True):
    """One method of a service."""

    service: str
    name: str
    sent: type[Message]
    answered: type[Message]
    call: Call | None = None
    """``None``: it is not implemented."""
    why_not: str = ""
    """Why, if there is a reason."""
    together: bool = False
    """Whether calls that come at about the same time are answered together, as far as they are small."""

    @property
    def path(self) -> str:
        """Where it is called, in Connect as in gRPC."""
        return f"/{self.service}/{self.name}"

    @property
    def reads(self) -> bool:
        """Whether it changes nothing."""
        return self.name.startswith(_READING)


class Methods:
    """The methods of a door's services, by their paths."""

    def __init__(self, protocol: Protocol, *services: str) -> None:
        """Begin with methods of which none is implemented."""
        self.methods: dict[str, Method] = {}
        self.services = services
        for service in services:
            for declared in protocol.service(service).methods:
                request, answered = (
                    protocol.message(descriptor.full_name) for descriptor in (declared.input_type, declared.output_type)
                )
                method = Method(service, declared.name, request, answered)
                self.methods[method.path] = method

    def answers(self, method: str, service: str, *, together: bool = False) -> Callable[[C], C]:
        """Register the decorated function for a method."""

        def register(call: C) -> C:
            path = f"/{service}/{method}"
            self.methods[path] = evolve(self.methods[path], call=call, together=together)
            return call

        return register

    def leave_out(self, method: str, service: str, why: str) -> None:
        """Say why a method is not implemented."""
        path = f"/{service}/{method}"
        self.methods[path] = evolve(self.methods[path], why_not=why)
