"""What is done before a run's own program is started, each time anew."""

from __future__ import annotations

from holdfast.domain.record import Struct

DEFAULT_TIMEOUT_S = 600.0


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
