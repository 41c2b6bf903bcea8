"""Runs outlive engines, the shim and their supervisors, and so do their results."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.failure import EndedBy, FailureCondition
from holdfast.domain.job import Resources
from holdfast.engines.process.engine import ProcessEngine
from holdfast.engines.process.shim import processes
from holdfast.errors import EngineError
from holdfast.ports.engine import RunPhase, StopReason
from tests.integration.conftest import ours

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.conftest import Machine, NewMachine

SERVER = """
import sys, pathlib
from holdfast.engines.process.engine import ProcessEngine
from holdfast.ports.engine import Container, RunOrder

engine = ProcessEngine(pathlib.Path(sys.argv[1]), shim_idle_s=0.1)
command = ("sh", "-c", "echo up; while ! test -e ../../../../go; do sleep 0.02; done; exit $(cat ../../../../go)")
mains = (Container(command=command),)
engine.start([RunOrder(f"run-{n}", f"job-{n}", "j", attempt=1, rank=0, size=1, containers=mains) for n in (1, 2)])
print("started", flush=True)
sys.stdin.read()
"""


def until(machine: Machine, condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < deadline
        machine.changed.wait(0.02)


def waiting(machine: Machine) -> tuple[str, ...]:
    """Return a program that ends with the code it is let go with."""
    go = machine.directory / "go"
    return ("sh", "-c", f"echo up; while ! test -e {go}; do sleep 0.02; done; exit $(cat {go})")


def leads(pid: int) -> bool:
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:  # of the many that come and go below a program
        return False


def let_go(machine: Machine, code: int) -> None:
    written = machine.directory / "go.new"
    written.write_text(f"{code}\n")
    written.rename(machine.directory / "go")


def test_a_reopened_engine_sees_running_and_finished_runs(machine: Machine) -> None:
    failed = machine.start("sh", "-c", "exit 3")
    before = machine.finish(failed)
    going = machine.start(*waiting(machine))
    running = machine.until(going, lambda seen: seen.phase is RunPhase.RUNNING)
    machine.engine.close()
    machine.open()
    seen = machine.engine.observe()
    assert seen[failed.uid].outcome == before
    assert seen[going.uid] == running
    let_go(machine, 5)
    assert machine.finish(going).containers[0].exit_code == 5


def test_an_end_nobody_was_connected_for_is_reported_later(machine: Machine) -> None:
    order = machine.start(*waiting(machine))
    machine.until_logged(order, "up")
    machine.engine.close()
    let_go(machine, 6)
    while machine.survivors():
        machine.changed.wait(0.01)
    machine.open()
    assert machine.finish(order).containers[0].exit_code == 6


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_runs_outlive_the_server_and_tell_its_successor_their_real_exit_codes(
    new_machine: NewMachine, tmp_path: Path, end: int
) -> None:
    command = [sys.executable, "-c", SERVER, str(tmp_path)]
    with subprocess.Popen(
        command,
        start_new_session=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"started\n"
        os.killpg(server.pid, end)
    machine = new_machine(tmp_path)
    orders = [machine.order(job_id=f"job-{number}") for number in (1, 2)]
    assert set(machine.engine.observe()) == {order.uid for order in orders}
    for order in orders:
        machine.until_logged(order, "up")
    let_go(machine, 7)
    assert [machine.finish(order).containers[0].exit_code for order in orders] == [7, 7]


def test_programs_and_results_outlive_a_killed_shim(machine: Machine) -> None:
    failed = machine.start("sh", "-c", "seq 10000; echo NCCL error >&2; exit 3")
    before = machine.finish(failed)
    assert before.log.endswith("10000\nNCCL error\n")
    orders = [machine.start(*waiting(machine)), machine.start("sh", "-c", "echo up; setsid sleep 1000 & sleep 1000")]
    for order in orders:
        machine.until_logged(order, "up")
    machine.shim().kill()
    until(machine, lambda: machine.engine.trouble() is None and len(ours(machine.directory, "holdfast-shim")) == 1)
    until(machine, lambda: all(machine.engine.observe()[order.uid].phase is RunPhase.RUNNING for order in orders))
    assert machine.engine.observe()[failed.uid].outcome == before
    let_go(machine, 5)
    assert machine.finish(orders[0]).containers[0].exit_code == 5
    machine.engine.stop([(orders[1].uid, 5.0, StopReason.USER)])
    assert machine.finish(orders[1]).ended_by is EndedBy.USER
    assert not machine.survivors()


def test_an_end_that_comes_while_there_is_no_shim_is_not_missed(machine: Machine) -> None:
    order = machine.start(*waiting(machine))
    machine.until_logged(order, "up")
    shim = machine.shim()
    machine.engine.close()
    shim.kill()
    let_go(machine, 7)
    until(machine, lambda: not machine.survivors())
    machine.open()
    assert machine.finish(order).containers[0].exit_code == 7
    assert machine.log(order) == "up\n"


def test_a_deadline_and_a_grace_are_kept_while_there_is_no_shim(machine: Machine) -> None:
    order = machine.start("sh", "-c", "trap '' TERM; while :; do sleep 0.1; done", deadline_s=1.0, grace_s=0.5)
    machine.until(order, lambda seen: seen.phase is RunPhase.RUNNING)
    shim = machine.shim()
    machine.engine.close()
    shim.kill()
    until(machine, lambda: not machine.survivors())
    machine.open()
    outcome = machine.finish(order)
    assert (outcome.ended_by, outcome.conditions) == (EndedBy.DEADLINE, frozenset({FailureCondition.DEADLINE_EXCEEDED}))


def test_an_end_is_known_although_the_shim_slept_and_the_supervisor_of_an_earlier_one_was_killed(
    machine: Machine,
) -> None:
    """Nobody of ours inherits that program: whoever is the last resort's parent reaps it while the shim sleeps."""
    if not processes.can_be_waited_for(os.getpid()):
        pytest.skip("this kernel is older than 6.15: it tells only a parent how a program ended")
    order = machine.start(*waiting(machine))
    machine.until_logged(order, "up")
    machine.shim().kill()
    until(machine, lambda: machine.engine.trouble() is None and len(ours(machine.directory, "holdfast-shim")) == 1)
    (holder,) = [each for each in machine.supervisors() if each.children()]
    machine.shim().suspend()  # the engine wakes it after a while
    holder.kill()
    let_go(machine, 7)
    assert machine.finish(order).containers[0].exit_code == 7


@pytest.mark.parametrize("limits", ["auto", "rss"])
def test_a_killed_supervisor_is_replaced_and_its_program_notices_nothing(
    new_machine: NewMachine, tmp_path: Path, limits: str
) -> None:
    machine = new_machine(tmp_path, memory_limits=limits)
    orders = [machine.start(*waiting(machine)) for _ in range(2)]
    for order in orders:
        machine.until_logged(order, "up")
    programs = [process for process in machine.survivors() if leads(process.pid)]
    for supervisor in machine.supervisors():
        supervisor.kill()
    assert len(programs) == len(orders)
    assert all(program.is_running() for program in programs)
    let_go(machine, 9)
    for order in orders:
        assert machine.finish(order).containers[0].exit_code == 9
        assert machine.log(order) == "up\n"


def test_a_program_goes_on_although_the_supervisor_that_was_to_take_over_died_first(machine: Machine) -> None:
    order = machine.start(*waiting(machine))
    machine.until_logged(order, "up")
    [fork_server] = ours(machine.directory, "holdfast-fork")
    fork_server.suspend()
    [supervisor] = machine.supervisors()
    supervisor.kill()
    threading.Event().wait(0.15)  # the shim asks for another one, and wakes who is to make it only after a second
    fork_server.kill()
    let_go(machine, 6)
    assert machine.finish(order).containers[0].exit_code == 6
    assert machine.log(order) == "up\n"


def test_a_stop_reaches_a_program_whose_supervisor_was_killed(machine: Machine) -> None:
    order = machine.start("sh", "-c", "trap 'echo told; exit 4' TERM; echo up; while :; do sleep 0.05; done")
    machine.until_logged(order, "up")
    for supervisor in machine.supervisors():
        supervisor.kill()
    machine.engine.stop([(order.uid, 10.0, StopReason.USER)])
    outcome = machine.finish(order)
    assert (outcome.containers[0].exit_code, outcome.ended_by) == (4, EndedBy.USER)
    assert machine.log(order).endswith("told\n")


def test_memory_is_limited_also_after_the_supervisor_was_killed(machine: Machine) -> None:
    hog = "import os, time\nprint('up', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)\nx = []\n"
    code = hog + "while True: x.append(bytearray(8 << 20))"
    order = machine.start(sys.executable, "-c", code, job_id="hog", resources=Resources(memory=96 << 20))
    machine.until_logged(order, "up")
    for supervisor in machine.supervisors():
        supervisor.kill()
    (machine.directory / "jobs" / "hog" / "1.0" / "work" / "go").touch()
    assert machine.finish(order).containers[0].signal == signal.SIGKILL
    assert machine.run("true").succeeded


def test_programs_outlive_the_death_of_all_of_us_at_once_or_are_lost_and_over(machine: Machine) -> None:
    """Whether it is the one or the other depends on what the kernel tells of processes that are nobody's children."""
    order = machine.start(*waiting(machine))
    machine.until_logged(order, "up")
    machine.engine.close()
    for process in ours(machine.directory):
        process.kill()
    machine.open()
    if processes.can_be_waited_for(os.getpid()):
        let_go(machine, 8)
        assert machine.finish(order).containers[0].exit_code == 8
    else:
        outcome = machine.finish(order)
        assert (outcome.ended_by, outcome.conditions) == (EndedBy.LOST, frozenset({FailureCondition.EXECUTOR_LOST}))
        assert outcome.log_tail == ("up",)
    assert not machine.survivors()


def test_what_ended_after_the_death_of_all_of_us_is_lost_and_said_to_be(machine: Machine) -> None:
    order = machine.start(*waiting(machine))
    machine.until_logged(order, "up")
    machine.engine.close()
    killed = ours(machine.directory)
    for process in killed:
        process.kill()
    let_go(machine, 8)
    until(machine, lambda: not machine.survivors())
    time_to_be_reaped = time.monotonic() + 3.0  # by whoever is the last resort's parent on this machine
    while time.monotonic() < time_to_be_reaped and any(process.is_running() for process in killed):
        machine.changed.wait(0.1)
    machine.open()
    outcome = machine.finish(order)
    assert outcome.started
    assert outcome.conditions <= {FailureCondition.EXECUTOR_LOST}


@pytest.mark.parametrize("killed", ["nobody", "holdfast-shim"])
def test_programs_end_when_there_has_been_no_server_for_the_length_of_its_lease(
    new_machine: NewMachine, tmp_path: Path, killed: str
) -> None:
    machine = new_machine(tmp_path, lease_s=1.0)
    order = machine.start("sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
    machine.until(order, lambda seen: seen.phase is RunPhase.RUNNING)
    machine.engine.close()
    for process in ours(machine.directory, killed):
        process.kill()
    until(machine, lambda: not machine.survivors())
    machine.open()
    outcome = machine.finish(order)
    assert (outcome.ended_by, outcome.containers[0].signal) == (EndedBy.LOST, signal.SIGKILL)
    assert "no server" in outcome.message


def test_programs_go_on_under_a_server_that_has_nothing_to_say(new_machine: NewMachine, tmp_path: Path) -> None:
    machine = new_machine(tmp_path, lease_s=1.5)
    order = machine.start("sh", "-c", "sleep 4; exit 5")
    assert machine.finish(order).containers[0].exit_code == 5


def test_a_suspended_supervisor_is_woken(machine: Machine) -> None:
    order = machine.start(*waiting(machine))
    machine.until_logged(order, "up")
    for supervisor in machine.supervisors():
        supervisor.suspend()
    let_go(machine, 3)
    assert machine.finish(order).containers[0].exit_code == 3


def test_a_suspended_shim_is_noticed_woken_and_harms_nobody(machine: Machine) -> None:
    order = machine.start(*waiting(machine))
    machine.until_logged(order, "up")
    machine.shim().suspend()
    until(machine, lambda: machine.engine.trouble() is not None)
    assert "not answered" in (machine.engine.trouble() or "")
    let_go(machine, 3)
    assert machine.finish(order).containers[0].exit_code == 3
    until(machine, lambda: machine.engine.trouble() is None)


def test_an_engine_opened_beside_a_suspended_shim_wakes_it(machine: Machine) -> None:
    order = machine.start(*waiting(machine))
    machine.until_logged(order, "up")
    shim = machine.shim()
    machine.engine.close()
    shim.suspend()
    machine.open()
    assert machine.shim().pid == shim.pid
    let_go(machine, 3)
    assert machine.finish(order).containers[0].exit_code == 3


def test_a_shim_with_nothing_to_do_leaves_and_its_results_stay(machine: Machine) -> None:
    order = machine.start("sh", "-c", "exit 3")
    before = machine.finish(order)
    machine.end()
    machine.open()
    assert machine.engine.observe()[order.uid].outcome == before


def test_a_journal_with_nothing_to_remember_is_empty(machine: Machine) -> None:
    orders = [machine.start("true") for _ in range(5)]
    for order in orders:
        machine.finish(order)
    journal = machine.directory / "shim.journal"
    assert journal.stat().st_size > 0
    machine.engine.forget([order.uid for order in orders])
    while journal.stat().st_size:
        machine.changed.wait(0.01)
    machine.end()
    machine.open()
    assert not machine.engine.observe()


def test_a_line_cut_short_does_not_spoil_a_journal(machine: Machine) -> None:
    order = machine.start("sh", "-c", "exit 3")
    before = machine.finish(order)
    machine.end()
    with (machine.directory / "shim.journal").open("a") as journal:
        journal.write('["start","run-9",')
    machine.open()
    assert machine.engine.observe()[order.uid].outcome == before


def test_two_engines_on_a_directory_see_the_same(machine: Machine, new_machine: NewMachine) -> None:
    order = machine.start(*waiting(machine))
    other = new_machine(machine.directory)
    other.until(order, lambda seen: seen.phase is RunPhase.RUNNING)
    let_go(machine, 0)
    assert machine.finish(order).succeeded
    assert other.finish(order).succeeded
    machine.engine.forget([order.uid])
    while order.uid in other.engine.observe():
        other.changed.wait(0.01)
    machine.engine.close()


def test_a_deep_directory_is_no_obstacle(new_machine: NewMachine, tmp_path: Path) -> None:
    machine = new_machine(tmp_path / "/".join(["a-rather-long-name-of-a-folder"] * 5))
    assert machine.run("true").succeeded


def test_nobody_else_may_look(machine: Machine) -> None:
    assert stat.S_IMODE(machine.directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((machine.directory / "shim.sock").stat().st_mode) == 0o700 & ~0o077


def test_a_stop_reaches_a_run_started_by_an_earlier_engine(machine: Machine) -> None:
    order = machine.start("sleep", "1000")
    machine.until(order, lambda seen: seen.phase is RunPhase.RUNNING)
    machine.engine.close()
    machine.open()
    machine.engine.stop([(order.uid, 5.0, StopReason.USER)])
    assert machine.finish(order).ended_by is EndedBy.USER


def test_a_directory_that_cannot_be_used_is_an_engine_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EngineError, match="cannot use"):
        ProcessEngine(tmp_path / "file" / "below")


@pytest.mark.parametrize("boot", ["this", "another"])
def test_a_process_that_has_a_lost_programs_number_is_left_alone(machine: Machine, boot: str) -> None:
    """After a reboot every number may be somebody else's, and within one boot numbers come round again."""
    order = machine.start("sleep", "1000")
    machine.until(order, lambda seen: seen.phase is RunPhase.RUNNING)
    until(machine, machine.survivors)  # its environment can be read a moment after it runs
    [program] = machine.survivors()
    machine.engine.close()
    for process in [*ours(machine.directory), program]:
        process.kill()
    later = time.monotonic() + 0.1  # births are known to a hundredth of a second
    while time.monotonic() < later:
        machine.changed.wait(0.05)
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as bystander:
        _rewrite_start(machine.directory / "supervisors", order.uid, bystander.pid, boot)
        machine.open()
        assert machine.finish(order).conditions == {FailureCondition.EXECUTOR_LOST}
        assert bystander.poll() is None
        bystander.kill()


def _rewrite_start(records: Path, uid: str, pid: int, boot: str) -> None:
    """Let the record name another process; as of another boot also with a time of birth that fits it."""
    for path in records.glob("*.record"):
        lines = [json.loads(line) for line in path.read_bytes().partition(b"\0")[0].splitlines()]
        if lines[0]["order"]["uid"] == uid:
            lines[1]["pid"] = pid
            if boot == "another":
                lines[0]["boot"] = "another boot"
                lines[1].update(before=0.0, after=1e9)
            path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines) + b"\0")


def test_a_copy_of_a_directory_leaves_the_originals_programs_alone(
    machine: Machine, new_machine: NewMachine, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    finished = machine.start("sh", "-c", "exit 3")
    before = machine.finish(finished)
    orders = [machine.start(*waiting(machine)) for _ in range(3)]
    for order in orders:
        machine.until_logged(order, "up")
    copied = tmp_path_factory.mktemp("copy") / "runs"
    # Not the sockets: no tool can copy those that is used.
    shutil.copytree(tmp_path, copied, ignore=shutil.ignore_patterns("*.sock"))
    copy = new_machine(copied)
    for order in orders:
        outcome = copy.finish(order)
        assert (outcome.ended_by, outcome.conditions) == (EndedBy.LOST, frozenset({FailureCondition.EXECUTOR_LOST}))
        assert "copied" in outcome.message
    assert copy.engine.observe()[finished.uid].outcome == before
    copy.numbers = itertools.count(100)
    assert copy.run("true").succeeded
    let_go(machine, 6)
    assert [machine.finish(order).containers[0].exit_code for order in orders] == [6, 6, 6]


def test_an_order_is_written_down_before_its_program_starts(machine: Machine) -> None:
    order = machine.start("sh", "-c", "cat ../../../../shim.journal ../../../../supervisors/*.record")
    assert machine.finish(order).succeeded
    seen = machine.log(order)
    assert f'["order","{order.uid}"' in seen
    assert f'"uid":"{order.uid}"' in seen


def test_hundreds_of_idle_runs_share_their_memory(machine: Machine) -> None:
    count = 100
    orders = [machine.order("sleep", "1000") for _ in range(count)]
    machine.engine.start(orders)
    for order in orders:
        machine.until(order, lambda seen: seen.phase is RunPhase.RUNNING)
    own = [process.memory_full_info().uss for process in machine.supervisors()]
    assert len(own) >= count
    assert sum(own) / len(own) < 2_200_000
