"""One way to break a module that nobody wrote down, found again by what it changes and not by its line."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from importlib.util import cache_from_source
from pathlib import Path


class Kind(StrEnum):
    """What is broken."""

    COMPARISON = "comparison"
    CONDITION = "condition"
    TERM = "term"
    ARGUMENT = "argument"
    STATEMENT = "statement"


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a module it is."""

    file: str
    """From the root of the repository on."""
    where: str
    """The function or class; empty for the module itself."""
    first: int
    last: int
    """The lines of its statement, without the body of one that has a body."""
    is_imported: bool
    """Whether it runs when the module is imported, which no test does by itself."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A part of a module's text, and what stands in its place."""

    place: Place
    kind: Kind
    before: str
    after: str
    """What a person is shown of both: no more than what differs."""
    number: int
    """Which of those that read the same, counted from 1 within ``place.where``."""
    line: int
    start: int
    end: int
    """Of the part, in bytes."""
    text: str
    """What stands there instead."""

    @property
    def name(self) -> str:
        """What it is called in draws and verdicts: the same as long as nobody edits this part of this function."""
        again = f" ({self.number})" if self.number > 1 else ""
        return f"{self.place.file} {self.place.where}: {self.kind}: {self.before} -> {self.after}{again}"

    @property
    def about(self) -> tuple[str, str, str, str]:
        """What a person would say it is."""
        return self.place.file, self.place.where, self.before, self.after

    def applied(self, source: bytes) -> bytes:
        """Return the module's text with the change made."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def apply(self, root: Path) -> bytes:
        """Break the file in a copy of the repository; returns what it was."""
        source = (root / self.place.file).read_bytes()
        write(root / self.place.file, self.applied(source))
        return source


def write(path: Path, source: bytes) -> None:
    """Write a module; what was compiled of it goes, as it is told apart by size and second alone."""
    path.write_bytes(source)
    Path(cache_from_source(path)).unlink(missing_ok=True)
