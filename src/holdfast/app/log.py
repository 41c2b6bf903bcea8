"""Logs on stderr: one line for each event, and plain tracebacks of errors, which show no values of variables."""

from __future__ import annotations

import logging
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LIBRARIES = ("asyncio", "uvicorn.error")
_MOST = 1000


def configure(level: str) -> None:
    """Send every event of Holdfast of at least ``level`` (debug, info, warning, error) to stderr, a line each."""
    lines = logging.Formatter("%(asctime)s [%(levelname)s] %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    lines.converter = time.gmtime
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(lines)
    ours = logging.getLogger("holdfast")
    ours.setLevel(logging.getLevelNamesMapping().get(level.upper(), logging.WARNING))
    ours.handlers[:] = [handler]


def quieten() -> None:
    """Keep messages of libraries that callers can cause again and again from filling the log."""
    for name in _LIBRARIES:
        logging.getLogger(name).addFilter(OnceInAWhile())


class OnceInAWhile(logging.Filter):
    """Lets each message pass once in ``every_s`` seconds; its arguments make no difference."""

    def __init__(self, every_s: float = 60.0, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._every_s = every_s
        self._now = now
        self._written: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Decide whether a record is written."""
        message = str(record.msg).partition("\n")[0]
        now = self._now()
        at, kept = self._written.get(message, (float("-inf"), 0))
        if now - at < self._every_s:
            self._written[message] = (at, kept + 1)
            return False
        if len(self._written) >= _MOST:
            self._written.clear()
        self._written[message] = (now, 0)
        if kept:
            record.msg, record.args = f"{record.getMessage()} ({kept} more times before)", None
        return True
