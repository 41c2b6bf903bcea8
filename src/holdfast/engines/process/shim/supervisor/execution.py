"""One run's program from its launch to its outcome; ``process`` talks with the shim."""

from __future__ import annotations

import os
import resource
import signal
import socket
from contextlib import suppress

from .. import moment, processes
from ..account import acting
from ..records import FINISHED, RUNNING, STOPPING, Exit, SupervisedRun, exit_of_status
from . import launch, leftovers, memory, outcomes, preparing
from .launch import OUT_OF_MEMORY, CannotLaunch
from .notes import Notes
from .notice import LEADING, Notice
from .silence import Silence
from .surroundings import set_oom_score
from .watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..cgroups import Group
    from ..record import Record
    from ..records import Message
    from .surroundings import Surroundings

DRAIN_POLL_S = 0.02
DRAIN_LIMIT_S = 30.0


class Execution:
    """The one run of a supervisor: its program, its record, its control group."""

    def __init__(self, record: Record, group: Group | None, surroundings: Surroundings) -> None:
        self.program: SupervisedRun | None = None
        self.watch = Watch()
        self._silence = Silence()
        self._notice = Notice()
        self.changed = False
        """Whether there is news for the shim."""
        self.aside = ""
        """The work directory of an ended run that somebody has to delete."""
        self.worn = False
        """Whether processes of an earlier run are left that could not be killed."""
        self.await_end: Callable[[int, Callable[[], object]], object] = lambda *_: None
        """Called with a descriptor that becomes readable when a fostered program has ended, and a callback for then."""
        self.settled: Callable[[int], object] = lambda _: None
        """Called with that descriptor just before it is closed."""
        self.notes = Notes(record, surroundings)
        self._group = group
        self._surroundings = surroundings
        self._beginning: socket.socket | None = None
        self._deadline_at = float("inf")
        self._drain_at = float("inf")
        self._term_at = float("inf")
        """When a warned run is told to stop."""
        self._term_grace_s = 0.0
        self._alone_at = float("inf")
        """When, since boot, there has been no server for so long that another machine may run the job."""

    @property
    def active(self) -> bool:
        """Whether there is an unfinished run."""
        return self.program is not None and self.program.phase != FINISHED

    def next_due(self) -> float:
        """Return when ``due`` or ``look`` is needed next, by the monotonic clock."""
        if self.program is None or not self.active:
            return self.notes.due
        alone = moment.monotonic() + self._alone_at - moment.since_boot()
        asked_for = min(self._silence.due, self._notice.due, self._term_at)
        late = min(self._deadline_at, self.program.kill_at)
        return min(self._drain_at, late, self.watch.due, asked_for, alone, self.notes.due)

    def server_heard(self, lease_s: float | None) -> None:
        """Note that there is a server; its lease counts by a clock that goes on while the machine sleeps."""
        self._alone_at = float("inf") if lease_s is None else moment.since_boot() + lease_s

    # Starting.

    def launch(self, order: Message) -> None:
        """Start a program."""
        program = self.program = SupervisedRun(order)
        self.changed = True
        self._deadline_at = self._drain_at = self._term_at = float("inf")
        if order.get("deadline_s") is not None:
            order["env"]["HOLDFAST_STOP_AT"] = f"{moment.wall() + order['deadline_s']:.3f}"
        before = moment.since_boot()
        try:
            self.notes.begin(program)
            self._limit(program, order.get("pids_limit") or 0)
            program.pid = self._start(program)
        except CannotLaunch as error:
            self._refuse(program, error)
            return
        except OSError as error:
            self._refuse(program, launch.refused(error.errno or 0, "it"))
            return
        program.started_at, program.started_mono = moment.wall(), moment.monotonic()
        program.phase = RUNNING
        if order.get("stall"):
            launch.find_spy(order)
        del order["env"], order["argv"]
        self.notes.started(program, before, moment.since_boot())
        self._begin_watching(program, order.get("deadline_s"))
        if program.preparing and self._beginning is not None:
            self._let_begin(self._beginning)

    def _start(self, program: SupervisedRun) -> int:
        scores = self._surroundings.oom_scores
        try:
            if scores is not None:
                set_oom_score(scores[1])
            return self._launch_prepared(program) if program.preparing else launch.launch(program)
        finally:
            if scores is not None:
                set_oom_score(scores[0])
            os.fchdir(self._surroundings.home)

    def _launch_prepared(self, program: SupervisedRun) -> int:
        """Start a program that is prepared first, and learn when that is done."""
        self._beginning, theirs = socket.socketpair()
        with theirs:
            return launch.launch(program, theirs.fileno())

    def _let_begin(self, beginning: socket.socket) -> None:
        """Let a run's preparation begin, now that its process is recorded."""
        self.await_end(beginning.fileno(), lambda: self._is_ready(beginning))
        with suppress(OSError):  # It was killed.
            beginning.send(b".")

    def _is_ready(self, beginning: socket.socket) -> None:
        self.settled(beginning.fileno())
        beginning.close()
        self._see_prepared()

    def _see_prepared(self) -> None:
        """Count a prepared run as started; it is measured from then on."""
        program = self.program
        if program is not None and program.preparing and program.phase != FINISHED and preparing.see(program):
            self.changed = True
            if program.exit is None and not program.stop_reason:
                self._measure(program, program.order.get("deadline_s"))

    def _limit(self, program: SupervisedRun, pids: int) -> None:
        """Set the group's limits; if that fails the run's memory is watched instead."""
        limit = program.order.get("memory") or 0
        forked = program.preparing or program.account is not None
        if self._group is not None and self._group.prepare(limit, pids, forked=forked):
            program.groups = self._group.paths

    def _begin_watching(self, program: SupervisedRun, deadline_s: float | None) -> None:
        self.watch.begin(program)
        if program.preparing:
            self._see_prepared()  # measures it, if it is
        else:
            self._measure(program, deadline_s)

    def _measure(self, program: SupervisedRun, deadline_s: float | None) -> None:
        with acting(program.account):
            self._silence.begin(program, moment.monotonic())
        if deadline_s is not None:
            self._deadline_at = program.started_mono + deadline_s
        self._notice.begin(program, self._deadline_at)

    def _refuse(self, program: SupervisedRun, error: CannotLaunch) -> None:
        reason, message = error.reason, error.message
        if reason == OUT_OF_MEMORY and self._group is not None and self._group.reached_memory_limit():
            reason, message = "MemoryLimitTooSmall", f"{message}: it {memory.too_much(program)}"
        self._finish(program, outcomes.not_launched(reason, message, ended_at=moment.wall()))

    def foster(self, message: Message) -> None:
        """Continue a run whose supervisor was killed: wait for its program, and end it as usual."""
        program = self.program = SupervisedRun(message["order"])
        program.pid, program.started_at = message["pid"], message["started_at"]
        program.started_mono = moment.monotonic() - (moment.since_boot() - message["after"])
        program.phase, program.fostered = RUNNING, True
        program.groups = tuple(message["groups"])
        self.changed = True
        before, after = message["before"], message["after"]
        self.notes.took_over(program, before, after)
        self._begin_watching(program, program.order.get("deadline_s"))
        program.stop_reason = message.get("ended_by", "")
        if message.get("exit") is not None:
            self._leader_ended(program, Exit(*message["exit"]))
        elif message.get("gone") or not self._wait_for_foreign(program, before, after):
            self._leader_ended(program, None)  # Nobody can tell how it ended.

    def _wait_for_foreign(self, program: SupervisedRun, before: float, after: float) -> bool:
        try:
            program.foreign = os.pidfd_open(program.pid)
        except OSError:
            return False
        if processes.born_between(program.pid, before, after):
            self.await_end(program.foreign, self._foreign_ended)
            return True
        os.close(program.foreign)
        return False

    # Stopping.

    def stop(self, grace_s: float, reason: str) -> None:
        """Stop the run: SIGTERM, at once or after its warning, then SIGKILL after the grace period.

        The first reason and the earliest kill count; a stop without a warning ends one that is under way.
        """
        program = self.program
        if program is None or program.phase == FINISHED or program.exit is not None:
            return
        if not program.stop_reason:
            program.stop_reason = reason
            program.phase = STOPPING
            self._silence.end()
            self.changed = True
            now = moment.monotonic()
            self._term_at, self._term_grace_s = now + self._notice.lead_s(program, reason, now), grace_s
            if self._term_at <= now:
                self._terminate(program, grace_s)
        elif self._term_at == float("inf") or reason not in LEADING:
            self._terminate(program, grace_s)

    def _terminate(self, program: SupervisedRun, grace_s: float) -> None:
        if program.kill_at == float("inf"):
            processes.kill_group(program.pid, signal.SIGTERM)
            processes.kill_group(program.pid, signal.SIGCONT)  # A suspended program gets its grace period, too.
        self._term_at = float("inf")
        program.kill_at = min(program.kill_at, moment.monotonic() + grace_s)
        if grace_s <= 0:
            self._kill(program)

    def exceeded(self, estimate: int) -> None:
        """End the run if it uses more memory than its limit and no control group limits it."""
        program = self.program
        if program is None or program.exit is not None:
            return
        size = memory.used(program, estimate)
        program.peak_memory = max(program.peak_memory, size)
        if size > program.order["memory"] and program.phase == RUNNING:
            program.rss_exceeded = True
            program.note = memory.too_much(program)
            self._kill(program)

    def _kill(self, program: SupervisedRun) -> bool:
        """Kill all processes of the run except an ended leader; returns whether there were any."""
        left = processes.kill_group(program.pid, signal.SIGKILL) if program.exit is None else False
        if not program.fostered:
            for pid in processes.children():
                processes.kill(pid)  # The only children are the leader and orphans of this run.
        if self._group is not None and program.groups == self._group.paths:
            return self._group.kill() or left
        return leftovers.kill_in(program.groups) or left

    def due(self, now: float) -> None:
        """Act on whatever is due: deadline, grace period, leftovers, refused lines of the record."""
        if self.notes.again(now):
            self.changed = True  # The shim may wait for that.
        program = self.program
        if program is None or program.phase == FINISHED:
            return
        if program.exit is None:
            self._end_what_is_late(program, now)
        if now >= self._drain_at or (program.exit is not None and not program.fostered and leftovers.has_no_children()):
            self._drain(program, now)

    def _end_what_is_late(self, program: SupervisedRun, now: float) -> None:
        if now >= self._term_at:
            self._terminate(program, self._term_grace_s)
        if now >= program.kill_at:
            program.kill_at = float("inf")
            self._kill(program)
        if now >= self._deadline_at:
            self._deadline_at = float("inf")
            if not program.stop_reason:
                program.note = f"ran longer than its deadline of {program.order['deadline_s']:g} s"
                self.stop(program.order["grace_s"], "deadline")
        if moment.since_boot() >= self._alone_at:
            self._alone_at = float("inf")
            program.note = (
                program.note or "ended: no server was reachable for so long that another may have taken over the job"
            )
            self.stop(0.0, "lost")

    # Ending.

    def reap(self) -> None:
        """Reap ended children. A leader's group is killed while its number is still taken."""
        while True:
            try:
                info = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if info is None:
                return
            program = self.program
            if program is None or info.si_pid != program.pid or program.fostered:
                os.waitpid(info.si_pid, 0)
                continue
            processes.kill_group(info.si_pid, signal.SIGKILL)
            program.exit = _exit_of(info.si_code, info.si_status)
            self.notes.exited(program)
            _, _, usage = os.wait4(info.si_pid, 0)
            program.exit.max_rss = usage.ru_maxrss * 1024
            self._leader_ended(program, program.exit)

    def _foreign_ended(self) -> None:
        program = self.program
        if program is None or program.foreign is None:
            return
        status = processes.exit_status(program.pid, program.foreign)
        self.settled(program.foreign)
        os.close(program.foreign)
        if status is None:
            self._leader_ended(program, None)
            return
        self._leader_ended(program, Exit(*exit_of_status(status)))

    def _leader_ended(self, program: SupervisedRun, end: Exit | None) -> None:
        self._see_prepared()
        program.exit = end or Exit(None, None, 0)
        program.exited_mono = moment.monotonic()
        if end is not None and program.fostered:
            self.notes.exited(program)
        if self._is_clean(program):
            self._conclude(program)
        else:
            self.changed = True
            self._drain_at = program.exited_mono + DRAIN_POLL_S

    def _is_clean(self, program: SupervisedRun) -> bool:
        """Whether nothing is left of a run whose leader ended; whatever is left is being killed."""
        if program.fostered:
            return not self._kill(program)
        if leftovers.has_no_children():
            return True  # Every orphan of this run is a child of this process.
        self._kill(program)
        return False

    def _drain(self, program: SupervisedRun, now: float) -> None:
        self._drain_at = now + DRAIN_POLL_S
        if self._is_clean(program):
            self._conclude(program)
        elif now - program.exited_mono > DRAIN_LIMIT_S:
            program.note = program.note or "processes it left behind could not be killed"
            self.worn = True
            self._conclude(program)

    def _conclude(self, program: SupervisedRun) -> None:
        self._drain_at = float("inf")
        ended_at = (program.started_at or 0.0) + program.exited_mono - program.started_mono
        end = program.exit
        if end is None or (end.code is None and end.signal is None):
            with acting(program.account):
                outcome = outcomes.lost_program(program, ended_at=ended_at)
            self._finish(program, outcome)
            return
        oom = memory.evidence(program, self._group, failed=end.signal is not None or end.code != 0)
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        with acting(program.account):
            tell = outcomes.unprepared if program.preparing else outcomes.ended
            outcome = tell(program, end, ended_at=ended_at, oom=oom, own_rss=own)
        self._finish(program, outcome)

    def _finish(self, program: SupervisedRun, outcome: Message) -> None:
        self._silence.end()
        self._notice.end()
        self._term_at = float("inf")
        if program.pid:
            with acting(program.account):
                self.watch.last(program)
        self.aside = leftovers.set_aside(program) or self.aside
        program.outcome = outcome
        program.phase = FINISHED
        self.changed = True
        self.notes.ended(program)

    def look(self, now: float) -> None:
        """Look at the run's files if that is due."""
        program = self.program
        if program is None or not program.pid or program.phase == FINISHED:
            return
        if now >= self.watch.due:
            self._see_prepared()
            with acting(program.account):
                self.changed |= self.watch.look(program, now)
        if now >= self._notice.due and program.exit is None:
            self._notice.look(program, now)
        if now >= self._silence.due and program.exit is None:
            why = self._silence.look(program, now)
            if why:
                program.note = why
                self.stop(program.order["grace_s"], "stall")


def _exit_of(code: int, status: int) -> Exit:
    return Exit(status, None, 0) if code == os.CLD_EXITED else Exit(None, status, 0)
