"""Connections to other machines: only to addresses that are allowed, and for no longer than a deadline.

The address that is checked is the one that is connected to: a name that is resolved again could have become another.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import contextmanager, suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address
from typing import TYPE_CHECKING, TypeAlias

from holdfast.domain.record import Struct
from holdfast.resolver import addresses

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from ipaddress import IPv6Address

    from holdfast.resolver import Address

Network: TypeAlias = IPv4Network | IPv6Network
ALLOW_HINT = "HOLDFAST_NOTIFY_ALLOW lists the non-public addresses that are allowed"
_TRANSLATED = tuple(map(IPv6Network, ("64:ff9b::/96", "::/96")))
"""IPv6 addresses that end in the IPv4 address which a gateway makes of them."""
_OF_A_SITE = tuple(map(IPv6Network, ("64:ff9b:1::/48", "fec0::/10")))
"""Networks of one site that ``ipaddress`` counts, in some versions of Python, among the public ones."""


class Deadline:
    """The time until which a try may last."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._until = time.monotonic() + seconds

    def left_s(self) -> float:
        """Return the seconds that are left.

        Raises:
            Undelivered: The time is over.
        """
        left = self._until - time.monotonic()
        if left <= 0:
            raise self.over()
        return left

    def over(self) -> Undelivered:
        """Return the error of a deadline that has passed."""
        return Undelivered(f"no answer within {self.seconds:g} s")

    @property
    def passed(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self._until


class Guard(Struct, frozen=True):
    """Which addresses may be connected to: those of the public internet, and what the operator allows."""

    allowed: tuple[Network, ...] = ()

    def permits(self, address: IPv4Address | IPv6Address) -> bool:
        """Whether an address may be connected to."""
        embedded = _destination(address)
        if any(
            candidate.version == network.version and candidate in network
            for candidate in (address, embedded)
            for network in self.allowed
        ):
            return True
        return (
            embedded.is_global and not embedded.is_multicast and not any(embedded in network for network in _OF_A_SITE)
        )

    def connect(self, host: str, port: int, deadline: Deadline) -> socket.socket:
        """Connect to the first address of a host that answers.

        Raises:
            Undelivered: None is allowed, or none answers in time.
        """
        addresses = _addresses(host, port, deadline)
        permitted = [entry for entry in addresses if self.permits(ip_address(str(entry[4][0]).partition("%")[0]))]
        if not permitted:
            shown = ", ".join(sorted({str(entry[4][0]) for entry in addresses}))
            message = f"{host} is {shown}, which is not a public address; {ALLOW_HINT}"
            raise Undelivered(message, final=True)
        why = ""
        for family, kind, protocol, _, address in permitted:
            left_s = deadline.left_s()
            connection = socket.socket(family, kind, protocol)
            connection.settimeout(left_s)
            try:
                connection.connect(address)
            except TimeoutError:
                why = f"no connection within {deadline.seconds:g} s"
            except OSError as error:
                why = error.strerror or str(error)
            else:
                return connection
            connection.close()
        message = f"{host}:{port} cannot be reached: {why}"
        raise Undelivered(message)


def _addresses(host: str, port: int, deadline: Deadline) -> Sequence[Address]:
    """Look up a name.

    Raises:
        Undelivered: It is unknown, or no name server answers in time.
    """
    left_s = deadline.left_s()
    try:
        return addresses(host, port, left_s)
    except TimeoutError as error:
        message = f"no name server resolved {host} within {deadline.seconds:g} s"
        raise Undelivered(message) from error
    except OSError as error:
        message = f"{host} cannot be found: {error.strerror or error}"
        raise Undelivered(message) from error


def _destination(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the address that is reached in the end: an IPv6 address may contain another one."""
    if isinstance(address, IPv4Address):
        return address
    if any(address in network for network in _TRANSLATED):
        return IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address.sixtofour or address


@contextmanager
def cut_off(connection: socket.socket, deadline: Deadline) -> Iterator[None]:
    """Shut a connection down at a deadline, however slowly the other side still answers."""
    handle = socket.socket(fileno=os.dup(connection.fileno()))  # an encrypted one cannot copy itself

    def cut() -> None:
        with suppress(OSError):
            handle.shutdown(socket.SHUT_RDWR)

    watch = threading.Timer(deadline.left_s(), cut)
    watch.daemon = True
    watch.start()
    try:
        yield
    finally:
        watch.cancel()
        watch.join()
        handle.close()


class Undelivered(Exception):
    """A try failed; the message is for people, and holds no secret."""

    def __init__(self, message: str, *, final: bool = False) -> None:
        super().__init__(message)
        self.final = final
        """Whether another try would be of no use."""
