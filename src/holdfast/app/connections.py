"""Connections to the API: how many there may be, and how long one may take to send a request.

When there are too many, those that are not being answered are closed: first those without a whole request, the oldest
first. So a caller that sends its request gets its answer, however many others only hold connections open, and file
descriptors are left for the database and the engine.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, TypeAlias

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from holdfast.api.http.serving.gates import PEER
from holdfast.client.unix import peer_of
from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.app.entrance.tls import Certificates

Network: TypeAlias = IPv4Network | IPv6Network
_log = logging.getLogger(__name__)

_FILES_OF_OTHERS = 96
"""Files for everything but connections: the database, the shim, logs that are read."""
_MOST_AT_ONCE, _LEAST_AT_ONCE = 128, 4
_SHARE_AT_ONCE = 16
_TURNS = 4
"""How many times as many are open before the first of them is sent away: that takes turns of the loop."""
_QUEUE = 1024
"""How many may wait in the kernel, which costs no files."""
_HANDSHAKE_S = 10.0
"""How long it may take to agree on a key."""
_LOOK_TICKS = 20
"""How many ticks of the server, of 0.1 s, lie between two looks at its certificate."""
_LOOPBACK = ("127.0.0.0/8", "::1/128")
_TELL_EVERY_S = 60.0
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Bounds(Struct, frozen=True):
    """How much callers may take."""

    most: int
    """Connections at a time."""
    at_once: int
    """Connections accepted in one turn of the loop."""
    request_s: float
    """How long a request may take to arrive."""


def bounds(most: int, request_s: float, *, files: int | None = None) -> Bounds:
    """Return what there can be of ``most`` connections where a process may open so many files; ``None``: as it may."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if files is None else files
    if limit == resource.RLIM_INFINITY:
        return Bounds(most, _MOST_AT_ONCE, request_s)
    at_once = max(_LEAST_AT_ONCE, min(_MOST_AT_ONCE, limit // _SHARE_AT_ONCE))
    return Bounds(max(_LEAST_AT_ONCE, min(most, limit - _FILES_OF_OTHERS - _TURNS * at_once)), at_once, request_s)


class Doorway:
    """The connections there are."""

    def __init__(self, most: int) -> None:
        """Begin with none."""
        self._most = most
        self._new: dict[GuardedProtocol, None] = {}
        self._resting: dict[GuardedProtocol, None] = {}
        self._answered: set[GuardedProtocol] = set()
        self._sent_away, self._told_at = 0, float("-inf")

    def enter(self, caller: GuardedProtocol) -> bool:
        """Let a connection in, in another's place if need be; returns false when all of them are being answered."""
        if len(self._new) + len(self._resting) + len(self._answered) >= self._most and not self._make_way(caller):
            return False
        self._new[caller] = None
        return True

    def _make_way(self, caller: GuardedProtocol) -> bool:
        self._sent_away += 1
        now = caller.loop.time()
        if now - self._told_at >= _TELL_EVERY_S:
            _log.warning("too many connections; closed %d that sent no request", self._sent_away)
            self._sent_away, self._told_at = 0, now
        oldest = next(iter(self._new or self._resting), None)
        if oldest is not None:
            self.leave(oldest)
            oldest.transport.abort()
        return oldest is not None

    def answering(self, caller: GuardedProtocol) -> None:
        """Take note that a request of a connection is being answered."""
        if self.leave(caller):
            self._answered.add(caller)

    def resting(self, caller: GuardedProtocol) -> None:
        """Take note that nothing of a connection is being answered."""
        if caller in self._answered:
            self._answered.remove(caller)
            self._resting[caller] = None

    def leave(self, caller: GuardedProtocol) -> bool:
        """Forget a connection; returns whether it was there."""
        there = caller in self._new or caller in self._resting or caller in self._answered
        self._new.pop(caller, None)
        self._resting.pop(caller, None)
        self._answered.discard(caller)
        return there


class GuardedProtocol(H11Protocol):
    """HTTP/1.1 over a connection with a limited time to send a request, from its first byte or from when it came."""

    doorway: Doorway
    request_s: float
    trusted: Sequence[Network] | None
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as its parent
        """Begin, or say that there is no place."""
        super().connection_made(transport)
        connected = transport.get_extra_info("socket")
        if connected is not None and connected.family == socket.AF_UNIX:
            self.app_state = {**self.app_state, PEER: peer_of(connected)[1]}  # the beginning of each request's state
        elif connected is not None:  # asyncio does so only where a listener was made with the protocol's number
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.trusted is not None and not _is_within(self.trusted, self.client):
            transport.abort()
        elif self.doorway.enter(self):
            self._expect_request()
        else:
            transport.write(_FULL)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self.doorway.leave(self)
        self._expect_nothing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Go on reading a request, or begin another."""
        self._expect_request()
        super().data_received(data)

    def handle_events(self) -> None:
        """Act on what was read."""
        super().handle_events()
        self._look()

    def on_response_complete(self) -> None:
        """Rest, or go on with what was read meanwhile."""
        super().on_response_complete()
        self._look()

    def _look(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:  # type: ignore[redundant-expr] # None at first
            self.doorway.answering(self)
        else:
            self.doorway.resting(self)
        if self.conn.their_state not in {h11.IDLE, h11.SEND_BODY}:
            self._expect_nothing()

    def _expect_request(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.request_s, self.transport.abort)

    def _expect_nothing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _is_within(networks: Sequence[Network], client: tuple[str, int] | None) -> bool:
    """Whether a connection comes from there, or by a Unix socket."""
    if client is None:
        return True
    address = ip_address(client[0].partition("%")[0])
    return any(address in one for one in networks)


def protocol(allowed: Bounds, proxies: Sequence[Network] | None = None) -> type[GuardedProtocol]:
    """Return the protocol for the connections of one server.

    Args:
        allowed: How much callers may take.
        proxies: From where else than this machine connections are taken; ``None``: from anywhere.
    """

    class Guarded(GuardedProtocol):
        doorway = Doorway(allowed.most)
        request_s = allowed.request_s
        trusted = None if proxies is None else (*map(ip_network, _LOOPBACK), *proxies)

    return Guarded


class Server(uvicorn.Server):
    """Accepts few connections in one turn, and lets more wait outside meanwhile."""

    def __init__(self, config: uvicorn.Config, shown: Certificates | None = None) -> None:
        """Show a certificate to those that come by a network address."""
        super().__init__(config)
        self._shown = shown

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        await self.lifespan.startup()
        loop, self.servers = asyncio.get_running_loop(), []
        for one in sockets or ():
            context = None if self._shown is None or one.family == socket.AF_UNIX else self._shown.context
            limit_s = None if context is None else _HANDSHAKE_S
            made = await loop.create_server(
                self._protocol, sock=one, ssl=context, ssl_handshake_timeout=limit_s, backlog=self.config.backlog
            )
            self.servers.append(made)
            one.listen(_QUEUE)
        self.started = True

    def _protocol(self) -> asyncio.Protocol:
        kind = self.config.http_protocol_class
        return kind(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)  # type: ignore[call-arg] # as its parent has it

    async def on_tick(self, counter: int) -> bool:
        """Look now and then whether the certificate was renewed."""
        if self._shown is not None and counter % _LOOK_TICKS == 0:
            self._shown.look()
        return await super().on_tick(counter)
