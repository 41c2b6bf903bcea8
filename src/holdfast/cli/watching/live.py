"""A status line at the bottom of a terminal, with all other output above it.

It is not written if standard error is no terminal, or one that cannot overwrite a line (``TERM=dumb``).
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, TYPE_CHECKING, cast

from holdfast.cli.render.words import bar, cut, printable
from holdfast.domain.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.cli.context import Cli
    from holdfast.wire.jobs import JobOutcome

_TO_BEGIN, _ERASE = "\r", "\x1b[K"
_USUAL_WIDTH = 80
_BAR = 20
"""Columns of a progress bar."""


class LiveLine:
    """The line; it is shown only while the terminal's last line is free."""

    def __init__(self, stream: IO[str], *, able: bool) -> None:
        self._stream = stream
        self.able = able
        """Whether the stream is a terminal that can overwrite a line."""
        self._shown = ""
        self.is_open = False
        """Whether other output has begun a line and not ended it, which must not be overwritten."""

    def draw(self, text: str) -> None:
        """Replace the text of the line."""
        if not self.able or self.is_open:
            return
        line = cut(printable(text), self._width() - 1)
        if line != self._shown:
            self._shown = line
            self._stream.write(f"{_TO_BEGIN}{line}{_ERASE}")
            self._stream.flush()

    def clear(self) -> None:
        """Erase the line."""
        if self._shown:
            self._shown = ""
            self._stream.write(f"{_TO_BEGIN}{_ERASE}")
            self._stream.flush()

    def _width(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or _USUAL_WIDTH
        except OSError:
            return _USUAL_WIDTH


class _Above:
    """A stream on the same terminal, whose output appears above the line."""

    def __init__(self, stream: IO[str], line: LiveLine) -> None:
        self._stream, self._line = stream, line

    def write(self, text: str) -> int:
        self._line.clear()
        if text:
            self._line.is_open = not text.endswith("\n")
        return self._stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


@contextmanager
def live_line(cli: Cli) -> Iterator[tuple[LiveLine, Cli]]:
    """Show a line while the context lasts; yields it and a ``Cli`` whose streams write above it."""
    line = LiveLine(cli.stderr, able=cli.stderr.isatty() and cli.environ.get("TERM") != "dumb")
    if not line.able:
        yield line, cli
        return
    streams = {"stderr": cast("IO[str]", _Above(cli.stderr, line))}
    if cli.stdout.isatty():
        streams["stdout"] = cast("IO[str]", _Above(cli.stdout, line))
    try:
        yield line, replace(cli, stdout=streams.get("stdout", cli.stdout), stderr=streams["stderr"])
    finally:
        line.clear()


def job_line(job: JobOutcome) -> str:
    """Write a job's state, its attempt, and its progress or why it does not run."""
    parts = [job.state]
    if job.attempt > 1 or (job.attempt and job.state != "Running"):
        parts.append(f"attempt {job.attempt}")
    if job.state == "Running" and job.progress:
        drawn = bar(job.progress, _BAR)
        parts.append(f"{drawn} {job.progress}" if drawn else job.progress)
    elif job.state != "Running" and job.reason:
        parts.append(job.reason)
    return f"{job.name}: {', '.join(parts)}"


def waited(seconds: float) -> str:
    """Write a waiting time."""
    return format_duration(int(seconds))
