"""Limits connections to the API: how many there may be, and how long one may take to send a request.

File descriptors are left for the database and the engine.

A connection counts from its acceptance, also during the TLS handshake. When there are too many, connections without a
request under way are closed: those of the caller with the most of them, first those that never sent a whole request,
the oldest first. So a caller that sends its request gets its answer, however many others only hold connections open,
and no caller can hold all connections: each has at most a share.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import socket
import time
from contextlib import suppress
from functools import partial
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any, TypeAlias

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from holdfast.api.http.serving.gates import JOBS_ONLY, PEER
from holdfast.client.unix import peer_of
from holdfast.domain.record import Struct, field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from holdfast.app.entrance.network import Certificates

_FILES_OF_OTHERS = 96
"""Files for everything but connections: the database, the shim, logs that are read."""
_MOST_AT_ONCE, _LEAST_AT_ONCE = 128, 4
_SHARE_OF_DOOR = 4
"""Connections to a door's own port may take one in this many of all files."""
_SHARE_AT_ONCE = 16
"""One turn of the loop accepts one in this many of all connections, and of all files."""
_TURNS = 4
"""Turns of the loop until a dismissed connection is closed; meanwhile those of each turn are open in addition."""
_QUEUE = 1024
"""Connections that may wait in the kernel, which costs no files."""
_HANDSHAKE_S, _GOODBYE_S = 10.0, 1.0
"""How long the TLS handshake and the TLS shutdown may take."""
_GATHERED = 65_536
"""Bytes of an answer that may wait for the end of a turn."""
_LOOK_TICKS = 20
"""Ticks of the server, of 0.1 s each, between two checks of its certificate."""
LOOPBACK: Sequence[Network] = tuple(map(ip_network, ("127.0.0.0/8", "::1/128")))
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
Network: TypeAlias = IPv4Network | IPv6Network
Peer: TypeAlias = Network | int
"""The owner of a connection: a network address or site, or an account number."""
_SHARE_OF_CALLER = 2
"""One caller may have one in this many of all connections."""
_SITE_BITS = 64
"""The bits of an IPv6 address that its user cannot choose."""
_TELL_EVERY_S = 60.0
_log = logging.getLogger(__name__)


class ConnectionLimits(Struct, frozen=True):
    """The limits of callers."""

    most: int
    """Connections at a time."""
    at_once: int
    """Connections accepted in one turn of the loop."""
    request_s: float
    """How long a request may take to arrive."""


def bounds(most: int, request_s: float, *, files: int | None = None, doors: int = 0) -> ConnectionLimits:
    """Return the limits for ``most`` connections within ``files`` open files, by default as many as allowed.

    ``doors`` is how many doors have ports of their own; they count their connections themselves.
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if files is None else files
    at_once = min(_MOST_AT_ONCE, most // _SHARE_AT_ONCE)  # a burst adds at most a quarter
    if limit == resource.RLIM_INFINITY:
        return ConnectionLimits(most, max(_LEAST_AT_ONCE, at_once), request_s)
    limit -= doors * of_door(most, files=limit)
    at_once = max(_LEAST_AT_ONCE, min(at_once, limit // _SHARE_AT_ONCE))
    return ConnectionLimits(
        max(_LEAST_AT_ONCE, min(most, limit - _FILES_OF_OTHERS - _TURNS * at_once)), at_once, request_s
    )


def of_door(most: int, *, files: int | None = None) -> int:
    """Return how many of ``most`` connections a door with a port of its own can have, so that others keep theirs."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if files is None else files
    if limit == resource.RLIM_INFINITY:
        return most
    return max(_LEAST_AT_ONCE, min(most, (limit - _FILES_OF_OTHERS) // _SHARE_OF_DOOR))


class GatheringTransport(asyncio.Transport):
    """Sends what is written in one turn of the loop together, so that head and body of an answer are one packet."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport, self._loop = transport, loop
        self._parts: list[bytes | bytearray | memoryview] = []
        self._size = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send data at the end of this turn, or at once if it is large."""
        if not self._parts:
            self._loop.call_soon(self._send)
        self._parts.append(data)
        self._size += len(data)
        if self._size > _GATHERED:
            self._send()

    def close(self) -> None:
        """Close once everything is sent."""
        self._send()
        self._transport.close()

    def abort(self) -> None:
        """Close without sending the rest."""
        self._transport.abort()

    def is_closing(self) -> bool:
        """Whether it is closed or about to be."""
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        """Stop reading until ``resume_reading``."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        self._transport.resume_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Pass what arrives to another protocol."""
        self._transport.set_protocol(protocol)

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - as its parent
        """Return a fact about the connection."""
        return self._transport.get_extra_info(name, default)

    def _send(self) -> None:
        if self._parts:
            whole = b"".join(self._parts)
            self._parts, self._size = [], 0
            self._transport.write(whole)


class GuardedProtocol(H11Protocol):
    """HTTP/1.1 with a limited time for a request, from its first byte or from the start of the connection."""

    doorway: Doorway
    request_s: float
    trusted: Sequence[Network] | None
    _connection: CountedConnection | None = None
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as its parent
        """Begin, or answer that there are too many connections."""
        super().connection_made(GatheringTransport(transport, self.loop))
        connected = transport.get_extra_info("socket")
        if connected.family == socket.AF_UNIX:
            self.app_state = {**self.app_state, PEER: peer_of(connected)[1]}  # copied into the state of each request
        else:  # asyncio does this only for listeners made with the protocol's number
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = self.doorway.arrived(connected, transport)
        is_trusted = self.trusted is None or _is_within(self.trusted, self.client)
        if self._connection is None or not is_trusted:
            transport.abort()
        elif self._connection.is_beside:
            transport.write(_FULL)
            transport.close()
        else:
            self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting for a request."""
        self._expect_nothing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Continue reading a request, or begin another."""
        self._expect_request()
        super().data_received(data)

    def handle_events(self) -> None:
        """Act on what was read."""
        super().handle_events()
        self._update()

    def on_response_complete(self) -> None:
        """Rest, or continue with the next request."""
        super().on_response_complete()
        self._update()

    def _update(self) -> None:
        if self._connection is None:
            return
        if self.cycle is not None and not self.cycle.response_complete:  # type: ignore[redundant-expr] # None at first
            self.doorway.answering(self._connection)
        else:
            self.doorway.resting(self._connection)
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
    """Whether a connection comes from one of the networks, or by a Unix socket."""
    if client is None:
        return True
    address = ip_address(client[0].partition("%")[0])
    return any(address in network for network in networks)


def protocol(
    allowed: ConnectionLimits, proxies: Sequence[Network] | None = None, whole: Sequence[Network] = LOOPBACK
) -> type[GuardedProtocol]:
    """Return the protocol for the connections of one server.

    Args:
        allowed: The limits of callers.
        proxies: The networks besides this machine from which connections are accepted; ``None``: any.
        whole: The networks that may have all connections; others have a share.
    """

    class Guarded(GuardedProtocol):
        doorway = Doorway(Shares(allowed.most, allowed.at_once, whole))
        request_s = allowed.request_s
        trusted = None if proxies is None else (*LOOPBACK, *proxies)

    return Guarded


class Server(uvicorn.Server):
    """Accepts few connections in one turn, and lets others wait in the kernel."""

    def __init__(
        self,
        config: uvicorn.Config,
        guarded: type[GuardedProtocol],
        shown: Certificates | None = None,
        for_jobs: socket.socket | None = None,
    ) -> None:
        """Prepare to serve.

        Args:
            config: uvicorn's configuration.
            guarded: The protocol of its connections.
            shown: The certificate for connections by a network address.
            for_jobs: The socket that is only for programs of jobs, without TLS.
        """
        super().__init__(config)
        self._guarded = guarded
        self._shown = shown
        self._for_jobs = for_jobs

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        await self.lifespan.startup()
        loop, self.servers = asyncio.get_running_loop(), []
        for listening in sockets or ():
            is_for_jobs = listening is self._for_jobs
            in_clear = self._shown is None or is_for_jobs or listening.family == socket.AF_UNIX
            context = None if self._shown is None or in_clear else self._shown.context
            listener = Listener.over(listening, self._guarded.doorway)
            server = await loop.create_server(
                partial(self._protocol, state={JOBS_ONLY: True} if is_for_jobs else {}),
                sock=listener,
                ssl=context,
                ssl_handshake_timeout=None if context is None else min(_HANDSHAKE_S, self._guarded.request_s),
                ssl_shutdown_timeout=None if context is None else _GOODBYE_S,
                backlog=self.config.backlog,
            )
            self.servers.append(server)
            listener.listen(_QUEUE)
        self.started = True

    def _protocol(self, state: Mapping[str, Any]) -> asyncio.Protocol:
        begun = {**self.lifespan.state, **state}
        return self._guarded(config=self.config, server_state=self.server_state, app_state=begun)

    async def on_tick(self, counter: int) -> bool:
        """Check now and then whether the certificate was renewed."""
        if self._shown is not None and counter % _LOOK_TICKS == 0:
            self._shown.look()
        return await super().on_tick(counter)


class Shares(Struct, frozen=True):
    """How many connections there may be in all, and of one caller."""

    most: int
    beside: int
    """How many more are accepted only to answer that there are too many."""
    whole: Sequence[Network] = ()
    """The networks that may have all: a proxy's, and this machine's if no other is served."""

    def of(self, peer: Peer) -> int:
        """Return how many one caller may have; the owner of the server may have all."""
        if isinstance(peer, int):
            is_whole = peer in {0, os.geteuid()}
        else:
            is_whole = any(peer.network_address in network for network in self.whole)
        return self.most if is_whole else max(1, self.most // _SHARE_OF_CALLER)


class CountedConnection(socket.socket):
    """A connection that counts until it is closed, for whatever reason."""

    doorway: Doorway
    peer: Peer
    transport: asyncio.Transport | None = None
    """Set after the TLS handshake, if there is one."""
    is_beside = False
    """Whether it only gets the answer that there are too many."""

    def close(self) -> None:
        """Close it, and count it no more."""
        self.doorway.leave(self)
        super().close()

    def send_away(self) -> None:
        """Close it in the next turn of the loop."""
        if self.transport is not None:
            self.transport.abort()
            return
        with suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)


class Listener(socket.socket):
    """A socket that accepts only connections that there is a place for."""

    doorway: Doorway

    @classmethod
    def over(cls, listening: socket.socket, doorway: Doorway) -> Listener:
        """Take a socket over."""
        listener = cls(listening.family, listening.type, listening.proto, fileno=listening.detach())
        listener.doorway = doorway
        return listener

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept the next connection that there is a place for; others are closed.

        Raises:
            BlockingIOError: No connection waits.
        """
        while True:
            accepted, address = super().accept()
            connection = CountedConnection(self.family, self.type, self.proto, fileno=accepted.detach())
            connection.doorway = self.doorway
            try:
                connection.peer = _peer(connection, address)
                if self.doorway.enter(connection):
                    return connection, address
            except (OSError, ValueError):
                pass
            connection.close()


def _peer(connection: socket.socket, address: Any) -> Peer:  # noqa: ANN401 - as the socket has it
    if connection.family == socket.AF_UNIX:
        return peer_of(connection)[1]
    peer = ip_address(address[0].partition("%")[0])
    if peer.version == 6 and peer.ipv4_mapped is not None:  # noqa: PLR2004 - a version of IP
        peer = peer.ipv4_mapped
    is_site = peer.version == 6 and not peer.is_loopback  # noqa: PLR2004 - as above
    return ip_network((peer, _SITE_BITS if is_site else peer.max_prefixlen), strict=False)


class _CallerConnections(Struct, gc=True):
    """The connections of one caller; the oldest first."""

    new: dict[CountedConnection, None] = field(default_factory=dict)
    resting: dict[CountedConnection, None] = field(default_factory=dict)
    answered: dict[CountedConnection, None] = field(default_factory=dict)

    def count(self) -> int:
        return len(self.new) + len(self.resting) + len(self.answered)

    def idle(self) -> int:
        return len(self.new) + len(self.resting)


class Doorway:
    """All connections of a server."""

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self._had: dict[Peer, _CallerConnections] = {}
        self._by_descriptor: dict[int, CountedConnection] = {}
        self._beside: set[CountedConnection] = set()
        self._sent_away, self._told_at = 0, float("-inf")

    def enter(self, caller: CountedConnection) -> bool:
        """Admit a connection, if necessary in place of another; returns false if it is to be closed without an answer.

        It is answered that there are too many if all connections, or all of its caller, have a request under way.
        """
        had = self._had.get(caller.peer)
        has_share = had is None or had.count() < self._shares.of(caller.peer) or self._make_way(had)
        is_free = len(self._by_descriptor) - len(self._beside) < self._shares.most
        if not has_share or not (is_free or self._make_way(max(self._had.values(), key=_CallerConnections.idle))):
            if len(self._beside) >= self._shares.beside:
                return False
            caller.is_beside = True
            self._beside.add(caller)
        else:
            self._had.setdefault(caller.peer, _CallerConnections()).new[caller] = None
        self._by_descriptor[caller.fileno()] = caller
        return True

    def arrived(self, connected: socket.socket, transport: asyncio.Transport) -> CountedConnection | None:
        """Return the connection of a socket after its TLS handshake; ``None`` if it was dismissed meanwhile."""
        connection = self._by_descriptor.get(connected.fileno())
        if connection is not None:
            connection.transport = transport
        return connection

    def _make_way(self, had: _CallerConnections) -> bool:
        self._sent_away += 1
        if time.monotonic() - self._told_at >= _TELL_EVERY_S:
            _log.warning("too many connections; closed %d that sent no request", self._sent_away)
            self._sent_away, self._told_at = 0, time.monotonic()
        oldest = next(iter(had.new or had.resting), None)
        if oldest is not None:
            self.leave(oldest)
            oldest.send_away()
        return oldest is not None

    def answering(self, caller: CountedConnection) -> None:
        """Note that a request of a connection is being answered."""
        if self._remove(caller):
            self._had.setdefault(caller.peer, _CallerConnections()).answered[caller] = None

    def resting(self, caller: CountedConnection) -> None:
        """Note that no request of a connection is being answered."""
        had = self._had.get(caller.peer)
        if had is not None and caller in had.answered:
            del had.answered[caller]
            had.resting[caller] = None

    def _remove(self, caller: CountedConnection) -> bool:
        had = self._had.get(getattr(caller, "peer", -1))
        places = () if had is None else (had.new, had.resting, had.answered)
        was_there = any(place.pop(caller, True) is None for place in places)
        if had is not None and not had.count():
            del self._had[caller.peer]
        return was_there

    def leave(self, caller: CountedConnection) -> None:
        """Count a connection no more."""
        self._remove(caller)
        self._beside.discard(caller)
        if self._by_descriptor.get(caller.fileno()) is caller:
            del self._by_descriptor[caller.fileno()]
