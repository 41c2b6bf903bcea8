"""Looks up where a host is, for no longer than somebody waits; the system's own limits add up to minutes."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

Address: TypeAlias = tuple[socket.AddressFamily, socket.SocketKind, int, str, Any]


def addresses(host: str, port: int, limit_s: float) -> Sequence[Address]:
    """Look up a name; nothing can interrupt that, so that a thread is left to it where it takes longer.

    Raises:
        OSError: It is unknown, or no name server answered in time (``TimeoutError``).
    """
    with suppress(OSError, UnicodeError):
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    found: list[Sequence[Address] | OSError] = []

    def look() -> None:
        try:
            found.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            found.append(error if isinstance(error, OSError) else OSError(str(error)))

    thread = threading.Thread(target=look, name="holdfast-names", daemon=True)
    thread.start()
    thread.join(limit_s)
    if not found:
        message = f"no name server said within {limit_s:g} s where {host} is"
        raise TimeoutError(message)
    if isinstance(found[0], OSError):
        raise found[0]
    return found[0]
