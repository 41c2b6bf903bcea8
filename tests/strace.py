"""Kills a process at one of its system calls, counted in a run before: strace's fault injection."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    Tell: TypeAlias = Callable[[str, object], None]

POINTS = "crash points"
"""A property of tests that is shown at the end of a run."""
ABSENT = "NO STRACE: it is not installed (Debian: apt install strace), or may not trace processes here"
_CALLS = (
    *("write", "pwrite64", "writev", "sendto", "sendmsg", "ftruncate", "fallocate", "fsync", "fdatasync"),
    *("rename", "renameat", "renameat2", "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir", "bind", "flock"),
    *("kill", "wait4", "clone", "clone3", "vfork"),
)
"""What others can see of a process, files and messages above all."""
_SEEN = "sched_yield"
"""What a process does until it sees that it is traced."""
_NO_POINT = re.compile(
    r"</(proc|sys)/|\"/sys/|<pipe:|<TCP|/(shim|server)\.log>|-shm\b|^clone3.*CLONE_THREAD|, \"\\0\", 1|LOCK_SH| = -1 E"
)
"""Files that nobody goes by after a death, how a process wakes itself, and what changes nothing."""
_CALL = re.compile(r"^(?:\d+ +)?(\w+)\(")
_KILLED = "+++ killed by SIGKILL +++"
_PATIENCE_S = 60.0
_MOST = 0.8


class Point(NamedTuple):
    """A system call of a process, which dies before it: the second ``write``, say."""

    call: str
    number: int

    @property
    def name(self) -> str:
        """What a folder can be called."""
        return f"{self.call}-{self.number}"


@cache
def require() -> None:
    """Skip the test where nothing can be traced."""
    strace = shutil.which("strace")
    if strace is None or subprocess.run([strace, "-qq", "-o", "/dev/null", "true"], check=False).returncode:
        pytest.skip(ABSENT)


def points(trace: Path) -> list[Point]:
    """List the points of a process that was traced to its end."""
    found, numbers = [], dict.fromkeys(_CALLS, 0)
    for line in trace.read_text(errors="replace").splitlines():
        call = _CALL.match(line)
        if call is not None and call[1] in numbers:
            numbers[call[1]] += 1
            if _NO_POINT.search(line) is None:
                found.append(Point(call[1], numbers[call[1]]))
    return found


def options(trace: Path, point: Point | None) -> list[str]:
    """Write out the command that traces, and kills at a point."""
    fault = [] if point is None else ["-e", f"inject={point.call}:signal=KILL:when={point.number}"]
    calls = ",".join(f"?{call}" for call in (*_CALLS, _SEEN))
    return ["strace", "-qq", "-yy", "-o", str(trace), "-e", f"trace={calls}", "-e", "signal=kill", *fault]


def was_killed(trace: Path) -> bool:
    """Whether a traced process has come to its point."""
    return trace.exists() and _KILLED in trace.read_text(errors="replace")


def live_through(points: Sequence[Point], live: Callable[[Point], bool], *, at_once: int) -> int:
    """Live through a round for each point; returns how many were come to, and says of all what went wrong."""
    failed: list[str] = []

    def one(point: Point) -> bool:
        try:
            return live(point)
        except BaseException as error:  # noqa: BLE001 - a failed test too, told with the others
            failed.append(f"{point.name}: {error!r}")
            return True

    with ThreadPoolExecutor(at_once) as pool:
        reached = sum(pool.map(one, points))
    assert not failed, f"{len(failed)} of {len(points)} points: " + "\n".join(failed)
    return reached


def live_through_all(points: Sequence[Point], live: Callable[[Point], bool], tell: Tell, *, at_once: int) -> None:
    """Live through a round for each point there is, say how many there were, and come to all but a few of them.

    What happens differs a little from one time to the next.
    """
    reached = live_through(points, live, at_once=at_once)
    tell(POINTS, f"{len(points)}, {reached} come to, all held")
    assert reached >= len(points) * _MOST - 1


def sample(found: Sequence[Point]) -> list[Point]:
    """Draw the first, the middle and the last one."""
    return [found[0], found[len(found) // 2], found[-1]]


def stand_in(folder: Path) -> str:
    """Write what stands for Python where a shim is started, so that one of its processes can be followed."""
    path, script = folder / "python", Path(__file__).with_name("followed.py")
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {script} "$@"\n')
    path.chmod(0o755)
    return str(path)


class Follower:
    """Follows a process or a thread from its birth, when it has left its number in a folder."""

    def __init__(self, folder: Path, point: Point | None, died: Callable[[], object] = lambda: None) -> None:
        """Wait for it in the background.

        Args:
            folder: Where it is told of, and where its trace will be.
            point: Where it is killed; ``None``: nowhere.
            died: Called when it has been killed there.
        """
        self.trace = folder / "trace"
        self._told, self._point, self._died = folder / "followed", point, died
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._told.exists():
            if self._over.wait(0.002):
                return
        with subprocess.Popen([*options(self.trace, self._point), "-p", self._told.read_text()]) as tracer:
            while not (self.trace.exists() and self.trace.stat().st_size):
                assert tracer.poll() is None
                self._over.wait(0.002)
            self._told.unlink()
        if was_killed(self.trace):
            self._died()

    def end(self) -> None:
        """Wait until it is over, now that nothing is left to follow."""
        self._over.set()
        self._thread.join(_PATIENCE_S)
        assert not self._thread.is_alive()
