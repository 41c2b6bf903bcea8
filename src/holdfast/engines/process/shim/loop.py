"""The shim's single loop: clients and supervisors, signals, reports.

It touches nothing on which a run could make it wait: no file, directory or program of a run.
"""

from __future__ import annotations

import os
import resource
import selectors
from contextlib import suppress
from functools import partial
from pathlib import Path

from . import cgroups, moment, processes, record
from .channel import Channel
from .complaints import Complaint, complain
from .journal import Journal, replay
from .libc import adopt_orphans, set_name
from .pool import Pool
from .ports import HeldPort
from .records import ERRORS, JOURNAL, PROTOCOL, SOCKET, SUPERVISORS, WORK
from .recovery import Recovery
from .removal.clearing import Clearing
from .runs import Runs
from .supervisor.surroundings import Surroundings, heed_children, wake_on_child
from .sweep import Sweep

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from .pool import SupervisorHandle
    from .records import Message, ShimRun

JOURNAL_RETRY_S = 1.0
"""Seconds after which a write refused by a full disk is tried again."""
REPORT_EVERY_S = 0.02
"""Seconds between reports to a client about anything but ends; in a burst each report costs it a transaction."""
SETTLE_EVERY_S = 0.1
"""Seconds between looks at what dead supervisors left, while there is any."""
SHORT_S = 0.5
"""Seconds after which an action that lacked descriptors or processes is tried again."""
_FOREVER_S = 3600.0
_OUR_OOM_SCORE = -900
_PROGRAMS_OOM_SCORE = 500
_MOST_FILES = 65536


def serve(directory: str, listener: socket.socket, *, limits: str, idle_s: float) -> None:
    """Serve the working directory until there is nothing to do and no client."""
    _redirect_errors(ERRORS)
    set_name("holdfast-shim")
    adopt_orphans()
    heed_children()
    os.makedirs(SUPERVISORS, 0o700, exist_ok=True)  # noqa: PTH103 - beside other calls of os
    place = record.place_of(".")
    home = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    surroundings = Surroundings(place=place, boot=record.boot_id(), home=home, idle_s=idle_s)
    surroundings.oom_scores = _spare_ourselves()
    surroundings.files_limit = _raise_files_limit()
    groups = cgroups.find(directory, place, limits)
    journal = Journal(JOURNAL)
    records = replay(JOURNAL)
    pool = Pool(surroundings, groups)
    runs = Runs(journal, pool, records)
    recovery = Recovery(runs, pool, surroundings)
    shim = Shim(listener, journal, runs, pool, recovery)
    recovery.of_earlier_shims()
    runs.settle()
    try:
        shim.run(idle_s)
    finally:
        if runs.settle():
            pool.close()
        journal.close()
        with suppress(OSError):  # The next shim takes over a name at which nobody answers.
            Path(SOCKET).unlink()


def _redirect_errors(path: str) -> None:
    """Redirect stderr from the starter's to a file of our own."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    os.dup2(fd, 2)
    os.close(fd)


def _spare_ourselves() -> tuple[str, str] | None:
    """Make the kernel prefer to kill programs when memory is short; returns the shim's score and the programs'."""
    path = Path("/proc/self/oom_score_adj")
    try:
        before = int(path.read_text())
        programs = min(1000, max(before, 0) + _PROGRAMS_OOM_SCORE)
        try:
            path.write_text(str(min(before, _OUR_OOM_SCORE)))
            programs = max(before, 0)
        except OSError:
            pass  # Only a privileged process may lower its score.
        return path.read_text().strip(), str(programs)
    except (OSError, ValueError):
        return None


def _raise_files_limit() -> tuple[int, int] | None:
    """Raise the limit of open files for a connection to each supervisor; returns the limit for programs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = min(hard, _MOST_FILES) if hard != resource.RLIM_INFINITY else _MOST_FILES
    if soft >= limit:
        return None
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    except (OSError, ValueError):
        return None
    return soft, hard


class Shim:
    """Connects clients, supervisors, the clock and the kernel's signals to the runs."""

    def __init__(self, listener: socket.socket, journal: Journal, runs: Runs, pool: Pool, recovery: Recovery) -> None:
        """Wire everything to one selector."""
        self._journal = journal
        self._runs = runs
        self._pool = pool
        self._recovery = recovery
        self._channels: list[Channel] = []
        self._selector = selectors.DefaultSelector()
        self._sweep = Sweep(runs, pool, self._selector)
        self._held = HeldPort()
        self._clearing = Clearing(pool.clear, self._selector)
        self._listener = listener
        self._active_at = moment.monotonic()
        self._more = False
        self._orphaned = False
        self._fading: list[SupervisorHandle] = []
        """Supervisors that closed their connection and are about to be dead."""
        self._settle_at = float("inf")
        self._take_over_at = self._listen_at = float("inf")
        """When to retry what lacked descriptors or processes: taking over runs, accepting clients."""
        self._closed = Complaint("clients are let in")
        self._suspects: set[int] = set()
        """Children that look like leftovers; they are killed if they still do a moment later."""
        self._wakeup = wake_on_child()
        runs.changed = self._changed
        runs.engaged = self._listen_to
        runs.begun_apart, runs.status_of = self._sweep.wait_for, self._sweep.status_of
        self._listen()
        self._selector.register(self._wakeup, selectors.EVENT_READ, self._child_signalled)

    def run(self, idle_s: float) -> None:
        """Loop until idle for long enough."""
        for handle in list(self._pool.handles.values()):
            self._listen_to(handle)
            # Messages after its greeting are buffered already, so no event announces them.
            self._supervisor_readable(handle)
        self._runs.settle()
        self._settle_dead()
        while not self._is_idle(idle_s):
            for key, _ in self._selector.select(self._timeout(idle_s)):
                callback: Callable[[], object] = key.data
                callback()
            now = moment.monotonic()
            self._runs.due(now)
            self._sweep.look(now)
            if now >= self._settle_at:
                self._settle_dead()
            if now >= self._take_over_at:
                self._take_over_again()
            if now >= self._listen_at:
                self._listen()
            self._pool.shrink(now)
            self._more = self._runs.start_some()
            self._report()
        self._listener.close()
        self._selector.close()

    def _is_idle(self, idle_s: float) -> bool:
        now = moment.monotonic()
        if self._channels or self._runs.busy or self._journal.pending or self._clearing.busy:
            self._active_at = now
        return now - self._active_at >= idle_s

    def _timeout(self, idle_s: float) -> float:
        if self._more:
            return 0.0
        now = moment.monotonic()
        due = min(self._runs.next_due(), self._sweep.next_due(), self._pool.next_due(), self._settle_at)
        due = min(due, self._take_over_at, self._listen_at) - now
        due = min([due, *(channel.told_at + REPORT_EVERY_S - now for channel in self._channels if channel.news)])
        if self._journal.pending:
            due = min(due, JOURNAL_RETRY_S)
        if not self._channels and not self._runs.busy:
            due = min(due, idle_s)
        return min(max(due, 0.0), _FOREVER_S)

    # Supervisors.

    def _listen_to(self, handle: SupervisorHandle) -> None:
        if not handle.channel.open:  # It died before it could be told anything.
            self._fade(handle)
            return
        if not handle.heard:
            handle.heard = True
            self._selector.register(handle.channel.fd, selectors.EVENT_READ, lambda: self._supervisor_readable(handle))
        self._supervisor_sends(handle)

    def _fade(self, handle: SupervisorHandle) -> None:
        """Handle a closed connection: the supervisor is about to end."""
        if handle.heard:
            handle.heard = False
            self._selector.unregister(handle.channel.fd)
        if handle not in self._fading:
            self._fading.append(handle)
        self._settle_at = moment.monotonic()

    def _supervisor_sends(self, handle: SupervisorHandle) -> None:
        if handle.heard:
            self._watch_for_room(handle.channel, lambda: self._supervisor_readable(handle))

    def _watch_for_room(self, channel: Channel, callback: Callable[[], object]) -> None:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if channel.sending else 0)
        if self._selector.get_key(channel.fd).events != events:
            self._selector.modify(channel.fd, events, callback)

    def _supervisor_readable(self, handle: SupervisorHandle) -> None:
        handle.channel.push()
        for message in handle.channel.receive():
            handle.pid = message.get("pid", handle.pid)
            self._runs.receive(handle, message)
            if message.get("clear"):
                self._clearing.add(message["clear"])
        if handle.channel.open:
            self._supervisor_sends(handle)
            return
        self._fade(handle)

    def _child_signalled(self) -> None:
        try:
            os.read(self._wakeup, 4096)
        except BlockingIOError:
            return
        self._orphaned = True
        self._settle_dead()

    def _settle_dead(self) -> None:
        """Handle supervisors that have ended, and the processes that became our children."""
        for handle in [handle for handle in self._fading if self._pool.is_over(handle)]:
            self._fading.remove(handle)
            self._pool.drop(handle)
            self._recovery.of_supervisor(handle)
            self._orphaned = True
        if self._orphaned and not self._fading:
            own = self._pool.own_processes()
            self._suspects = processes.settle_orphans(own, self._runs.zombies, self._suspects)
            self._orphaned = bool(self._suspects)
        self._settle_at = moment.monotonic() + SETTLE_EVERY_S if self._orphaned or self._fading else float("inf")
        if self._recovery.waits:
            self._take_over_at = min(self._take_over_at, moment.monotonic() + SHORT_S)

    def _take_over_again(self) -> None:
        self._recovery.again()
        self._take_over_at = moment.monotonic() + SHORT_S if self._recovery.waits else float("inf")

    # Clients.

    def _listen(self) -> None:
        self._listen_at = float("inf")
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def _accept(self) -> None:
        """Accept a client and tell it everything.

        Messages of other clients are read first: a killed server may have left orders on the way, and its successor
        must see them in the first report, or it would take those runs for lost.
        """
        for other in list(self._channels):
            self._read(other)
        try:
            sock, _ = self._listener.accept()
        except OSError as error:  # The client stays in the backlog until it can be accepted.
            self._closed.begins(f"a client cannot be let in: {error}")
            self._selector.unregister(self._listener)
            self._listen_at = moment.monotonic() + SHORT_S
            return
        self._closed.ends()
        sock.settimeout(0)
        channel = Channel(sock.detach())
        self._channels.append(channel)
        self._selector.register(channel.fd, selectors.EVENT_READ, lambda: self._readable(channel))
        channel.send({"hello": self._greeting(), "runs": [run.report() for run in self._runs.runs.values()]})

    def _greeting(self) -> Message:
        groups = self._pool.cgroups
        return {
            "protocol": PROTOCOL,
            "pid": os.getpid(),
            "memory": groups.name if groups is not None else cgroups.RSS,
            "pids": groups.name if groups is not None and groups.counts_processes else "none",
            "containment": groups.name if groups is not None else "supervisor",
        }

    def _readable(self, channel: Channel) -> None:
        channel.push()
        self._read(channel)

    def _read(self, channel: Channel) -> None:
        try:
            for message in channel.receive():
                self._handle(channel, message)
        except (LookupError, TypeError, ValueError) as error:
            complain(f"a client that sent nonsense was disconnected: {error!r}")
            channel.open = False
        if not channel.open:
            self._drop(channel)

    def _drop(self, channel: Channel) -> None:
        if channel in self._channels:
            self._channels.remove(channel)
            self._selector.unregister(channel.fd)
            channel.close()

    def _handle(self, channel: Channel, message: Message) -> None:
        if "settings" in message:
            settings = message["settings"]
            self._runs.use_environment(settings["environment"])
            self._runs.use_log_limit(settings["log_limit"])
            self._runs.pids_limit = settings.get("pids_limit", 0)
            self._runs.launch_limit_s = settings.get("launch_limit_s", self._runs.launch_limit_s)
            self._runs.use_lease(settings.get("lease_s"))
            self._held.hold(settings.get("held_port", 0))
        self._runs.server_heard()
        self._runs.accept(message.get("orders", ()))
        for uid, grace_s, reason in message.get("stops", ()):
            self._runs.stop(uid, grace_s, reason)
        for directory in message.get("clear", ()):
            if not self._runs.are_in(directory):
                self._clearing.add(f"{directory}/{WORK}")
        gone = self._runs.forget(message.get("forget", ()))
        for other in self._channels:
            if other is not channel:
                other.gone += gone
        channel.acknowledge = message["seq"] or channel.acknowledge

    # Reports.

    def _changed(self, run: ShimRun) -> None:
        for channel in self._channels:
            channel.dirty[run.uid] = None
            channel.urgent = channel.urgent or run.outcome is not None

    def _report(self) -> None:
        """Write everything to the journal, then report it."""
        self._runs.settle()
        now = moment.monotonic()
        for channel in list(self._channels):
            soon = channel.urgent or now - channel.told_at >= REPORT_EVERY_S
            if channel.news and not channel.sending and soon:
                channel.told_at = now
                self._tell(channel)
            if not channel.open:
                self._drop(channel)
            else:
                self._watch_for_room(channel, partial(self._readable, channel))
        if self._runs.runs:
            self._journal.shrink(self._runs.runs)
        else:
            self._journal.clear()

    def _tell(self, channel: Channel) -> None:
        runs = self._runs.runs
        message: Message = {"ack": channel.acknowledge}
        message["runs"] = [runs[uid].report() for uid in channel.dirty if uid in runs]
        if channel.gone:
            message["gone"] = channel.gone
        channel.dirty, channel.gone, channel.acknowledge, channel.urgent = {}, [], 0, False
        channel.send(message)
