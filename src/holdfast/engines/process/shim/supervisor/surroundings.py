"""What the processes of a shim share: their arguments, and how they reach each other and hear of the kernel."""

from __future__ import annotations

import os
import signal
import socket

from ..complaints import complain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..cgroups import Group


class Surroundings:
    """What every supervisor of a shim is told once."""

    __slots__ = ("boot", "files_limit", "home", "idle_s", "oom_scores", "place")

    def __init__(self, *, place: str, boot: str, home: int, idle_s: float) -> None:
        """``home`` is the open directory, ``place`` its name that no copy has."""
        self.place = place
        self.boot = boot
        self.home = home
        self.idle_s = idle_s
        self.oom_scores: tuple[str, str] | None = None
        """The supervisor's score and that of programs, if they differ."""
        self.files_limit: tuple[int, int] | None = None
        """The limit for programs, if the supervisor's was raised."""


def entered(group: Group | None) -> Group | None:
    """Enter a control group; returns it, or ``None`` if that is impossible."""
    if group is not None:
        try:
            group.enter()
        except OSError as error:
            complain(f"no control group: {error}")
            return None
    return group


def listen(path: str) -> socket.socket:
    """Listen at a path below the working directory."""
    if os.path.lexists(path):
        os.unlink(path)  # noqa: PTH108 - as above
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    usual = os.umask(0o077)
    listener.bind(path)
    os.umask(usual)
    listener.listen(2)
    listener.settimeout(0)
    return listener


def set_oom_score(score: str) -> None:
    """Set the kernel's preference for killing this process, and those it starts, when memory is short."""
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        os.write(fd, score.encode())
        os.close(fd)
    except OSError:
        return


def wake_on_child() -> int:
    """Make SIGCHLD readable from a descriptor."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    return reading


def heed_children() -> None:
    """Make sure that SIGCHLD is delivered; the handler itself has nothing to do."""
    signal.signal(signal.SIGCHLD, lambda *_: None)
