"""Recovers runs whose supervisor or shim was killed: which continue, under whom, and which are over.

The kernel tells how a process ended to its parent, once, and to nobody else. A program whose supervisor is killed is
not lost, but whoever is to learn its exit code must be its parent by then. The rest follows from three facts.

- An orphan goes to the nearest ancestor that asked for orphans. The shim does, so the program of a dead supervisor
  becomes its child; another supervisor then watches it, and the shim passes on how it ended (``adopted``). If the shim
  is dead as well, the program goes to the shim's starter, and only a kernel that tells holders of a pidfd (Linux 6.15)
  still says how it ended. Elsewhere the run is ended as lost: guessing an exit code would be worse.
- Process numbers are reused. A process counts as a run's only if it carries the run's mark and was started in this
  directory, so that nothing is killed, or waited for, that merely has the number.
- Each step is recorded in advance: the order before the program starts, its start before anything is reported, its end
  before the record is reused. So a record tells what may have happened. If it has no start, the program may still have
  begun: it is looked for by its mark, and if none is found the run is lost, and not started again.

The order in ``of_earlier_shims`` follows from that: first the living, who can speak for themselves; then the records of
the dead, the most complete first, because a run that was just taken over has two; then runs that only the journal
knows. A copied directory has other inodes than its records say and is left alone: its runs are those of the original.
"""

from __future__ import annotations

import signal
from pathlib import Path

from . import moment, processes, record
from .complaints import Complaint, complain
from .pool import files, path_of
from .records import FINISHED, RUNNING, Exit, ShimRun, exit_of_status, lead_s
from .supervisor import outcomes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .pool import Pool, SupervisorHandle
    from .records import Message
    from .runs import Runs
    from .supervisor.surroundings import Surroundings

_OF_ANOTHER = "this directory was copied while the run was going; it is a run of the original"


class Recovery:
    """Takes runs over from dead supervisors."""

    def __init__(self, runs: Runs, pool: Pool, surroundings: Surroundings) -> None:
        self._runs = runs
        self._pool = pool
        self._surroundings = surroundings
        self._waiting: list[tuple[ShimRun, record.Kept, int, bool]] = []
        """Runs for which no supervisor could be started, with what is needed to try again."""
        self._alone = Complaint("programs that nobody could take over are taken over")
        self._unreadable: set[int] = set()
        """Numbers of records that could not be read: a run without another record may be in one of them."""

    @property
    def waits(self) -> bool:
        """Whether there are runs that nobody could take over; ``again`` retries them."""
        return bool(self._waiting)

    def again(self) -> None:
        """Retry runs for which no supervisor could be started."""
        waiting, self._waiting = self._waiting, []
        for run, kept, number, adopted in waiting:
            if run.phase != FINISHED:
                self._take_over(run, kept, number, adopted=adopted)
        if not self._waiting:
            self._alone.ends()

    def of_earlier_shims(self) -> None:
        """Find living supervisors, take over from dead ones, and settle the remaining runs."""
        runs, pool = self._runs, self._pool
        greetings = pool.find()
        for number, greeting in greetings.items():
            reported = greeting["run"] if greeting is not None else None
            kept = None if greeting is not None else self._read(number)
            self._living(pool.handles[number], kept, reported)
        dead = [(self._read(number), number) for number, _ in files() if number not in greetings]
        # A run that is being taken over has two records for a moment.
        for kept, number in sorted(dead, key=_says, reverse=True):
            if number not in self._unreadable:
                self._dead(number, kept)
        self._give_up_unreadable()
        if pool.cgroups is not None:
            pool.cgroups.clear(self._groups_in_use())
        for run in list(runs.runs.values()):
            if run.phase != FINISHED and run.uid not in runs.active:
                del runs.runs[run.uid]  # No supervisor ever began with it, so it may be ordered again.

    def _read(self, number: int) -> record.Kept | None:
        try:
            return record.read(path_of(number))
        except OSError as error:
            complain(f"the record {path_of(number)} cannot be read: {error}")
            self._unreadable.add(number)
            return None

    def _give_up_unreadable(self) -> None:
        """Give up runs that an unreadable record may describe; only then are those records released."""
        if self._unreadable:
            for run in list(self._runs.runs.values()):
                if run.phase != FINISHED and run.uid not in self._runs.active:
                    self._lose(run)
        for number in self._unreadable - set(self._pool.handles):
            self._clear(number)

    def _lose(self, run: ShimRun) -> None:
        """End what is left of a run that may have begun and that nobody can continue."""
        for pid in processes.marked({run.uid}, str(Path.cwd())):
            processes.kill(pid)
        self._runs.begun_unseen(run)

    def _living(self, handle: SupervisorHandle, kept: record.Kept | None, reported: Message | None) -> None:
        """Take in a living supervisor of an earlier shim, by its greeting or else by its record."""
        runs = self._runs
        order = reported["order"] if reported is not None else kept.order if kept is not None else None
        if order is None or (order["uid"] not in runs.runs and (reported is None or reported["outcome"] is not None)):
            self._pool.give_back(handle)
            return
        run = runs.runs.setdefault(order["uid"], ShimRun(order["uid"], order["node"], order["directory"]))
        run.warned_s, run.group = lead_s(order), order.get("group")
        if run.phase == FINISHED:
            self._pool.give_back(handle)
            return
        runs.assign(handle, run)
        run.ports = [*order.get("ports", ())]
        runs.ports.take_over(run.uid, run.ports, order.get("gang", ""), order.get("master", 0))
        if reported is not None:
            runs.receive(handle, {"run": reported})
        elif kept is not None and kept.start is not None:
            run.phase, run.pid, run.started_at = RUNNING, kept.start["pid"], kept.start["started_at"]
            runs.begun_apart(run)

    def _dead(self, number: int, kept: record.Kept | None) -> None:
        """Take over from a supervisor that died while there was no shim."""
        run = self._runs.runs.get(kept.uid) if kept is not None else None
        if kept is None or run is None or run.phase == FINISHED or run.uid in self._runs.active:
            self._clear(number)
        elif kept.place != self._surroundings.place:
            self._runs.finish(run, outcomes.lost(ended_at=moment.wall(), note=_OF_ANOTHER))
            self._pool.leave_files(number)
        else:
            self._take_over(run, kept, number, adopted=False)

    def of_supervisor(self, handle: SupervisorHandle) -> None:
        """Hand the run of a killed supervisor to another one."""
        run = self._runs.active.get(handle.uid)
        numbers = [handle.number] if run is None or run.former is None else [handle.number, run.former]
        records = [(number, self._read(number)) for number in numbers]
        of_run = [(kept, number) for number, kept in records if run and kept is not None and kept.uid == run.uid]
        kept, number = max(of_run, key=_says, default=(None, 0))
        if number == handle.number and run is not None and kept is not None:
            self._take_over(run, kept, number, adopted=handle.child)
            return
        self._clear(handle.number)
        # It had not begun to continue the run, or not recorded everything known.
        if run is not None and kept is not None:
            self._take_over(run, kept, number, adopted=run.pid in self._runs.zombies)
        elif run is not None and self._unreadable.isdisjoint(numbers):
            self._runs.begin_again(run)
        elif run is not None:
            self._lose(run)

    def _clear(self, number: int) -> None:
        if number not in self._groups_in_use():
            self._pool.end_group(number)
        self._pool.leave_files(number)

    def _groups_in_use(self) -> set[int]:
        """List the control groups of living supervisors, and those of dead ones whose runs others took over."""
        return {run.group for run in self._runs.active.values() if run.group is not None} | set(self._pool.handles)

    def _take_over(self, run: ShimRun, kept: record.Kept, number: int, *, adopted: bool) -> None:
        """Continue a run whose supervisor is dead, from its record.

        Args:
            run: The run.
            kept: The record.
            number: The dead supervisor's number.
            adopted: Whether the run's processes have become our children.
        """
        gone = kept.boot != self._surroundings.boot
        group = kept.order.get("group", number)
        start = kept.start or (None if gone else _leader_of(run))
        if kept.end is not None:
            run.started_at, run.progress = (kept.start or {}).get("started_at"), kept.progress
            self._runs.finish(run, kept.end)
        elif start is None:
            self._runs.begun_unseen(run)
        elif kept.exit is not None and run.takeovers:
            self._runs.finish(run, outcomes.bare(Exit(*kept.exit["exit"]), start, ended_by=kept.exit["ended_by"]))
        else:
            message = {**_fostering(kept, start), "gone": gone}
            status = None if kept.exit is not None or gone else self._runs.status_of(run)
            if status is not None:
                message |= {"exit": exit_of_status(status), "ended_by": run.stop_reason}
            elif not adopted and not gone and not processes.can_be_waited_for(start["pid"]):
                _end_program(run.uid, start)
            message["order"]["group"] = group
            if not self._foster(run, message, number, adopted=adopted):
                self._waiting.append((run, kept, number, adopted))
            return
        self._clear(group)
        self._clear(number)

    def _foster(self, run: ShimRun, message: Message, number: int, *, adopted: bool) -> bool:
        """Have a running program taken over; returns whether a supervisor could be started and told."""
        self._runs.settle()  # The new supervisor forgets how its last run ended.
        run.group = message["order"]["group"]
        if adopted:
            self._runs.zombies[message["pid"]] = run.uid
        try:
            handle = self._pool.take()
        except OSError as error:
            self._alone.begins(f"nobody can take over {run.uid}, whose program goes on: {error}")
            self._runs.leave_alone(run, message["pid"], message["started_at"])
            return False
        if run.former is not None and run.former != number:
            self._pool.leave_files(run.former)
        run.takeovers += 1
        run.warned_s = lead_s(message["order"])
        run.former, run.pid = number, message["pid"]
        run.started_at, run.phase = message["started_at"], RUNNING
        self._runs.hand(handle, run, {"foster": {**message, "groups": self._pool.group_of(run.group)}})
        self._runs.repeat_stop(run)
        return True


def _says(candidate: tuple[record.Kept | None, int]) -> int:
    """Measure the completeness of a record."""
    kept, _ = candidate
    return 0 if kept is None else 1 + bool(kept.start) + 2 * bool(kept.exit) + 4 * bool(kept.end)


def _leader_of(run: ShimRun) -> Message | None:
    """Find the program of a supervisor that was killed before it could record the start."""
    for pid in processes.marked({run.uid}, str(Path.cwd())):
        if processes.leads_session(pid):
            return {"pid": pid, "started_at": moment.wall(), "before": 0.0, "after": moment.since_boot()}
    return None


def _end_program(uid: str, start: Message) -> None:
    """End a program that may still run and cannot be observed: the next attempt must not run beside it."""
    if processes.born_between(start["pid"], start["before"], start["after"]):
        processes.kill_group(start["pid"], signal.SIGKILL)
    for pid in processes.marked({uid}, str(Path.cwd())):
        processes.kill(pid)


def _fostering(kept: record.Kept, start: Message) -> Message:
    """Describe what a supervisor needs to continue a run that another one started."""
    begun = {name: start[name] for name in ("pid", "started_at", "before", "after")}
    exits = kept.exit or {}
    return {"order": kept.order, **begun, "exit": exits.get("exit"), "ended_by": exits.get("ended_by", "")}
