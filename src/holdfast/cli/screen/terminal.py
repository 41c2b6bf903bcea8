"""Draws on a whole terminal, reads its keys, and gives it back as it was, however the command ends.

It draws on the terminal's alternate screen, as editors do (xterm's ``smcup`` and ``rmcup``), so that the previous
content comes back, too.
"""

from __future__ import annotations

import os
import select
import signal
import termios
import tty
from typing import IO, TYPE_CHECKING, Self

from holdfast.cli import exit_codes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType, TracebackType

    Handler = Callable[[int, FrameType | None], object] | int | None

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _REST_OF_LINE, _REST = "\x1b[H", "\x1b[K", "\x1b[J"
_USUAL = os.terminal_size((80, 24))
_ESCAPE = "\x1b"
_MOST_BYTES = 64
RESIZED = "resized"
"""What is read in place of a key when the terminal's size has changed."""
KEYS = {
    "\x1b[A": "up",
    "\x1bOA": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\b": "backspace",
    _ESCAPE: "escape",
}
"""What keys send, and their names; any other key is named by its character."""


class Screen:
    """A terminal while the context is open."""

    def __init__(self, stream: IO[str], keys: IO[str] | None = None) -> None:
        """Do nothing yet.

        Args:
            stream: The terminal.
            keys: The terminal to read keys from; ``None`` reads none.
        """
        self._stream = stream
        self._keys = keys
        self._mode: list[int | list[bytes | int]] = []
        self._wake, self._woken = -1, -1
        self._before: dict[signal.Signals, Handler] = {}
        self._pressed: list[str] = []

    def __enter__(self) -> Self:
        self._wake, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signals: dict[signal.Signals, Handler] = {
            signal.SIGTERM: _terminate,
            signal.SIGTSTP: lambda *_: self._pause(),
            signal.SIGWINCH: lambda *_: os.write(self._woken, b"w"),
        }
        self._before = {number: signal.signal(number, handler) for number, handler in signals.items()}
        self._take()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._give_back()
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._wake)
        os.close(self._woken)

    @property
    def size(self) -> os.terminal_size:
        """Columns and lines."""
        try:
            return os.get_terminal_size(self._stream.fileno())
        except OSError:
            return _USUAL

    def draw(self, lines: Sequence[str]) -> None:
        """Show these lines; those that do not fit are left out."""
        shown = f"{_REST_OF_LINE}\r\n".join(lines[: self.size.lines])
        self._stream.write(f"{_HOME}{shown}{_REST_OF_LINE}{_REST}")
        self._stream.flush()

    def key(self, within_s: float) -> str | None:
        """Wait for a key, or for the size to change; ``None`` if there is neither within this time."""
        if self._pressed:
            return self._pressed.pop(0)
        watched = [self._wake] if self._keys is None else [self._wake, self._keys.fileno()]
        ready = select.select(watched, [], [], max(0.0, within_s))[0]
        if self._wake in ready:
            os.read(self._wake, _MOST_BYTES)
            return RESIZED
        if not ready or self._keys is None:
            return None
        self._pressed = keys_of(os.read(self._keys.fileno(), _MOST_BYTES).decode(errors="ignore"))
        return self._pressed.pop(0) if self._pressed else "q"  # nothing to read: the terminal is gone

    def _take(self) -> None:
        if self._keys is not None:
            self._mode = termios.tcgetattr(self._keys.fileno())
            tty.setcbreak(self._keys.fileno(), termios.TCSADRAIN)
        self._write(_ENTER)

    def _give_back(self) -> None:
        self._write(_LEAVE)
        if self._keys is not None and self._mode:
            termios.tcsetattr(self._keys.fileno(), termios.TCSADRAIN, self._mode)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()

    def _pause(self) -> None:
        """Stop on Ctrl-Z with the terminal restored for the shell, and take it again on ``fg``."""
        self._give_back()
        previous = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, previous)
        self._take()
        os.write(self._woken, b"w")


def keys_of(text: str) -> list[str]:
    """Name the keys that sent a text."""
    keys: list[str] = []
    while text:
        key = next((candidate for size in (4, 3, 1) if (candidate := text[:size]) in KEYS), text[0])
        keys.append(KEYS.get(key, key))
        text = text[len(key) :]
    return keys


def _terminate(*_: object) -> None:
    raise SystemExit(exit_codes.TERMINATED)
