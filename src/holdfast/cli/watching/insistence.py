"""Repeats Ctrl-C until it is heeded.

Python drops what is raised in a finalizer, a ``KeyboardInterrupt`` too, and the command would follow for ever.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

AGAIN_AFTER_S = 0.5


@contextmanager
def insistent_interrupts() -> Iterator[None]:
    """Repeat an interrupt until this context is left; outside the main thread, which has no signals, do nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, AGAIN_AFTER_S)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGALRM)}
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in before.items():
            signal.signal(number, handler)
