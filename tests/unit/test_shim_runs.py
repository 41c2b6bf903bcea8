"""The shim's order of things: what is written down before a supervisor hears of it, and what is never told twice."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import threading
from collections import deque
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from holdfast.engines.process import files
from holdfast.engines.process.shim import moment, processes
from holdfast.engines.process.shim.cgroups import V1, V2, Group
from holdfast.engines.process.shim.channel import Channel
from holdfast.engines.process.shim.journal import Journal
from holdfast.engines.process.shim.loop import Shim
from holdfast.engines.process.shim.pool import Pool, SupervisorHandle, path_of
from holdfast.engines.process.shim.record import ROOM_BYTES, Record
from holdfast.engines.process.shim.records import FINISHED, RUNNING, SUPERVISORS, Exit, ShimRun, SupervisedRun
from holdfast.engines.process.shim.recovery import Recovery
from holdfast.engines.process.shim.runs import PATIENCE_S, Runs
from holdfast.engines.process.shim.supervisor import outcomes
from holdfast.engines.process.shim.supervisor.execution import Execution
from holdfast.engines.process.shim.supervisor.surroundings import Surroundings
from holdfast.ports.engine import Container, RunOrder

ORDER = RunOrder("run-1", "j", "n", attempt=1, rank=0, size=1, containers=(Container(command=("true",)),))
FULL = "/dev/full"
SURROUNDINGS = Surroundings(place="here", boot="now", home=-1, idle_s=0.1)


class Ear(Channel):
    """A supervisor's end of the line; notes what is in the journal whenever it is told something."""

    def __init__(self, journal: str) -> None:
        self.told: list[tuple[dict[str, Any], str]] = []
        self._journal = journal

    def send(self, message: dict[str, Any]) -> None:
        written = "" if self._journal == FULL else Path(self._journal).read_text()
        self.told.append((message, written))


class Desk(Pool):
    """One supervisor, always there."""

    def __init__(self, channel: Channel) -> None:
        self.handle = SupervisorHandle(1, 0, channel, child=True)
        self.handles = {1: self.handle}
        self.cgroups = None
        self._idle = deque()
        self._returned, self._worn, self._left = [], [], []

    def take(self) -> SupervisorHandle:
        return self._idle.pop() if self._idle else self.handle


def runs_with(journal: str) -> tuple[Runs, Ear]:
    ear = Ear(journal)
    return Runs(Journal(journal), Desk(ear), {}), ear


def message(tmp_path: Path) -> dict[str, Any]:
    return files.launch_message(tmp_path, ORDER)


def test_an_order_is_written_down_before_its_supervisor_hears_of_it(tmp_path: Path) -> None:
    runs, ear = runs_with(str(tmp_path / "journal"))
    runs.accept([message(tmp_path)])
    runs.start_some()
    [(told, written)] = ear.told
    assert told["launch"]["uid"] == ORDER.uid
    assert f'["order","{ORDER.uid}"' in written


def test_an_order_that_cannot_be_written_down_is_refused_and_nobody_hears_of_it(tmp_path: Path) -> None:
    runs, ear = runs_with(FULL)
    runs.accept([message(tmp_path)])
    runs.start_some()
    run = runs.runs[ORDER.uid]
    assert ear.told == []
    assert run.phase == FINISHED
    assert run.outcome is not None
    assert (run.outcome["reason"], run.outcome["started"]) == ("DiskFull", False)
    assert run.outcome["message"] == "cannot start it: its start cannot be recorded: No space left on device"


def test_an_order_that_comes_again_starts_nothing_again(tmp_path: Path) -> None:
    runs, ear = runs_with(str(tmp_path / "journal"))
    for _ in range(3):
        runs.accept([message(tmp_path), message(tmp_path)])
        runs.start_some()
    assert len(ear.told) == 1


def test_a_stop_is_looked_after_once_its_grace_is_over(tmp_path: Path) -> None:
    runs, _ = runs_with(str(tmp_path / "journal"))
    runs.accept([message(tmp_path)])
    runs.start_some()
    runs.stop(ORDER.uid, 1.0, "user")
    assert runs.next_due() <= moment.monotonic() + 1.0 + PATIENCE_S


def test_a_record_has_its_room_before_there_is_anything_in_it(tmp_path: Path) -> None:
    path = tmp_path / "1.record"
    record = Record(str(path))
    assert path.stat().st_blocks * 512 >= ROOM_BYTES
    record.remove()


class Deserted(Desk):
    """One supervisor, dead before anybody could tell it anything."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel)
        self.handles = {}

    def take(self) -> SupervisorHandle:
        self.handles[1] = self.handle
        return self.handle

    @staticmethod
    def is_dead(handle: SupervisorHandle) -> bool:
        return not handle.channel.open

    def drop(self, handle: SupervisorHandle) -> None:
        self.handles.pop(handle.number)

    def own_processes(self) -> set[int]:
        return set(processes.children())  # those of the tests

    def next_due(self) -> float:
        return float("inf")

    def shrink(self, now: float) -> None:
        del now

    def wake_fork_server(self) -> None:
        pass


class Heirs(Recovery):
    """Ends what a dead supervisor had."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self._waiting = []

    def of_supervisor(self, handle: SupervisorHandle) -> None:
        self.runs.never_begun(self.runs.active[handle.uid])


def ended_on(journal: str) -> tuple[Runs, Desk, Ear]:
    """Return runs of which one was taken over, and whose end has just been told; the dead supervisor was number 7."""
    Path(SUPERVISORS).mkdir(exist_ok=True)
    Path(path_of(7)).touch()
    ear = Ear(journal)
    desk = Desk(ear)
    runs = Runs(Journal(journal), desk, {})
    run = runs.runs[ORDER.uid] = ShimRun(ORDER.uid, "n", "")
    run.former = 7
    runs.assign(desk.handle, run)
    return runs, desk, ear


@pytest.mark.parametrize("journal", [FULL, "journal"])
@pytest.mark.parametrize("worn", [True, False])
def test_records_stay_until_the_journal_has_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, journal: str, worn: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    runs, desk, ear = ended_on(journal)
    ended = outcomes.never_started("user", ended_at=1.0)
    report = {"uid": ORDER.uid, "phase": FINISHED, "pid": 0, "started_at": None, "progress": "", "outcome": ended}
    runs.receive(desk.handle, {"run": report, "worn": worn})
    assert Path(path_of(7)).exists()
    assert ear.told == []
    assert runs.settle() is (journal != FULL)
    assert Path(path_of(7)).exists() is (journal == FULL)
    sent_away = [(told, '["end"' in written) for told, written in ear.told]
    assert sent_away == ([({"leave": True}, True)] if worn and journal != FULL else [])
    assert list(desk._idle) == ([] if worn or journal == FULL else [desk.handle])  # noqa: SLF001 - who may begin again


def test_nobody_takes_a_run_over_whose_record_says_what_the_journal_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runs, desk, ear = ended_on("journal")
    runs.finish(runs.runs[ORDER.uid], outcomes.never_started("user", ended_at=1.0))
    dead = SupervisorHandle(8, 0, Ear("journal"), child=True)
    killed = runs.runs["run-2"] = ShimRun("run-2", "n", "")
    runs.assign(dead, killed)
    leave_record(8, "run-2", tmp_path)
    Recovery(runs, desk, SURROUNDINGS).of_supervisor(dead)
    [(told, written)] = ear.told
    assert told["foster"]["order"]["uid"] == "run-2"
    assert f'["end","{ORDER.uid}"' in written


def leave_record(number: int, uid: str, tmp_path: Path, exit_code: int | None = None) -> None:
    """Leave a dead supervisor's record of a run whose program was started, and has ended if it has an exit code."""
    record = Record(path_of(number))
    program = SupervisedRun({**message(tmp_path), "uid": uid})
    program.pid, program.started_at = os.getpid(), 1.0
    record.begin(program, SURROUNDINGS.place, SURROUNDINGS.boot)
    record.started(program, 1.0, 2.0)
    if exit_code is not None:
        program.exit = Exit(exit_code, None, 0)
        record.exited(program)
        program.outcome = outcomes.ended(program, program.exit, ended_at=2.0, oom=False, own_rss=0)
        record.ended(program)
    record.close()


@pytest.mark.parametrize("knowing", [1, 2])
def test_of_two_records_of_a_run_the_one_counts_that_says_how_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, knowing: int
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(SUPERVISORS).mkdir()
    for number in (1, 2):
        leave_record(number, ORDER.uid, tmp_path, exit_code=3 if number == knowing else None)
    runs = Runs(Journal("journal"), Inherited(), {ORDER.uid: ShimRun(ORDER.uid, "n", "")})
    Recovery(runs, Inherited(), SURROUNDINGS).of_earlier_shims()
    assert (runs.runs[ORDER.uid].outcome or {}).get("exit_code") == 3


@pytest.mark.parametrize("knowing", [7, 8])
def test_what_was_known_of_a_run_is_not_forgotten_by_a_supervisor_that_took_it_over_and_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, knowing: int
) -> None:
    monkeypatch.chdir(tmp_path)
    runs, desk, _ = ended_on("journal")
    for number in (7, 8):
        leave_record(number, ORDER.uid, tmp_path, exit_code=3 if number == knowing else None)
    dead = SupervisorHandle(8, 0, Ear("journal"), child=True)
    runs.assign(dead, runs.runs[ORDER.uid])
    Recovery(runs, desk, SURROUNDINGS).of_supervisor(dead)
    assert (runs.runs[ORDER.uid].outcome or {}).get("exit_code") == 3
    assert Path(path_of(7)).exists()
    runs.settle()
    assert not list(Path(SUPERVISORS).iterdir())


@pytest.mark.timeout(20)
def test_a_supervisor_that_died_before_it_was_told_anything_is_noticed(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    ours.settimeout(0)
    theirs.close()
    pool = Deserted(Channel(ours.detach()))
    journal = Journal(str(tmp_path / "journal"))
    runs = Runs(journal, pool, {})
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "sock"))
    listener.listen(1)
    before = signal.set_wakeup_fd(-1)
    try:
        shim = Shim(listener, journal, runs, pool, Heirs(runs))
        runs.accept([message(tmp_path)])
        runs.start_some()
        shim.run(0.1)  # until nothing is going on any more
    finally:
        signal.set_wakeup_fd(before)
    assert runs.runs[ORDER.uid].phase == FINISHED


class Inherited(Deserted):
    """Supervisors of an earlier shim."""

    def __init__(self) -> None:
        super().__init__(Ear(FULL))


@pytest.mark.timeout(20)
def test_what_a_living_supervisor_says_right_after_its_greeting_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(SUPERVISORS).mkdir()
    record = Record(path_of(1))
    program = SupervisedRun(message(tmp_path))
    program.phase = RUNNING
    greeting = {"hello": 1, "pid": os.getpid(), "run": {**program.report(), "order": program.order}}
    program.outcome = outcomes.not_launched("Told", "", ended_at=1.0)

    def supervise(listener: socket.socket) -> None:
        line = listener.accept()[0]
        line.sendall(b"".join(json.dumps(each).encode() + b"\n" for each in (greeting, {"run": program.report()})))
        line.recv(1)

    pool = Inherited()
    runs = Runs(Journal("journal"), pool, {ORDER.uid: ShimRun(ORDER.uid, "n", str(tmp_path))})
    before = signal.set_wakeup_fd(-1)
    with ExitStack() as stack:
        stack.callback(signal.set_wakeup_fd, before)
        stack.callback(record.remove)
        theirs, ours = (stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2))
        for listener, name in ((theirs, f"{SUPERVISORS}/1.sock"), (ours, "sock")):
            listener.bind(name)
            listener.listen(1)
        supervisor = threading.Thread(target=supervise, args=(theirs,), daemon=True)
        supervisor.start()
        recovery = Recovery(runs, pool, SURROUNDINGS)
        shim = Shim(ours, Journal("other"), runs, pool, recovery)
        recovery.of_earlier_shims()
        shim.run(0.1)
    run = runs.runs[ORDER.uid]
    assert (run.phase, (run.outcome or {}).get("reason")) == (FINISHED, "Told")


def test_a_program_that_ended_is_not_reaped_before_the_news_of_its_supervisors_death_can_be_in() -> None:
    own = set(processes.children())
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 7"], {})
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert processes.settle_orphans(own, (), set()) == {pid}
    pidfd = os.pidfd_open(pid)
    assert os.waitstatus_to_exitcode(processes.exit_status(pid, pidfd) or 0) == 7
    os.close(pidfd)
    assert processes.settle_orphans(own, (pid,), {pid}) == {pid}
    assert processes.settle_orphans(own, (), {pid}) == set()
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


REACHED = {V1: ("memory.failcnt", "7", "8"), V2: ("memory.events", "low 0\nmax 7\n", "low 0\nmax 8\n")}
"""By version, the file of a control group that says how often its limit on memory was reached, before and after."""


@pytest.mark.parametrize("version", REACHED)
@pytest.mark.parametrize("own", [True, False])
def test_what_does_not_start_for_its_own_memory_limit_is_no_shortage_of_its_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, *, own: bool
) -> None:
    group, (told, before, after) = tmp_path / "group", REACHED[version]
    group.mkdir()
    for name in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max", "memory.swap.max"):
        (group / name).touch()
    (group / told).write_text(before)

    def spawn(*_: object, **__: object) -> int:  # no kernel can be made to refuse it for certain
        (group / told).write_text(after if own else before)
        raise OSError(errno.ENOMEM, "no")

    monkeypatch.setattr(os, "posix_spawn", spawn)
    monkeypatch.chdir(tmp_path)  # where it returns to
    home = os.open(tmp_path, os.O_RDONLY)
    surroundings = Surroundings(place="here", boot="now", home=home, idle_s=0.1)
    execution = Execution(Record(str(tmp_path / "record")), Group(version, (str(group),)), surroundings)
    execution.launch({**message(tmp_path), "memory": 1 << 20})
    os.close(home)
    assert execution.program is not None
    outcome = execution.program.outcome
    assert outcome is not None
    assert (outcome["started"], outcome["conditions"]) == (False, ["LaunchFailed"])
    assert outcome["reason"] == ("MemoryLimitTooSmall" if own else "OutOfMemory")
    assert outcome["message"].endswith(": it exceeded its memory limit of 1Mi") is own
