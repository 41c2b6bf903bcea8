"""The shim's supervisors: started when needed, reused, found again by the next shim, dismissed when idle."""

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
"""Idle supervisors to keep for the next runs."""
IDLE_S = 3.0
"""Seconds after which further idle ones are dismissed."""
UNBORN_S = 0.5
_HELLO_S = 2.0
_FAREWELL_S = 2.0


class SupervisorHandle:
    """One supervisor as the shim knows it."""

    __slots__ = ("channel", "child", "heard", "idle_since", "made_at", "number", "pid", "uid")

    def __init__(self, number: int, pid: int, channel: Channel, *, child: bool) -> None:
        self.number = number
        self.pid = pid
        self.channel = channel
        self.child = child
        """Whether it descends from this shim's process, so that its orphans become the shim's children."""
        self.heard = False
        """Whether the loop listens to it."""
        self.made_at = moment.monotonic()
        self.uid = ""
        self.idle_since = 0.0


class Pool:
    """All supervisors."""

    def __init__(self, surroundings: Surroundings, cgroups: Cgroups | None) -> None:
        self.handles: dict[int, SupervisorHandle] = {}
        self.cgroups = cgroups
        self._fork_server = ForkServer(surroundings, cgroups)
        self._idle: deque[SupervisorHandle] = deque()
        self._returned: list[SupervisorHandle] = []
        """Idle supervisors whose record may be the only one of their last run's end."""
        self._worn: list[SupervisorHandle] = []
        """Idle supervisors that are to get no other run."""
        self._left: list[int] = []
        """Dead supervisors whose records may be the only ones of an end."""
        # The group of a dead supervisor may contain a program.
        groups = cgroups.numbers() if cgroups is not None else []
        self._next = 1 + max([*(number for number, _ in files()), *groups], default=0)

    def take(self) -> SupervisorHandle:
        """Return an idle supervisor, starting one if there is none; raises OSError."""
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
        """Note that a supervisor has no run any more and is to get no other."""
        handle.uid = ""
        self._worn.append(handle)

    def leave_files(self, number: int) -> None:
        """Note that a dead supervisor's files are not needed, once the journal has their content."""
        self._left.append(number)

    def settle(self) -> None:
        """Release records that the journal has by now: reuse or remove them."""
        self._idle.extend(self._returned)
        for handle in self._worn:
            self.dismiss(handle)
        self._returned, self._worn = [], []
        self._left = [number for number in self._left if not _removed(number)]

    def shrink(self, now: float) -> None:
        """Dismiss supervisors that have been idle for long."""
        while len(self._idle) > IDLE_KEPT and now - self._idle[0].idle_since >= IDLE_S:
            self.dismiss(self._idle.popleft())

    def next_due(self) -> float:
        """Return when ``shrink`` is needed next, by the monotonic clock."""
        return self._idle[0].idle_since + IDLE_S if len(self._idle) > IDLE_KEPT else float("inf")

    @staticmethod
    def dismiss(handle: SupervisorHandle) -> None:
        """Dismiss an idle supervisor; its end is noticed like any other."""
        handle.channel.send({"leave": True})

    def close(self) -> None:
        """Dismiss all supervisors, if none has a run, and remove their files when they are gone."""
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
        """Fork a process that deletes a work directory and reports over a socket; raises OSError."""
        self._fork_server.clear(path, sock)

    def wake_fork_server(self) -> None:
        """Resume the fork server, in case somebody suspended it."""
        self._fork_server.wake()

    def own_processes(self) -> set[int]:
        """List the processes that may be our children and are no leftovers of a run."""
        return {self._fork_server.pid, *(handle.pid for handle in self.handles.values())}

    def is_over(self, handle: SupervisorHandle) -> bool:
        """Whether a supervisor is dead; for one that could not even begin, at the earliest a moment after its start.

        A new one would fail in the same way, and they must not be started without a pause.
        """
        unborn = not handle.pid and moment.monotonic() < handle.made_at + UNBORN_S
        return not unborn and self.is_dead(handle)

    @staticmethod
    def is_dead(handle: SupervisorHandle) -> bool:
        """Whether a disconnected supervisor has ended and its children have found another parent."""
        return not record.is_held(path_of(handle.number)) and (not handle.pid or processes.has_ended(handle.pid))

    def drop(self, handle: SupervisorHandle) -> None:
        """Remove a dead supervisor."""
        del self.handles[handle.number]
        handle.channel.close()

    def group_of(self, number: int) -> list[str]:
        """Return the directories of a dead supervisor's control group."""
        return [] if self.cgroups is None else list(self.cgroups.group(number).paths)

    def end_group(self, number: int) -> None:
        """Kill what a dead supervisor left in its control group, and remove the group once it is empty."""
        if self.cgroups is not None:
            group = self.cgroups.group(number)
            if not group.kill():
                group.remove()

    def find(self) -> dict[int, Message | None]:
        """Connect to the supervisors of earlier shims, and wait a moment for their greetings.

        Returns:
            Greetings by number; ``None`` for one that lives and is silent, whose greeting may still come.
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
        processes.resume(pid)  # It may be suspended.
        sock.settimeout(0)
        return SupervisorHandle(number, pid, Channel(sock.detach()), child=False)


def path_of(number: int) -> str:
    """Return the path of a supervisor's record."""
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
    """List the records, by the numbers of their supervisors."""
    for name in os.listdir(SUPERVISORS):  # noqa: PTH208 - beside other calls of os
        number, dot, suffix = name.partition(".")
        if number.isdecimal() and dot + suffix == record.SUFFIX:
            yield int(number), path_of(int(number))


def peer_of(sock: socket.socket) -> int:
    """Return the process at the other end of a socket; raises OSError."""
    import struct  # noqa: PLC0415 - seldom needed

    if not hasattr(socket, "SO_PEERCRED"):
        return 0
    return int(struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
