"""What the keeper knows of one run, and the reports made of it; leaves changing it to ``supervise``."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Message: TypeAlias = dict[str, Any]
    """A decoded JSON object."""

PROTOCOL = 2
"""Moves when an old keeper and a new engine would misunderstand each other."""

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
BEGAN = "began"
"""What is in a run's directory."""


class Exit:
    """How a leader ended, as the kernel told it."""

    __slots__ = ("code", "max_rss", "signal")

    def __init__(self, code: int | None, signal: int | None, max_rss: int) -> None:
        """Remember a plain exit code or the signal, and the kernel's own peak of memory in bytes."""
        self.code = code
        self.signal = signal
        self.max_rss = max_rss


class Run:
    """One run; ``order`` is the launch message it was made from."""

    __slots__ = (
        "cgroups",
        "directory",
        "exit",
        "exited_mono",
        "handshake",
        "kill_at",
        "launch_error",
        "log_size",
        "node",
        "note",
        "order",
        "outcome",
        "peak_memory",
        "phase",
        "pid",
        "progress",
        "progress_mark",
        "rss_exceeded",
        "started_at",
        "started_mono",
        "stop_reason",
        "uid",
    )

    def __init__(self, uid: str, node: str, directory: str, order: Message | None = None) -> None:
        """Start with nothing but what was ordered."""
        self.uid = uid
        self.node = node
        self.directory = directory
        self.order: Message = order or {}
        self.phase = STARTING
        self.pid = 0
        self.handshake: int | None = None
        """Pipe of a launch whose exec has not been confirmed yet."""
        self.cgroups: tuple[str, ...] = ()
        self.started_at: float | None = None
        self.started_mono = 0.0
        self.exit: Exit | None = None
        self.exited_mono = 0.0
        self.stop_reason = ""
        self.launch_error: tuple[str, str] | None = None
        """Reason and message, when the program could not be started."""
        self.note = ""
        """The platform's words about the end."""
        self.kill_at = float("inf")
        self.log_size = 0
        self.rss_exceeded = False
        self.peak_memory = 0
        self.progress = ""
        self.progress_mark: tuple[int, int] = (0, 0)
        self.outcome: Message | None = None

    def path(self, name: str) -> str:
        """Return the path of something in its directory."""
        return f"{self.directory}/{name}"

    def report(self) -> Message:
        """Say how far it is, for a client."""
        return {
            "uid": self.uid,
            "node": self.node,
            "phase": self.phase,
            "started_at": self.started_at,
            "progress": self.progress,
            "outcome": self.outcome,
        }
