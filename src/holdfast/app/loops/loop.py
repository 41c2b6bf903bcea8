"""A thread that takes one step after another, and waits in between."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_AFTER_ERROR_S = 1.0
_log = logging.getLogger(__name__)


class Loop:
    """Drives one step function; start, stop and wake tolerate any order and repetition."""

    def __init__(self, name: str, step: Callable[[], float]) -> None:
        """``step`` returns the longest time to wait before the next one, in seconds."""
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
        """End after the current step, and wait for that."""
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
                _log.exception("a step of %s failed", self._name)
                wait_s = _AFTER_ERROR_S
            if wait_s > 0:
                self._woken.wait(wait_s)
