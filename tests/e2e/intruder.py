"""What an account tries against others and the server, run as its job by the system's Python.

Each argument is ``process=PID``, ``file=PATH``, ``group=FOLDER`` or ``key=NUMBER``. Says a line for each attempt that
succeeds, and at last that it is through.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import signal
import socket
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LIBC = ctypes.CDLL(None, use_errno=True)
_LOOKS = ("environ", "mem", "maps", "io", "stack", "syscall", "auxv", "pagemap", "personality")
_LINKS, _FOLDERS = ("cwd", "root", "exe", "ns/mnt"), ("fd", "map_files")
_ATTACH, _SEIZE = 16, 0x4206
_GET_DESCRIPTOR, _MOVE_PAGES, _KEYCTL, _READ_KEY = 438, 279, 250, 11
_LET_IN = 14
"""EFAULT: who is told that had the right to look."""


class Span(ctypes.Structure):
    """A part of memory, as the system's calls take it."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def _called(name: str, *arguments: object) -> None:
    if getattr(_LIBC, name)(*arguments) < 0 and ctypes.get_errno() != _LET_IN:
        raise OSError(ctypes.get_errno(), "refused")


def _copy_memory(name: str, pid: int) -> None:
    buffer = ctypes.create_string_buffer(8)
    own, other = Span(ctypes.addressof(buffer), 8), Span(0x400000, 8)
    _called(name, pid, ctypes.byref(own), 1, ctypes.byref(other), 1, 0)


def _send(pid: int, number: int) -> None:
    signal.pidfd_send_signal(os.pidfd_open(pid), number)


def _open_to_write(path: Path) -> None:
    os.close(os.open(path, os.O_WRONLY))


def _read(path: Path) -> None:
    with path.open("rb") as file:
        if path.name != "mem":  # where nothing is at its beginning
            file.read(1)


def process(value: str) -> None:
    """Try everything that one process can do to another."""
    pid, place = int(value), Path("/proc") / value
    for name in _LOOKS:
        attempt(f"read {name} of {value}", partial(_read, place / name))
    for name in _LINKS:
        attempt(f"follow {name} of {value}", (place / name).readlink)
    for name in _FOLDERS:
        attempt(f"list {name} of {value}", partial(os.listdir, place / name))
    attempt(f"attach to {value}", partial(_called, "ptrace", _ATTACH, pid, None, None))
    attempt(f"seize {value}", partial(_called, "ptrace", _SEIZE, pid, None, None))
    for name in ("process_vm_readv", "process_vm_writev"):
        attempt(f"{name} of {value}", partial(_copy_memory, name, pid))
    attempt(f"move pages of {value}", partial(_called, "syscall", _MOVE_PAGES, pid, 0, None, None, None, 0))
    attempt(f"take a descriptor of {value}", lambda: _called("syscall", _GET_DESCRIPTOR, os.pidfd_open(pid), 0, 0))
    for number in (0, signal.SIGCONT, signal.SIGSTOP, signal.SIGKILL):
        attempt(f"send {number} to {value}", partial(os.kill, pid, number))
        attempt(f"send {number} to the group of {value}", partial(os.killpg, pid, number))
        attempt(f"send {number} by descriptor of {value}", partial(_send, pid, number))
    attempt(f"limit {value}", partial(resource.prlimit, pid, resource.RLIMIT_NOFILE, (1, 1)))
    slow_down(value)
    attempt(f"join the group of {value}", partial(os.setpgid, 0, pid))
    for name in ("oom_score_adj", "comm", "coredump_filter", "timerslack_ns"):
        attempt(f"write {name} of {value}", partial((place / name).write_text, "1"))


def slow_down(value: str) -> None:
    """Try to have a process get little of the processors, which those that follow it would inherit."""
    pid = int(value)
    attempt(f"renice {value}", partial(os.setpriority, os.PRIO_PROCESS, pid, 19))
    attempt(f"idle {value}", partial(os.sched_setscheduler, pid, os.SCHED_IDLE, os.sched_param(0)))
    attempt(f"bind {value}", partial(os.sched_setaffinity, pid, {0}))


def holder(value: str) -> None:
    """Try that on the own supervisor for seconds, while it looks at our files with our rights again and again."""
    until = time.monotonic() + float(value)
    while time.monotonic() < until:
        Path(os.environ["HOLDFAST_PROGRESS_FILE"]).write_text(str(time.monotonic()), encoding="ascii")
        for _ in range(50):
            slow_down(str(os.getppid()))


def _connect(name: str) -> None:
    with socket.socket(socket.AF_UNIX) as door:
        door.connect(name)


def _lock(path: Path) -> None:
    fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)


def file(value: str) -> None:
    """Try everything that can be done to a file or folder of somebody else's."""
    path = Path(value)
    attempt(f"read {value}", partial(_read, path))
    attempt(f"list {value}", partial(os.listdir, path))
    attempt(f"write {value}", lambda: path.open("ab").close())
    attempt(f"lock {value}", partial(_lock, path))
    attempt(f"delete {value}", path.unlink)
    attempt(f"delete the folder {value}", path.rmdir)
    attempt(f"move {value}", partial(path.rename, f"{value}.moved"))
    attempt(f"open {value}", partial(path.chmod, 0o777))
    attempt(f"own {value}", partial(os.chown, path, os.getuid(), -1))
    attempt(f"link {value}", partial(os.link, path, "stolen"))
    attempt(f"put something beside {value}", (path.parent / "intruder").touch)
    attempt(f"put something into {value}", (path / "intruder").touch)
    attempt(f"connect to {value}", partial(_connect, value))
    attempt(f"connect to {value} without a file", partial(_connect, f"\0{value}"))


def group(value: str) -> None:
    """Try to change a control group, our own or another's, or to leave it for that."""
    folder = Path(value)
    for control in sorted(folder.iterdir()):
        if control.is_file():
            attempt(f"write {control}", partial(_open_to_write, control))
    attempt(f"make a group in {value}", (folder / "intruder").mkdir)
    for name in ("cgroup.procs", "tasks"):
        attempt(f"move to {value}", partial((folder / name).write_text, str(os.getpid())))


def key(value: str) -> None:
    """Try to read a key that whoever started the server has."""
    attempt(f"read key {value}", partial(_called, "syscall", _KEYCTL, _READ_KEY, int(value), None, 0))


def attempt(what: str, act: Callable[[], object]) -> None:
    """Try something, and say so where it succeeds."""
    try:
        act()
    except (OSError, ValueError):
        return
    sys.stdout.write(f"could {what}\n")


if __name__ == "__main__":
    kinds = {"process": process, "file": file, "group": group, "key": key, "holder": holder}
    for word in sys.argv[1:]:
        kind, _, given = word.partition("=")
        kinds[kind](given)
    sys.stdout.write("through\n")
