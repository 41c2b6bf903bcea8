"""What is prepared before each start of a run's program: files, and a program of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

DEFAULT_TIMEOUT_S = 600.0
DEEPEST = 64
"""The most names in the path of an input."""
_LONGEST_NAME, _LONGEST_PATH = 255, 1024
"""Bytes."""


class Input(Struct, frozen=True):
    """A file or archive that is sent along with a job, and put into each run's work directory before it starts."""

    path: str = ""
    """The path of the file; empty for an archive."""
    blob: str = ""
    """The SHA-256, in hexadecimal, under which its submitter stored it."""
    data: str = ""
    """The content in base64, if it is small."""
    unpack: bool = False
    """Whether it is a zip archive to unpack there."""


class Preparation(Struct, frozen=True):
    """A program that prepares what the run's own program needs, which starts once this has exited with 0.

    If it exits otherwise, the run has failed to launch.
    """

    command: tuple[str, ...]
    timeout_s: float = DEFAULT_TIMEOUT_S
    """How long it may take."""


def path_problem(path: str) -> str:
    """Say what is wrong with a path below a work directory, if anything."""
    if path.count("/") >= DEEPEST or len(path.encode("utf-8", "surrogatepass")) > _LONGEST_PATH:
        return f"is longer than {_LONGEST_PATH} bytes, or deeper than {DEEPEST} names"
    for name in path.split("/"):
        if name in {"", ".", ".."} or not name.isprintable() or len(name.encode()) > _LONGEST_NAME:
            return f"is no path below the work directory of printable names of at most {_LONGEST_NAME} bytes"
    return ""


def clashing(paths: Iterable[str]) -> list[str]:
    """List the paths of files that are also folders of other files."""
    files = {path for path in paths if not path_problem(path)}
    folders = {path[:end] for path in files for end, letter in enumerate(path) if letter == "/"}
    return sorted(files & folders)
