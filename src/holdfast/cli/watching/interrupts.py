"""Handles Ctrl-C while a job or an array is followed: the first asks, the second cancels, the third leaves.

After SIGTERM and SIGHUP nobody can answer a question: the first cancels, the second leaves. What stops ``run`` stops
its work. All are caught before the work is submitted, and it is cancelled as soon as its name is known: an interrupted
request could leave work that nobody can name. Under ``nohup``, SIGHUP stays ignored.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from holdfast.cli import exit_codes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType, TracebackType

    Handler = Callable[[int, FrameType | None], object] | int | None

_ASK, _CANCEL = 1, 2
_STDERR = 2
_AGAIN_AFTER_S = 0.5
_ENDS = {signal.SIGTERM: exit_codes.TERMINATED, signal.SIGHUP: exit_codes.HUNG_UP}
"""The exit code after each signal that cancels at once."""


class Interrupts:
    """Counts Ctrl-C while the context is open, instead of raising ``KeyboardInterrupt``."""

    def __init__(self, say: Callable[[str], None], work: str) -> None:
        self._say = say
        self._work = work
        self._state = "is being submitted"
        self._pressed = 0
        self._cancelled = False
        self._ended_by: signal.Signals | None = None
        self._terminals: list[int] = []
        self._before: dict[signal.Signals, Handler] = {}

    def __enter__(self) -> Self:
        self._before = {signal.SIGINT: signal.signal(signal.SIGINT, lambda *_: self._press())}
        self._terminals = [number for number in (1, 2) if os.isatty(number)]
        for number in _ENDS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(
                    number, lambda signal_number, _: self._end(signal.Signals(signal_number))
                )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def submitted(self, work: str) -> None:
        """Name the work, such as ``job ID``, that is to be cancelled from now on."""
        self._work, self._state = work, "is still running"

    @property
    def exit_code(self) -> int | None:
        """The command's exit code after it has cancelled the work; ``None`` otherwise."""
        if not self._cancelled:
            return None
        return exit_codes.INTERRUPTED if self._ended_by is None else _ENDS[self._ended_by]

    @property
    def reason(self) -> str:
        """Why the work is cancelled."""
        return "Ctrl-C" if self._ended_by is None else self._ended_by.name

    def wants_cancel(self) -> bool:
        """Whether the work is to be cancelled now; true once."""
        if self._pressed < _CANCEL or self._cancelled:
            return False
        self._cancelled = True
        return True

    def _press(self) -> None:
        self._pressed += 1
        if self._pressed == _ASK:
            self._tell(f"{self._work} {self._state}; press Ctrl-C again to cancel it")
        elif self._pressed == _CANCEL:
            self._tell(f"cancelling {self._work}; press Ctrl-C once more to leave without waiting for its end")
        else:
            raise KeyboardInterrupt

    def _leave_terminal(self) -> None:
        """Discard output to a terminal that is gone: the error would end the command before it cancels the work."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for number in self._terminals:
            os.dup2(nowhere, number)
        os.close(nowhere)

    def _end(self, received: signal.Signals) -> None:
        if received is signal.SIGHUP:
            self._leave_terminal()
        if self._ended_by is not None:
            raise KeyboardInterrupt
        self._ended_by = received
        self._pressed = max(self._pressed, _CANCEL)
        self._tell(f"cancelling {self._work}")

    def _tell(self, line: str) -> None:
        try:
            self._say(line)
        except RuntimeError:
            # The signal interrupted a write to this stream, which cannot be entered again until that ends.
            os.write(_STDERR, f"{line}\n".encode())


@contextmanager
def insistent_interrupts() -> Iterator[None]:
    """Repeat Ctrl-C until this context is left; outside the main thread, which has no signals, do nothing.

    Python drops what is raised in a finalizer, even a ``KeyboardInterrupt``, and the command would follow for ever.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_AFTER_S)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGALRM)}
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in before.items():
            signal.signal(number, handler)
