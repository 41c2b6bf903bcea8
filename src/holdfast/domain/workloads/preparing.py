"""What is done before a run's own program is started, each time anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

DEFAULT_TIMEOUT_S = 600.0
DEEPEST = 64
"""Names in a path of what is sent along with a job."""
_LONGEST_NAME, _LONGEST_PATH = 255, 1024
"""Bytes."""


class Input(Struct, frozen=True):
    """Something that was sent along with a job, and is put into the work directory of each run before that begins."""

    path: str = ""
    """The name of the file that it becomes there; empty for an archive."""
    blob: str = ""
    """The SHA-256, in hexadecimal, under which its submitter had it kept."""
    data: str = ""
    """The bytes themselves, as base64, where they are few."""
    unpack: bool = False
    """Whether it is a zip archive that is unpacked there."""


class Preparation(Struct, frozen=True):
    """A program that makes ready what the run's own one needs: that is started when this has ended with code 0.

    Otherwise the run could not be launched, whatever its own program would have done.
    """

    command: tuple[str, ...]
    timeout_s: float = DEFAULT_TIMEOUT_S
    """How long it may take."""


def path_problem(path: str) -> str:
    """Say why a path does not lead to a place below a work directory, if so."""
    if path.count("/") >= DEEPEST or len(path.encode("utf-8", "surrogatepass")) > _LONGEST_PATH:
        return f"is longer than {_LONGEST_PATH} bytes, or deeper than {DEEPEST} names"
    for name in path.split("/"):
        if name in {"", ".", ".."} or not name.isprintable() or len(name.encode()) > _LONGEST_NAME:
            return f"is no path below the work directory of printable names of at most {_LONGEST_NAME} bytes"
    return ""


def clashing(paths: Iterable[str]) -> list[str]:
    """List the paths that are to be files, and are folders of other ones."""
    files = {path for path in paths if not path_problem(path)}
    folders = {path[:end] for path in files for end, letter in enumerate(path) if letter == "/"}
    return sorted(files & folders)
