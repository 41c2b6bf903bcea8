"""A thread that calls a step again and again: at once, when due, or when woken.

Wake-ups are hints; the longest wait bounds what a lost one costs.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

_log = structlog.get_logger(__name__)
_AFTER_ERROR_S = 1.0


class Loop:
    """Drives one step function; start, stop and wake tolerate any order and repetition."""

    def __init__(self, name: str, step: Callable[[], float]) -> None:
        """Name the thread and remember the step, which returns the longest time in seconds to wait next."""
        self._name = name
        self._step = step
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin; a second start changes nothing."""
        if self._thread is None and not self._stopped.is_set():
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def wake(self) -> None:
        """Make the next step come at once."""
        self._woken.set()

    def stop(self) -> None:
        """End after the present step and wait for it."""
        self._stopped.set()
        self._woken.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._woken.clear()
            try:
                wait_s = self._step()
            except Exception:  # noqa: BLE001 - a loop must outlive any one step; the error is logged whole
                _log.exception("step failed", loop=self._name)
                wait_s = _AFTER_ERROR_S
            if wait_s > 0:
                self._woken.wait(wait_s)
