"""A terminal of a given size with one command on it: what a person sees, and the keys they press."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
from typing import TYPE_CHECKING, Self

import pyte
import pytest

from tests.e2e.server import HOLDFAST, PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|[()][A-Z0-9]|[=>])")


class Terminal:
    """One command on a terminal of its own."""

    def __init__(self, environ: Mapping[str, str], *words: str, lines: int = 24, columns: int = 80) -> None:
        """Start the command."""
        mine, its = os.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        kept = {name: value for name, value in environ.items() if name not in {"COLUMNS", "LINES", "NO_COLOR"}}
        self.process = subprocess.Popen(
            ["env", "--default-signal=INT", *HOLDFAST, *words],  # whoever starts the tests may ignore Ctrl-C
            stdin=its,
            stdout=its,
            stderr=its,
            env={**kept, "TERM": "xterm-256color"},
            start_new_session=True,
        )
        os.close(its)
        self._end = mine
        self.raw = ""
        self._shown = pyte.Screen(columns, lines)
        self._display = pyte.Stream(self._shown)

    def __enter__(self) -> Self:
        """Use it in a ``with`` statement."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill what still runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._end)

    @property
    def text(self) -> str:
        """All that was shown until now, without colours and moves."""
        return _ESCAPES.sub("", self.raw).replace("\r\n", "\n").replace("\r", "\n")

    @property
    def screen(self) -> list[str]:
        """The lines that are on the screen now, without those that are empty."""
        return [line.rstrip() for line in self._shown.display if line.strip()]

    def until_screen(self, wanted: Callable[[list[str]], object], what: str) -> list[str]:
        """Read until the screen is as wanted."""
        self.until(lambda _: wanted(self.screen), what)
        return self.screen

    def modes(self) -> list[int]:
        """Return the terminal's flags, as ``tcgetattr`` has them."""
        return [flags for flags in termios.tcgetattr(self._end) if isinstance(flags, int)]

    def resize(self, lines: int, columns: int) -> None:
        """Change its size, and tell the command."""
        fcntl.ioctl(self._end, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._shown.resize(lines, columns)

    def press(self, keys: str) -> None:
        """Press keys."""
        os.write(self._end, keys.encode())

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def until(self, wanted: Callable[[str], object], what: str) -> str:
        """Read until what is shown is as wanted."""
        deadline = time.monotonic() + PATIENCE_S
        while not wanted(self.text):
            over = not self._read(0.2) and self.process.poll() is not None
            if over or time.monotonic() > deadline:
                pytest.fail(f"never came to it: {what}\n{self.text}")
        return self.text

    def ended(self) -> str:
        """Read until the command has ended; returns what it showed."""
        deadline = time.monotonic() + PATIENCE_S
        while self._read(0.2) or self.process.poll() is None:
            if time.monotonic() > deadline:
                pytest.fail(f"it goes on\n{self.text}")
        return self.text

    def _read(self, within_s: float) -> bool:
        if not select.select([self._end], [], [], within_s)[0]:
            return False
        try:
            part = os.read(self._end, 1 << 16)
        except OSError:  # how Linux says that nobody has the other end open
            return False
        text = part.decode(errors="replace")
        self.raw += text
        self._display.feed(text)
        return bool(part)
