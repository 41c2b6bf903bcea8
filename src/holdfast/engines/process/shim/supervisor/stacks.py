"""Writes where a silent run's processes are into its log before it is ended; bounded in size and time.

It uses what there is: ``py-spy`` on the program's PATH, a program that writes its own stacks when it is sent
``HOLDFAST_STACK_SIGNAL``, and what ``/proc`` says of any process.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from .. import files, processes
from ..account import acting, start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..account import Account
    from ..records import SupervisedRun

LIMIT_S = 5.0
"""Seconds that all stacks may take."""
SETTLE_S = 0.3
"""Seconds that a program has to write its own."""
POLL_S = 0.05
MOST_PROCESSES = 32
MOST_SPIED = 4
MOST_BYTES = 64 << 10
_MOST_FRAMES = 3
_LONGEST_FRAMES = 300
HEADER = "holdfast: "
"""Begins the dump in the log; rules search the output before it."""
_PYTHON_FRAME = re.compile(r'^  File "(?P<file>[^"]*)", line (?P<line>\d+) in (?P<name>.+)$')
_SPIED_FRAME = re.compile(r"^    (?P<name>\S.*) \((?P<file>[^()]*):(?P<line>\d+)\)$")
_BEGINS = re.compile(r"^(Current thread|Thread) .*$")
_MAIN = re.compile(r'^Current thread|"MainThread"')


class StackDump:
    """One dump in progress."""

    def __init__(self, program: SupervisedRun, why: str, now: float) -> None:
        """Write the header and what the kernel says, then ask whatever can tell more."""
        self.why = why
        self.due = now + POLL_S
        self._ends_at = now + LIMIT_S
        self._settled_at = now
        self._account = program.account
        self._path = program.path(program.logs[-1])
        self._from = files.mark(self._path)[1]
        self._spies: set[int] = set()
        pids = list(_tree(program.pid))
        self._kernel = [_of_kernel(pid) for pid in pids]
        try:
            with acting(self._account):
                log = files.open_plain(self._path, os.O_WRONLY | os.O_APPEND)
        except OSError:
            return
        try:
            # Others write into the same log from here on, so our part comes first.
            _write(log, f"\n{HEADER}{why}; where its processes are:\n" + "".join(text for _, text in self._kernel))
            self._ask(program, pids, log, now)
        finally:
            os.close(log)

    def _ask(self, program: SupervisedRun, pids: list[int], log: int, now: float) -> None:
        spy = program.order.get("py_spy")
        if spy:
            for pid in [pid for pid in pids if _is_python(pid)][:MOST_SPIED]:
                self._spies.add(_spawn(spy, pid, log, self._account))
            self._spies.discard(0)
        if not self._spies:
            number = int(program.order.get("stack_signal") or 0)
            heeding = [pid for pid in pids if number and processes.heeds(pid, number)]
            for pid in heeding:
                processes.kill(pid, number)
                self._settled_at = now + SETTLE_S

    def is_done(self, now: float) -> bool:
        """Whether all have answered, or their time is over."""
        self._spies &= set(processes.children())
        if now < self._ends_at and (self._spies or now < self._settled_at):
            self.due = now + POLL_S
            return False
        for pid in self._spies:
            processes.kill(pid)
        return True

    def summary(self) -> str:
        """Return the reason, and briefly where the run was."""
        with acting(self._account):
            text = files.text_from(self._path, self._from, MOST_BYTES)
        where = _innermost(text) or self._of_the_last()
        return f"{self.why}; it was in: {where}" if where else self.why

    def _of_the_last(self) -> str:
        """Return where the innermost process waits: its parents wait for it."""
        return next((words for words, _ in reversed(self._kernel) if words), "")


def _tree(leader: int) -> Iterator[int]:
    """List a process and its descendants, parents first; bounded."""
    pending, count = [leader], 0
    while pending and count < MOST_PROCESSES:
        pid = pending.pop(0)
        count += 1
        yield pid
        pending += processes.children_of(pid)


def _spawn(program: str, pid: int, log: int, account: Account | None) -> int:
    """Start py-spy on a process; returns 0 if that fails. It is the run's own and gets only the run's rights."""
    actions = [(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
    argv, environment = [program, "dump", "--pid", str(pid)], {"PATH": os.defpath}
    try:
        if account is not None:
            return start(
                account,
                [log],
                enter=lambda: os.chdir("/"),
                execute=lambda: os.execve(program, argv, environment),  # noqa: S606 - as asked for
            )
        return os.posix_spawn(program, argv, environment, file_actions=actions, setsigmask=())
    except OSError:
        return 0


def _is_python(pid: int) -> bool:
    try:
        return "python" in Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return False


def _of_kernel(pid: int) -> tuple[str, str]:
    """Return what the kernel says of a process, briefly and in lines."""
    status = dict(line.split(":\t", 1) for line in _text(pid, "status").splitlines() if ":\t" in line)
    if not status:
        return "", ""
    name, state = status.get("Name", "?"), status.get("State", "?")
    waits = _text(pid, "wchan").strip("\0\n 0")
    stack = [line.partition("] ")[2].partition("+")[0] for line in _text(pid, "stack").splitlines()]
    lines = [f"process {pid} ({name}): {state}, {status.get('Threads', '?').strip()} threads, in {waits or '?'}"]
    lines += [f"  {frame}" for frame in stack[:16] if frame]
    call = _text(pid, "syscall").split(" ", 1)[0].strip()
    lines += [f"  system call {call}"] if call.isdecimal() else []
    return f"process {pid} ({name}), {waits or state}", "\n".join(lines) + "\n"


def _text(pid: int, name: str) -> str:
    return processes.content(f"/proc/{pid}/{name}")[:MOST_BYTES].decode(errors="replace")


def _innermost(text: str) -> str:
    """Find the innermost frames of the main thread, or else of the first thread."""
    threads: list[tuple[bool, list[str]]] = []
    for line in text.splitlines():
        if _BEGINS.match(line):
            threads.append((_MAIN.search(line) is not None, []))
        match = _PYTHON_FRAME.match(line) or _SPIED_FRAME.match(line)
        if match and threads:
            place = f"{match['file'].rpartition('/')[2]}:{match['line']}"
            threads[-1][1].append(f"{match['name']} ({place})")
    mains = [frames for main, frames in threads if main and frames]
    frames = next(iter(mains or [frames for _, frames in threads if frames]), [])
    return ", ".join(frames[:_MOST_FRAMES])[:_LONGEST_FRAMES]


def _write(log: int, text: str) -> None:
    try:
        os.write(log, text.encode(errors="replace")[:MOST_BYTES])
    except OSError:
        return  # The disk is full; the failure's message has the result.
