"""Owns the runs: starts, stops, reaps and finishes them; leaves sockets to ``loop`` and periodic looks to ``watch``."""

from __future__ import annotations

import os
import resource
import signal
from collections import deque
from itertools import repeat

from . import launch, memory, moment, processes, verdict
from .ports import Ports
from .records import FINISHED, RUNNING, STARTING, STOPPING, Exit, Run
from .timers import Timers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .journal import Journal
    from .memory import Cgroups
    from .records import Message

ENDS_PER_ROUND = 16
"""So that the first of many ends is told while the others are taken in."""
LAUNCHES_PER_ROUND = 8
"""So that exits and stops are never far behind a long row of starts."""
DRAIN_POLL_S = 0.02
DRAIN_LIMIT_S = 30.0


class Supervisor:
    """Every run of one directory, until forgotten."""

    def __init__(self, journal: Journal, runs: dict[str, Run], cgroups: Cgroups | None) -> None:
        """Take over what the journal knew; none of those runs is alive any more."""
        self.runs = runs
        self.active: dict[str, Run] = {}
        """Those with a program, or with processes left of it."""
        self.by_pid: dict[int, Run] = {}
        self.memory_watched: dict[str, Run] = {}
        """Those with a memory limit and no cgroup to enforce it."""
        self.pids_limit = 0
        """Processes one run may have where cgroups can count them; 0 is the usual limit, for those with a cgroup."""
        self.await_exec: Callable[[Run], None] = lambda _: None
        """Called with a run whose exec is not confirmed yet: call ``confirm`` when its pipe is readable."""
        self.exec_settled: Callable[[int], object] = lambda _: None
        """Called with that pipe, just before it is closed."""
        self.changed: Callable[[Run], None] = lambda _: None
        self._journal = journal
        self._cgroups = cgroups
        self._base: Mapping[str, str] = {}
        self._queue: deque[Run] = deque()
        self._draining: dict[str, Run] = {}
        self._stale_groups: list[str] = []
        self._timers = Timers()
        self._ports = Ports()
        self._next_drain = float("inf")

    @property
    def busy(self) -> bool:
        """Whether anything is running or about to."""
        return bool(self.active or self._queue)

    def use_environment(self, base: Mapping[str, str]) -> None:
        """Set what every program's environment starts from."""
        self._base = base

    def accept(self, orders: Iterable[Message]) -> None:
        """Queue runs; known ones are ignored. They are on disk before the first is started."""
        for order in orders:
            uid = order["uid"]
            if uid not in self.runs:
                run = self.runs[uid] = Run(uid, order["node"], order["directory"], order)
                self._queue.append(run)
                self._journal.ordered(run)
        self._journal.flush()

    def forget(self, uids: Iterable[str]) -> list[str]:
        """Drop finished runs; returns those that were."""
        gone = [uid for uid in uids if uid in self.runs and self.runs[uid].phase == FINISHED]
        for uid in gone:
            del self.runs[uid]
        if gone:
            self._journal.forgot(gone)
            self._timers.prune(lambda uid: uid in self.active)
        return gone

    # starting

    def start_some(self) -> bool:
        """Start a few queued runs; returns whether more wait."""
        started = 0
        while self._queue and started < LAUNCHES_PER_ROUND:
            run = self._queue.popleft()
            if run.phase == STARTING:
                self._start(run)
                started += 1
        if started:
            os.chdir("/")
        return bool(self._queue)

    def _start(self, run: Run) -> None:
        before = moment.since_boot()
        try:
            environment = {**self._base, **run.order["env"], **self._ports.environment(run)}
            self._limit(run)
            launch.launch(run, environment)
        except launch.CannotLaunch as error:
            self._finish(run, verdict.not_launched(run, error.reason, error.message, ended_at=moment.wall()))
            return
        except OSError as error:
            failed = launch.refused(error.errno or 0, "a port")
            self._finish(run, verdict.not_launched(run, failed.reason, str(error), ended_at=moment.wall()))
            return
        del run.order["env"], run.order["argv"]
        self.active[run.uid] = self.by_pid[run.pid] = run
        if run.order.get("memory") and not run.cgroups:
            self.memory_watched[run.uid] = run
        run.started_at, run.started_mono = moment.wall(), moment.monotonic()
        self._journal.started(run, before)
        if run.handshake is None:
            self._now_running(run)
        else:
            self.await_exec(run)

    def _limit(self, run: Run) -> None:
        """Make the run's cgroups; where that fails its memory is watched instead."""
        limit = run.order.get("memory") or 0
        if (limit or self.pids_limit) and self._cgroups is not None:
            try:
                run.cgroups = self._cgroups.create(run.uid, limit, self.pids_limit)
            except OSError:
                run.cgroups = ()

    def confirm(self, run: Run) -> bool:
        """Read whether a pending exec went well; returns false while it is still pending."""
        if run.handshake is None:
            return True
        try:
            error = os.read(run.handshake, 16)
        except BlockingIOError:
            return False
        self.exec_settled(run.handshake)
        os.close(run.handshake)
        run.handshake = None
        if error:
            failed = launch.refused(int(error), "the program")
            run.launch_error = (failed.reason, failed.message)
        elif run.phase == STARTING:
            self._now_running(run)
        return True

    def _now_running(self, run: Run) -> None:
        run.phase = RUNNING
        deadline = run.order.get("deadline_s")
        if deadline is not None:
            self._timers.add(run.started_mono + deadline, run.uid, "deadline")
        self.changed(run)

    # stopping

    def stop(self, uid: str, grace_s: float, reason: str) -> None:
        """Stop a run: SIGTERM now, SIGKILL after the grace; the first reason stays, the earliest kill counts."""
        run = self.runs.get(uid)
        if run is None or run.phase == FINISHED:
            return
        if run.pid == 0:
            run.stop_reason = reason
            self._finish(run, verdict.never_started(run, ended_at=moment.wall()))
            return
        if run.exit is not None or _has_exited(run.pid):
            return  # it ended by itself first; the reaper will say so
        if not run.stop_reason:
            run.stop_reason = reason
            run.phase = STOPPING
            self._signal(run, signal.SIGTERM)
            self._signal(run, signal.SIGCONT)  # a suspended program has a grace, too
            self.changed(run)
        run.kill_at = min(run.kill_at, moment.monotonic() + grace_s)
        if grace_s <= 0:
            self.kill(run)
        else:
            self._timers.add(run.kill_at, uid, "kill")

    def kill(self, run: Run) -> None:
        """Kill everything a run has, at once."""
        self._signal(run, signal.SIGKILL)
        for group in run.cgroups:
            memory.kill_members(group)

    def _signal(self, run: Run, number: int) -> None:
        if not processes.kill_group(run.pid, number):
            processes.kill(run.pid, number)  # forked a moment ago and not in its own session yet

    def due(self, now: float) -> None:
        """Act on deadlines, graces and leftovers whose time has come."""
        for uid, what in self._timers.due(now):
            run = self.active.get(uid)
            if run is None or run.exit is not None:
                continue
            if what == "kill" and now >= run.kill_at:
                self.kill(run)
            elif what == "deadline" and not run.stop_reason:
                run.note = f"ran longer than its deadline of {run.order['deadline_s']:g} s"
                self.stop(uid, run.order["grace_s"], "deadline")
        if now >= self._next_drain:
            self._drain(now)

    def next_due(self) -> float:
        """Return when ``due`` is needed next, on the monotonic clock."""
        return min(self._timers.next(), self._next_drain)

    # ending

    def reap(self, most: int | None = None) -> bool:
        """Take in processes that have ended. A leader's group is killed while its number is still taken.

        Args:
            most: How many; by default all.

        Returns:
            Whether there may be more.
        """
        for _ in repeat(None) if most is None else range(most):
            try:
                info = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return False
            if info is None:
                return False
            run = self.by_pid.pop(info.si_pid, None)
            if run is not None:
                processes.kill_group(info.si_pid, signal.SIGKILL)
            _, status, usage = os.wait4(info.si_pid, 0)
            if run is not None:
                self._leader_ended(run, status, usage)
        return True

    def _leader_ended(self, run: Run, status: int, usage: resource.struct_rusage) -> None:
        code = os.waitstatus_to_exitcode(status)
        peak = usage.ru_maxrss * 1024
        run.exit = Exit(None, -code, peak) if code < 0 else Exit(code, None, peak)
        run.exited_mono = moment.monotonic()
        self.confirm(run)
        if self._is_clean(run):
            self._conclude(run)
        else:
            self._draining[run.uid] = run
            self._next_drain = min(self._next_drain, run.exited_mono + DRAIN_POLL_S)

    def _is_clean(self, run: Run) -> bool:
        """Whether nothing is left of a run whose leader ended; what is left is being killed."""
        left = processes.kill_group(run.pid, signal.SIGKILL)
        for group in run.cgroups:
            left = memory.kill_members(group) or left
        return not left

    def _drain(self, now: float) -> None:
        for run in list(self._draining.values()):
            if self._is_clean(run):
                del self._draining[run.uid]
                self._conclude(run)
            elif now - run.exited_mono > DRAIN_LIMIT_S:
                run.note = run.note or "processes it left behind could not be killed"
                del self._draining[run.uid]
                self._conclude(run)
        self._stale_groups = [group for group in self._stale_groups if not memory.remove(group)]
        waiting = self._draining or self._stale_groups
        self._next_drain = now + DRAIN_POLL_S if waiting else float("inf")

    def _conclude(self, run: Run) -> None:
        ended_at = (run.started_at or 0.0) + run.exited_mono - run.started_mono
        oom = self._memory_evidence(run)
        if run.launch_error is not None:
            run.started_at = None
            self._finish(run, verdict.not_launched(run, *run.launch_error, ended_at=ended_at))
        elif run.exit is not None:
            own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            self._finish(run, verdict.ended(run, run.exit, ended_at=ended_at, oom=oom, keeper_rss=own))

    def _memory_evidence(self, run: Run) -> bool:
        """Read what the cgroups saw, and remove them."""
        if not run.cgroups or self._cgroups is None:
            return run.rss_exceeded
        oom = any(self._cgroups.oom_kills(group) for group in run.cgroups)
        run.peak_memory = max(self._cgroups.peak(group) for group in run.cgroups)
        if oom:
            run.note = f"exceeded its memory limit of {run.order['memory']} bytes"
        elif any(self._cgroups.refused_forks(group) for group in run.cgroups):
            run.note = run.note or f"reached its limit of {self.pids_limit or memory.PIDS_LIMIT} processes"
        self._remove_groups(run)
        return oom

    def _remove_groups(self, run: Run) -> None:
        """Remove a run's cgroups, now or when the last process in them is really gone."""
        stale = [group for group in run.cgroups if not memory.remove(group)]
        run.cgroups = ()
        if stale:
            self._stale_groups += stale
            self._next_drain = min(self._next_drain, moment.monotonic() + DRAIN_POLL_S)

    def _finish(self, run: Run, outcome: Message) -> None:
        if run.pid:
            run.progress = verdict.progress(run) or run.progress
        else:
            self._remove_groups(run)
        run.outcome = outcome
        run.phase = FINISHED
        self.active.pop(run.uid, None)
        self.memory_watched.pop(run.uid, None)
        self._ports.release(run.uid, run.order.get("gang", ""))
        run.order = {}
        self._journal.ended(run)
        self.changed(run)


def _has_exited(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True
