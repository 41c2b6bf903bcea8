"""The trace of a world: its last steps, a checksum of all of them, and a count of each fault."""

from __future__ import annotations

import zlib
from collections import Counter, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_REMEMBERED = 60


class Trace:
    """The trace of one world."""

    def __init__(self, elapsed: Callable[[], float]) -> None:
        self._elapsed = elapsed
        self._lines: deque[tuple[float, str]] = deque(maxlen=_REMEMBERED)
        self.checksum = 0
        """Equal for equal worlds, and different for nearly all others."""
        self.faults: Counter[str] = Counter()

    def say(self, line: str) -> None:
        """Write one line."""
        at = self._elapsed()
        self._lines.append((at, line))
        self.checksum = zlib.crc32(f"{at:.6f} {line}".encode(), self.checksum)

    def fault(self, kind: str, detail: str = "") -> None:
        """Count and write a deliberate fault."""
        self.faults[kind] += 1
        self.say(f"FAULT {kind}{f': {detail}' if detail else ''}")

    def last(self) -> Sequence[str]:
        """Return the last lines."""
        return [f"{at:9.3f}s  {line}" for at, line in self._lines]
