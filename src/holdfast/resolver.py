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
    answers: list[Sequence[Address] | OSError] = []

    def look() -> None:
        try:
            answers.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            answers.append(error if isinstance(error, OSError) else OSError(str(error)))

    thread = threading.Thread(target=look, name="holdfast-names", daemon=True)
    thread.start()
    thread.join(limit_s)
    if not answers:
        message = f"no name server resolved {host} within {limit_s:g} s"
        raise TimeoutError(message)
    if isinstance(answers[0], OSError):
        raise answers[0]
    return answers[0]
