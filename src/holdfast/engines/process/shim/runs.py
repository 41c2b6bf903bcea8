"""The runs of one directory, until forgotten: handed to supervisors, stopped, taken over from killed supervisors."""

from __future__ import annotations

import signal
from collections import deque
from pathlib import Path

from . import files, moment, processes, record
from .pool import path_of
from .ports import Ports
from .records import FINISHED, RUNNING, STARTING, STOPPING, Exit, Run
from .supervisor import launch, outcomes
from .supervisor.execution import DRAIN_LIMIT_S
from .timers import Timers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .journal import Journal
    from .pool import Pool, Seat
    from .records import Message

LAUNCHES_PER_ROUND = 8
"""So that ends and stops are never far behind a long row of starts."""
PATIENCE_S = 5.0
"""How much later than its grace a run that is to stop may end, before its supervisor is killed."""
MOST_TRIES = 3
_MASTER = "HOLDFAST_MASTER_PORT"


class Runs:
    """Every run of the directory, and who has it."""

    def __init__(self, journal: Journal, pool: Pool, runs: dict[str, Run]) -> None:
        """Take over what the journal knew."""
        self.runs = runs
        self.active: dict[str, Run] = {}
        """Those handed to a supervisor, and not finished."""
        self.watched: dict[str, Run] = {}
        """Those with a memory limit and no control group to enforce it."""
        self.log_limit = 0
        self.launch_limit_s = 60.0
        """How long starting a program may take: its directory may be on a file system that does not answer."""
        self.pids_limit = 0
        """Processes one run may have where control groups can count them; 0 is the usual limit."""
        self.changed: Callable[[Run], None] = lambda _: None
        self.seated: Callable[[Seat], None] = lambda _: None
        """Called with a supervisor that got its first run."""
        self._journal = journal
        self._pool = pool
        self._base: Mapping[str, str] = {}
        self._queue: deque[Run] = deque()
        self._limits: dict[str, float] = {}
        self._timers = Timers()
        self._ports = Ports()
        self.zombies: dict[int, str] = {}
        """Leaders that became our children, by pid: reaped when their runs are finished."""

    @property
    def busy(self) -> bool:
        """Whether anything is running or about to."""
        return bool(self.active or self._queue)

    def use_environment(self, base: Mapping[str, str]) -> None:
        """Set what every program's environment starts from."""
        self._base = base

    def use_log_limit(self, limit: int) -> None:
        """Hold logs to a number of bytes of disk from now on; 0 is no limit."""
        self.log_limit = limit
        for run in self.active.values():
            self._send(run, {"log_limit": limit})

    def accept(self, orders: Iterable[Message]) -> None:
        """Queue runs; known ones are ignored."""
        for order in orders:
            uid = order["uid"]
            if uid not in self.runs:
                run = self.runs[uid] = Run(uid, order["node"], order["directory"], order)
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

    # starting

    def start_some(self) -> bool:
        """Hand a few queued runs to supervisors; returns whether more wait."""
        handed: list[tuple[Seat, Run, Message]] = []
        while self._queue and len(handed) < LAUNCHES_PER_ROUND:
            run = self._queue.popleft()
            if run.phase == STARTING and run.order is not None:
                self._hand_over(run, run.order, handed)
        if handed and not self._journal.flush():
            # Were one started now, nobody would know of it after our death.
            for seat, run, _ in handed:
                self._pool.give_back(seat)
                self._refuse(run, "DiskFull", "cannot start it: there is no room to write down that it was started")
            return bool(self._queue)
        for seat, run, message in handed:
            seat.uid, run.supervisor = run.uid, seat.number
            self.active[run.uid] = run
            self._timers.add(moment.monotonic() + self.launch_limit_s, run.uid, "launch")
            seat.channel.send({"launch": message, "log_limit": self.log_limit})
            self.seated(seat)
        return bool(self._queue)

    def _hand_over(self, run: Run, order: Message, handed: list[tuple[Seat, Run, Message]]) -> None:
        try:
            ports = self._ports.environment(run)
            seat = self._pool.take()
        except OSError as error:
            failed = launch.refused(error.errno or 0, "a port or a process")
            self._refuse(run, failed.reason, str(error))
            return
        own = [int(number) for name, number in ports.items() if name != _MASTER]
        message = {
            **order,
            "env": {**self._base, **order["env"], **ports},
            "pids_limit": self.pids_limit,
            "ports": own,
            "master": int(ports.get(_MASTER, 0)),
        }
        self._journal.ordered(run)
        handed.append((seat, run, message))

    def _refuse(self, run: Run, reason: str, message: str) -> None:
        self._finish(run, outcomes.not_launched(reason, message, ended_at=moment.wall()))

    # stopping

    def stop(self, uid: str, grace_s: float, reason: str) -> None:
        """Have a run stopped: SIGTERM now, SIGKILL after the grace."""
        run = self.runs.get(uid)
        if run is None or run.phase == FINISHED:
            return
        if uid not in self.active:
            self._finish(run, outcomes.never_started(reason, ended_at=moment.wall()))
            return
        run.stop_reason = run.stop_reason or reason
        self._wake_supervisor(run)
        self._send(run, {"stop": [uid, grace_s, reason]})
        limit = moment.monotonic() + grace_s + PATIENCE_S
        self._limits[uid] = limit = min(limit, self._limits.get(uid, limit))
        self._timers.add(limit, uid, "stop")

    def _send(self, run: Run, message: Message) -> None:
        seat = self._pool.seats.get(run.supervisor or 0)
        if seat is not None:
            seat.channel.send(message)

    def due(self, now: float) -> None:
        """Kill supervisors that do not do in time what they were told to."""
        for uid, what in self._timers.due(now):
            run = self.active.get(uid)
            if run is None:
                continue
            if what == "launch" and run.phase == STARTING:
                run.hung = True
                self._kill_supervisor(run)
            elif what == "given up" and run.phase == STARTING:
                self._give_up(run)
            elif what == "silent" and run.draining:
                self._timers.add(now + DRAIN_LIMIT_S + PATIENCE_S, uid, "drained")
            elif what in {"silent", "drained"} or (what == "stop" and now >= self._limits.get(uid, now)):
                self._kill_supervisor(run)

    def lose(self, run: Run, *, started: bool, note: str) -> None:
        """Finish a run whose end nobody will see here."""
        self._finish(run, outcomes.lost(started=started, ended_at=moment.wall(), note=note))

    def ended_unnoticed(self, run: Run) -> None:
        """Note that a run's program has ended while its supervisor says nothing; it gets a moment more."""
        self._wake_supervisor(run)
        self._timers.add(moment.monotonic() + PATIENCE_S / 2, run.uid, "silent")

    def _wake_supervisor(self, run: Run) -> None:
        seat = self._pool.seats.get(run.supervisor or 0)
        if seat is not None:
            processes.resume(seat.pid)

    def _kill_supervisor(self, run: Run) -> None:
        """Kill the supervisor of a run, that hangs; another takes its program over, if it has one."""
        seat = self._pool.seats.get(run.supervisor or 0)
        if seat is None or not seat.pid:
            return
        begun = processes.children_of(seat.pid) if run.phase == STARTING else []
        for pid in (seat.pid, *begun):
            processes.kill(pid)
        self._timers.add(moment.monotonic() + PATIENCE_S, run.uid, "given up")

    def _give_up(self, run: Run) -> None:
        """Finish a run that never began: what was to start it cannot even die, and will when it could go on."""
        seat = self._pool.seats.get(run.supervisor or 0)
        if seat is not None:
            seat.uid = ""
        self._never_begun(run)

    def next_due(self) -> float:
        """Return when ``due`` is needed next, on the monotonic clock."""
        return self._timers.next()

    # what supervisors tell

    def told(self, seat: Seat, message: Message) -> None:
        """Take in what a supervisor says of its run."""
        report = message.get("run")
        if report is None:
            return
        run = self.runs.get(report["uid"])
        if run is None or run.phase == FINISHED or run.supervisor != seat.number:
            return
        run.started_at, run.progress, run.pid = report["started_at"], report["progress"], report["pid"]
        if report["outcome"] is not None:
            self._release(seat, worn=bool(message.get("worn")))
            self._finish(run, report["outcome"])
            return
        run.phase = report["phase"]
        run.order = None if run.phase in {RUNNING, STOPPING} else run.order
        run.draining = bool(message.get("draining"))
        if message.get("watched"):
            self.watched[run.uid] = run
        if run.former is not None:
            self._pool.remove_files(run.former)
            run.former = None
        self.changed(run)

    def exceeds(self, run: Run, size: int) -> None:
        """Tell a run's supervisor how much memory it was seen to use."""
        self._send(run, {"exceeded": [run.uid, size]})

    def _release(self, seat: Seat, *, worn: bool) -> None:
        if worn:
            seat.uid = ""
            self._pool.dismiss(seat)
        else:
            self._pool.give_back(seat)

    def _finish(self, run: Run, outcome: Message) -> None:
        run.outcome = outcome
        run.phase = FINISHED
        self.active.pop(run.uid, None)
        self.watched.pop(run.uid, None)
        self._limits.pop(run.uid, None)
        for pid in [pid for pid, uid in self.zombies.items() if uid == run.uid]:
            del self.zombies[pid]
        self._ports.release(run.uid)
        if run.former is not None:
            self._pool.remove_files(run.former)
        run.order = None
        self._journal.ended(run)
        self.changed(run)

    # taking over

    def seat_found(self, seat: Seat, kept: record.Kept | None, told: Message | None) -> None:
        """Take in a supervisor of an earlier shim: with what it said, or else with what its record says."""
        order = told["order"] if told is not None else kept.order if kept is not None else None
        if order is None or (order["uid"] not in self.runs and (told is None or told["outcome"] is not None)):
            self._pool.give_back(seat)
            return
        run = self.runs.setdefault(order["uid"], Run(order["uid"], order["node"], order["directory"]))
        if run.phase == FINISHED:
            self._pool.give_back(seat)
            return
        seat.uid, run.supervisor = run.uid, seat.number
        self.active[run.uid] = run
        self._ports.take_over(run.uid, order.get("ports", ()), order.get("gang", ""), order.get("master", 0))
        if told is not None:
            self.told(seat, {"run": told})
        elif kept is not None and kept.start is not None:
            run.phase, run.pid, run.started_at = RUNNING, kept.start["pid"], kept.start["started_at"]

    def supervisor_died(self, seat: Seat) -> None:
        """Have another supervisor go on with the run of one that was killed."""
        run = self.active.get(seat.uid)
        kept = record.read(path_of(seat.number))
        if run is not None and kept is not None and kept.uid == run.uid:
            self.take_over(run, kept, seat.number, adopted=seat.child)
            return
        self._pool.end_group(seat.number)
        self._pool.remove_files(seat.number)
        if run is not None:
            self._begin_again(run)

    def _begin_again(self, run: Run) -> None:
        """Give a run to another supervisor, of which the last one had not even noted that it would start it."""
        del self.active[run.uid]
        run.supervisor = None
        run.tries += 1
        if run.order is None or run.stop_reason or run.hung:
            self._never_begun(run)
        elif run.tries < MOST_TRIES:
            self._queue.append(run)
        elif files.is_full("."):
            self._refuse(run, "DiskFull", "cannot start it: the disk is full")
        else:
            self._refuse(run, "LaunchError", "the processes that were to start it were killed")

    def _never_begun(self, run: Run) -> None:
        if run.stop_reason:
            self._finish(run, outcomes.never_started(run.stop_reason, ended_at=moment.wall()))
        elif run.hung:
            why = f"its directory or its program did not answer for {self.launch_limit_s:g} s"
            self._refuse(run, "LaunchTimeout", f"cannot start it: {why}")
        else:
            self._finish(run, outcomes.lost(started=False, ended_at=moment.wall()))

    def take_over(self, run: Run, kept: record.Kept, number: int, *, adopted: bool, gone: bool = False) -> None:
        """Go on with a run whose supervisor is dead, from what its record says.

        Args:
            run: The run.
            kept: The record.
            number: Of the dead supervisor, whose control group has what is left of the run.
            adopted: Whether the run's processes have become our children.
            gone: Whether its program cannot be there any more, or must not be waited for.
        """
        start = kept.start or (None if gone else _leader_of(run))
        if kept.end is not None:
            run.started_at, run.progress = (kept.start or {}).get("started_at"), kept.progress
            self._finish(run, kept.end)
        elif start is None:
            self._never_begun(run)
        elif kept.exit is not None and run.takeovers:
            self._finish(run, outcomes.bare(Exit(*kept.exit["exit"]), start, ended_by=kept.exit["ended_by"]))
        else:
            if not adopted and not gone and not processes.can_be_waited_for(start["pid"]):
                _end_program(run.uid, start)
            self._foster(run, {**_fostering(kept, start), "gone": gone}, number, adopted=adopted)
            return
        self._pool.end_group(number)
        self._pool.remove_files(number)

    def _foster(self, run: Run, message: Message, number: int, *, adopted: bool) -> None:
        try:
            seat = self._pool.take()
        except OSError as error:
            self._finish(run, outcomes.lost(started=True, ended_at=moment.wall(), note=str(error)))
            return
        if adopted:
            self.zombies[message["pid"]] = run.uid
        run.takeovers += 1
        run.former = number
        seat.uid, run.supervisor, run.pid = run.uid, seat.number, message["pid"]
        run.started_at, run.phase = message["started_at"], RUNNING
        self.active[run.uid] = run
        seat.channel.send({"foster": {**message, "groups": self._pool.group_of(number)}, "log_limit": self.log_limit})
        self.seated(seat)
        if run.stop_reason:
            grace_s = max(0.0, self._limits.pop(run.uid, 0.0) - PATIENCE_S - moment.monotonic())
            self.stop(run.uid, grace_s, run.stop_reason)


def _leader_of(run: Run) -> Message | None:
    """Find the program of a supervisor that was killed before it could write down that it had started it."""
    for pid in processes.marked({run.uid}, str(Path.cwd())):
        if processes.leads_session(pid):
            return {"pid": pid, "started_at": moment.wall(), "before": 0.0, "after": moment.since_boot()}
    return None


def _end_program(uid: str, start: Message) -> None:
    """End what may still run and whose end nobody could learn: its next attempt must not run beside it."""
    if processes.born_between(start["pid"], start["before"], start["after"]):
        processes.kill_group(start["pid"], signal.SIGKILL)
    for pid in processes.marked({uid}, str(Path.cwd())):
        processes.kill(pid)


def _fostering(kept: record.Kept, start: Message) -> Message:
    """Write out what a supervisor needs to go on with a run that another one started."""
    known = {name: start[name] for name in ("pid", "started_at", "before", "after")}
    exits = kept.exit or {}
    return {"order": kept.order, **known, "exit": exits.get("exit"), "ended_by": exits.get("ended_by", "")}
