"""Runs outlive engines, and what is known of them outlives keepers."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.failure import Condition, EndedBy
from holdfast.engines.process import ProcessEngine
from holdfast.errors import EngineError
from holdfast.ports.engine import RunPhase, StopReason

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import Machine, NewMachine

SERVER = """
import sys, pathlib
from holdfast.engines.process import ProcessEngine
from holdfast.ports.engine import RunOrder

engine = ProcessEngine(pathlib.Path(sys.argv[1]), keeper_idle_s=0.1)
command = ("sh", "-c", "echo up; while ! test -e ../../../../go; do sleep 0.02; done; exit $(cat ../../../../go)")
engine.start([RunOrder(f"run-{n}", f"job-{n}", "j", attempt=1, rank=0, size=1, command=command) for n in (1, 2)])
print("started", flush=True)
sys.stdin.read()
"""


def waiting(machine: Machine) -> tuple[str, ...]:
    """Return a program that ends with the code it is let go with."""
    go = machine.directory / "go"
    return ("sh", "-c", f"echo up; while ! test -e {go}; do sleep 0.02; done; exit $(cat {go})")


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


def test_runs_of_a_killed_keeper_are_lost_and_over_and_results_are_kept(machine: Machine) -> None:
    failed = machine.start("sh", "-c", "exit 3")
    before = machine.finish(failed)
    orders = [
        machine.start("sh", "-c", "echo last words; trap : TERM; while :; do sleep 0.1; done"),
        machine.start("sh", "-c", "echo last words; setsid sleep 1000 & sleep 1000"),
    ]
    for order in orders:
        machine.until_logged(order, "last words")
    machine.keeper().kill()
    for order in orders:
        outcome = machine.finish(order)
        assert (outcome.ended_by, outcome.conditions) == (EndedBy.LOST, frozenset({Condition.EXECUTOR_LOST}))
        assert outcome.started
        assert outcome.log_tail == ("last words",)
    assert not machine.survivors()
    assert machine.engine.observe()[failed.uid].outcome == before
    assert machine.run("true").succeeded


def test_a_keeper_that_died_while_nobody_looked_is_accounted_for(machine: Machine) -> None:
    order = machine.start("sleep", "1000")
    machine.until(order, lambda seen: seen.phase is RunPhase.RUNNING)
    keeper = machine.keeper()
    machine.engine.close()
    keeper.kill()
    machine.open()
    assert machine.finish(order).ended_by is EndedBy.LOST
    assert not machine.survivors()


def test_orders_sent_while_the_keeper_dies_are_carried_out_once(machine: Machine) -> None:
    assert machine.run("true").succeeded
    machine.keeper().suspend()
    order = machine.start("sh", "-c", "echo once")
    machine.keeper().kill()
    assert machine.finish(order).succeeded
    assert machine.log(order) == "once\n"


def test_a_keeper_with_nothing_to_do_leaves_and_its_results_stay(machine: Machine) -> None:
    order = machine.start("sh", "-c", "exit 3")
    before = machine.finish(order)
    machine.end()
    machine.open()
    assert machine.engine.observe()[order.uid].outcome == before


def test_a_journal_with_nothing_to_remember_is_empty(machine: Machine) -> None:
    orders = [machine.start("true") for _ in range(5)]
    for order in orders:
        machine.finish(order)
    journal = machine.directory / "keeper.journal"
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
    with (machine.directory / "keeper.journal").open("a") as journal:
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
    assert stat.S_IMODE((machine.directory / "keeper.sock").stat().st_mode) == 0o700 & ~0o077


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
    while not (found := machine.survivors()):  # its environment can be read a moment after it runs
        machine.changed.wait(0.01)
    [program], keeper = found, machine.keeper()
    machine.engine.close()
    keeper.kill()
    program.kill()
    later = time.monotonic() + 0.1  # births are known to a hundredth of a second
    while time.monotonic() < later:
        machine.changed.wait(0.05)
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as bystander:
        _rewrite_start(machine.directory / "keeper.journal", bystander.pid, boot)
        machine.open()
        assert machine.finish(order).conditions == {Condition.EXECUTOR_LOST}
        assert bystander.poll() is None
        bystander.kill()


def _rewrite_start(journal: Path, pid: int, boot: str) -> None:
    """Let the journal name another process; as of another boot also with a time of birth that fits it."""
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    for line in lines:
        if line[0] == "start":
            line[2] = pid
            if boot == "another":
                line[4:] = [0.0, 1e9, "another boot"]
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
