"""Decides what Ctrl-C means while a job is followed: asked once, cancelled on the second, left on the third."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType

_ASK, _CANCEL = 1, 2


class Interrupts:
    """Counts Ctrl-C while the context is open, instead of raising ``KeyboardInterrupt``."""

    def __init__(self, say: Callable[[str], None], job: str) -> None:
        """Remember whom to tell and about which job; nothing is caught before the context opens."""
        self._say = say
        self._job = job
        self._pressed = 0
        self._cancelled = False
        self._before: Callable[[int, FrameType | None], object] | int | None = None

    def __enter__(self) -> Self:
        """Catch Ctrl-C from here on."""
        self._before = signal.signal(signal.SIGINT, lambda *_: self._press())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Give Ctrl-C back."""
        signal.signal(signal.SIGINT, self._before)

    @property
    def happened(self) -> bool:
        """Whether the person cancelled the job."""
        return self._cancelled

    def wants_cancel(self) -> bool:
        """Whether the job is to be cancelled now; true once."""
        if self._pressed < _CANCEL or self._cancelled:
            return False
        self._cancelled = True
        return True

    def _press(self) -> None:
        self._pressed += 1
        if self._pressed == _ASK:
            self._say(f"job {self._job} is still going on; press Ctrl-C again to cancel it")
        elif self._pressed == _CANCEL:
            self._say(f"cancelling job {self._job}; press Ctrl-C once more to leave without waiting for its end")
        else:
            raise KeyboardInterrupt
