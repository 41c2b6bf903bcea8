"""What Ctrl-C means while a job or an array is followed: asked once, cancelled on the second, left on the third.

SIGTERM, which nobody can answer, cancels at once, and leaves on the second: what stops ``run`` stops its work. Both are
caught before the work is submitted: it is cancelled as soon as its name is known, which a lost answer would not tell.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Self

from holdfast.cli import exit_codes

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType

    Handler = Callable[[int, FrameType | None], object] | int | None

_ASK, _CANCEL = 1, 2


class Interrupts:
    """Counts Ctrl-C while the context is open, instead of raising ``KeyboardInterrupt``."""

    def __init__(self, say: Callable[[str], None], work: str) -> None:
        """Remember whom to tell and about what, such as ``the job``; nothing is caught before the context opens."""
        self._say = say
        self._work = work
        self._state = "is being submitted"
        self._pressed = 0
        self._cancelled = False
        self._terminated = False
        self._before: dict[signal.Signals, Handler] = {}

    def __enter__(self) -> Self:
        """Catch Ctrl-C and SIGTERM from here on."""
        self._before = {
            signal.SIGINT: signal.signal(signal.SIGINT, lambda *_: self._press()),
            signal.SIGTERM: signal.signal(signal.SIGTERM, lambda *_: self._terminate()),
        }
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Give the signals back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def submitted(self, work: str) -> None:
        """Say by its name, such as ``job ID``, what there is to cancel from here on."""
        self._work, self._state = work, "is still running"

    @property
    def exit_code(self) -> int | None:
        """What the command ends with once the work was cancelled from here; ``None`` while it was not."""
        if not self._cancelled:
            return None
        return exit_codes.TERMINATED if self._terminated else exit_codes.INTERRUPTED

    @property
    def reason(self) -> str:
        """Why the work is cancelled."""
        return "SIGTERM" if self._terminated else "Ctrl-C"

    def wants_cancel(self) -> bool:
        """Whether the work is to be cancelled now; true once."""
        if self._pressed < _CANCEL or self._cancelled:
            return False
        self._cancelled = True
        return True

    def _press(self) -> None:
        self._pressed += 1
        if self._pressed == _ASK:
            self._say(f"{self._work} {self._state}; press Ctrl-C again to cancel it")
        elif self._pressed == _CANCEL:
            self._say(f"cancelling {self._work}; press Ctrl-C once more to leave without waiting for its end")
        else:
            raise KeyboardInterrupt

    def _terminate(self) -> None:
        if self._terminated:
            raise KeyboardInterrupt
        self._terminated = True
        self._pressed = max(self._pressed, _CANCEL)
        self._say(f"cancelling {self._work}")
