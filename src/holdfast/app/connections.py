"""Connections to the API: how many there may be, and how long one may take to send a request.

File descriptors are left for the database and the engine.
"""

from __future__ import annotations

import asyncio
import resource
import socket
from functools import partial
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from holdfast.api.http.serving.gates import JOBS_ONLY, PEER
from holdfast.app.doorway import Doorway, Listener, Shares
from holdfast.client.unix import peer_of
from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.app.doorway import CountedConnection, Network
    from holdfast.app.entrance.tls import Certificates


_FILES_OF_OTHERS = 96
"""Files for everything but connections: the database, the shim, logs that are read."""
_MOST_AT_ONCE, _LEAST_AT_ONCE = 128, 4
_SHARE_OF_DOOR = 4
"""One of how many parts of all files the connections to a door's own port may take."""
_SHARE_AT_ONCE = 16
"""One of how many parts of all connections, and of all files, come in one turn of the loop."""
_TURNS = 4
"""In how many turns of the loop one that is sent away is closed: so many times as many are open beside their share."""
_QUEUE = 1024
"""How many may wait in the kernel, which costs no files."""
_HANDSHAKE_S, _GOODBYE_S = 10.0, 1.0
"""How long it may take to agree on a key, and to say that nothing more comes."""
_GATHERED = 65_536
"""Bytes of an answer that wait for the end of a turn."""
_LOOK_TICKS = 20
"""How many ticks of the server, of 0.1 s, lie between two looks at its certificate."""
LOOPBACK: Sequence[Network] = tuple(map(ip_network, ("127.0.0.0/8", "::1/128")))
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class ConnectionLimits(Struct, frozen=True):
    """How much callers may take."""

    most: int
    """Connections at a time."""
    at_once: int
    """Connections accepted in one turn of the loop."""
    request_s: float
    """How long a request may take to arrive."""


def bounds(most: int, request_s: float, *, files: int | None = None, doors: int = 0) -> ConnectionLimits:
    """Return what there can be of ``most`` connections where a process may open so many files; ``None``: as it may.

    So many doors have ports of their own, whose connections they count themselves.
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if files is None else files
    at_once = min(_MOST_AT_ONCE, most // _SHARE_AT_ONCE)  # what comes in a burst is no more than a quarter beside most
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
    """Sends what is written in one turn of the loop together: head and body of an answer are one packet."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        """Send by a transport."""
        super().__init__()
        self._transport, self._loop = transport, loop
        self._parts: list[bytes | bytearray | memoryview] = []
        self._size = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send something at the end of this turn, or at once if it is much."""
        if not self._parts:
            self._loop.call_soon(self._send)
        self._parts.append(data)
        self._size += len(data)
        if self._size > _GATHERED:
            self._send()

    def close(self) -> None:
        """Close it once all is sent."""
        self._send()
        self._transport.close()

    def abort(self) -> None:
        """Close it, whatever is not sent."""
        self._transport.abort()

    def is_closing(self) -> bool:
        """Say whether it is closed, or about to be."""
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        """Read nothing for a while."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        self._transport.resume_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Have another protocol told of what comes."""
        self._transport.set_protocol(protocol)

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - as its parent
        """Return what is known of the connection."""
        return self._transport.get_extra_info(name, default)

    def _send(self) -> None:
        if self._parts:
            whole = b"".join(self._parts)
            self._parts, self._size = [], 0
            self._transport.write(whole)


class GuardedProtocol(H11Protocol):
    """HTTP/1.1 over a connection with a limited time to send a request, from its first byte or from when it came."""

    doorway: Doorway
    request_s: float
    trusted: Sequence[Network] | None
    _connection: CountedConnection | None = None
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as its parent
        """Begin, or say that there is no place."""
        super().connection_made(GatheringTransport(transport, self.loop))
        connected = transport.get_extra_info("socket")
        if connected.family == socket.AF_UNIX:
            self.app_state = {**self.app_state, PEER: peer_of(connected)[1]}  # the beginning of each request's state
        else:  # asyncio does so only where a listener was made with the protocol's number
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
        """End."""
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
    """Whether a connection comes from there, or by a Unix socket."""
    if client is None:
        return True
    address = ip_address(client[0].partition("%")[0])
    return any(address in one for one in networks)


def protocol(
    allowed: ConnectionLimits, proxies: Sequence[Network] | None = None, whole: Sequence[Network] = LOOPBACK
) -> type[GuardedProtocol]:
    """Return the protocol for the connections of one server.

    Args:
        allowed: How much callers may take.
        proxies: From where else than this machine connections are taken; ``None``: from anywhere.
        whole: Who may have all connections there can be; others have a share.
    """

    class Guarded(GuardedProtocol):
        doorway = Doorway(Shares(allowed.most, allowed.at_once, whole))
        request_s = allowed.request_s
        trusted = None if proxies is None else (*LOOPBACK, *proxies)

    return Guarded


class Server(uvicorn.Server):
    """Accepts few connections in one turn, and lets more wait outside meanwhile."""

    def __init__(
        self,
        config: uvicorn.Config,
        guarded: type[GuardedProtocol],
        shown: Certificates | None = None,
        for_jobs: socket.socket | None = None,
    ) -> None:
        """Speak a protocol.

        Args:
            config: As uvicorn has it.
            guarded: What ``protocol`` made.
            shown: The certificate for those that come by a network address.
            for_jobs: The one of the sockets that is for programs of jobs alone, in clear.
        """
        super().__init__(config)
        self._guarded = guarded
        self._shown = shown
        self._for_jobs = for_jobs

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        await self.lifespan.startup()
        loop, self.servers = asyncio.get_running_loop(), []
        for one in sockets or ():
            is_for_jobs = one is self._for_jobs
            in_clear = self._shown is None or is_for_jobs or one.family == socket.AF_UNIX
            context = None if self._shown is None or in_clear else self._shown.context
            listener = Listener.over(one, self._guarded.doorway)
            made = await loop.create_server(
                partial(self._protocol, state={JOBS_ONLY: True} if is_for_jobs else {}),
                sock=listener,
                ssl=context,
                ssl_handshake_timeout=None if context is None else min(_HANDSHAKE_S, self._guarded.request_s),
                ssl_shutdown_timeout=None if context is None else _GOODBYE_S,
                backlog=self.config.backlog,
            )
            self.servers.append(made)
            listener.listen(_QUEUE)
        self.started = True

    def _protocol(self, state: Mapping[str, Any]) -> asyncio.Protocol:
        begun = {**self.lifespan.state, **state}
        return self._guarded(config=self.config, server_state=self.server_state, app_state=begun)

    async def on_tick(self, counter: int) -> bool:
        """Look now and then whether the certificate was renewed."""
        if self._shown is not None and counter % _LOOK_TICKS == 0:
            self._shown.look()
        return await super().on_tick(counter)
