"""Who is connected, from when a connection is accepted: also while it still agrees on a key.

When there are too many, those that are not being answered are closed: of whoever has most of them, first those without
a whole request, the oldest first. So a caller that sends its request gets its answer, however many others only hold
connections open, and no one caller can hold all of them: each has at most a share.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, TypeAlias

from holdfast.client.unix import peer_of
from holdfast.domain.record import Struct, field

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence
    from typing import Any

Network: TypeAlias = IPv4Network | IPv6Network
Peer: TypeAlias = Network | int
"""Whose a connection is: that of a network address, or of an account's number."""
_SHARE = 2
"""One of how many parts of all connections one caller may have."""
_SITE_BITS = 64
"""How much of an IPv6 address whoever has it cannot choose."""
_TELL_EVERY_S = 60.0
_log = logging.getLogger(__name__)


class Shares(Struct, frozen=True):
    """How many connections there may be, and of one caller."""

    most: int
    beside: int
    """How many more are told that there are too many."""
    whole: Sequence[Network] = ()
    """Who may have all of them: a proxy, and this machine where no other is served."""

    def of(self, peer: Peer) -> int:
        """Return how many one caller may have; whose server it is may have all."""
        if isinstance(peer, int):
            is_whole = peer in {0, os.geteuid()}
        else:
            is_whole = any(peer.network_address in one for one in self.whole)
        return self.most if is_whole else max(1, self.most // _SHARE)


class CountedConnection(socket.socket):
    """A connection; when it is closed, for whatever reason, it is counted no more."""

    doorway: Doorway
    peer: Peer
    transport: asyncio.Transport | None = None
    """Once a key is agreed on."""
    is_beside = False
    """Whether there is no place, which it is to be told."""

    def close(self) -> None:
        """Close it."""
        self.doorway.leave(self)
        super().close()

    def send_away(self) -> None:
        """Have it closed in the next turn of the loop."""
        if self.transport is not None:
            self.transport.abort()
            return
        with suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)


class Listener(socket.socket):
    """A socket that accepts only whom there is a place for."""

    doorway: Doorway

    @classmethod
    def over(cls, listening: socket.socket, doorway: Doorway) -> Listener:
        """Take a socket over."""
        made = cls(listening.family, listening.type, listening.proto, fileno=listening.detach())
        made.doorway = doorway
        return made

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept the next connection that there is a place for; others are closed.

        Raises:
            BlockingIOError: Nobody waits.
        """
        while True:
            descriptor, address = self._accept()  # type: ignore[attr-defined] # the one that `accept` of every socket is made of
            made = CountedConnection(self.family, self.type, self.proto, fileno=descriptor)
            made.doorway = self.doorway
            try:
                made.peer = _peer(made, address)
                if self.doorway.enter(made):
                    return made, address
            except (OSError, ValueError):
                pass
            made.close()


def _peer(connection: socket.socket, address: Any) -> Peer:  # noqa: ANN401 - as the socket has it
    if connection.family == socket.AF_UNIX:
        return peer_of(connection)[1]
    found = ip_address(address[0].partition("%")[0])
    if found.version == 6 and found.ipv4_mapped is not None:  # noqa: PLR2004 - a version of IP
        found = found.ipv4_mapped
    is_site = found.version == 6 and not found.is_loopback  # noqa: PLR2004 - as above
    return ip_network((found, _SITE_BITS if is_site else found.max_prefixlen), strict=False)


class _Had(Struct, gc=True):
    """The connections of one caller; the oldest first."""

    new: dict[CountedConnection, None] = field(default_factory=dict)
    resting: dict[CountedConnection, None] = field(default_factory=dict)
    answered: dict[CountedConnection, None] = field(default_factory=dict)

    def count(self) -> int:
        return len(self.new) + len(self.resting) + len(self.answered)

    def idle(self) -> int:
        return len(self.new) + len(self.resting)


class Doorway:
    """The connections there are."""

    def __init__(self, shares: Shares) -> None:
        """Begin with none."""
        self._shares = shares
        self._had: dict[Peer, _Had] = {}
        self._by_descriptor: dict[int, CountedConnection] = {}
        self._beside: set[CountedConnection] = set()
        self._sent_away, self._told_at = 0, float("-inf")

    def enter(self, caller: CountedConnection) -> bool:
        """Let a connection in, in another's place if need be; returns false when it is not even to be told.

        It is told that there is no place where all of them, or all that its caller may have, are being answered.
        """
        had = self._had.get(caller.peer)
        has_share = had is None or had.count() < self._shares.of(caller.peer) or self._make_way(had)
        is_free = len(self._by_descriptor) - len(self._beside) < self._shares.most
        if not has_share or not (is_free or self._make_way(max(self._had.values(), key=_Had.idle))):
            if len(self._beside) >= self._shares.beside:
                return False
            caller.is_beside = True
            self._beside.add(caller)
        else:
            self._had.setdefault(caller.peer, _Had()).new[caller] = None
        self._by_descriptor[caller.fileno()] = caller
        return True

    def arrived(self, connected: socket.socket, transport: asyncio.Transport) -> CountedConnection | None:
        """Return the connection of a socket, now that a key is agreed on; ``None`` if it was sent away meanwhile."""
        found = self._by_descriptor.get(connected.fileno())
        if found is not None:
            found.transport = transport
        return found

    def _make_way(self, had: _Had) -> bool:
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
        """Take note that a request of a connection is being answered."""
        if self._taken_out(caller):
            self._had.setdefault(caller.peer, _Had()).answered[caller] = None

    def resting(self, caller: CountedConnection) -> None:
        """Take note that nothing of a connection is being answered."""
        had = self._had.get(caller.peer)
        if had is not None and caller in had.answered:
            del had.answered[caller]
            had.resting[caller] = None

    def _taken_out(self, caller: CountedConnection) -> bool:
        had = self._had.get(getattr(caller, "peer", -1))
        places = () if had is None else (had.new, had.resting, had.answered)
        there = any(place.pop(caller, True) is None for place in places)
        if had is not None and not had.count():
            del self._had[caller.peer]
        return there

    def leave(self, caller: CountedConnection) -> None:
        """Forget a connection, if it is known."""
        self._taken_out(caller)
        self._beside.discard(caller)
        if self._by_descriptor.get(caller.fileno()) is caller:
            del self._by_descriptor[caller.fileno()]
