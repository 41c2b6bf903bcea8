"""Lets a process release what it holds when SIGTERM ends it.

SIGTERM unwinds like an exception; by default it would end the process on the spot, leaving the lease, the address
and the write-ahead log as after a crash.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator


class _ToldToEnd(BaseException):
    """Passes every ``except Exception`` on its way out."""


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Leave the context in good order on SIGTERM; outside the main thread signals are somebody else's."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _end)
    try:
        with suppress(_ToldToEnd):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _end(*_: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: a second one must not cut the first one short
    raise _ToldToEnd
