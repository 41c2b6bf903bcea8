"""The shim's supervisors: started when needed, reused, found again by the next shim, stopped when idle."""

from __future__ import annotations

import os
import socket
from collections import deque
from pathlib import Path

from . import moment, processes, record
from .channel import Channel
from .fork_server import ForkServer
from .records import SUPERVISORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .cgroups import Cgroups
    from .records import Message
    from .supervisor.surroundings import Surroundings

IDLE_KEPT = 4
"""Supervisors without a run that stay for the next ones."""
IDLE_S = 3.0
"""After how long those beyond are sent away."""
UNBORN_S = 0.5
_HELLO_S = 2.0
_FAREWELL_S = 2.0


class SupervisorHandle:
    """One supervisor as the shim knows it."""

    __slots__ = ("channel", "child", "heard", "idle_since", "made_at", "number", "pid", "uid")

    def __init__(self, number: int, pid: int, channel: Channel, *, child: bool) -> None:
        """Begin with no run."""
        self.number = number
        self.pid = pid
        self.channel = channel
        self.child = child
        """Whether it is below this shim's process, so that its orphans become our children."""
        self.heard = False
        """Whether the loop listens to it."""
        self.made_at = moment.monotonic()
        self.uid = ""
        self.idle_since = 0.0


class Pool:
    """Every supervisor."""

    def __init__(self, surroundings: Surroundings, cgroups: Cgroups | None) -> None:
        """Begin with none."""
        self.handles: dict[int, SupervisorHandle] = {}
        self.cgroups = cgroups
        self._fork_server = ForkServer(surroundings, cgroups)
        self._idle: deque[SupervisorHandle] = deque()
        self._returned: list[SupervisorHandle] = []
        """Without a run, and with the end of their last one in records where it may be alone."""
        self._worn: list[SupervisorHandle] = []
        """Such ones that are to have no other run."""
        self._left: list[int] = []
        """Dead ones whose records may be the only ones of an end, too."""
        groups = cgroups.numbers() if cgroups is not None else []  # a program may be in that of a dead supervisor
        self._next = 1 + max([*(number for number, _ in files()), *groups], default=0)

    def take(self) -> SupervisorHandle:
        """Return a supervisor with no run, making one where there is none; raises OSError."""
        while self._idle:
            handle = self._idle.pop()
            if handle.number in self.handles and handle.channel.open:
                return handle
        return self._make()

    def give_back(self, handle: SupervisorHandle) -> None:
        """Note that a supervisor has no run any more."""
        handle.uid = ""
        handle.idle_since = moment.monotonic()
        self._returned.append(handle)

    def give_up(self, handle: SupervisorHandle) -> None:
        """Note that a supervisor has no run any more, and is to have no other."""
        handle.uid = ""
        self._worn.append(handle)

    def leave_files(self, number: int) -> None:
        """Note that nobody needs the files of a dead supervisor any more, once the journal has what they say."""
        self._left.append(number)

    def settle(self) -> None:
        """Let go of records, now that the journal has what they say: reuse them, or have them removed."""
        self._idle.extend(self._returned)
        for handle in self._worn:
            self.dismiss(handle)
        self._returned, self._worn = [], []
        self._left = [number for number in self._left if not _removed(number)]

    def shrink(self, now: float) -> None:
        """Dismiss those that have been idle for long."""
        while len(self._idle) > IDLE_KEPT and now - self._idle[0].idle_since >= IDLE_S:
            self.dismiss(self._idle.popleft())

    def next_due(self) -> float:
        """Return when ``shrink`` is needed next, on the monotonic clock."""
        return self._idle[0].idle_since + IDLE_S if len(self._idle) > IDLE_KEPT else float("inf")

    @staticmethod
    def dismiss(handle: SupervisorHandle) -> None:
        """Send a supervisor without a run away; its end is seen as every other."""
        handle.channel.send({"leave": True})

    def close(self) -> None:
        """Send all away, where none has a run, and remove what was theirs when they have gone."""
        for handle in self.handles.values():
            self.dismiss(handle)
        until = moment.monotonic() + _FAREWELL_S
        while self.handles and moment.monotonic() < until:
            for handle in [handle for handle in self.handles.values() if self.is_dead(handle)]:
                self.drop(handle)
            moment.pause(0.002)
        self._fork_server.close()
        if self.cgroups is not None:
            self.cgroups.close()

    def _make(self) -> SupervisorHandle:
        ours, theirs = socket.socketpair()
        number, self._next = self._next, self._next + 1
        try:
            self._fork_server.supervisor(number, theirs)
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.settimeout(0)
        handle = self.handles[number] = SupervisorHandle(number, 0, Channel(ours.detach()), child=True)
        return handle

    def clear(self, path: str, sock: socket.socket) -> None:
        """Fork a process that deletes a work directory and tells a socket how that went; raises OSError."""
        self._fork_server.clear(path, sock)

    def wake_fork_server(self) -> None:
        """Resume the process that forks supervisors, in case somebody suspended it."""
        self._fork_server.wake()

    def own_processes(self) -> set[int]:
        """List the processes that may be children of ours and are no leftovers of a run."""
        return {self._fork_server.pid, *(handle.pid for handle in self.handles.values())}

    def is_over(self, handle: SupervisorHandle) -> bool:
        """Whether a supervisor is dead; one that could not even begin, at the earliest a moment after it was made.

        Another one would fare as it did, and nobody is to make them without a pause.
        """
        unborn = not handle.pid and moment.monotonic() < handle.made_at + UNBORN_S
        return not unborn and self.is_dead(handle)

    @staticmethod
    def is_dead(handle: SupervisorHandle) -> bool:
        """Whether a supervisor that closed its connection has ended, and what it left has found another parent."""
        return not record.is_held(path_of(handle.number)) and (not handle.pid or processes.has_ended(handle.pid))

    def drop(self, handle: SupervisorHandle) -> None:
        """Take out a supervisor that is dead."""
        del self.handles[handle.number]
        handle.channel.close()

    def group_of(self, number: int) -> list[str]:
        """Return the directories of the control group of a supervisor that is dead."""
        return [] if self.cgroups is None else list(self.cgroups.group(number).paths)

    def end_group(self, number: int) -> None:
        """Kill what a dead supervisor left in its control group, and remove the group when nothing is left in it."""
        if self.cgroups is not None:
            group = self.cgroups.group(number)
            if not group.kill():
                group.remove()

    def find(self) -> dict[int, Message | None]:
        """Connect to the supervisors of earlier shims, and wait a moment for what they say.

        Returns:
            Their greetings by number; ``None`` of one that lives and says nothing, whose channel may still bring it.
        """
        messages: dict[int, Message | None] = {}
        for number, path in files():
            if record.is_held(path):
                handle = self._connected(number)
                if handle is not None:
                    self.handles[number] = handle
                    messages[number] = None
        until = moment.monotonic() + _HELLO_S
        waiting = set(messages)
        while waiting and moment.monotonic() < until:
            for number in list(waiting):
                first = next(self.handles[number].channel.receive(), None)
                if first is not None:
                    messages[number] = first
                    self.handles[number].pid = first["pid"]
                if first is not None or not self.handles[number].channel.open:
                    waiting.discard(number)
            if waiting:
                moment.pause(0.005)
        return messages

    @staticmethod
    def _connected(number: int) -> SupervisorHandle | None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(1.0)
        try:
            sock.connect(f"{SUPERVISORS}/{number}.sock")
            pid = peer_of(sock)
        except OSError:
            sock.close()
            return None
        processes.resume(pid)  # one that somebody suspended
        sock.settimeout(0)
        return SupervisorHandle(number, pid, Channel(sock.detach()), child=False)


def path_of(number: int) -> str:
    """Return where a supervisor's record is."""
    return f"{SUPERVISORS}/{number}{record.SUFFIX}"


def _removed(number: int) -> bool:
    """Remove a dead supervisor's files; returns whether they are gone."""
    try:
        for path in (path_of(number), f"{SUPERVISORS}/{number}.sock"):
            Path(path).unlink(missing_ok=True)
    except OSError:
        return False
    return True


def files() -> Iterator[tuple[int, str]]:
    """List the records there are, by the numbers of their supervisors."""
    for name in os.listdir(SUPERVISORS):  # noqa: PTH208 - beside other calls of os
        number, dot, suffix = name.partition(".")
        if number.isdecimal() and dot + suffix == record.SUFFIX:
            yield int(number), path_of(int(number))


def peer_of(sock: socket.socket) -> int:
    """Return the process that listens at the other end; raises OSError."""
    import struct  # noqa: PLC0415 - seldom needed

    if not hasattr(socket, "SO_PEERCRED"):
        return 0
    return int(struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
