"""What the shim and its supervisors know of a run, and the names of their files."""

from __future__ import annotations

import os

from .account import Account

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Message: TypeAlias = dict[str, Any]
    """A decoded JSON object."""

PROTOCOL = 3
"""Changes when a shim and an engine of another release would misunderstand each other; then they refuse to talk."""

SOCKET = "shim.sock"
LOCK = "shim.lock"
JOURNAL = "shim.journal"
ERRORS = "shim.log"
SUPERVISORS = "supervisors"
"""The shim's own files in the directory; the last is a folder with two files per supervisor."""

STARTING = "starting"
RUNNING = "running"
STOPPING = "stopping"
FINISHED = "finished"

CHECKPOINTS = "checkpoints"
"""Beside the directories of a job's runs; kept over attempts."""
WORK = "work"
LOG = "log"
TERMINATION = "termination"
PROGRESS = "progress"
STOP = "stop"
PREPARED = "prepared"
RESULT = "result"
BEGAN = "began"
STDERR = "stderr"
"""The files of a run; ``STDERR`` exists only if the streams are kept apart, and then ``LOG`` has stdout."""
BEGAN_OF = {LOG: BEGAN, STDERR: "stderr.began"}
"""The offsets in a log at which later programs of the same rank began."""
TIMES_OF = {LOG: "times", STDERR: "stderr.times"}
"""When the parts of a log were written."""


class Exit:
    """How a program ended, as the kernel reported it."""

    __slots__ = ("code", "max_rss", "signal")

    def __init__(self, code: int | None, signal: int | None, max_rss: int) -> None:
        """An exit code or a signal, and the kernel's peak of memory in bytes."""
        self.code = code
        self.signal = signal
        self.max_rss = max_rss


def exit_of_status(status: int) -> tuple[int | None, int | None, int]:
    """Return the arguments of ``Exit`` from a wait status, which does not tell memory."""
    code = os.waitstatus_to_exitcode(status & 0xFFFF)
    return (None, -code, 0) if code < 0 else (code, None, 0)


def lead_s(order: Message | None) -> float:
    """Return how long before its end a run wants to be warned, in seconds."""
    warning = (order or {}).get("warning")
    return float(warning[0]) if warning else 0.0


class ShimRun:
    """A run as the shim knows it; its supervisor knows more."""

    __slots__ = (
        "directory",
        "draining",
        "former",
        "group",
        "hung",
        "memory",
        "node",
        "order",
        "outcome",
        "phase",
        "pid",
        "ports",
        "preparing",
        "progress",
        "started_at",
        "status",
        "stop_reason",
        "supervisor",
        "takeovers",
        "tries",
        "uid",
        "warned_s",
    )

    def __init__(self, uid: str, node: str, directory: str, order: Message | None = None) -> None:
        """Start with the order only."""
        self.uid = uid
        self.node = node
        self.directory = directory
        self.order = order
        """The launch message, until its program is known to have started."""
        self.memory: int = (order or {}).get("memory") or 0
        self.warned_s: float = lead_s(order)
        """How long before its end it wants to be warned, in seconds."""
        self.phase = STARTING
        self.pid = 0
        self.ports: list[int] = []
        """Its port numbers in the order of its request, until it is over."""
        self.supervisor: int | None = None
        """The number of its supervisor."""
        self.former: int | None = None
        """The number of its killed supervisor, until the one that took over has reported."""
        self.group: int | None = None
        """The number of the dead supervisor whose control group contains the program, once it was taken over."""
        self.draining = False
        """Whether its program has ended and the rest of its processes are being killed."""
        self.preparing = False
        """Whether its process has not become its program yet."""
        self.takeovers = 0
        self.tries = 0
        """How many supervisors were killed that were to start it and had not begun to."""
        self.hung = False
        """Whether its supervisor was killed because it failed to start the program."""
        self.stop_reason = ""
        self.status: int | None = None
        """The wait status of its program, if the shim itself has seen that end."""
        self.started_at: float | None = None
        self.progress = ""
        self.outcome: Message | None = None

    def report(self) -> Message:
        """Return its state for a client."""
        unready = self.preparing and self.phase == RUNNING
        return {
            "uid": self.uid,
            "node": self.node,
            "phase": STARTING if unready else self.phase,
            "started_at": None if unready else self.started_at,
            "ports": self.ports,
            "progress": self.progress,
            "outcome": self.outcome,
        }


class SupervisedRun:
    """A run as its supervisor knows it; ``order`` is its launch message."""

    __slots__ = (
        "account",
        "exit",
        "exited_mono",
        "foreign",
        "fostered",
        "groups",
        "kill_at",
        "log_size",
        "note",
        "order",
        "outcome",
        "peak_memory",
        "phase",
        "pid",
        "preparing",
        "progress",
        "progress_mark",
        "recount_at",
        "rss_exceeded",
        "started_at",
        "started_mono",
        "stop_reason",
        "uid",
        "warned_at",
    )

    def __init__(self, order: Message) -> None:
        """Start with the order only."""
        self.uid: str = order["uid"]
        self.order = order
        self.account = Account.of(order)
        """The account it runs as, which owns its files; ``None`` for the server's own."""
        self.preparing = "prepare" in order or "inputs" in order
        """Whether its process was not seen to be its program yet."""
        self.phase = STARTING
        self.pid = 0
        self.foreign: int | None = None
        """A descriptor that becomes readable when a fostered program has ended."""
        self.fostered = False
        """Whether another supervisor, since killed, started it."""
        self.groups: tuple[str, ...] = ()
        """Its control groups."""
        self.started_at: float | None = None
        self.started_mono = 0.0
        self.exit: Exit | None = None
        self.exited_mono = 0.0
        self.warned_at: float | None = None
        """When it was warned of its end, in seconds since the epoch."""
        self.stop_reason = ""
        self.note = ""
        """A message about the end."""
        self.kill_at = float("inf")
        self.log_size = 0
        self.rss_exceeded = False
        self.recount_at = 0.0
        """When its memory may be counted exactly again, by the monotonic clock."""
        self.peak_memory = 0
        self.progress = ""
        self.progress_mark: tuple[int, int] = (0, 0)
        self.outcome: Message | None = None

    def path(self, name: str) -> str:
        """Return the path of a file in its directory."""
        return f"{self.order['directory']}/{name}"

    @property
    def logs(self) -> tuple[str, ...]:
        """The names of its logs; stderr's is the last."""
        return (LOG, STDERR) if self.order.get("separate") else (LOG,)

    def report(self) -> Message:
        """Return its state for the shim."""
        return {
            "uid": self.uid,
            "phase": self.phase,
            "preparing": self.preparing,
            "pid": self.pid,
            "started_at": self.started_at,
            "progress": self.progress,
            "outcome": self.outcome,
        }
