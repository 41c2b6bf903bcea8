"""One client's connection: frames JSON lines both ways without ever waiting; decides nothing about their meaning."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from .records import Message

_CHUNK = 1 << 18
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Channel:
    """A non-blocking socket with buffers, and what its client has not been told yet."""

    def __init__(self, sock: socket.socket) -> None:
        """Take over an accepted socket."""
        self.sock = sock
        self.open = True
        self.dirty: dict[str, None] = {}
        """Uids of runs to report, in order of first change; reporting late merges changes."""
        self.gone: list[str] = []
        """Uids another client had forgotten."""
        self.urgent = False
        """Whether some of that is worth telling at once."""
        self.told_at = float("-inf")
        """When it was told something, on the monotonic clock."""
        self.acknowledge = 0
        """The last message handled and not acknowledged, 0 if none."""
        self._received = bytearray()
        self._unsent = b""

    @property
    def news(self) -> bool:
        """Whether there is something to tell."""
        return bool(self.dirty or self.gone or self.acknowledge)

    @property
    def sending(self) -> bool:
        """Whether the client has not read all of the last message."""
        return bool(self._unsent)

    def receive(self) -> Iterator[Message]:
        """Return the complete messages that have arrived; notices when the client is gone."""
        while self.open:
            try:
                chunk = self.sock.recv(_CHUNK)
            except BlockingIOError:
                break
            except OSError:
                chunk = b""
            self._received += chunk
            self.open = bool(chunk)
        complete, newline, rest = self._received.rpartition(b"\n")
        if newline:
            self._received = rest
            yield from (json.loads(line) for line in complete.split(b"\n"))

    def send(self, message: Message) -> None:
        """Send a message; only when nothing is left of the one before."""
        self._unsent = _encode(message).encode() + b"\n"
        self.push()

    def push(self) -> None:
        """Send more of what is left."""
        try:
            self._unsent = self._unsent[self.sock.send(self._unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self.open = False
            self._unsent = b""

    def close(self) -> None:
        """Let go of the socket."""
        self.open = False
        self.sock.close()
