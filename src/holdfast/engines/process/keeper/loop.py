"""The keeper's one loop: clients in, signals in, reports out; leaves the runs themselves to ``supervise``."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
from pathlib import Path

from . import memory, moment
from .channel import Channel
from .journal import NAME, Journal, replay
from .libc import adopt_orphans
from .records import PROTOCOL
from .recovery import account_for
from .supervise import ENDS_PER_ROUND, Supervisor
from .watch import Watcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .memory import Cgroups
    from .records import Message, Run

JOURNAL_RETRY_S = 1.0
"""How soon a write that a full disk refused is tried again."""
REPORT_EVERY_S = 0.02
"""How often a client is told of anything but ends, at most: each report of a burst of starts costs it a transaction."""
_FOREVER_S = 3600.0


def serve(directory: str, listener: socket.socket, *, limits: str, idle_s: float) -> None:
    """Serve a directory until there is nothing to do and nobody to do it for."""
    _redirect_errors(f"{directory}/keeper.log")
    adopt_orphans()
    cgroups = memory.find_cgroups(directory, limits)
    path = f"{directory}/{NAME}"
    journal = Journal(path)
    runs, started = replay(path)
    account_for(runs, started, journal)
    journal.flush()
    os.chdir("/")
    keeper = Keeper(listener, journal, Supervisor(journal, runs, cgroups), cgroups)
    try:
        keeper.run(idle_s)
    finally:
        journal.close()
        Path(directory, "keeper.sock").unlink(missing_ok=True)
        if cgroups is not None:
            cgroups.close()


def _redirect_errors(path: str) -> None:
    """Let go of the starter's stderr: what goes wrong from here on is in a file of our own."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    os.dup2(fd, 2)
    os.close(fd)


class Keeper:
    """Connects clients, the clock and the kernel's signals to a supervisor."""

    def __init__(
        self,
        listener: socket.socket,
        journal: Journal,
        supervisor: Supervisor,
        cgroups: Cgroups | None,
    ) -> None:
        """Wire everything to one selector."""
        self._journal = journal
        self._supervisor = supervisor
        self._watcher = Watcher(supervisor)
        self._ways = {
            "memory": cgroups.name if cgroups is not None else memory.RSS,
            "pids": cgroups.name if cgroups is not None and cgroups.counts_processes else "none",
        }
        self._channels: list[Channel] = []
        self._selector = selectors.DefaultSelector()
        self._listener = listener
        self._active_at = moment.monotonic()
        self._more = False
        self._wakeup = _wake_on_child()
        supervisor.changed = self._changed
        supervisor.await_exec = self._await_exec
        supervisor.exec_settled = self._selector.unregister
        self._selector.register(listener, selectors.EVENT_READ, self._accept)
        self._selector.register(self._wakeup, selectors.EVENT_READ, self._child_signalled)

    def run(self, idle_s: float) -> None:
        """Loop until idle for long enough."""
        while not self._is_idle(idle_s):
            for key, _ in self._selector.select(self._timeout(idle_s)):
                callback: Callable[[], object] = key.data
                callback()
            now = moment.monotonic()
            more_ended = self._supervisor.reap(ENDS_PER_ROUND)
            self._supervisor.due(now)
            self._watcher.look(now)
            self._more = self._supervisor.start_some() or more_ended
            self._report()
        self._listener.close()
        self._selector.close()

    def _is_idle(self, idle_s: float) -> bool:
        now = moment.monotonic()
        if self._channels or self._supervisor.busy:
            self._active_at = now
        return now - self._active_at >= idle_s

    def _timeout(self, idle_s: float) -> float:
        if self._more:
            return 0.0
        now = moment.monotonic()
        due = min(self._supervisor.next_due(), self._watcher.next_due()) - now
        due = min([due, *(channel.told_at + REPORT_EVERY_S - now for channel in self._channels if channel.news)])
        if self._journal.pending:
            due = min(due, JOURNAL_RETRY_S)
        if not self._channels and not self._supervisor.busy:
            due = min(due, idle_s)
        return min(max(due, 0.0), _FOREVER_S)

    # what the selector calls

    def _child_signalled(self) -> None:
        try:
            self._wakeup.recv(4096)  # the reaping itself follows in every round
        except BlockingIOError:
            return

    def _await_exec(self, run: Run) -> None:
        if run.handshake is not None:
            self._selector.register(run.handshake, selectors.EVENT_READ, lambda: self._supervisor.confirm(run))

    def _accept(self) -> None:
        """Take in a client and tell it everything.

        What others have sent is read first: a server that was killed may have left orders on the way, and its
        successor must see them in the first report, or it would take them for lost.
        """
        for other in list(self._channels):
            self._read(other)
        sock, _ = self._listener.accept()
        sock.settimeout(0)
        channel = Channel(sock)
        self._channels.append(channel)
        self._selector.register(sock, selectors.EVENT_READ, lambda: self._readable(channel))
        hello = {"protocol": PROTOCOL, "pid": os.getpid(), **self._ways}
        channel.send({"hello": hello, "runs": [run.report() for run in self._supervisor.runs.values()]})

    def _readable(self, channel: Channel) -> None:
        if channel.sending:
            channel.push()
        self._read(channel)

    def _read(self, channel: Channel) -> None:
        try:
            for message in channel.receive():
                self._handle(channel, message)
        except (LookupError, TypeError, ValueError) as error:
            sys.stderr.write(f"a client that speaks nonsense was cut off: {error!r}\n")
            channel.open = False
        if not channel.open:
            self._drop(channel)

    def _drop(self, channel: Channel) -> None:
        if channel in self._channels:
            self._channels.remove(channel)
            self._selector.unregister(channel.sock)
            channel.close()

    def _handle(self, channel: Channel, message: Message) -> None:
        if "settings" in message:
            self._supervisor.use_environment(message["settings"]["environment"])
            self._watcher.set_log_limit(message["settings"]["log_limit"])
            self._supervisor.pids_limit = message["settings"].get("pids_limit", 0)
        self._supervisor.accept(message.get("orders", ()))
        if "stops" in message:
            self._supervisor.reap()  # who ended by itself before we read this was not stopped
            for uid, grace_s, reason in message["stops"]:
                self._supervisor.stop(uid, grace_s, reason)
        gone = self._supervisor.forget(message.get("forget", ()))
        for other in self._channels:
            if other is not channel:
                other.gone += gone
        channel.acknowledge = message["seq"]

    # reporting

    def _changed(self, run: Run) -> None:
        if run.outcome is not None:
            self._watcher.run_ended(run)
        for channel in self._channels:
            channel.dirty[run.uid] = None
            channel.urgent = channel.urgent or run.outcome is not None

    def _report(self) -> None:
        """Journal everything, then tell it."""
        self._journal.flush()
        now = moment.monotonic()
        for channel in list(self._channels):
            if channel.news and not channel.sending and (channel.urgent or now - channel.told_at >= REPORT_EVERY_S):
                channel.told_at = now
                self._tell(channel)
            if not channel.open:
                self._drop(channel)
            else:
                wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if channel.sending else 0)
                if self._selector.get_key(channel.sock).events != wanted:
                    self._selector.modify(channel.sock, wanted, lambda channel=channel: self._readable(channel))
        if self._supervisor.runs:
            self._journal.shrink(self._supervisor.runs)
        else:
            self._journal.clear()

    def _tell(self, channel: Channel) -> None:
        runs = self._supervisor.runs
        message: Message = {"ack": channel.acknowledge}
        message["runs"] = [runs[uid].report() for uid in channel.dirty if uid in runs]
        if channel.gone:
            message["gone"] = channel.gone
        channel.dirty, channel.gone, channel.acknowledge, channel.urgent = {}, [], 0, False
        channel.send(message)


def _wake_on_child() -> socket.socket:
    """Make SIGCHLD readable; being told is all: the handler itself has nothing to do."""
    reading, writing = socket.socketpair()
    for end in (reading, writing):
        end.settimeout(0)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writing.detach(), warn_on_full_buffer=False)
    return reading
