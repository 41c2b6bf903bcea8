"""Opens the doors by which other systems' clients come in: each speaks their protocol and calls the same operations."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import ipaddress
import secrets
from typing import TYPE_CHECKING

from holdfast.domain.access import Principal, Via
from holdfast.domain.record import Struct, evolve
from holdfast.errors import InvalidSetting, Problem, Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import ExitStack

    from holdfast.api.http.serving.app import Probes
    from holdfast.api.http.serving.gates import Entrance
    from holdfast.app.settings import Settings
    from holdfast.domain.audit import Caller
    from holdfast.service.operations.backend import Backend

DOORS = ("armada",)
ROOT = "root"
HIGHEST_PORT = 65_535
_ID_BYTES = 8


class Visitors(Struct, frozen=True):
    """Says who comes in by a door."""

    entrance: Entrance
    backend: Backend
    anonymous: Principal | None = None
    """Who those are who show nothing."""

    async def caller(self, authorization: str | None, peer: str) -> Caller:
        """Return who sent an authorization: a bearer token, or a token as the password of basic authentication.

        Raises:
            Unauthenticated: It is nobody who may come in.
            Unavailable: Nobody can say now.
        """
        who, request_id = await self._who(authorization), secrets.token_hex(_ID_BYTES)
        return await asyncio.to_thread(self.backend.caller, who, origin=peer, request_id=request_id)

    async def _who(self, authorization: str | None) -> Principal:
        own, shown = self.entrance.token, _token_in(authorization or "")
        if own is None or hmac.compare_digest(shown.encode(), own.encode()):
            return self.entrance.owner
        if authorization is None and self.anonymous is not None:
            return self.anonymous
        hint = "send the metadata authorization: Bearer TOKEN, or basic with it as the password"
        return await self.entrance.whose(shown, self.backend.access.shown, hint)


def _token_in(authorization: str) -> str:
    """Return what is shown, empty where that is nothing."""
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(value.strip(), validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""


def open_doors(
    stack: ExitStack, settings: Settings, entrance: Entrance, backend: Backend, probes: Probes
) -> Mapping[str, str]:
    """Open the doors that the settings name until the stack is left; returns their addresses.

    Raises:
        InvalidSetting: There is no such door, or an address is not a loopback address.
        Unavailable: A port is taken, or a library is not installed.
    """
    unknown = [
        Problem("HOLDFAST_DOORS", f"there is no door {name!r}", DOORS) for name in settings.doors if name not in DOORS
    ]
    if unknown:
        raise InvalidSetting(problems=unknown)
    return {name: _open_armada(stack, settings, entrance, backend, probes) for name in settings.doors}


def _open_armada(stack: ExitStack, settings: Settings, entrance: Entrance, backend: Backend, probes: Probes) -> str:
    host, port = _place("HOLDFAST_ARMADA_LISTEN", settings.armada_listen)
    try:
        from holdfast.api.armada.serving import Door, DoorSetup
    except ImportError as error:
        msg = "the door 'armada' needs a library that is not installed"
        raise Unavailable(msg, hint="pip install 'holdfast-scheduler[armada]'") from error
    visitors = Visitors(entrance, backend, _anonymous(settings, entrance))
    setup = DoorSetup(backend, visitors.caller, probes.refusal, probes.written, probes.stopping, settings.door_watches)
    door = Door(setup, host, port)
    address = door.open()
    stack.callback(door.close)
    return address


def _anonymous(settings: Settings, entrance: Entrance) -> Principal | None:
    """Return who those are who show nothing.

    Raises:
        InvalidSetting: They would be root.
    """
    name = settings.door_anonymous
    if name is None:
        return None
    if name == ROOT:
        problem = Problem("HOLDFAST_DOOR_ANONYMOUS", "cannot be root", hint="name a user, and give it a role in access")
        raise InvalidSetting(problems=[problem])
    if name == entrance.owner.name:
        return evolve(entrance.owner, via=Via.DOOR)
    return Principal(name, via=Via.DOOR)


def _place(setting: str, written: str) -> tuple[str, int]:
    """Read ``HOST:PORT``; only loopback addresses are taken, as there is no TLS yet."""
    host, _, port = written.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
        number = int(port)
    except ValueError:
        problem = Problem(setting, f"{written!r} is not an address and a port", hint="such as 127.0.0.1:50051")
        raise InvalidSetting(problems=[problem]) from None
    if not loopback or not 0 <= number <= HIGHEST_PORT:
        problem = Problem(setting, f"{written!r} is not a loopback address and a port", hint="such as 127.0.0.1:50051")
        raise InvalidSetting(problems=[problem])
    return host, number
