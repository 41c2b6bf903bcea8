"""The runs of one directory until they are forgotten: assigned to supervisors, stopped, taken over."""

from __future__ import annotations

import heapq
from collections import deque

from . import files, moment, processes
from .ports import Ports
from .records import FINISHED, RUNNING, STARTING, STOPPING, ShimRun
from .supervisor import launch, outcomes
from .supervisor.execution import DRAIN_LIMIT_S
from .supervisor.notice import LEADING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from .journal import Journal
    from .pool import Pool, SupervisorHandle
    from .records import Message

LAUNCHES_PER_ROUND = 8
"""Starts per round of the loop, so that ends and stops never wait behind a long row of starts."""
PATIENCE_S = 5.0
"""Seconds after its grace period in which a stopping run must end, before its supervisor is killed."""
MOST_TRIES = 3
_LEASE_PARTS = 8
"""How often per lease a supervisor hears of a server."""
_MASTER = "HOLDFAST_MASTER_PORT"
_SLACK = 1024
"""Timers of ended runs that may be kept."""


class Timers:
    """A heap of ``(when, uid, what)``."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, str, str]] = []
        self._prune_at = _SLACK

    def add(self, when: float, uid: str, what: str) -> None:
        """Add a timer."""
        heapq.heappush(self._heap, (when, uid, what))

    def due(self, now: float) -> Iterator[tuple[str, str]]:
        """Take out the timers that are due, as ``(uid, what)``."""
        while self._heap and self._heap[0][0] <= now:
            _, uid, what = heapq.heappop(self._heap)
            yield uid, what

    def next(self) -> float:
        """Return when the next timer is due."""
        return self._heap[0][0] if self._heap else float("inf")

    def prune(self, alive: Callable[[str], bool]) -> None:
        """Drop the timers of ended runs once there are many: a deadline may be days away."""
        if len(self._heap) < self._prune_at:
            return
        self._heap = [entry for entry in self._heap if alive(entry[1])]
        heapq.heapify(self._heap)
        self._prune_at = 2 * len(self._heap) + _SLACK


class Runs:
    """All runs of the directory and their supervisors."""

    def __init__(self, journal: Journal, pool: Pool, runs: dict[str, ShimRun]) -> None:
        """Take over the runs in the journal."""
        self.runs = runs
        self.active: dict[str, ShimRun] = {}
        """Unfinished runs with a supervisor."""
        self.watched: dict[str, ShimRun] = {}
        """Runs with a memory limit that no control group enforces."""
        self.log_limit = 0
        self.launch_limit_s = 60.0
        """Seconds that starting a program may take: its directory may be on a file system that hangs."""
        self.pids_limit = 0
        """Processes that one run may have, where control groups can count them; 0 for the usual limit."""
        self.changed: Callable[[ShimRun], None] = lambda _: None
        self.engaged: Callable[[SupervisorHandle], None] = lambda _: None
        """Called with a supervisor that the loop is to listen to."""
        self.begun_apart: Callable[[ShimRun], None] = lambda _: None
        """Called with a run whose program nobody below the shim would inherit if its supervisor were killed."""
        self.status_of: Callable[[ShimRun], int | None] = lambda run: run.status
        """Returns the wait status of a run's ended program, if the shim knows it."""
        self._journal = journal
        self._pool = pool
        self._base: Mapping[str, str] = {}
        self._lease_s: float | None = None
        self._pass_on_at = 0.0
        self._queue: deque[ShimRun] = deque()
        self._limits: dict[str, float] = {}
        self._timers = Timers()
        self.ports = Ports()
        self.zombies: dict[int, str] = {}
        """Program leaders that became the shim's children, by pid: reaped when their runs are finished."""

    @property
    def busy(self) -> bool:
        """Whether anything runs or is about to."""
        return bool(self.active or self._queue)

    def are_in(self, directory: str) -> bool:
        """Whether an unfinished run has its files in a directory."""
        return any(run.directory == directory and run.phase != FINISHED for run in self.runs.values())

    def use_environment(self, base: Mapping[str, str]) -> None:
        """Set the environment that programs start from."""
        self._base = base

    def use_log_limit(self, limit: int) -> None:
        """Limit logs to a number of bytes of disk from now on; 0 for no limit."""
        self.log_limit = limit
        for run in self.active.values():
            self._send(run, {"log_limit": limit})

    def use_lease(self, lease_s: float | None) -> None:
        """End programs that long after the last news of a server; ``None`` for never."""
        self._lease_s = lease_s
        for run in self.active.values():
            self._send(run, {"lease_s": lease_s})

    def server_heard(self) -> None:
        """Tell supervisors that there is a server, as often as they need to hear it."""
        now = moment.monotonic()
        if self._lease_s is not None and now >= self._pass_on_at:
            self._pass_on_at = now + self._lease_s / _LEASE_PARTS
            for run in self.active.values():
                self._send(run, {"lease_s": self._lease_s})

    def accept(self, orders: Iterable[Message]) -> None:
        """Queue runs; known ones are ignored."""
        for order in orders:
            uid = order["uid"]
            if uid not in self.runs:
                run = self.runs[uid] = ShimRun(uid, order["node"], order["directory"], order)
                self._queue.append(run)

    def forget(self, uids: Iterable[str]) -> list[str]:
        """Drop finished runs; returns those that were."""
        gone = [uid for uid in uids if uid in self.runs and self.runs[uid].phase == FINISHED]
        for uid in gone:
            del self.runs[uid]
        if gone:
            self._journal.forgot(gone)
            self._timers.prune(lambda uid: uid in self.active)
        return gone

    def settle(self) -> bool:
        """Write everything to the journal and release what it replaces; returns whether the disk accepted it."""
        written = self._journal.flush()
        if written:
            self._pool.settle()
        return written

    # Starting.

    def start_some(self) -> bool:
        """Assign a few queued runs to supervisors; returns whether more wait."""
        handed: list[tuple[SupervisorHandle, ShimRun, Message]] = []
        if self._queue:
            self.settle()  # This lets supervisors that have just become idle take others.
        while self._queue and len(handed) < LAUNCHES_PER_ROUND:
            run = self._queue.popleft()
            if run.phase == STARTING and run.order is not None:
                self._hand_over(run, run.order, handed)
        if handed and not self._journal.flush():
            why = launch.unrecorded(self._journal.refusal)  # A run started now would be unknown to the next shim.
            for handle, run, _ in handed:
                self._pool.give_back(handle)
                self.engaged(handle)
                self._refuse(run, why.reason, why.message)
            return bool(self._queue)
        for handle, run, message in handed:
            self._timers.add(moment.monotonic() + self.launch_limit_s, run.uid, "launch")
            self.hand(handle, run, {"launch": message})
        return bool(self._queue)

    def hand(self, handle: SupervisorHandle, run: ShimRun, message: Message) -> None:
        """Give a run to a supervisor and tell it what to do."""
        self.assign(handle, run)
        handle.channel.send({**message, "log_limit": self.log_limit, "lease_s": self._lease_s})
        self.engaged(handle)

    def assign(self, handle: SupervisorHandle, run: ShimRun) -> None:
        """Note the supervisor of a run."""
        handle.uid, run.supervisor = run.uid, handle.number
        self.active[run.uid] = run

    def leave_alone(self, run: ShimRun, pid: int, started_at: float) -> None:
        """Note that a run's program continues without a supervisor; the shim learns how it ends if the kernel tells."""
        run.phase, run.pid, run.started_at, run.supervisor = RUNNING, pid, started_at, None
        self.active[run.uid] = run
        self.begun_apart(run)

    def _hand_over(self, run: ShimRun, order: Message, handed: list[tuple[SupervisorHandle, ShimRun, Message]]) -> None:
        try:
            ports = self.ports.environment(run)
            handle = self._pool.take()
        except OSError as error:
            failed = launch.refused(error.errno or 0, "a port or a process")
            self._refuse(run, failed.reason, failed.message if error.errno else str(error))
            return
        run.ports = [int(number) for name, number in ports.items() if name != _MASTER]
        message = {
            **order,
            "env": {**self._base, **order["env"], **ports},
            "pids_limit": self.pids_limit,
            "ports": run.ports,
            "master": int(ports.get(_MASTER, 0)),
        }
        self._journal.ordered(run)
        handed.append((handle, run, message))

    def _refuse(self, run: ShimRun, reason: str, message: str) -> None:
        self.finish(run, outcomes.not_launched(reason, message, ended_at=moment.wall()))

    # Stopping.

    def stop(self, uid: str, grace_s: float, reason: str) -> None:
        """Have a run stopped: SIGTERM now, SIGKILL after the grace period."""
        run = self.runs.get(uid)
        if run is None or run.phase == FINISHED:
            return
        if uid not in self.active:
            self.finish(run, outcomes.never_started(reason, ended_at=moment.wall()))
            return
        run.stop_reason = run.stop_reason or reason
        self._wake_supervisor(run)
        self._send(run, {"stop": [uid, grace_s, reason]})
        limit = moment.monotonic() + grace_s + PATIENCE_S + (run.warned_s if reason in LEADING else 0.0)
        self._limits[uid] = limit = min(limit, self._limits.get(uid, limit))
        self._timers.add(limit, uid, "stop")

    def _send(self, run: ShimRun, message: Message) -> None:
        handle = self._pool.handles.get(run.supervisor or 0)
        if handle is not None:
            handle.channel.send(message)

    def due(self, now: float) -> None:
        """Kill supervisors that do not act in time."""
        for uid, what in self._timers.due(now):
            run = self.active.get(uid)
            if run is None:
                continue
            if what == "launch" and run.phase == STARTING:
                self._kill_supervisor(run)
            elif what == "given up" and run.phase == STARTING:
                self._give_up(run)
            elif what == "silent" and run.draining:
                self._timers.add(now + DRAIN_LIMIT_S + PATIENCE_S, uid, "drained")
            elif what in {"silent", "drained"} or (what == "stop" and now >= self._limits.get(uid, now)):
                self._kill_supervisor(run)

    def ended_unnoticed(self, run: ShimRun) -> None:
        """Note that a run's program has ended while its supervisor is silent; it gets a moment more."""
        self._wake_supervisor(run)
        self._timers.add(moment.monotonic() + PATIENCE_S / 2, run.uid, "silent")

    def repeat_stop(self, run: ShimRun) -> None:
        """Repeat a stop to the supervisor that took a run over."""
        if run.stop_reason:
            grace_s = max(0.0, self._limits.pop(run.uid, 0.0) - PATIENCE_S - moment.monotonic())
            self.stop(run.uid, grace_s, run.stop_reason)

    def _wake_supervisor(self, run: ShimRun) -> None:
        handle = self._pool.handles.get(run.supervisor or 0)
        if handle is not None:
            processes.resume(handle.pid)

    def _kill_supervisor(self, run: ShimRun) -> None:
        """Kill the hanging supervisor of a run; another one takes over its program, if that has begun."""
        handle = self._pool.handles.get(run.supervisor or 0)
        if handle is None or not handle.pid:
            return
        run.hung = run.phase == STARTING
        hanging = processes.children_of(handle.pid) if run.hung else []
        for pid in (handle.pid, *[pid for pid in hanging if processes.uid_of(pid) != run.uid]):
            processes.kill(pid)
        self._timers.add(moment.monotonic() + PATIENCE_S, run.uid, "given up")

    def _give_up(self, run: ShimRun) -> None:
        """Finish a run that never began: its supervisor cannot even be killed now, and will die when it could go on."""
        handle = self._pool.handles.get(run.supervisor or 0)
        if handle is not None:
            handle.uid = ""
        self.never_begun(run)

    def next_due(self) -> float:
        """Return when ``due`` is needed next, by the monotonic clock."""
        return self._timers.next()

    # Messages of supervisors.

    def receive(self, handle: SupervisorHandle, message: Message) -> None:
        """Handle a supervisor's report on its run."""
        if "failed" in message:
            self._failed(handle, message["failed"])
        report = message.get("run")
        if report is None:
            return
        run = self.runs.get(report["uid"])
        if run is None or run.phase == FINISHED or run.supervisor != handle.number:
            return
        run.started_at, run.progress, run.pid = report["started_at"], report["progress"], report["pid"]
        if report["outcome"] is not None:
            self._release(handle, worn=bool(message.get("worn")))
            self.finish(run, report["outcome"])
            return
        run.phase = report["phase"]
        run.order = None if run.phase in {RUNNING, STOPPING} else run.order
        run.draining = bool(message.get("draining"))
        run.preparing = bool(report.get("preparing"))
        if run.pid and not handle.child:
            self.begun_apart(run)
        if message.get("watched"):
            self.watched[run.uid] = run
        if run.former is not None and not message.get("unsaved"):
            self._pool.leave_files(run.former)
            run.former = None
        self.changed(run)

    def _failed(self, handle: SupervisorHandle, number: int) -> None:
        """Refuse a run that its supervisor could not begin; taking over a running program is tried again."""
        run = self.active.get(handle.uid)
        if run is not None and run.phase == STARTING and run.order is not None and run.former is None:
            handle.uid, error = "", launch.refused(number, "a process for it")
            self._refuse(run, error.reason, error.message)

    def exceeds(self, run: ShimRun, size: int) -> None:
        """Tell a run's supervisor how much memory it seems to use."""
        self._send(run, {"exceeded": [run.uid, size]})

    def _release(self, handle: SupervisorHandle, *, worn: bool) -> None:
        if worn:
            self._pool.give_up(handle)
        else:
            self._pool.give_back(handle)

    def finish(self, run: ShimRun, outcome: Message) -> None:
        """Note how a run ended."""
        run.outcome = outcome
        run.phase = FINISHED
        self.active.pop(run.uid, None)
        self.watched.pop(run.uid, None)
        self._limits.pop(run.uid, None)
        for pid in [pid for pid, uid in self.zombies.items() if uid == run.uid]:
            del self.zombies[pid]
        self.ports.release(run.uid)
        run.ports = []
        if run.former is not None:
            self._pool.leave_files(run.former)
        run.order = None
        self._journal.ended(run)
        self.changed(run)

    def begin_again(self, run: ShimRun) -> None:
        """Give a run to another supervisor: the last one had not even recorded that it would start it."""
        del self.active[run.uid]
        run.supervisor = None
        run.tries += 1
        if run.order is None:
            self.begun_unseen(run)
        elif run.stop_reason or run.hung:
            self.never_begun(run)
        elif run.tries < MOST_TRIES:
            self._queue.append(run)
        elif files.is_full("."):
            self._refuse(run, "DiskFull", "cannot start it: the disk is full")
        else:
            self._refuse(run, "LaunchError", "the processes that should have started it were killed")

    def never_begun(self, run: ShimRun) -> None:
        """Finish a run whose program was never started."""
        if run.stop_reason:
            self.finish(run, outcomes.never_started(run.stop_reason, ended_at=moment.wall()))
        else:
            why = f"its directory or its program did not answer for {self.launch_limit_s:g} s"
            self._refuse(run, "LaunchTimeout", f"cannot start it: {why}")

    def begun_unseen(self, run: ShimRun) -> None:
        """Finish a run whose supervisor died with it and left no word of its program: that may have run and ended."""
        if run.hung:
            self.never_begun(run)  # It was killed before its turn came.
        else:
            note = outcomes.DIED_UNSEEN if run.pid else outcomes.MAY_HAVE_RUN
            self.finish(run, outcomes.lost(ended_at=moment.wall(), note=note))
