"""A connection to a client, or between shim and supervisor: JSON lines both ways, never waiting."""

from __future__ import annotations

import json
import os
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .records import Message

_CHUNK = 1 << 18
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Channel:
    """A non-blocking socket with buffers, and the news that its client has yet to get."""

    def __init__(self, fd: int) -> None:
        """Take over a connected socket's descriptor."""
        self.fd = fd
        self.open = True
        self.dirty: dict[str, None] = {}
        """Uids of runs to report, in order of first change; a late report merges changes."""
        self.gone: list[str] = []
        """Uids that another client has forgotten."""
        self.urgent = False
        """Whether some of the news should be sent at once."""
        self.told_at = float("-inf")
        """When news was last sent, by the monotonic clock."""
        self.acknowledge = 0
        """The last message handled and not acknowledged yet, 0 if none."""
        self._received = bytearray()
        self._complete: deque[bytearray] = deque()
        """Messages received and not taken yet."""
        self._unsent = b""

    @property
    def news(self) -> bool:
        """Whether there is news to send."""
        return bool(self.dirty or self.gone or self.acknowledge)

    @property
    def sending(self) -> bool:
        """Whether the other side has not read everything sent."""
        return bool(self._unsent)

    def receive(self) -> Iterator[Message]:
        """Return the complete messages that have arrived; notices when the other side is gone.

        A caller that takes only some of them gets the others the next time.
        """
        while self.open:
            try:
                chunk = os.read(self.fd, _CHUNK)
            except BlockingIOError:
                break
            except OSError:
                chunk = b""
            self._received += chunk
            self.open = bool(chunk)
        complete, newline, rest = self._received.rpartition(b"\n")
        if newline:
            self._received = rest
            self._complete.extend(complete.split(b"\n"))
        while self._complete:
            yield json.loads(self._complete.popleft())

    def send(self, message: Message) -> None:
        """Send a message, or as much as fits; ``push`` sends the rest."""
        self._unsent += _encode(message).encode() + b"\n"
        self.push()

    def push(self) -> None:
        """Send more of the rest."""
        if not self._unsent:
            return
        try:
            self._unsent = self._unsent[os.write(self.fd, self._unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self.open = False
            self._unsent = b""

    def close(self) -> None:
        """Close the socket."""
        self.open = False
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
